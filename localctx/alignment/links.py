"""Two outlines → their passages linked: those of paired clauses first, then what went elsewhere. Pure.

A link has several passages on a side where a sentence was split or joined. What is not in the heaviest run of
links in the same order on both sides has moved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from localctx.alignment.clauses import SAME_CONTENT, equal_in_order, pair_clauses
from localctx.alignment.outline import Outline, Passage
from localctx.alignment.pairing import Spelled, alike, in_order, pair_similar
from localctx.alignment.values import Thresholds
from localctx.alignment.words import shared_content, similarity

__all__ = ["Link", "Linked", "link_outlines"]

SAME_PLACE = 0.55
"""Share of the threshold that is enough for a passage which stands where the other one stood."""
ALONE_CONTENT = 0.2
"""Share of content words in common that is enough between a sentence and the only other one in its place."""
MOST_IN_PLACE = 400
"""Pairs of passages between two links, up to which they still stand in the same place."""
MOST_JOINED = 8
"""Passages that are one link where sentences were split, joined or cut elsewhere."""
REST_GAIN = 0.08
"""What the rest of a cut sentence adds to the similarity of the two at least."""
ELSEWHERE_WORDS = 4
"""Shorter passages are not looked for in other clauses."""
OUTSIDE_WEIGHT = 0.3
"""What a passage that went elsewhere weighs, beside a clause's 1, when the order is judged."""


@dataclass(frozen=True, slots=True)
class Link:
    """Passages a of A became passages b of B (indices, ascending). is_moved: it left its order · clauses: the
    pair of clauses it belongs to, None where it went from one to another.
    """

    a: tuple[int, ...]
    b: tuple[int, ...]
    clauses: tuple[int, int] | None
    is_moved: bool = False


@dataclass(slots=True)
class Linked:
    """b_of: pairs of clauses · moved: those of them that left their order, by A's clause."""

    b_of: dict[int, int]
    links: list[Link] = field(default_factory=list)
    moved: set[int] = field(default_factory=set)


def link_outlines(a: Outline, b: Outline, thresholds: Thresholds) -> Linked:
    """Links of all passages that have a counterpart."""
    linked = Linked(pair_clauses(a, b, thresholds.clause))
    left_a = set(range(len(a.passages)))
    left_b = set(range(len(b.passages)))
    for one, other in sorted(linked.b_of.items()):
        inside = _Inside(a, b, one, other, thresholds.paragraph).links()
        for link in _with_moves(inside):
            linked.links.append(replace(link, clauses=(one, other)))
            left_a.difference_update(link.a)
            left_b.difference_update(link.b)
    linked.links += _elsewhere(a, b, sorted(left_a), sorted(left_b), linked.b_of, thresholds)
    _find_moved(a, b, linked)
    return linked


@dataclass(slots=True)
class _Inside:
    """Two clauses that belong together, and their passages without the heading that both have."""

    outline_a: Outline
    outline_b: Outline
    one: int
    other: int
    least: float
    a: Sequence[Passage] = ()
    b: Sequence[Passage] = ()

    def links(self) -> list[Link]:
        """Links of their passages: equal ones in order, similar ones, then what stands in the same place."""
        self.a, self.b = self.outline_a.passages_of(self.one), self.outline_b.passages_of(self.other)
        links: list[Link] = []
        if self.a and self.b and self.a[0].is_title and self.b[0].is_title:
            links.append(Link((self.a[0].index,), (self.b[0].index,), None))
            self.a, self.b = self.a[1:], self.b[1:]
        linked = dict(equal_in_order([p.code for p in self.a], [p.code for p in self.b]))
        taken = set(linked.values())
        left_a = [k for k in range(len(self.a)) if k not in linked]
        left_b = [k for k in range(len(self.b)) if k not in taken]
        matches = pair_similar(_spelled(self.a, left_a), _spelled(self.b, left_b), self.least)
        linked |= {left_a[match.a]: left_b[match.b] for match in matches}
        links += [self._link([one], [other]) for one, other in linked.items()]
        for ours, theirs in _gaps(len(self.a), len(self.b), linked):
            links += self._in_gap(ours, theirs)
        return self._grown(links)

    def _grown(self, links: list[Link]) -> list[Link]:
        """The links with neighbours that have none, where those are the rest of a sentence that was cut in
        two or joined with another.
        """
        free_a = {p.index for p in self.a} - {k for link in links for k in link.a}
        free_b = {p.index for p in self.b} - {k for link in links for k in link.b}
        if not free_a and not free_b:
            return links
        grown: list[Link] = []
        for link in links:
            a, b = link.a, link.b
            for k in sorted(free_a & {a[0] - 1, a[-1] + 1}):
                if self._gain((*a, k), b) - self._gain(a, b) >= REST_GAIN:
                    a = tuple(sorted((*a, k)))
                    free_a.discard(k)
            for k in sorted(free_b & {b[0] - 1, b[-1] + 1}):
                if self._gain(a, (*b, k)) - self._gain(a, b) >= REST_GAIN:
                    b = tuple(sorted((*b, k)))
                    free_b.discard(k)
            grown.append(Link(a, b, None))
        return grown

    def _gain(self, a: Sequence[int], b: Sequence[int]) -> float:
        """How similar the passages are, each side read in a row."""
        one = "".join(self.outline_a.passages[k].masked for k in sorted(a))
        return similarity(one, "".join(self.outline_b.passages[k].masked for k in sorted(b)))

    def _link(self, ours: Sequence[int], theirs: Sequence[int]) -> Link:
        return Link(tuple(self.a[k].index for k in ours), tuple(self.b[k].index for k in theirs), None)

    def _in_gap(self, ours: list[int], theirs: list[int]) -> list[Link]:
        """Links of what is left between linked neighbours: as many on either side one by one where all are
        similar, split or joined sentences, reworded ones.
        """
        if len(ours) == len(theirs) and all(
            similarity(self.a[one].masked, self.b[other].masked) >= self.least
            for one, other in zip(ours, theirs, strict=True)
        ):
            return [self._link([one], [other]) for one, other in zip(ours, theirs, strict=True)]
        joined = ["".join(p[k].masked for k in left) for p, left in ((self.a, ours), (self.b, theirs))]
        is_run = all(left[-1] - left[0] + 1 == len(left) for left in (ours, theirs))
        if is_run and 2 < len(ours) + len(theirs) <= MOST_JOINED and similarity(*joined) >= self.least:
            return [self._link(ours, theirs)]
        spelled = _spelled(self.a, ours), _spelled(self.b, theirs)
        matches = pair_similar(*spelled, self.least * SAME_PLACE)
        found = {ours[match.a]: theirs[match.b] for match in matches}
        if len(ours) * len(theirs) > MOST_IN_PLACE:
            return [self._link([one], [other]) for one, other in found.items()]
        left_b = [k for k in theirs if k not in found.values()]
        for one in ours:
            if one in found or not left_b:
                continue
            text = self.outline_a.passage_text(self.a[one])
            shares = [shared_content(text, self.outline_b.passage_text(self.b[k])) for k in left_b]
            if max(shares) >= (ALONE_CONTENT if len(ours) == len(theirs) == 1 else SAME_CONTENT):
                found[one] = left_b.pop(shares.index(max(shares)))
        return [self._link([one], [other]) for one, other in found.items()]


def _gaps(n_a: int, n_b: int, linked: dict[int, int]) -> Iterator[tuple[list[int], list[int]]]:
    """What is not linked on both sides behind the same link, where there is something on both."""
    taken = set(linked.values())
    gaps: dict[int, tuple[list[int], list[int]]] = defaultdict(lambda: ([], []))
    gap = -1
    for k in range(n_a):
        gap = linked.get(k, gap)
        if k not in linked:
            gaps[gap][0].append(k)
    gap = -1
    for k in range(n_b):
        if k in taken:
            gap = k
        else:
            gaps[gap][1].append(k)
    yield from (both for both in gaps.values() if all(both))


def _spelled(passages: Sequence[Passage], wanted: Sequence[int]) -> list[Spelled]:
    n_all = max(1, len(passages))
    return [Spelled(passages[k].code, passages[k].masked, k / n_all) for k in wanted]


def _with_moves(links: list[Link]) -> list[Link]:
    """The links of two clauses in A's order, those that left their order marked."""
    links = sorted(links, key=lambda link: link.a)
    kept = in_order([(link.b[0], 1.0) for link in links])
    return [replace(link, is_moved=not stays) for link, stays in zip(links, kept, strict=True)]


def _elsewhere(
    a: Outline,
    b: Outline,
    left_a: list[int],
    left_b: list[int],
    b_of: dict[int, int],
    thresholds: Thresholds,
) -> list[Link]:
    """Links of passages that went to another clause: they must be nearer to equal than clauses, halfway."""
    long_a = [k for k in left_a if len(a.passages[k].code) >= ELSEWHERE_WORDS]
    long_b = [k for k in left_b if len(b.passages[k].code) >= ELSEWHERE_WORDS]
    least = (1 + thresholds.clause) / 2
    spelled = [
        [Spelled(p.code, p.code, k / len(o.passages)) for k in left for p in (o.passages[k],)]
        for o, left in ((a, long_a), (b, long_b))
    ]
    paired_b = set(b_of.values())

    def may_pair(i: int, j: int) -> bool:
        """Two clauses that are no pair share no passage that is only similar."""
        one, other = a.passages[long_a[i]], b.passages[long_b[j]]
        return one.code == other.code or one.clause in b_of or other.clause in paired_b

    matches = pair_similar(spelled[0], spelled[1], least, may_pair)
    found = [(long_a[match.a], long_b[match.b]) for match in matches]
    # A sentence that stands in many clauses in nearly the same words has not moved from one to another.
    near = [(one, other) for one, other in found if a.passages[one].code != b.passages[other].code]
    whole = [[Spelled(p.code, p.code, 0.0) for p in outline.passages] for outline in (a, b)]
    in_b = alike([whole[0][one] for one, _ in near], whole[1], least) if near else []
    in_a = alike([whole[1][other] for _, other in near], whole[0], least) if near else []
    doubtful = {
        pair for pair, ours, theirs in zip(near, in_a, in_b, strict=True) if len(ours) > 1 or len(theirs) > 1
    }
    return [Link((one,), (other,), None) for one, other in found if (one, other) not in doubtful]


def _find_moved(a: Outline, b: Outline, linked: Linked) -> None:
    """Mark clauses and single passages that left the order of the whole."""
    items: list[tuple[int, int, float, int | None]] = []
    for one, other in linked.b_of.items():
        start, place = a.first[one], b.first[other]
        items.append((start, place, 1 + 1e-4 * (a.first[one + 1] - start), one))
    outside = [k for k, link in enumerate(linked.links) if link.clauses is None]
    items += [(linked.links[k].a[0], linked.links[k].b[0], OUTSIDE_WEIGHT, None) for k in outside]
    owners = [item[3] for item in items]
    numbers = iter(outside)
    which = [next(numbers) if owner is None else owner for owner in owners]
    order = sorted(range(len(items)), key=lambda k: items[k][:2])
    # Two items of one place (a clause, and a passage that begins it) are told apart by their rank.
    ranks = {k: rank for rank, k in enumerate(sorted(range(len(items)), key=lambda k: (items[k][1], k)))}
    kept = in_order([(ranks[k], items[k][2]) for k in order])
    for k, stays in zip(order, kept, strict=True):
        if stays:
            continue
        if owners[k] is None:
            linked.links[which[k]] = replace(linked.links[which[k]], is_moved=True)
        else:
            linked.moved.add(which[k])
