"""A pair of passages → what differs in them, classed by what the words name. Pure.

Words that differ are found by the longest common sequence; a hunk that touches dates, numbers or parties
which are not the same on both sides is a change of those, what is left is rewording. Cross-references that
follow the new numbers of their clauses are no difference.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from localctx.alignment.entities import Entity, entities, is_unit
from localctx.alignment.outline import Passage
from localctx.alignment.values import Kind
from localctx.alignment.words import is_too_long

__all__ = ["Change", "Differ"]

NamedKind: TypeAlias = Literal["date", "number", "party"]
KINDS: tuple[NamedKind, ...] = ("date", "number", "party")
"""In this order: a date's figures are no numbers."""
BESIDE_WORDS = 2
"""A number spelled in words beside its figures ("thirty (30)") changes with them."""
SHORT_WORDS = 3
NAME_LETTERS = 4

Spot: TypeAlias = tuple[int, int]
"""First word, and the one behind the last."""


@dataclass(frozen=True, slots=True)
class Change:
    """Words [a) of one passage that became words [b) of the other, as spans of the documents."""

    kind: Kind
    a: Spot
    b: Spot
    texts: tuple[str, str]


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of passages in a row, with their entities by word."""

    text: str
    code: str
    texts: tuple[str, ...]
    starts: tuple[int, ...]
    ends: tuple[int, ...]
    entities: Sequence[tuple[Entity, Spot]]
    """In order; none overlap."""
    counts: Counter[str]
    """How often each entity is named, by its key."""

    def span(self, spot: Spot) -> Spot:
        """The words' place in the document; an empty one where the next word begins."""
        first, last = spot
        if first < last:
            return self.starts[first], self.ends[last - 1]
        at = self.starts[first] if first < len(self.starts) else (self.ends[-1] if self.ends else 0)
        return at, at

    def touched(self, spot: Spot) -> list[tuple[Entity, Spot]]:
        """The entities that have a word in the spot; of an empty one, those that it stands in or beside."""
        first, last = spot if spot[0] < spot[1] else (spot[0] - 1, spot[1] + 1)
        begin = bisect_right(self.entities, first, key=lambda one: one[1][1])
        return list(self.entities[begin : bisect_left(self.entities, last, key=lambda one: one[1][0])])

    def lacking(self, found: list[tuple[Entity, Spot]], other: _Words) -> list[tuple[Entity, Spot]]:
        """Those of the entities found here that the other side has less often."""
        return [one for one in found if self.counts[one[0].key] > other.counts[one[0].key]]

    def quote(self, spot: Spot) -> str:
        start, end = self.span(spot)
        return " ".join(self.text[start:end].split())


@dataclass(slots=True)
class _Hunk:
    """Words a of one side against words b of the other."""

    a: Spot
    b: Spot


@dataclass(slots=True)
class Differ:
    """Compares passages of two texts. numbers: A's clause numbers → B's · followed: where in A references
    stand that follow them.
    """

    text_a: str
    text_b: str
    roles: frozenset[str]
    numbers: Mapping[str, str]
    entity: float
    followed: set[int] = field(default_factory=set)

    def changes(self, a: Sequence[Passage], b: Sequence[Passage]) -> Iterator[Change]:
        """What differs between the passages, in order; nothing where they say the same words."""
        one, other = self._words(self.text_a, a), self._words(self.text_b, b)
        if one.code == other.code:
            return
        hunks = [self._followed(one, other, hunk) for hunk in _hunks(one.code, other.code)]
        left: list[_Hunk] = []
        found: list[Change] = []
        for hunk in hunks:
            if hunk is None:
                continue
            named, rest = self._named(one, other, hunk)
            found += named
            left += rest
        numbers = [change for change in found if change.kind == "number"]
        for hunk in left:
            if numbers and _is_beside(one, other, hunk, numbers):
                continue
            texts = one.quote(hunk.a), other.quote(hunk.b)
            if any(texts):
                found.append(Change("reworded", one.span(hunk.a), other.span(hunk.b), texts))
        yield from self._joined(sorted(found, key=lambda change: (change.a, change.b)))

    def _joined(self, changes: Sequence[Change]) -> list[Change]:
        """The changes, those of one kind as one where only marks are between them: "thirty (30)"."""
        runs: list[list[Change]] = []
        for change in changes:
            last = runs[-1][-1] if runs else change
            gaps = self.text_a[last.a[1] : change.a[0]], self.text_b[last.b[1] : change.b[0]]
            if runs and last.kind == change.kind and not any(c.isalnum() for gap in gaps for c in gap):
                runs[-1].append(change)
            else:
                runs.append([change])
        return [self._as_one(run) if len(run) > 1 else run[0] for run in runs]

    def _as_one(self, run: Sequence[Change]) -> Change:
        """Changes in a row as one, from the first word to the last."""
        first, last = run[0], run[-1]
        a = first.a[0], _closed(self.text_a, first.a[0], last.a[1])
        b = first.b[0], _closed(self.text_b, first.b[0], last.b[1])
        texts = " ".join(self.text_a[slice(*a)].split()), " ".join(self.text_b[slice(*b)].split())
        return Change(first.kind, a, b, texts)

    def _words(self, text: str, passages: Sequence[Passage]) -> _Words:
        starts = tuple(at for p in passages for at in p.words.starts)
        ends = tuple(at for p in passages for at in p.words.ends)
        found: list[tuple[Entity, Spot]] = []
        for passage in passages:
            flat = text[passage.start : passage.end].replace("\n", " ")
            for entity in entities(flat, passage.start, self.roles):
                own = bisect_left(starts, entity.start), bisect_left(starts, entity.end)
                if own[0] < own[1]:
                    found.append((entity, own))
        texts = tuple(word for p in passages for word in p.words.texts)
        counts = Counter(entity.key for entity, _ in found)
        return _Words(text, "".join(p.code for p in passages), texts, starts, ends, tuple(found), counts)

    def _followed(self, one: _Words, other: _Words, hunk: _Hunk) -> _Hunk | None:
        """None for a hunk that only gives references their clauses' new numbers."""
        ours = [e for e, own in one.touched(hunk.a) if e.kind == "reference" and _covers(own, hunk.a)]
        theirs = [e for e, own in other.touched(hunk.b) if e.kind == "reference" and _covers(own, hunk.b)]
        if len(ours) == len(theirs) == 1 and self.numbers.get(ours[0].key) == theirs[0].key:
            self.followed.add(ours[0].start)
            return None
        return hunk

    def _named(self, one: _Words, other: _Words, hunk: _Hunk) -> tuple[list[Change], list[_Hunk]]:
        """Changes of what a hunk names, and the parts of the hunk that are left."""
        ours, theirs = one.touched(hunk.a), other.touched(hunk.b)
        found: list[Change] = []
        used_a: list[Spot] = []
        used_b: list[Spot] = []
        for kind in KINDS:
            kinds = ("number", "reference") if kind == "number" else (kind,)
            mine = [(e, own) for e, own in ours if e.kind in kinds]
            yours = [(e, own) for e, own in theirs if e.kind in kinds]
            if not (_is_only(mine, hunk.a) and _is_only(yours, hunk.b)):
                # Elsewhere in a sentence that was turned round the same figure is the same figure.
                mine, yours = one.lacking(mine, other), other.lacking(yours, one)
            if not (mine or yours) or _keys(mine) == _keys(yours):
                continue
            if kind == "party" and (not mine or not yours or self._is_same_name(mine, yours)):
                continue
            spot_a, spot_b = _spread(mine, yours, hunk.a[0]), _spread(yours, mine, hunk.b[0])
            texts = one.quote(spot_a), other.quote(spot_b)
            found.append(Change(kind, one.span(spot_a), other.span(spot_b), texts))
            used_a.append(spot_a)
            used_b.append(spot_b)
        if not found:
            unit = _unit_change(one, other, hunk)
            return ([unit], []) if unit is not None else ([], [hunk])
        rest = list(_rest(hunk, used_a, used_b))
        return found, [h for h in rest if _has_words(one, h.a) or _has_words(other, h.b)]

    def _is_same_name(self, mine: list[tuple[Entity, Spot]], yours: list[tuple[Entity, Spot]]) -> bool:
        """Whether the names are the same ones, written a little differently."""
        from rapidfuzz.distance import Indel

        one, other = (" ".join(sorted(e.key for e, _ in found)) for found in (mine, yours))
        is_long = min(len(one), len(other)) >= NAME_LETTERS
        return is_long and Indel.normalized_similarity(one, other) >= self.entity


def _hunks(one: str, other: str) -> Iterator[_Hunk]:
    """Stretches that differ; a single equal word between two larger ones does not part them."""
    from rapidfuzz.distance import Indel

    if is_too_long(one, other):
        yield _Hunk((0, len(one)), (0, len(other)))
        return
    open_one: _Hunk | None = None
    for code in Indel.opcodes(one, other):
        if code.tag == "equal":
            if code.src_end - code.src_start > 1 or open_one is None or _size(open_one) < SHORT_WORDS:
                if open_one is not None:
                    yield open_one
                open_one = None
            continue
        if open_one is None:
            open_one = _Hunk((code.src_start, code.src_start), (code.dest_start, code.dest_start))
        open_one = _Hunk((open_one.a[0], code.src_end), (open_one.b[0], code.dest_end))
    if open_one is not None:
        yield open_one


def _closed(text: str, start: int, end: int) -> int:
    """Where the stretch ends with the bracket that it opened."""
    is_open = "(" in text[start:end] and ")" not in text[start:end]
    return end + 1 if is_open and text[end : end + 1] == ")" else end


def _size(hunk: _Hunk) -> int:
    return max(hunk.a[1] - hunk.a[0], hunk.b[1] - hunk.b[0])


def _covers(own: Spot, spot: Spot) -> bool:
    return own[0] <= spot[0] and spot[1] <= own[1]


def _is_only(found: list[tuple[Entity, Spot]], spot: Spot) -> bool:
    """Whether the spot has words, and each of them is of one of the entities."""
    covered = {k for _, own in found for k in range(*own)}
    return spot[0] < spot[1] and covered.issuperset(range(*spot))


def _keys(found: list[tuple[Entity, Spot]]) -> Counter[str]:
    return Counter(entity.key for entity, _ in found)


def _spread(found: list[tuple[Entity, Spot]], others: list[tuple[Entity, Spot]], at: int) -> Spot:
    """From the first of the entities that the other side lacks to the last; an empty spot without any."""
    lacking = _keys(found) - _keys(others)
    spots = [own for entity, own in found if lacking[entity.key]]
    return (min(spot[0] for spot in spots), max(spot[1] for spot in spots)) if spots else (at, at)


def _unit_change(one: _Words, other: _Words, hunk: _Hunk) -> Change | None:
    """A change of what a number counts, where the number itself stays: "30 days" to "30 weeks"."""
    words = (*one.texts[slice(*hunk.a)], *other.texts[slice(*hunk.b)])
    if not words or _size(hunk) > 1 or not all(map(is_unit, words)):
        return None
    before = one.texts[hunk.a[0] - 1] if hunk.a[0] else ""
    if not (before[:1].isdigit() or before in ")）"):
        return None
    return Change("number", one.span(hunk.a), other.span(hunk.b), (one.quote(hunk.a), other.quote(hunk.b)))


def _rest(hunk: _Hunk, used_a: list[Spot], used_b: list[Spot]) -> Iterator[_Hunk]:
    """What a hunk says before and behind the entities that were found in it."""
    first = min((s for s, _ in used_a), default=hunk.a[0]), min((s for s, _ in used_b), default=hunk.b[0])
    last = max((e for _, e in used_a), default=hunk.a[1]), max((e for _, e in used_b), default=hunk.b[1])
    before = _Hunk((hunk.a[0], max(hunk.a[0], first[0])), (hunk.b[0], max(hunk.b[0], first[1])))
    behind = _Hunk((min(hunk.a[1], last[0]), hunk.a[1]), (min(hunk.b[1], last[1]), hunk.b[1]))
    yield from (part for part in (before, behind) if _size(part) > 0)


def _has_words(words: _Words, spot: Spot) -> bool:
    return any(word[0].isalnum() for word in words.texts[slice(*spot)])


def _is_beside(one: _Words, other: _Words, hunk: _Hunk, numbers: Sequence[Change]) -> bool:
    """Whether a short hunk stands next to a change of a number, as its spelling in words does."""
    if _size(hunk) > SHORT_WORDS or hunk.a[0] == hunk.a[1] or hunk.b[0] == hunk.b[1]:
        return False
    near = one.span((max(0, hunk.a[0] - BESIDE_WORDS), min(len(one.texts), hunk.a[1] + BESIDE_WORDS)))
    at = bisect_right(numbers, near[0], key=lambda change: change.a[1])
    return at < len(numbers) and numbers[at].a[0] < near[1]
