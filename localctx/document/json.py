"""JSON and JSON Lines → the same text with \\uXXXX escapes readable. Does not parse: any size, any damage.

Escapes of control characters, quotes and backslashes stay, so that valid JSON stays valid; surrogate pairs
become one character, lone surrogates U+FFFD, counted as replaced.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from localctx.document.events import Event, Facts, Options, Text
from localctx.document.source import Source
from localctx.document.text import decoded

__all__ = ["convert"]

ESCAPE = re.compile(
    r"\\(?:u[dD]([89abAB][0-9a-fA-F]{2})\\u[dD]([c-fC-F][0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|(?s:.))"
)
OPEN_ESCAPE = re.compile(r"\\(?:u[0-9a-fA-F]{0,4}(?:\\(?:u[0-9a-fA-F]{0,3})?)?)?$")


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The text in pieces, then its encoding and the number of replaced characters."""
    unescape = Unescape()
    left = ""
    for piece in decoded(source, options):
        if isinstance(piece, Facts):
            yield Text(unescape(left))
            yield Facts(piece.encoding, (piece.replaced_characters or 0) + unescape.n_lone)
            return
        left += piece
        cut = len(left) if (found := open_escape(left)) is None else found
        yield Text(unescape(left[:cut]))
        left = left[cut:]


def open_escape(text: str) -> int | None:
    """Where an escape begins that the next piece may continue; None where the text ends outside of one."""
    found = OPEN_ESCAPE.search(text, max(0, len(text) - 12))
    if found is None:
        return None
    start = found.start()
    while start > 0 and text[start - 1] == "\\":  # take the whole run of backslashes along
        start -= 1
    return start


class Unescape:
    """Replaces the escapes of a text, counting lone surrogates in `n_lone`."""

    def __init__(self) -> None:
        self.n_lone = 0

    def __call__(self, text: str) -> str:
        return ESCAPE.sub(self._character, text) if "\\u" in text else text

    def _character(self, found: re.Match[str]) -> str:
        high, low, single = found.groups()
        if high is not None:
            pair = ((0xD000 | int(high, 16)) - 0xD800 << 10) + (0xD000 | int(low, 16)) - 0xDC00
            return chr(0x10000 + pair)
        if single is None:
            return found[0]
        code = int(single, 16)
        if 0xD800 <= code <= 0xDFFF:
            self.n_lone += 1
            return "\ufffd"
        return found[0] if code < 0x20 or code in (0x22, 0x5C) or 0x7F <= code < 0xA0 else chr(code)
