"""The documents that are open in a chat: opened by name, closed by name, all closed at the end."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack
from typing import TYPE_CHECKING

from localctx.errors import UsageError
from localctx.names import display_name
from localctx.settings import nearest

from ..documents import open_documents

if TYPE_CHECKING:
    from localctx.document import Document

__all__ = ["Library"]


class Library:
    """`documents`: those that are open, in order. `open_one` opens a file, `warn` is told what cannot be."""

    def __init__(self, open_one: Callable[[str], Document], warn: Callable[[str], None]) -> None:
        self._open_one, self._warn = open_one, warn
        self._stack = ExitStack()
        self._paths: dict[Document, str] = {}
        self.documents: list[Document] = []

    def open(self, source: str, *, has_page_range: bool = False) -> list[Document]:
        """Open a file or what a folder holds; what was open already, by content and name, is left out.

        Raises what opening raises.
        """
        opened = self._stack.enter_context(
            open_documents([source], self._open_one, self._warn, has_page_range=has_page_range)
        )
        there = {(document.source, document.content_hash) for document in self.documents}
        new = []
        for document in opened.documents:
            if (document.source, document.content_hash) in there:
                document.close()
                self._warn(f"{document.source} is open already")
            else:
                new.append(document)
                self._paths[document] = os.path.abspath(document.source)  # noqa: PTH100  # keeps links as typed
        self.documents += new
        return new

    def close_one(self, name: str) -> Document:
        """Close the document of that name, or with that number (from 1). Raises UsageError."""
        names = [document.source for document in self.documents]
        short = [os.path.basename(source) for source in names]  # noqa: PTH119  # of names that may be no text
        for candidates in (names, short):
            if candidates.count(name) == 1:
                return self._take(candidates.index(name))
        if name.isdecimal() and 1 <= int(name) <= len(names):
            return self._take(int(name) - 1)
        raise UsageError(
            f"no open document is called {display_name(name)!r}{nearest(name, short)}", "/docs lists them"
        )

    def listed(self) -> tuple[tuple[str, str], ...]:
        """(path, content hash) of each, for a conversation that is kept."""
        return tuple((self._paths[document], document.content_hash) for document in self.documents)

    def close(self) -> None:
        """Close all."""
        self.documents.clear()
        self._stack.close()

    def _take(self, place: int) -> Document:
        document = self.documents.pop(place)
        del self._paths[document]
        document.close()
        return document
