"""RTF bytes → control words, groups and text bytes, in pieces of bounded size. Knows no word's meaning."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias

__all__ = ["Lexeme", "tokens"]

Lexeme: TypeAlias = "tuple[str, int | None, bytes]"
"""(word, its number, bytes): `{`, `}`, a control word or symbol, a backslash before an escaped brace; of
text the word is "" and the bytes are it; `'` has one byte."""

PATTERN = re.compile(
    rb"\\([A-Za-z]{1,32})(-?\d{1,10})?(?: |\r\n|[\r\n])?|\\'([0-9A-Fa-f]{2})|\\([^A-Za-z'])|([{}])|[\r\n]+"
    rb"|([^\\{}\r\n]+)|\\'?",
    re.S,
)
LONGEST = 64
"""Bytes that a control word takes at most."""


def tokens(chunks: Iterable[bytes]) -> Iterator[Lexeme]:
    """The tokens in order; the bytes behind \\binN, which may be anything, are passed over."""
    held = b""
    n_skip = 0
    for chunk, is_last in marked(chunks):
        held += chunk
        at = min(n_skip, len(held))
        n_skip -= at
        end = len(held) if is_last else max(at, len(held) - LONGEST)
        while at < end and (found := PATTERN.match(held, at)) is not None:
            at = found.end()
            word, number, code, symbol, brace, text = found.groups()
            if text is not None:
                yield "", None, text
            elif code is not None:
                yield "'", None, bytes([int(code, 16)])
            elif word is not None:
                value = None if number is None else int(number)
                if word == b"bin":
                    n_skip = max(0, value or 0)
                    step = min(n_skip, len(held) - at)
                    at, n_skip = at + step, n_skip - step
                else:
                    yield word.decode("ascii"), value, b""
            elif brace is not None:
                yield brace.decode("ascii"), None, b""
            elif symbol is not None:
                escaped = symbol in (b"{", b"}", b"\\")
                yield "\\" * escaped + symbol.decode("latin-1"), None, b""
        held = held[at:]


def marked(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bool]]:
    """Each chunk, and whether it is the last one, which may be empty."""
    for chunk in chunks:
        yield chunk, False
    yield b"", True
