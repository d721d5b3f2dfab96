"""Two lists of spelled texts → which belong together, one to one. Pure.

Candidates share pairs of words, the rarer the better, so that the work grows with the texts and not with the
product of their numbers; the string library then says how similar they are.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from localctx.alignment.words import similarity

__all__ = ["Match", "Spelled", "alike", "in_order", "pair_similar"]

N_CANDIDATES = 12
FREQUENT = 200
"""Texts that share a pair of words, from which on the pair says nothing."""
PLAIN_SHARE = 0.5
CLOSENESS = 0.02
"""What standing at the same place is worth beside similarity: it decides between equals."""
_EDGE = "\ue001"


@dataclass(frozen=True, slots=True)
class Spelled:
    """A text to be paired: its words as characters, plain and with masked numbers; place: in [0, 1]."""

    code: str
    masked: str
    place: float


@dataclass(frozen=True, slots=True)
class Match:
    """left[a] and right[b] belong together; similarity of their words, numbers masked, in [0, 1]."""

    a: int
    b: int
    similarity: float


def pair_similar(
    left: Sequence[Spelled],
    right: Sequence[Spelled],
    least: float,
    may_pair: Callable[[int, int], bool] | None = None,
) -> list[Match]:
    """Pairs of at least that similarity, each text in one at most; the most similar first. may_pair: refuses
    pairs by their places in the lists.
    """
    rated: list[tuple[float, int, int, float]] = []
    for a, b in _candidates(left, right):
        one, other = left[a], right[b]
        masked = 1.0 if one.masked == other.masked else similarity(one.masked, other.masked)
        if masked < least or not (may_pair is None or may_pair(a, b)):
            continue
        plain = 1.0 if one.code == other.code else similarity(one.code, other.code)
        closeness = CLOSENESS * (1 - abs(one.place - other.place))
        rated.append((PLAIN_SHARE * plain + (1 - PLAIN_SHARE) * masked + closeness, a, b, masked))
    taken_a: set[int] = set()
    taken_b: set[int] = set()
    found: list[Match] = []
    for _, a, b, masked in sorted(rated, key=lambda item: (-item[0], item[1], item[2])):
        if a not in taken_a and b not in taken_b:
            taken_a.add(a)
            taken_b.add(b)
            found.append(Match(a, b, masked))
    return found


def alike(left: Sequence[Spelled], right: Sequence[Spelled], least: float) -> list[set[int]]:
    """For each text of the left those of the right that are at least so similar, of its candidates."""
    found: list[set[int]] = [set() for _ in left]
    for a, b in _candidates(left, right):
        if similarity(left[a].code, right[b].code) >= least:
            found[a].add(b)
    return found


def _candidates(left: Sequence[Spelled], right: Sequence[Spelled]) -> Iterable[tuple[int, int]]:
    """For each text of the left those of the right that share most of its pairs of words. Where many are
    worded alike but for numbers, these count too; else the nearest ones are candidates.
    """
    if len(left) * len(right) <= N_CANDIDATES:
        return [(a, b) for a in range(len(left)) for b in range(len(right))]
    masked = _Holders(right, [text.masked for text in right])
    plain: _Holders | None = None
    found: list[tuple[int, int]] = []
    for a, text in enumerate(left):
        best, is_frequent = masked.best(text.masked, text.place)
        if is_frequent and not best:
            plain = plain or _Holders(right, [text.code for text in right])
            nearest = plain.nearest(text.place)
            best = [*dict.fromkeys((*plain.best(text.code, text.place)[0], *nearest))]
        found += [(a, b) for b in best]
    return found


class _Holders:
    """Which texts have a pair of words."""

    def __init__(self, texts: Sequence[Spelled], spelled: Sequence[str]) -> None:
        self._texts = texts
        self._holders: dict[tuple[str, str], list[int]] = defaultdict(list)
        for number, one in enumerate(spelled):
            for pair in _pairs(one):
                self._holders[pair].append(number)
        self._by_place = sorted(range(len(texts)), key=lambda b: texts[b].place)

    def best(self, spelled: str, place: float) -> tuple[list[int], bool]:
        """Those that share most pairs with a text, the rarer the better; whether it has a frequent one."""
        shared: dict[int, float] = defaultdict(float)
        is_frequent = False
        for pair in _pairs(spelled):
            held_by = self._holders.get(pair, ())
            is_frequent |= len(held_by) > FREQUENT
            if 0 < len(held_by) <= FREQUENT:
                weight = math.log(1 + len(self._texts) / len(held_by))
                for b in held_by:
                    shared[b] += weight
        # Equals in words are told apart by where they stand.
        ranked = sorted(shared, key=lambda b: (-round(shared[b], 6), abs(self._texts[b].place - place), b))
        return ranked[:N_CANDIDATES], is_frequent

    def nearest(self, place: float) -> list[int]:
        """Those that stand nearest to a place."""
        at = bisect_left(self._by_place, place, key=lambda b: self._texts[b].place)
        return self._by_place[max(0, at - N_CANDIDATES // 2) : at + N_CANDIDATES // 2]


def _pairs(spelled: str) -> set[tuple[str, str]]:
    return set(pairwise(f"{_EDGE}{spelled}{_EDGE}"))


def in_order(places: Sequence[tuple[int, float]]) -> list[bool]:
    """Which of the items, each (its place in B, its weight) in A's order, are in the heaviest run of rising
    places; the others have moved. Places are different. Time: n log n.
    """
    ranks = {place: rank for rank, place in enumerate(sorted(place for place, _ in places), start=1)}
    tree: list[tuple[float, int]] = [(0.0, -1)] * (len(ranks) + 1)
    before: list[int] = []
    for item, (place, weight) in enumerate(places):
        rank = ranks[place]
        best, at = (0.0, -1), rank - 1
        while at > 0:
            best, at = max(best, tree[at]), at & (at - 1)
        before.append(best[1])
        reached, at = (best[0] + weight, item), rank
        while at < len(tree):
            tree[at], at = max(tree[at], reached), at + (at & -at)
    best, at = (0.0, -1), len(ranks)
    while at > 0:
        best, at = max(best, tree[at]), at & (at - 1)
    kept = [False] * len(places)
    item = best[1]
    while item >= 0:
        kept[item], item = True, before[item]
    return kept
