"""Small text files that a person wrote: settings, a question, a password. Never reads without bound."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import BinaryIO

from localctx.given_files import open_given

__all__ = [
    "MAX_BYTES",
    "finite_number",
    "read_small_stream",
    "read_small_text",
    "reason_of",
    "refuse_constant",
]

MAX_BYTES = 1 << 20


def read_small_text(path: Path) -> str:
    """The text of a UTF-8 file of at most 1 MiB (see open_given). Raises OSError, ValueError."""
    with open_given(path) as file:
        return read_small_stream(file)


def read_small_stream(stream: BinaryIO) -> str:
    """The same of a stream, to its end."""
    data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data.decode("utf-8-sig")


def refuse_constant(name: str) -> None:
    """For json's parse_constant: NaN and Infinity are no JSON. Raises ValueError."""
    raise ValueError(f"{name} is no number of JSON")


def finite_number(digits: str) -> float:
    """For json's parse_float. Raises ValueError for a number that would become infinite."""
    if math.isinf(value := float(digits)):
        raise ValueError(f"{digits[:40]} is too large a number")
    return value


def reason_of(error: OSError | ValueError) -> str:
    """Why a file could not be read, in words."""
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return "it is not UTF-8 text" if isinstance(error, UnicodeDecodeError) else str(error)
