"""XML bytes → calls on a handler, in constant memory. No DTD, no entity expansion, no network, no tree.

expat rather than lxml: lxml's streaming target parser expands internal entities even with
resolve_entities=False, and its tree parsers keep what a record-by-record reader must drop.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Protocol
from xml.parsers import expat

from localctx.document.encodings import Decoder, Encoding, canonical_encoding, mark_of, wide_pattern
from localctx.document.events import NotThisFormat
from localctx.document.limits import Limits
from localctx.errors import LimitExceeded, UsageError

__all__ = [
    "DECLARATION",
    "MarkupHandler",
    "MarkupParser",
    "QuietHandler",
    "attribute",
    "declared_encoding",
    "local_name",
]

DECLARATION = re.compile(rb"""<\?xml[^>]{0,200}?encoding\s*=\s*["']([A-Za-z0-9._-]{1,40})["']""", re.I)
SEPARATOR = "\t"
FEED_BYTES = 1 << 16


class MarkupHandler(Protocol):
    """What the parser calls. Names are `namespace<TAB>name`, or just the name where there is no namespace."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """The next characters of the element; may come in several calls."""


class QuietHandler:
    """A handler that ignores everything; a base for those that look at a part only."""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """An element begins."""

    def end(self, name: str) -> None:
        """An element ends."""

    def data(self, text: str) -> None:
        """Characters."""


def local_name(name: str) -> str:
    """An element's or attribute's name without its namespace."""
    return name.rpartition(SEPARATOR)[2]


def attribute(attributes: dict[str, str], name: str) -> str | None:
    """The value of the attribute with this local name, whatever its namespace."""
    value = attributes.get(name)
    if value is not None:
        return value
    return next((value for key, value in attributes.items() if local_name(key) == name), None)


def declared_encoding(head: bytes, asked: str | None = None) -> Encoding:
    """The encoding of XML bytes: the caller's word, a mark, the declaration, UTF-8."""
    mark = mark_of(head)
    if asked is not None:
        return Encoding(canonical_encoding(asked), 0)
    if mark is not None:
        return mark
    wide = wide_pattern(head)
    if wide is not None:
        return Encoding(wide)
    found = DECLARATION.match(head.lstrip())
    if found is None:
        return Encoding("utf-8")
    try:
        name = canonical_encoding(found[1].decode("ascii"))
    except UsageError:
        return Encoding("utf-8")
    return Encoding("utf-8" if name.startswith(("utf-16", "utf-32", "utf_16", "utf_32")) else name)


class MarkupParser:
    """Feeds a document to a handler piece by piece. Raises NotThisFormat where it is not well-formed."""

    def __init__(self, handler: MarkupHandler, limits: Limits, encoding: Encoding | None = None) -> None:
        self.decoder = Decoder(encoding or Encoding("utf-8"))
        self._handler = handler
        self._limits = limits
        self._depth = 0
        self._n_fed = 0
        parser = expat.ParserCreate("utf-8", SEPARATOR)
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = handler.data
        parser.DefaultHandler = self._default  # its presence is what stops expat from expanding entities
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        self._parser = parser

    def feed(self, chunks: Iterable[bytes]) -> Iterable[None]:
        """Parse the chunks, yielding after each step so that the caller can drain what the handler made."""
        for text in self.decoder.decode(chunks):
            data = text.replace("\0", "").encode("utf-8", "replace")
            for start in range(0, len(data), FEED_BYTES):
                piece = data[start : start + FEED_BYTES]
                self._n_fed += len(piece)
                self._parse(piece, False)
                if self._n_fed - self._parser.CurrentByteIndex > self._limits.token_bytes:
                    raise LimitExceeded(f"one XML tag is longer than {self._limits.token_bytes:,} bytes")
                yield
        self._parse(b"", True)
        yield

    def _parse(self, data: bytes, final: bool) -> None:
        try:
            self._parser.Parse(data, final)
        except expat.ExpatError as error:
            reason = expat.ErrorString(error.code)
            raise NotThisFormat(f"not well-formed XML (line {error.lineno:,}: {reason})") from None

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        self._depth += 1
        if self._depth > self._limits.depth:
            raise LimitExceeded(f"XML elements are nested deeper than {self._limits.depth:,}")
        self._handler.start(name, attributes)

    def _end(self, name: str) -> None:
        self._depth -= 1
        self._handler.end(name)

    def _default(self, text: str) -> None:
        """Everything without a handler; of it only unexpanded references inside elements are text."""
        if self._depth and text.startswith("&") and text.endswith(";"):
            self._handler.data(text)
