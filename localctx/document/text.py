"""Plain text, source code, CSV → their own characters, decoded. Knows no structure."""

from __future__ import annotations

from collections.abc import Iterator

from localctx.document.encodings import Decoder, detect_encoding
from localctx.document.events import Event, Facts, Options, Text
from localctx.document.source import Source

__all__ = ["convert", "decoded"]


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The text in pieces, then its encoding and the number of characters that had to be replaced."""
    for piece in decoded(source, options):
        yield Text(piece) if isinstance(piece, str) else piece


def decoded(source: Source, options: Options) -> Iterator[str | Facts]:
    """Decoded pieces of bounded size, then the facts of the decoding."""
    encoding = detect_encoding(source, options.encoding, options.limits.detect_bytes)
    decoder = Decoder(encoding)
    yield from decoder.decode(source.chunks(options.on_progress, encoding.mark_bytes))
    yield Facts(encoding.name, decoder.n_replaced)
