"""A text span → its key sentences, verbatim and with exact offsets. Pure text; knows no model.

TF-IDF centroid (Radev et al., 2004) with a bonus for early sentences, then maximal marginal relevance
(Carbonell and Goldstein, 1998), so that the chosen ones do not repeat each other. Deterministic.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import regex
import sentencex

from localctx.index.stop_words import stop_words
from localctx.index.terms import content_words, stem, words

__all__ = ["Sentence", "key_sentences", "sentences"]

MAX_SENTENCE_CHARACTERS = 600
LONG_CHARACTERS = 320
MIN_WORDS = 4
MAX_SENTENCES = 4000
LANGUAGE_CHARACTERS = 4000
REDUNDANCY_WEIGHT = 0.45
DUPLICATE_COSINE = 0.8
POSITION_BONUS = 0.25
FOCUS_WEIGHT = 4.0

_GAP = regex.compile(r"\n[ \t]*\n+|(?<=[^\n]{1})\n(?=[ \t]*(?:[-*•‣]|\p{Nd}{1,3}[.)])[ \t])")
_ENDS = regex.compile(r"[.!?…。！？؟।։]['\"”’」』)\]]*\s*$")
_LETTER = regex.compile(r"\p{L}|\p{M}")
_BOILERPLATE = regex.compile(
    r"all rights reserved|copyright|©|\bisbn\b|https?://|www\.|table of contents|click here|page \d+ of \d+"
    r"|\.{4,}|(?:\. ){4,}|_{4,}|cookie|terms of use|privacy policy",
    regex.IGNORECASE,
)
_CELLS = regex.compile(r"\t|\|| {3,}")
_LEANS = regex.compile(
    r"^[\"“'(]*(?:he|she|it|they|this|that|these|those|such|but|and|or|so|yet|however|therefore|thus|hence|then|"
    r"moreover|furthermore|nevertheless|also|here|there)\b",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text: text[start:end] == `text`, without white space round it; score 0 if unrated."""

    start: int
    end: int
    text: str
    score: float = 0.0


def sentences(text: str, language: str = "en") -> tuple[Sentence, ...]:
    """The sentences of `text` in order; blank lines and list items end one too, over-long ones are cut."""
    found: list[Sentence] = []
    at = 0
    for gap in [*(match.span() for match in _GAP.finditer(text)), (len(text), len(text))]:
        if at < gap[0]:
            for cut in sentencex.get_sentence_boundaries(language, text[at : gap[0]]):
                found.extend(_pieces(text, at + cut["start_index"], at + cut["end_index"]))
        at = gap[1]
    return tuple(found)


def _pieces(text: str, start: int, end: int) -> list[Sentence]:
    """The span without white space at its ends, cut at spaces into pieces of bounded length."""
    pieces = []
    while start < end:
        stop = end
        if end - start > MAX_SENTENCE_CHARACTERS:
            gap = max(text.rfind(mark, start, start + MAX_SENTENCE_CHARACTERS) for mark in " \n\t，、；")
            stop = gap + 1 if gap > start else start + MAX_SENTENCE_CHARACTERS
        piece = text[start:stop]
        stripped = piece.strip()
        if stripped:
            first = start + len(piece) - len(piece.lstrip())
            pieces.append(Sentence(first, first + len(stripped), stripped))
        start = stop
    return pieces


def key_sentences(
    text: str, n: int, *, focus: str | None = None, language: str = "en"
) -> tuple[Sentence, ...]:
    """The `n` sentences that say most of what `text` says (of `focus`, when given), in document order.

    Fewer when the text has fewer. Headings, table rows, lists of links and over-long pieces are taken only
    when nothing else is there. Scores are in (0, 1], the best one first chosen has 1. Time is linear in the
    text; of more than 4,000 sentences an even sample is rated.
    """
    candidates = list(sentences(text, language))
    if n <= 0 or not candidates:
        return ()
    if len(candidates) > MAX_SENTENCES:
        step = len(candidates) / MAX_SENTENCES
        candidates = [candidates[int(place * step)] for place in range(MAX_SENTENCES)]
    stops = stop_words(words(text[:LANGUAGE_CHARACTERS]))
    terms = {sentence: content_words(sentence.text, stops) for sentence in candidates}
    good = [s for s in candidates if len(terms[s]) >= MIN_WORDS and _is_prose(s.text)]
    if len(good) < n:
        rest = [s for s in candidates if s not in set(good) and _LETTER.search(s.text)]
        good = sorted([*good, *rest[: n - len(good)]], key=lambda s: s.start) or candidates[:n]
    vectors = _vectors([terms[sentence] for sentence in good])
    relevance = _relevance(good, vectors, focus)
    chosen = _diverse(vectors, relevance, n)
    best = max((relevance[place] for place in chosen), default=0.0) or 1.0
    return tuple(
        Sentence(good[p].start, good[p].end, good[p].text, round(max(relevance[p] / best, 1e-6), 6))
        for p in sorted(chosen)
    )


def _is_prose(sentence: str) -> bool:
    """Whether it reads as a sentence: mostly letters, with a beginning and an end, no table row or notice."""
    n_letters = len(_LETTER.findall(sentence))
    n_visible = len("".join(sentence.split()))
    if n_letters < 0.6 * n_visible or len(sentence) >= MAX_SENTENCE_CHARACTERS - 40:
        return False
    if not _ENDS.search(sentence) or sentence[0].islower():
        return False
    return len(_CELLS.findall(sentence)) <= 2 and not _BOILERPLATE.search(sentence)


def _vectors(sentences_terms: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """Unit TF-IDF vectors of the sentences' words, sparse."""
    counts = [Counter(map(stem, terms)) for terms in sentences_terms]
    n_holding = Counter(term for count in counts for term in count)
    vectors = []
    for count in counts:
        weights = {
            term: (1 + math.log(times)) * math.log(1 + len(counts) / n_holding[term])
            for term, times in count.items()
        }
        norm = math.sqrt(sum(weight * weight for weight in weights.values())) or 1.0
        vectors.append({term: weight / norm for term, weight in weights.items()})
    return vectors


def _relevance(
    candidates: Sequence[Sentence], vectors: Sequence[dict[str, float]], focus: str | None
) -> list[float]:
    """How much of the whole (and the focus) each sentence says; early, self-contained ones are preferred."""
    centroid: Counter[str] = Counter()
    for vector in vectors:
        centroid.update(vector)
    norm = math.sqrt(sum(weight * weight for weight in centroid.values())) or 1.0
    asked = set(map(stem, content_words(focus))) if focus else set()
    scores = []
    for place, (sentence, vector) in enumerate(zip(candidates, vectors, strict=True)):
        score = sum(weight * centroid[term] for term, weight in vector.items()) / norm
        score *= 1 + POSITION_BONUS / (1 + place)
        if place == len(candidates) - 1:
            score *= 1 + POSITION_BONUS / 4
        if len(sentence.text) > LONG_CHARACTERS:
            score *= LONG_CHARACTERS / len(sentence.text)
        if _LEANS.match(sentence.text):
            score *= 0.8
        if sentence.text.endswith("?"):
            score *= 0.7
        if asked:
            score += FOCUS_WEIGHT * sum(vector.get(term, 0.0) for term in asked) / math.sqrt(len(asked))
        scores.append(score)
    return scores


def _diverse(vectors: Sequence[dict[str, float]], relevance: Sequence[float], n: int) -> list[int]:
    """Places of up to `n` sentences: relevant, and unlike those already chosen; near copies never."""
    chosen: list[int] = []
    likeness = [0.0] * len(vectors)
    top = max(relevance, default=0.0) or 1.0
    left = set(range(len(vectors)))
    while left and len(chosen) < n:
        best = max(left, key=lambda p: (relevance[p] / top - REDUNDANCY_WEIGHT * likeness[p], -p))
        left.discard(best)
        if chosen and likeness[best] > DUPLICATE_COSINE:
            continue
        chosen.append(best)
        for place in left:
            likeness[place] = max(likeness[place], _cosine(vectors[best], vectors[place]))
    return chosen


def _cosine(one: dict[str, float], other: dict[str, float]) -> float:
    """Inner product of two unit vectors."""
    if len(other) < len(one):
        one, other = other, one
    return sum(weight * other[term] for term, weight in one.items() if term in other)
