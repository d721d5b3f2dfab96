"""An answer and candidate passages → the sentences that support it, quoted verbatim. Pure; knows no files."""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from localctx.index.terms import content_words, stem
from localctx.selection.claims import claims
from localctx.selection.evidence import without_evidence
from localctx.selection.key_sentences import sentences

__all__ = ["Passage", "Support", "supporting_sentences"]

CLAIM_WEIGHT = 2.0
QUESTION_SHARE = 0.5
MIN_SCORE = 0.2
MIN_GAIN_SHARE = 0.1
MAX_CHECKED = 64
KEPT_SENTENCES = 4096


@dataclass(frozen=True, slots=True)
class Passage:
    """A candidate: its text and where that starts, in code points; `index` is the caller's."""

    index: int
    start: int
    text: str


@dataclass(frozen=True, slots=True)
class Support:
    """A sentence of passage `index` that supports the answer: span in the document, quoted verbatim.

    score in [0, 1]: the share of the answer's weighted words that the sentence holds.
    """

    index: int
    start: int
    end: int
    quote: str
    score: float


def supporting_sentences(
    answer: str, passages: Sequence[Passage], *, question: str = "", limit: int = 3, language: str = "en"
) -> tuple[Support, ...]:
    """Up to `limit` sentences that best support the answer, best first; none when too little is shared.

    Words of the answer weigh by their rarity among the passages' sentences, its numbers, names and quotations
    more; the question's words count half, so that a one-word answer is cited where its subject is. After the
    best one, a sentence must hold something of the answer that those before do not.
    """
    spans = [(passage, sentence) for passage in passages for sentence in sentences(passage.text, language)]
    stems = [_stems(sentence.text) for _, sentence in spans]
    weights = _weights(answer, question, stems)
    found = claims(answer)
    heaviest = max(weights.values(), default=0.0)
    # fsum: sets come in another order in each process, and rounding must not break ties
    overlaps = [math.fsum(weights[term] for term in held if term in weights) for held in stems]
    likely = sorted((p for p in range(len(spans)) if overlaps[p] > 0), key=lambda p: (-overlaps[p], p))
    held_by: dict[int, frozenset[object]] = {}
    for place in likely[:MAX_CHECKED]:
        missing = without_evidence(found, spans[place][1].text)
        held_by[place] = (stems[place] & weights.keys()) | (frozenset(found) - frozenset(missing))
    weights |= dict.fromkeys(found, CLAIM_WEIGHT * heaviest)
    return tuple(
        Support(
            spans[place][0].index,
            spans[place][0].start + spans[place][1].start,
            spans[place][0].start + spans[place][1].end,
            spans[place][1].text,
            round(score, 4),
        )
        for place, score in _covering(held_by, weights, limit)
    )


@functools.lru_cache(maxsize=KEPT_SENTENCES)
def _stems(sentence: str) -> frozenset[str]:
    """Its stemmed content words."""
    return frozenset(map(stem, content_words(sentence)))


def _weights(answer: str, question: str, stems: Sequence[frozenset[str]]) -> dict[object, float]:
    """The answer's and, at half, the question's stemmed content words by rarity among the sentences."""
    n_holding = Counter(term for held in stems for term in held)
    asked, said = _stems(question), _stems(answer)
    return {
        term: (1.0 if term in said else QUESTION_SHARE) * math.log(1 + len(stems) / max(n_holding[term], 1))
        for term in sorted(asked | said)
    }


def _covering(
    held_by: dict[int, frozenset[object]], weights: dict[object, float], limit: int
) -> list[tuple[int, float]]:
    """Places and their shares of the whole weight; each next one is the one that adds the most."""
    total = math.fsum(weights.values())
    covered: set[object] = set()
    chosen: list[tuple[int, float]] = []
    left = dict(held_by)
    while left and len(chosen) < limit:
        gains = {place: math.fsum(weights[item] for item in held - covered) for place, held in left.items()}
        place = max(gains, key=lambda p: (gains[p], -p))
        score = math.fsum(weights[item] for item in left[place]) / total
        if gains[place] < MIN_GAIN_SHARE * total or (not chosen and score < MIN_SCORE):
            break
        chosen.append((place, score))
        covered |= left.pop(place)
    return sorted(chosen, key=lambda item: (-item[1], item[0]))
