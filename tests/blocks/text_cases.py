"""Texts and tokenizers for the tests of blocks: word rules as published models have them, ids made up."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import regex
from hypothesis import strategies as st

_CONTRACTIONS = "'s|'t|'re|'ve|'m|'ll|'d"
GPT2_WORDS = rf"{_CONTRACTIONS}| ?\p{{L}}+| ?\p{{N}}+| ?[^\s\p{{L}}\p{{N}}]+|\s+(?!\S)|\s+"
LLAMA3_WORDS = (
    rf"(?i:{_CONTRACTIONS})|[^\r\n\p{{L}}\p{{N}}]?\p{{L}}+|\p{{N}}{{1,3}}| ?[^\s\p{{L}}\p{{N}}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)


@dataclass
class StringText:
    """A string as a TextSource that streams in pieces of a given size and counts what it has given out."""

    text: str
    piece: int = 4096
    n_streamed: int = 0

    @property
    def n_code_points(self) -> int:
        return len(self.text)

    def read(self, start: int, end: int) -> str:
        return self.text[start:end]

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[str]:
        stop = len(self.text) if end is None else min(end, len(self.text))
        for at in range(start, stop, self.piece):
            self.n_streamed = min(at + self.piece, stop)
            yield self.text[at : self.n_streamed]


@dataclass
class WordRules:
    """Cuts text into words by a pattern, and words into ids of up to `word_part` characters."""

    pattern: str
    word_part: int = 5
    calls: list[int] = field(default_factory=list)

    def __call__(self, text: str, first: bool) -> Sequence[int]:
        self.calls.append(len(text))
        size = self.word_part
        return [
            crc32(word[at : at + size].encode())
            for word in regex.findall(self.pattern, text)
            for at in range(0, len(word), size)
        ]


def white_space_tokens(text: str, first: bool) -> Sequence[int]:
    """One id for each word."""
    return [len(word) for word in text.split()]


FRAGMENTS = [
    "a",
    "word",
    "The end. ",
    "Is it?",
    "don't ",
    " ",
    "  ",
    "\n",
    "\r\n",
    "\r",
    "\n\n",
    "\r\n\r\n",
    "\n \t\n",
    "\t",
    "\f",
    "\u3000",
    "\u2029",
    "。",
    "北京是首都。",
    "保险箱",
    "”",
    "「对吗？」",
    "안녕하세요 ",
    "กำลัง",
    "क्षत्रिय। ",
    "👩‍👩‍👧‍👦",
    "🇩🇪🇫🇷",
    "👍🏽",
    "e\u0301",
    "\u0301",
    "\u200d",
    "\u0600",
    "12,345.67",
    '{"id":1,"k":[2]},',
    "..........",
    "x" * 90,
    "Dr. Smith e.g. ",
    "# Heading\n",
    "\0",
]
texts = st.lists(st.sampled_from(FRAGMENTS) | st.text(max_size=6), max_size=60).map("".join)
