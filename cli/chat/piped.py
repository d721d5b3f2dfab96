"""A chat without a terminal: one question a line of standard input, answers on standard output."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import BinaryIO

import typer

from localctx.document.encodings import decode_small
from localctx.errors import LocalctxError, PartlyDone, UsageError

from ..terminal import note, write_as_is
from .chat import Chat
from .commands import Edit, is_question, obey

__all__ = ["lines_of", "standard_input", "talk"]

MAX_LINE_BYTES = 1 << 20


def talk(chat: Chat, stream: BinaryIO) -> None:
    """Answer each line until the end, or /quit; an error is told, and the next line is answered.

    Raises Exit with the error's code where nothing could be answered, PartlyDone where something could not
    be.
    """
    n_done, errors = 0, list[LocalctxError]()
    echoes = not (chat.wanted.output.json or chat.wanted.output.quiet)
    for line in lines_of(stream):
        if echoes and is_question(line):  # as an exported conversation has it
            write_as_is(f"{chr(10) * bool(n_done)}## {line.removeprefix('/')}\n\n")
        try:
            if not _obeyed(chat, line):
                break
        except LocalctxError as error:
            hint = f" ({error.hint})" if error.hint else ""
            note(f"localctx: {error.message}{hint}")
            errors.append(error)
        else:
            n_done += 1
    if errors and n_done:
        raise PartlyDone(f"{len(errors)} of {len(errors) + n_done} lines could not be answered")
    if errors:
        raise typer.Exit(errors[-1].exit_code)


def _obeyed(chat: Chat, line: str) -> bool:
    try:
        return obey(chat, line)
    except Edit:
        raise UsageError("/edit needs a terminal", "ask the question as it should be") from None


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """The lines that say something, decoded as files are. Raises nothing for what is no text: it is shown
    replaced.
    """
    while data := stream.readline(MAX_LINE_BYTES):
        text, _, _ = decode_small(data.rstrip(b"\r\n"))
        if text.strip():
            yield text.strip()


def standard_input() -> BinaryIO:
    """Standard input as bytes."""
    return sys.stdin.buffer
