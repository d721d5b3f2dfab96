"""One pass over a text: a row of facts for each sentence, the question's words, how often every word occurs.

Holds no text. A long text's tokens are estimated from samples, since counting all would take minutes.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from localctx.blocks import Rank, Segment, sentence_units
from localctx.index.stop_words import stop_words
from localctx.index.terms import content_words, stem, words
from localctx.selection import text_key
from localctx.selection.coverage import TERM_BUCKETS, CoveredTerms, term_weights
from localctx.selection.truncation import TextUnits
from localctx.selection.truncation_gate import LOW_INFORMATION, information
from localctx.selection.truncation_scores import QuestionWords
from localctx.values import Section, TextSource, Tokenizer

__all__ = ["Scan", "hashed_terms", "scan"]

COUNTED_CODE_POINTS = 8_000_000
"""A longer text's tokens are estimated."""
SAMPLES = 32
SAMPLE_CODE_POINTS = 16_384
LANGUAGE_CODE_POINTS = 20_000
KEY_BITS = (1 << 64) - 1


@dataclass(frozen=True, slots=True)
class Scan:
    """What is known of a text's sentences.

    words: counts of the question's words, None without a question · weights: of every hashed word · stops:
    the language's stop words · n_low: sentences that say next to nothing · is_exact: tokens were counted.
    """

    units: TextUnits
    words: QuestionWords | None
    weights: NDArray[np.float32]
    stops: frozenset[str]
    n_low: int
    is_exact: bool

    def share_of_terms(self, text: str) -> float:
        """Weight of the words that `text` holds, of all the text's."""
        covered = CoveredTerms(self.weights)
        for line in text.splitlines():
            covered.add(hashed_terms(content_words(line, self.stops)))
        return covered.share()


def hashed_terms(found: Iterable[str]) -> list[int]:
    """The different words as numbers below TERM_BUCKETS, the same in every process."""
    return list({crc32(stem(word).encode("utf-8", "surrogatepass")) % TERM_BUCKETS for word in found})


def scan(
    text: TextSource,
    tokenize: Tokenizer,
    span: tuple[int, int],
    max_tokens: int,
    sections: Sequence[Section],
    question: str | None,
    language: str | None,
) -> Scan:
    """Read [start, end) once; sentences of at most `max_tokens`."""
    start, end = span
    is_exact = end - start <= COUNTED_CODE_POINTS
    counting: Tokenizer = tokenize if is_exact else _estimator(text, tokenize, span)
    rows = _Rows(
        stop_words(words(text.read(start, min(end, start + LANGUAGE_CODE_POINTS)))), language, question
    )
    for unit in sentence_units(
        text, counting, max_tokens=max_tokens, sections=sections, start=start, end=end
    ):
        rows.add(unit)
    return rows.scan(is_exact)


def _estimator(text: TextSource, tokenize: Tokenizer, span: tuple[int, int]) -> Tokenizer:
    """A tokenizer of made-up tokens, as many for each byte as samples from all over the text have."""
    start, end = span
    step = max(1, (end - start) // SAMPLES)
    samples = [text.read(at, at + SAMPLE_CODE_POINTS) for at in range(start, end, step)]
    n_tokens = sum(len(tokenize(sample, False)) for sample in samples)
    share = n_tokens / max(1, sum(len(sample.encode("utf-8", "replace")) for sample in samples))

    def estimated(text: str, first: bool) -> Sequence[int]:
        return range(math.ceil(share * len(text.encode("utf-8", "replace"))))

    return estimated


class _Rows:
    """Collects the facts of sentences as they come."""

    def __init__(self, stops: frozenset[str], language: str | None, question: str | None) -> None:
        self._stops, self._language = stops, language
        self._words = QuestionWords(question) if question else None
        self._starts, self._ends = array("q"), array("q")
        self._tokens, self._keys = array("i"), array("Q")
        self._breaks, self._asked = bytearray(), bytearray()
        self._information = array("f")
        self._frequencies = np.zeros(TERM_BUCKETS, np.int32)

    def add(self, unit: Segment) -> None:
        """Take the next sentence."""
        found = content_words(unit.text, self._stops)
        self._starts.append(unit.start)
        self._ends.append(unit.start + len(unit.text))
        self._tokens.append(len(unit.tokens))
        self._keys.append(text_key(unit.text) & KEY_BITS)
        self._breaks.append(unit.rank >= Rank.PARAGRAPH)
        self._information.append(information(unit.text, found, self._language))
        self._asked.append(self._words is not None and self._words.add(unit.text, found))
        terms = hashed_terms(found)
        self._frequencies[terms] += 1

    def scan(self, is_exact: bool) -> Scan:
        """All that was found."""
        told = np.array(self._information, np.float32)
        asked = np.array(self._asked, np.uint8).astype(np.bool_)
        units = TextUnits(
            starts=np.array(self._starts, np.int64),
            ends=np.array(self._ends, np.int64),
            n_tokens=np.array(self._tokens, np.int32),
            keys=np.array(self._keys, np.uint64),
            breaks=np.array(self._breaks, np.uint8).astype(np.bool_),
            information=told,
            says_something=(told >= LOW_INFORMATION) | asked,
        )
        return Scan(
            units,
            self._words,
            term_weights(self._frequencies, len(units)),
            self._stops,
            int((told < LOW_INFORMATION).sum()),
            is_exact,
        )
