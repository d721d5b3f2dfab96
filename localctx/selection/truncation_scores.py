"""How well each sentence may answer a question: by its words, by its meaning, by both. Pure.

Words: BM25 over sentences, its counts gathered one sentence at a time. Meaning: cosines of sentence
embeddings that are handed in. Knows no embedder.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from localctx.index.query import exact_terms, quoted_phrases
from localctx.index.terms import clean, content_words, fold, stem, words

__all__ = ["QuestionWords", "fused", "with_neighbours"]

K1 = 1.2
B = 0.5
PHRASE_WEIGHT = 2.0
NUMBER_WEIGHT = 2.0
LEXICAL_WEIGHT = 0.5
NEIGHBOUR_WEIGHT = 0.15


class QuestionWords:
    """Counts of a question's words in a text's sentences; add() every sentence in order, then scores()."""

    def __init__(self, question: str) -> None:
        question = clean(question)
        asked = dict.fromkeys(map(stem, content_words(question) or words(question)))
        self._place = {term: number for number, term in enumerate(asked)}
        self._weights = [NUMBER_WEIGHT if term.isdecimal() else 1.0 for term in asked]
        self._phrases = [fold(text) for text in (*exact_terms(question), *quoted_phrases(question))]
        self._weights += [PHRASE_WEIGHT] * len(self._phrases)
        self._rows, self._terms, self._counts = array("q"), array("i"), array("i")
        self._lengths = array("i")

    def add(self, text: str, found: Sequence[str]) -> bool:
        """Take the next sentence, `found` being its content words; whether it holds any word asked for."""
        row, counts = len(self._lengths), dict[int, int]()
        for word in found:
            place = self._place.get(stem(word))
            if place is not None:
                counts[place] = counts.get(place, 0) + 1
        if self._phrases:
            folded = fold(text)
            for number, phrase in enumerate(self._phrases, len(self._place)):
                if phrase in folded:
                    counts[number] = folded.count(phrase)
        for place, count in counts.items():
            self._rows.append(row)
            self._terms.append(place)
            self._counts.append(count)
        self._lengths.append(len(found))
        return bool(counts)

    @property
    def share_found(self) -> float:
        """Share of the question's words that the text holds."""
        return len({term for term in self._terms if term < len(self._place)}) / max(1, len(self._place))

    def n_asked(self, rows: NDArray[np.int64]) -> int:
        """How many of the question's words stand in these sentences."""
        kept = np.isin(np.frombuffer(self._rows, np.int64), rows) if self._rows else np.zeros(0, np.bool_)
        terms = np.frombuffer(self._terms, np.int32)[kept] if self._terms else np.zeros(0, np.int32)
        return len(np.unique(terms[terms < len(self._place)]))

    @property
    def n_words(self) -> int:
        """The question's different content words."""
        return len(self._place)

    def scores(self) -> NDArray[np.float32]:
        """BM25 of every sentence, divided by what a sentence with all words found would have: in [0, 1]."""
        n_rows = len(self._lengths)
        values = np.zeros(n_rows, np.float64)
        if not self._rows:
            return values.astype(np.float32)
        rows = np.frombuffer(self._rows, np.int64)
        terms = np.frombuffer(self._terms, np.int32)
        counts = np.frombuffer(self._counts, np.int32).astype(np.float64)
        lengths = np.frombuffer(self._lengths, np.int32).astype(np.float64)
        n_holding = np.bincount(terms, minlength=len(self._weights))
        rarity = np.log(1 + (n_rows - n_holding + 0.5) / (n_holding + 0.5)) * np.array(self._weights)
        scale = 1 - B + B * lengths[rows] / max(1.0, float(lengths.mean()))
        np.add.at(values, rows, rarity[terms] * counts * (K1 + 1) / (counts + K1 * scale))
        most = float(rarity[n_holding > 0].sum())
        return np.minimum(1, values / most).astype(np.float32)


def fused(lexical: NDArray[np.float32], dense: NDArray[np.float32] | None) -> NDArray[np.float32]:
    """One score a sentence: cosines are spread over [0, 1], so that words and meaning weigh alike."""
    if dense is None:
        return lexical
    low, high = float(np.median(dense)), float(dense.max())
    spread = (dense - low) / max(high - low, 1e-6)
    return np.asarray(np.maximum(spread, -1) + LEXICAL_WEIGHT * lexical + 1, np.float32)


def with_neighbours(scores: NDArray[np.float32]) -> NDArray[np.float32]:
    """A little of what the sentences before and behind score: answers often stand beside the words asked."""
    beside = np.zeros_like(scores)
    beside[1:] = scores[:-1]
    beside[:-1] = np.maximum(beside[:-1], scores[1:])
    return scores + NEIGHBOUR_WEIGHT * beside
