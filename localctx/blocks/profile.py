"""Segments as they stream → how dense each is and how much the topic changes before it. Knows no blocks.

Density is what a segment's words and names tell for its tokens: rare words, numbers, identifiers. A change is
where the words (or the meaning, with an embedder) of the segments before and behind have little in common,
and more on either side (Hearst, 1997). Windows are counted from the start, so the result depends on the text
alone; memory: one window.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

from localctx.blocks.entities import count_entities
from localctx.blocks.segments import Segment

__all__ = ["Embed", "Profile", "profiled"]

Embed = Callable[[Sequence[str]], "NDArray[np.float32]"]
"""Texts to unit vectors, float32 (n, dimension)."""

WINDOW_SEGMENTS = 192
CONTEXT_SEGMENTS = 4
"""Segments compared on either side of a cut; as many are known before and behind each window."""
BUCKETS = 1 << 16
ENTITY_WEIGHT = 4.0
COMMON_SHARE = 0.15
SURELY_TOPICAL = 8
"""Words that more segments hold, and more than the share of all, say nothing of a topic."""
_WORD = regex.compile(r"\p{Han}|\p{Hiragana}+|[\p{L}\p{M}]{3,}|\p{N}+")


@dataclass(frozen=True, slots=True)
class Profile:
    """density: in [-1, 1], 0 is the text's mean so far · change: in [0, 1], how much the topic changes before
    the segment.
    """

    density: float = 0.0
    change: float = 0.0


class _Words:
    """Rarity of hashed words among the segments read so far."""

    def __init__(self) -> None:
        self._holding = np.zeros(BUCKETS, np.int32)
        self._n = 0

    def read(self, text: str) -> Counter[int]:
        """Count a segment in; its words."""
        counts = Counter(
            crc32(word[:6].encode("utf-8", "surrogatepass")) % BUCKETS for word in _WORD.findall(text.lower())
        )
        self._holding[list(counts)] += 1
        self._n += 1
        return counts

    def weigh(self, counts: Counter[int]) -> dict[int, float]:
        """TF-IDF of a segment's words; common ones are left out."""
        weights = {}
        for word, count in counts.items():
            held = int(self._holding[word])
            if held <= max(SURELY_TOPICAL, COMMON_SHARE * self._n):
                weights[word] = (1 + math.log(count)) * math.log(1 + self._n / held)
        return weights


class _Mean:
    """Mean and spread of densities so far."""

    def __init__(self) -> None:
        self._n, self._sum, self._squares = 0, 0.0, 0.0

    def add(self, value: float) -> None:
        self._n += 1
        self._sum += value
        self._squares += value * value

    def place(self, value: float) -> float:
        """Where a value stands: -1 is two deviations below the mean, 1 above."""
        mean = self._sum / self._n
        deviation = math.sqrt(max(0.0, self._squares / self._n - mean * mean))
        return max(-1.0, min(1.0, (value - mean) / (2 * deviation))) if deviation else 0.0


def profiled(
    segments: Iterable[Segment], language: str | None = None, embed: Embed | None = None
) -> Iterator[tuple[Segment, Profile]]:
    """Every segment in order with its profile."""
    words, mean = _Words(), _Mean()
    stream = iter(segments)
    before: list[_Known] = []
    ahead: list[_Known] = []
    while True:
        read = list(islice(stream, WINDOW_SEGMENTS + CONTEXT_SEGMENTS - len(ahead)))
        window = ahead + _known(read, words, mean, language, embed)
        is_last = len(window) < WINDOW_SEGMENTS + CONTEXT_SEGMENTS
        n_out = len(window) if is_last else WINDOW_SEGMENTS
        changes = _changes([*before, *window])
        for place in range(n_out):
            one = window[place]
            yield one.segment, Profile(mean.place(one.density), changes[len(before) + place])
        if is_last:
            return
        before, ahead = window[n_out - CONTEXT_SEGMENTS : n_out], window[n_out:]


@dataclass(frozen=True, slots=True)
class _Known:
    """A segment with its words' weights, its vector where there is an embedder, and its density."""

    segment: Segment
    weights: dict[int, float]
    vector: NDArray[np.float32] | None
    density: float


def _known(
    segments: Sequence[Segment], words: _Words, mean: _Mean, language: str | None, embed: Embed | None
) -> list[_Known]:
    counts = [words.read(segment.text) for segment in segments]
    vectors = (
        embed([segment.text.strip() for segment in segments]) if embed is not None and segments else None
    )
    known = []
    for place, (segment, count) in enumerate(zip(segments, counts, strict=True)):
        weights = words.weigh(count)
        told = math.fsum(weights.values()) + ENTITY_WEIGHT * count_entities(segment.text, language)
        density = told / max(1, len(segment.tokens))
        mean.add(density)
        known.append(_Known(segment, weights, None if vectors is None else vectors[place], density))
    return known


def _changes(known: Sequence[_Known]) -> list[float]:
    """Before each segment: how far the likeness of both sides falls below that of the places around."""
    likeness = [_likeness(known, place) for place in range(len(known))]
    changes = []
    for place, here in enumerate(likeness):
        if here is None:
            changes.append(0.0)
            continue
        left = max(
            value for value in likeness[max(0, place - CONTEXT_SEGMENTS) : place + 1] if value is not None
        )
        right = max(value for value in likeness[place : place + CONTEXT_SEGMENTS + 1] if value is not None)
        changes.append(max(0.0, min(1.0, (left + right) / 2 - here)))
    return changes


def _likeness(known: Sequence[_Known], place: int) -> float | None:
    """Cosine of the segments before and from `place` on; None where nothing is known of one side."""
    before, behind = known[max(0, place - CONTEXT_SEGMENTS) : place], known[place : place + CONTEXT_SEGMENTS]
    if not before or not behind:
        return None
    vectors = [[k.vector for k in some if k.vector is not None] for some in (before, behind)]
    if vectors[0]:
        one, other = (np.array(some).sum(axis=0) for some in vectors)
        return float(one @ other / max(1e-9, float(np.linalg.norm(one) * np.linalg.norm(other))))
    left, right = _sum(before), _sum(behind)
    shared = math.fsum(weight * right[word] for word, weight in left.items() if word in right)
    norms = math.sqrt(math.fsum(w * w for w in left.values()) * math.fsum(w * w for w in right.values()))
    return shared / norms if norms else None


def _sum(some: Sequence[_Known]) -> dict[int, float]:
    total: dict[int, float] = {}
    for one in some:
        for word, weight in one.weights.items():
            total[word] = total.get(word, 0.0) + weight
    return total
