"""What Tab completes: slash commands, and the paths, documents, settings and models they take."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from localctx.errors import LocalctxError

from .chat import Chat
from .commands import COMMANDS, SETTABLE

__all__ = ["ChatCompleter"]


class ChatCompleter(Completer):
    """Completes the first word of a line that begins with /, then what its command takes."""

    def __init__(self, chat: Chat) -> None:
        self._paths = PathCompleter(expanduser=True)
        self._words: dict[str, Callable[[], Iterable[str]]] = {
            "close": lambda: [os.path.basename(one.source) for one in chat.library.documents],  # noqa: PTH119  # of names
            "set": lambda: SETTABLE,
            "load": lambda: _conversations(chat),
            "model": _models,
        }

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterator[Completion]:
        """See prompt_toolkit."""
        line = document.text_before_cursor
        if not line.startswith("/") or "\n" in line:
            return
        name, space, rest = line[1:].partition(" ")
        if not space:
            for command, about in COMMANDS.items():
                if command.startswith(name):
                    yield Completion(f"/{command}", -len(line), display_meta=about.help)
        elif name in ("open", "export") or (name == "model" and rest.startswith(("/", "~", "."))):
            yield from self._paths.get_completions(Document(rest, len(rest)), complete_event)
        elif name in self._words:
            for word in self._words[name]():
                if word.startswith(rest):
                    yield Completion(word, -len(rest))


def _conversations(chat: Chat) -> list[str]:
    try:
        return [one.name or str(one.id) for one in chat.saved.all()] if chat.saved is not None else []
    except LocalctxError:  # the file is gone: nothing to complete, /load says why
        return []


def _models() -> list[str]:
    from localctx.registry import list_models

    return [row.name for row in list_models() if row.path]
