"""FILE arguments to open documents: directories walked, failures collected, all closed at the end."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localctx.errors import InputError, UsageError

if TYPE_CHECKING:
    from localctx.document import Document

__all__ = ["Opened", "open_documents", "page_range"]


@dataclass(frozen=True, slots=True)
class Opened:
    """The documents that could be opened, and how many could not."""

    documents: list[Document]
    n_failed: int


def page_range(text: str | None) -> tuple[int, int] | None:
    """`10-40`, `7`, `10-` or `-5` as (first, last), 1-based and inclusive."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    try:
        low = int(first) if first else 1
        high = int(last) if last else (low if not dash else 1 << 30)
    except ValueError:
        low, high = 0, 0
    if not 1 <= low <= high:
        raise UsageError(f"--pages {text!r} is not a page range", "--pages 10-40")
    return low, high


@contextmanager
def open_documents(
    sources: Sequence[str], open_one: Callable[[str], Document], warn: Callable[[str], None]
) -> Iterator[Opened]:
    """Open every source with `open_one`. One that was named must open; what a directory holds is told by
    `warn` when it cannot be used. Raises InputError when nothing can be opened.
    """
    documents: list[Document] = []
    n_failed = 0
    with ExitStack() as stack:
        for source in sources:
            if source == "-" or not os.path.isdir(source):  # noqa: PTH112  # names that are no text stay bytes-safe
                documents.append(stack.enter_context(open_one(source)))
                continue
            for entry in _entries(source):
                if isinstance(entry, str):
                    try:
                        documents.append(stack.enter_context(open_one(entry)))
                    except InputError as error:
                        n_failed += 1
                        warn(f"skipped: {error.message}")
                else:
                    warn(f"skipped: {entry[0]}: {entry[1]}")
        if not documents:
            raise InputError(
                f"{', '.join(sources)}: nothing to read", "name a file, or a directory that holds some"
            )
        yield Opened(documents, n_failed)


def _entries(directory: str) -> Iterator[str | tuple[str, str]]:
    """The files of a directory, and (name, reason) of what is passed over."""
    from localctx.document import SkippedEntry, walk
    from localctx.document.source import display_name

    for entry in walk(directory):
        if isinstance(entry, SkippedEntry):
            yield display_name(entry.path), entry.reason
        else:
            yield os.fspath(entry)
