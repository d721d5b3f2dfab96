"""The two output streams: what may be written to a terminal, and what happens when writing fails.

Knows no commands. Text of documents and models is shown without control characters where a person's terminal
would obey them; a pipe gets it as it is.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import sys
from typing import Any, TextIO

from localctx.errors import LocalctxError

__all__ = [
    "DISK_FULL",
    "OutputFailed",
    "discard_output",
    "flush_errors",
    "flush_output",
    "json_text",
    "note",
    "prepare_streams",
    "print_json",
    "print_line",
    "shown",
    "shown_on_terminal",
    "silent",
    "write",
    "write_as_is",
]

DISK_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""What writing to a full disk says; without a file name it is an output stream or a temporary file."""
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202d\u202e]")
"""What terminals obey, and what turns the order of letters round."""


class OutputFailed(LocalctxError):
    """Standard output cannot be written (a full disk)."""


def prepare_streams() -> None:
    """UTF-8 on both output streams; a stream that was closed by the caller leads nowhere."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        stream = getattr(sys, name)
        if stream is None:
            stream = open(os.devnull, "w" if descriptor else "r", encoding="utf-8")  # noqa: PTH123, SIM115  # open for the whole run
            setattr(sys, name, stream)
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if descriptor and reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")


def shown(text: str, stream: TextIO) -> str:
    """The text as it may be written to the stream: on a terminal without control characters."""
    return shown_on_terminal(text) if stream.isatty() else text


def shown_on_terminal(text: str) -> str:
    """The text without control characters but tabs and line ends."""
    return _CONTROLS.sub("\ufffd", text.replace("\r\n", "\n"))


def json_text(value: object) -> str:
    """A JSON value; on a terminal without control characters, which are escaped then."""
    text = json.dumps(value, ensure_ascii=False)
    if sys.stdout.isatty():
        text = _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
    return text


def write_as_is(text: str) -> None:
    """Write to standard output at once. Raises BrokenPipeError without a reader, else OutputFailed."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        raise _failed(error) from None


def write(text: str) -> None:
    """Write text of documents or models to standard output."""
    write_as_is(shown(text, sys.stdout))


def print_line(text: str) -> None:
    """A line of the command's result."""
    write(text + "\n")


def print_json(value: object) -> None:
    """The command's result as one JSON object on one line."""
    write_as_is(json_text(value) + "\n")


def note(text: str) -> None:
    """A line about the work, on standard error."""
    with contextlib.suppress(OSError):  # when standard error is gone, nobody can be told
        print(shown(text, sys.stderr), file=sys.stderr, flush=True)  # noqa: T201  # this is the printing module


def silent(_: str) -> None:
    """A note that nobody wants."""


def flush_output() -> None:
    """Write what is still held back. Raises as write_as_is()."""
    write_as_is("")


def discard_output() -> None:
    """Let standard output lead nowhere, since Python would complain again when it flushes at exit."""
    _discard(sys.stdout)


def flush_errors() -> None:
    """Write what standard error still holds back. Where it cannot be written it leads nowhere from now on, so
    that Python's exit code for that does not hide the program's.
    """
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def _discard(stream: TextIO) -> None:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def _failed(error: OSError) -> OutputFailed:
    return OutputFailed(
        f"cannot write to standard output: {(error.strerror or str(error)).lower()}",
        "free some space, or write somewhere else",
    )
