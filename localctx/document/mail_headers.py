"""Headers of a message → readable text: encoded words, raw bytes, folded lines. Knows no bodies."""

from __future__ import annotations

import binascii
import re
from collections.abc import Iterator
from email.errors import HeaderParseError
from email.header import decode_header
from email.message import Message

from localctx.document.encodings import decode_small

__all__ = ["MAX_CHARACTERS", "file_name", "header_lines", "header_text", "title_of"]

SHOWN = ("From", "Reply-To", "To", "Cc", "Bcc", "Date")
MAX_CHARACTERS = 20_000
"""Of one header; decoding encoded words takes time with its square."""
BETWEEN_WORDS = re.compile(r"(\?=)\s+(=\?)")


def title_of(message: Message) -> str:
    """The subject, or that there is none."""
    return next(iter(headers(message, "Subject")), "") or "(no subject)"


def header_lines(message: Message) -> Iterator[str]:
    """`Name: value` of the headers that a reader looks at."""
    for name in SHOWN:
        for value in headers(message, name):
            yield f"{name}: {value}"


def headers(message: Message, name: str) -> list[str]:
    """The values of a header that stands there, in order."""
    return [
        text
        for key, value in message.raw_items()
        if key.lower() == name.lower() and (text := header_text(str(value)))
    ]


def header_text(value: str) -> str:
    """A header's value on one line, encoded words and raw bytes decoded."""
    cut = value[:MAX_CHARACTERS]
    if any("\udc80" <= character <= "\udcff" for character in cut):
        cut = decode_small(cut.encode("utf-8", "surrogateescape"))[0]
    try:
        pieces = decode_header(BETWEEN_WORDS.sub(r"\1 \2", cut))
    except (HeaderParseError, binascii.Error, ValueError):
        pieces = [(cut, None)]
    text = "".join(
        piece if isinstance(piece, str) else decode_small(piece, None, charset)[0]
        for piece, charset in pieces
    )
    return " ".join(text.split()) + (" …" if len(value) > MAX_CHARACTERS else "")


def file_name(part: Message) -> str:
    """The name that a part is to be saved under; "" without one."""
    try:
        name = part.get_filename() or ""
    except (LookupError, UnicodeError, ValueError):
        name = ""
    return header_text(name).replace("/", "_").replace("\0", "")[:200]
