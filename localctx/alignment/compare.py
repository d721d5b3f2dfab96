"""Two outlines → `Comparison`: clauses paired, every difference with its class and both places. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from localctx.alignment.changes import Change, Differ
from localctx.alignment.entities import roles_of
from localctx.alignment.links import Linked, link_outlines
from localctx.alignment.outline import Outline, Passage
from localctx.alignment.values import ClausePair, Comparison, Difference, Kind, Level, Side, Thresholds
from localctx.alignment.words import similarity

__all__ = ["compare_outlines"]


def compare_outlines(a: Outline, b: Outline, thresholds: Thresholds | None = None) -> Comparison:
    """What became of A in B. The outlines share an alphabet."""
    thresholds = thresholds or Thresholds()
    linked = link_outlines(a, b, thresholds)
    return _Comparing(a, b, linked, thresholds).comparison()


@dataclass(slots=True)
class _Comparing:
    """Two outlines with their links."""

    a: Outline
    b: Outline
    linked: Linked
    thresholds: Thresholds

    def comparison(self) -> Comparison:
        """All differences in A's order; what was added stands where it stands in B."""
        differ = Differ(self.a.text, self.b.text, self._roles(), self._numbers(), self.thresholds.entity)
        found = [*self._changed(differ), *self._moved(), *self._unlinked()]
        places = self._places()
        found.sort(key=lambda d: (d.a.start if d.a else places(d.b), d.b.start if d.b else 0))
        return Comparison(self._pairs(found), tuple(found), self._similarity(), len(differ.followed))

    def _roles(self) -> frozenset[str]:
        return roles_of(self.a.text) | roles_of(self.b.text)

    def _numbers(self) -> dict[str, str]:
        """A's clause numbers with B's, where both have one; a number that stands twice says nothing."""
        pairs: dict[str, set[str]] = defaultdict(set)
        for one, other in self.linked.b_of.items():
            if (number := self.a.clauses[one].number) and self.b.clauses[other].number:
                pairs[number].add(self.b.clauses[other].number)
        return {number: others.pop() for number, others in pairs.items() if len(others) == 1}

    def _changed(self, differ: Differ) -> Iterator[Difference]:
        """What differs in passages that are linked."""
        for link in self.linked.links:
            ours = [self.a.passages[k] for k in link.a]
            theirs = [self.b.passages[k] for k in link.b]
            grouped: dict[Kind, list[Change]] = defaultdict(list)
            for change in differ.changes(ours, theirs):
                grouped[change.kind].append(change)
            for kind, changes in grouped.items():
                yield _difference(kind, changes, ours, theirs)

    def _moved(self) -> Iterator[Difference]:
        """Clauses that left their order, those that moved together as one; then single passages."""
        runs: list[list[int]] = []
        for one in sorted(self.linked.moved):
            other = self.linked.b_of[one]
            if runs and one == runs[-1][-1] + 1 and other == self.linked.b_of[runs[-1][-1]] + 1:
                runs[-1].append(one)
            else:
                runs.append([one])
        for run in runs:
            others = [self.linked.b_of[one] for one in run]
            yield Difference("moved", "clause", _clauses(self.a, run), _clauses(self.b, others))
        for link in self.linked.links:
            if link.is_moved:
                sides = [self._side(o, k) for o, k in ((self.a, link.a), (self.b, link.b))]
                yield Difference("moved", "paragraph", sides[0], sides[1])

    def _unlinked(self) -> Iterator[Difference]:
        """What has no counterpart: whole clauses, or passages in a row."""
        for kind, outline, linked in (
            ("removed", self.a, {k for link in self.linked.links for k in link.a}),
            ("added", self.b, {k for link in self.linked.links for k in link.b}),
        ):
            for level, side in _alone(outline, linked):
                only: Kind = "removed" if kind == "removed" else "added"
                yield Difference(
                    only,
                    "clause" if level else "paragraph",
                    side if kind == "removed" else None,
                    None if kind == "removed" else side,
                )

    def _side(self, outline: Outline, passages: Sequence[int]) -> Side:
        return _spread([outline.passages[k] for k in passages])

    def _places(self) -> _Places:
        """Where in A something of B would stand."""
        known = sorted(
            (self.b.passages[k.b[0]].start, self.a.passages[k.a[-1]].end)
            for k in self.linked.links
            if not k.is_moved and (k.clauses is None or k.clauses[0] not in self.linked.moved)
        )
        return _Places(known)

    def _pairs(self, differences: Sequence[Difference]) -> tuple[ClausePair, ...]:
        """All clauses of both."""
        kinds_a: dict[int, dict[Kind, None]] = defaultdict(dict)
        kinds_b: dict[int, dict[Kind, None]] = defaultdict(dict)
        for difference in differences:
            for side, by_clause in ((difference.a, kinds_a), (difference.b, kinds_b)):
                for number in range(side.clause, side.last_clause + 1) if side else ():
                    by_clause[number][difference.kind] = None
        found: list[ClausePair] = []
        for clause in self.a.clauses:
            one, other = clause.index, self.linked.b_of.get(clause.index)
            kinds = {**kinds_a[one], **(kinds_b[other] if other is not None else {})}
            if not self.a.passages_of(one):
                continue
            found.append(self._pair(one, other, tuple(kinds) or ("kept",)))
        alone = set(range(len(self.b.clauses))) - set(self.linked.b_of.values())
        found += [
            ClausePair(None, k, 0.0, tuple(kinds_b[k]) or ("kept",))
            for k in sorted(alone)
            if self.b.passages_of(k)
        ]
        return tuple(found)

    def _pair(self, one: int, other: int | None, kinds: tuple[Kind, ...]) -> ClausePair:
        if other is None:
            return ClausePair(one, None, 0.0, kinds)
        codes = ["".join(p.code for p in o.passages_of(k)) for o, k in ((self.a, one), (self.b, other))]
        numbers = self.a.clauses[one].number, self.b.clauses[other].number
        renumbered = numbers[0] != numbers[1] and all(numbers)
        return ClausePair(one, other, round(similarity(*codes), 4), kinds, renumbered)

    def _similarity(self) -> float:
        """Share of the words of both that are in linked passages and equal there."""
        total = self.a.n_words + self.b.n_words
        both = 0.0
        for link in self.linked.links:
            one = "".join(self.a.passages[k].code for k in link.a)
            other = "".join(self.b.passages[k].code for k in link.b)
            both += similarity(one, other) * (len(one) + len(other))
        return round(both / total, 4) if total else 1.0


@dataclass(frozen=True, slots=True)
class _Places:
    """(start in B, end in A) of what stays in order, ascending."""

    known: Sequence[tuple[int, int]]

    def __call__(self, side: Side | None) -> int:
        from bisect import bisect_right

        if side is None:
            return 0
        at = bisect_right(self.known, (side.start, 0)) - 1
        return self.known[at][1] if at >= 0 else 0


def _difference(
    kind: Kind, changes: Sequence[Change], ours: Sequence[Passage], theirs: Sequence[Passage]
) -> Difference:
    """The changes of one kind in a pair of passages."""
    level: Level = "paragraph" if kind == "reworded" else "entity"
    return Difference(kind, level, _spread(ours), _spread(theirs), tuple(change.texts for change in changes))


def _spread(passages: Sequence[Passage]) -> Side:
    return Side(passages[0].clause, passages[-1].clause, passages[0].start, passages[-1].end)


def _clauses(outline: Outline, clauses: Sequence[int]) -> Side:
    """The clauses from their heads to their last words."""
    first, last = outline.clauses[clauses[0]], clauses[-1]
    ends = [p.end for k in clauses for p in outline.passages_of(k)]
    return Side(clauses[0], last, first.start, max(ends, default=outline.clauses[last].end))


def _alone(outline: Outline, linked: set[int]) -> Iterator[tuple[bool, Side]]:
    """(whether it is whole clauses, its place) of passages without a counterpart, those in a row together."""
    for clause in outline.clauses:
        passages = outline.passages_of(clause.index)
        alone = [p for p in passages if p.index not in linked]
        if not alone:
            continue
        if len(alone) == len(passages):
            yield True, _clauses(outline, [clause.index])
            continue
        run: list[Passage] = []
        for passage in passages:
            if passage.index in linked:
                if run:
                    yield False, _spread(run)
                run = []
            else:
                run.append(passage)
        if run:
            yield False, _spread(run)
