"""Bytes → the name of their character encoding, and a decoder that counts what it had to replace.

Order: the caller's word, byte-order mark, strict UTF-8 over the whole, UTF-16/32 by the place of NULs, then
chardet over the whole (over windows round non-ASCII bytes where the file is large). Knows no formats.
"""

from __future__ import annotations

import codecs
import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from localctx._native import Utf8Index
from localctx.document.source import Source
from localctx.errors import UsageError

__all__ = [
    "Decoder",
    "Encoding",
    "canonical_encoding",
    "decode_small",
    "detect_encoding",
    "mark_of",
    "wide_pattern",
]

MARKS = (  # the longer first: UTF-32 LE begins like UTF-16 LE
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
WINDOW_BYTES = 1 << 16
WEAK_CONFIDENCE = 0.1
HOPELESS_CONFIDENCE = 0.05
NON_ASCII = re.compile(rb"[\x80-\xff]")
WESTERN = frozenset(
    "àâäáãåæçéèêëíîïñóôöòõøœßúûüùÿÀÂÄÁÃÅÆÇÉÈÊËÍÎÏÑÓÔÖÒÕØŒÚÛÜÙ¡¿«»‹›“”„‘’‚–—…•·°§©®™€£ª º²³½¼\xa0"
)


@dataclass(frozen=True, slots=True)
class Encoding:
    """A codec's name, and the bytes of a byte-order mark to skip."""

    name: str
    mark_bytes: int = 0


def canonical_encoding(name: str) -> str:
    """Python's name of a text encoding. Raises UsageError for an unknown one."""
    try:
        info = codecs.lookup(name)
        "".encode(info.name)  # refuses codecs that do not map text to bytes (rot13, base64)
        Decoder(Encoding(info.name)).try_out()
    except (LookupError, ValueError, TypeError):
        raise UsageError(
            f"unknown encoding {name!r}", "for example utf-8, cp1252, gb18030, shift_jis, utf-16-le"
        ) from None
    return info.name


def mark_of(head: bytes) -> Encoding | None:
    """The encoding that a byte-order mark announces."""
    return next((Encoding(name, len(mark)) for mark, name in MARKS if head.startswith(mark)), None)


def wide_pattern(head: bytes) -> str | None:
    """UTF-16 or UTF-32 without a mark, told by where the NULs of its ASCII characters stand."""
    n = len(head) // 4
    if n < 2:
        return None
    counts = [head[place : 4 * n : 4].count(0) for place in range(4)]
    high = [count >= 0.95 * n for count in counts]
    low = [count <= 0.05 * n for count in counts]
    if high[1] and high[2] and high[3] and low[0]:
        return "utf-32-le"
    if high[0] and high[1] and high[2] and low[3]:
        return "utf-32-be"
    odd, even = counts[1] + counts[3], counts[0] + counts[2]
    share = 2 * n * (0.9 if Utf8Index().feed(head) else 0.15)  # ASCII with some NULs in it is valid UTF-8
    if odd >= share and even <= 0.1 * odd:
        return "utf-16-le"
    if even >= share and odd <= 0.1 * even:
        return "utf-16-be"
    return None


def detect_encoding(source: Source, asked: str | None, detect_bytes: int) -> Encoding:
    """The encoding of a text file; UTF-8 where nothing fits better. Reads the whole file once or twice."""
    head = source.head()
    mark = mark_of(head)
    if asked is not None:
        name = canonical_encoding(asked)
        return Encoding(name, mark.mark_bytes if mark is not None and mark.name == name else 0)
    if mark is not None:
        return mark
    wide = wide_pattern(head)
    if wide is not None:
        return Encoding(wide)
    if is_utf8(source.chunks()):
        return Encoding("utf-8")
    return Encoding(guess_encoding(b"".join(non_ascii_windows(source, detect_bytes))))


def is_utf8(chunks: Iterable[bytes]) -> bool:
    """Whether the whole is valid UTF-8."""
    index = Utf8Index()
    return all(index.feed(chunk) for chunk in chunks) and index.finish()


def non_ascii_windows(source: Source, detect_bytes: int) -> Iterator[bytes]:
    """The whole of a small file; of a large one, windows that hold bytes above 127, wherever the first is."""
    if source.size_bytes <= detect_bytes:
        yield from source.chunks()
        return
    left = detect_bytes
    for chunk in source.chunks():
        found = None if chunk.isascii() else NON_ASCII.search(chunk)
        if found is not None:
            window = chunk[max(0, found.start() - 256) : found.start() + WINDOW_BYTES]
            yield window
            left -= len(window)
            if left <= 0:
                return


def guess_encoding(data: bytes) -> str:
    """The likeliest encoding of bytes that are not valid UTF-8."""
    text = data.decode("utf-8", "replace")
    n_bad = text.count("\ufffd")
    n_good = sum(1 for character in text if character > "\x7f") - n_bad
    if n_good > 10 * n_bad:
        return "utf-8"
    import chardet

    guess = chardet.detect(data, max_bytes=max(1, len(data)), prefer_superset=True)
    name, confidence = guess["encoding"], guess["confidence"] or 0.0
    if name is None or confidence < WEAK_CONFIDENCE:
        if is_western(data):
            return "cp1252"
        if name is None or confidence < HOPELESS_CONFIDENCE:
            return "utf-8"
    try:
        return canonical_encoding(name)
    except UsageError:  # chardet knows a few that Python does not
        return "cp1252"


def is_western(data: bytes) -> bool:
    """Whether nearly all bytes above 127 make letters and signs of Western European text in Windows-1252."""
    text = data.translate(None, bytes(range(128))).decode("cp1252", "replace")
    return sum(character in WESTERN for character in text) >= 0.95 * len(text)


class Decoder:
    """Decodes a stream of bytes; what cannot be decoded becomes U+FFFD and is counted in `n_replaced`."""

    def __init__(self, encoding: Encoding) -> None:
        self.encoding = encoding
        self.n_replaced = 0

    def try_out(self) -> None:
        """Raises LookupError or ValueError where the codec stops at damaged bytes (idna, punycode)."""
        decoder = codecs.getincrementaldecoder(self.encoding.name)(errors="localctx-replace")
        mark = "".encode(self.encoding.name)  # utf-16 and utf-32 begin with one
        decoder.decode(mark + b"a-\xff.\x81 " * 4, True)

    def decode(self, chunks: Iterable[bytes]) -> Iterator[str]:
        """The text of `chunks` (which start after any mark the encoding names)."""
        decoder = codecs.getincrementaldecoder(self.encoding.name)(errors="localctx-replace")
        is_first = True
        for chunk in chunks:
            text = self._counted(decoder, chunk, False)
            if text:
                yield text.removeprefix("\ufeff") if is_first else text
                is_first = False
        if text := self._counted(decoder, b"", True):
            yield text

    def _counted(self, decoder: codecs.IncrementalDecoder, chunk: bytes, final: bool) -> str:
        """One step of the decoder, its replacements added up."""
        _replaced.count = 0
        text = decoder.decode(chunk, final)
        self.n_replaced += _replaced.count
        return text


def decode_small(data: bytes, asked: str | None = None, declared: str | None = None) -> tuple[str, str, int]:
    """(text, encoding, replaced characters) of bytes held in memory: by the caller's word, a byte-order mark,
    what the format itself declares, UTF-8, then a guess.
    """
    encoding = mark_of(data)
    if asked is not None:
        encoding = Encoding(canonical_encoding(asked))
    elif encoding is None and declared is not None and "utf" not in declared.lower():
        try:
            encoding = Encoding(canonical_encoding(declared))
        except UsageError:
            encoding = None
    if encoding is None:
        wide = wide_pattern(data[:WINDOW_BYTES])
        encoding = Encoding(wide or ("utf-8" if is_utf8([data]) else guess_encoding(data)))
    decoder = Decoder(encoding)
    return "".join(decoder.decode([data[encoding.mark_bytes :]])), encoding.name, decoder.n_replaced


class _Replaced(threading.local):
    """Replacements made by the running decoder of this thread."""

    count = 0


_replaced = _Replaced()


def _replace(error: UnicodeError) -> tuple[str, int]:
    """U+FFFD for one undecodable sequence, counted."""
    if not isinstance(error, UnicodeDecodeError):
        raise error
    _replaced.count += 1
    return "\ufffd", error.end


codecs.register_error("localctx-replace", _replace)
