"""The clauses of two outlines → pairs, across renumbering, moves and rewording. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from localctx.alignment.outline import Outline
from localctx.alignment.pairing import Spelled, in_order, pair_similar
from localctx.alignment.words import is_too_long, letter, n_letters, shared_content, similarity

__all__ = ["SAME_CONTENT", "equal_in_order", "pair_clauses"]

NEIGHBOUR_SIMILARITY = 0.45
"""Between neighbours that belong together, a clause that is this similar is the same one, rewritten."""
CONTAINED_SHARE = 0.72
"""So is one whose words the other one holds to this share: it grew, or was cut."""
CONTAINED_WORDS = 8
SAME_CONTENT = 0.35
"""So is one with this share of content words in common, in whatever order."""
TITLE_SIMILARITY = 0.2
"""A clause under an equal heading is the same one unless it has next to no word in common."""


@dataclass(slots=True)
class _Pairing:
    """Pairs found so far, both ways."""

    a: Sequence[Spelled]
    b: Sequence[Spelled]
    b_of: dict[int, int] = field(default_factory=dict)
    a_of: dict[int, int] = field(default_factory=dict)

    def add(self, a: int, b: int) -> None:
        self.b_of[a], self.a_of[b] = b, a

    def left_a(self) -> list[int]:
        """Clauses of A with words and without a partner."""
        return [k for k, one in enumerate(self.a) if one.code and k not in self.b_of]

    def left_b(self) -> list[int]:
        return [k for k, one in enumerate(self.b) if one.code and k not in self.a_of]


def pair_clauses(a: Outline, b: Outline, least: float) -> dict[int, int]:
    """For clauses of A the one of B that they became. Equal ones first, then those of at least that
    similarity wherever they stand, then those under one heading, then what stands beside paired neighbours.
    """
    pairing = _Pairing(_spelled(a), _spelled(b))
    _pair_equal(pairing)
    left_a, left_b = pairing.left_a(), pairing.left_b()
    spelled = [pairing.a[k] for k in left_a], [pairing.b[k] for k in left_b]
    # Like clauses for different things are told apart by their headings.
    titles = [_title(a, k) for k in left_a], [_title(b, k) for k in left_b]
    for match in pair_similar(*spelled, least, lambda i, j: _same_title(titles[0][i], titles[1][j])):
        pairing.add(left_a[match.a], left_b[match.b])
    _pair_titled(pairing, a, b)
    for step in (1, -1):
        _pair_neighbours(pairing, a, b, step)
    return pairing.b_of


def equal_in_order(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Places of equal items along the longest common sequence, then of the equal ones that are left."""
    from rapidfuzz.distance import Indel

    letters: dict[str, str] = {}

    def spell(items: Iterable[str]) -> str:
        return "".join(letters.setdefault(item, letter(len(letters))) for item in items)

    found: list[tuple[int, int]] = []
    if is_too_long(a, b) or len(a) + len(b) > n_letters():
        found = _unique_in_order(a, b)
    else:
        for code in Indel.opcodes(spell(a), spell(b)):
            if code.tag == "equal":
                spans = range(code.src_start, code.src_end), range(code.dest_start, code.dest_end)
                found += zip(*spans, strict=True)
    taken_a, taken_b = {k for k, _ in found}, {k for _, k in found}
    places: dict[str, list[int]] = defaultdict(list)
    for k in reversed(range(len(b))):
        if k not in taken_b:
            places[b[k]].append(k)
    for k, item in enumerate(a):
        if k not in taken_a and places[item]:
            found.append((k, places[item].pop()))
    return found


def _unique_in_order(a: Sequence[str], b: Sequence[str]) -> list[tuple[int, int]]:
    """Places of items that occur once on either side, along the longest run in the same order."""
    once_a, once_b = (
        {item: k for k, item in enumerate(items) if counts[item] == 1}
        for items, counts in ((a, Counter(a)), (b, Counter(b)))
    )
    pairs = [(k, once_b[item]) for item, k in once_a.items() if item in once_b]
    kept = in_order([(place, 1.0) for _, place in pairs])
    return [pair for pair, stays in zip(pairs, kept, strict=True) if stays]


def _spelled(outline: Outline) -> list[Spelled]:
    """Each clause's words; its place is its share of the document."""
    n_all = max(1, len(outline.clauses))
    found: list[Spelled] = []
    for clause in outline.clauses:
        passages = outline.passages_of(clause.index)
        code = "".join(passage.code for passage in passages)
        found.append(Spelled(code, "".join(passage.masked for passage in passages), clause.index / n_all))
    return found


def _pair_equal(pairing: _Pairing) -> None:
    left_a, left_b = pairing.left_a(), pairing.left_b()
    codes = [pairing.a[k].code for k in left_a], [pairing.b[k].code for k in left_b]
    for a, b in equal_in_order(*codes):
        pairing.add(left_a[a], left_b[b])


def _pair_titled(pairing: _Pairing, a: Outline, b: Outline) -> None:
    """Clauses under the same heading, in order."""
    by_title: dict[str, list[int]] = defaultdict(list)
    for k in reversed(pairing.left_b()):
        if title := _title(b, k):
            by_title[title].append(k)
    for k in pairing.left_a():
        found = by_title.get(_title(a, k), [])
        if found and similarity(pairing.a[k].masked, pairing.b[found[-1]].masked) >= TITLE_SIMILARITY:
            pairing.add(k, found.pop())


def _title(outline: Outline, clause: int) -> str:
    passages = outline.passages_of(clause)
    return passages[0].code if passages and passages[0].is_title else ""


def _same_title(one: str, other: str) -> bool:
    return not one or not other or one == other


def _pair_neighbours(pairing: _Pairing, first: Outline, second: Outline, step: int) -> None:
    """Pair what stands behind (step 1) or before (-1) two clauses that belong together."""
    left_b = set(pairing.left_b())
    order: Callable[[list[int]], list[int]] = sorted if step > 0 else lambda k: sorted(k, reverse=True)
    for a in order(pairing.left_a()):
        beside = pairing.b_of.get(a - step)
        b = (0 if step > 0 else len(pairing.b) - 1) if _is_edge(pairing, a, step) else None
        b = beside + step if beside is not None else b
        if b is None or b not in left_b:
            continue
        one, other = pairing.a[a].masked, pairing.b[b].masked
        is_like = similarity(one, other) >= NEIGHBOUR_SIMILARITY or _is_contained(one, other)
        if is_like or shared_content(first.text_of(a), second.text_of(b)) >= SAME_CONTENT:
            pairing.add(a, b)
            left_b.discard(b)


def _is_edge(pairing: _Pairing, a: int, step: int) -> bool:
    """Whether no clause stands before (behind) it."""
    return a == (0 if step > 0 else len(pairing.a) - 1)


def _is_contained(one: str, other: str) -> bool:
    from rapidfuzz.distance import LCSseq

    least = min(len(one), len(other))
    if is_too_long(one, other):
        return False
    return least >= CONTAINED_WORDS and LCSseq.similarity(one, other) >= CONTAINED_SHARE * least
