"""Lines of a page → reading order: columns of prose one after another, what spans them between. Pure.

Careful rather than complete: the order stays the engine's unless both sides of a free strip are prose.
Knows no engine. Points, y upwards.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from statistics import median
from typing import NamedTuple

from localctx.document.pdf_cells import Table, parts_of
from localctx.document.pdf_layout import PlacedLine, Word
from localctx.document.pdf_prose import (
    GUTTER,
    LEAST_LINES,
    LEAST_WIDTH,
    SAME_LEFT,
    beside_one_another,
    clusters,
    has_words,
)

__all__ = ["Placed", "Strip", "learned_strips", "line_of", "reading_order"]

SAME_ROW = 0.6
"""Base lines nearer than this, by the height of the text, may be of one row."""
CUT_SHARE = 0.1
"""Of a page's lines, those with wide gaps where an engine reads across columns."""
HEADER_GAP = 0.2
"""Of its width, the free space in a page's first line that no columns leave."""
PARTED_SHARE = 0.6
"""Of the lines beside a strip, those in columns that it parts."""
KNOWN_SHARE = 0.3
"""Of the lines on a side of a strip that is known from other pages, those that begin where they do there."""
SHIFT = 40.0
"""Points by which columns may stand elsewhere on another page."""
MOST_DEPTH = 6


class Strip(NamedTuple):
    """What parts two columns: where those on its left and on its right begin."""

    left: float
    right: float


class Placed(NamedTuple):
    """A line, or a piece of one, and the line's number in the engine's order; `table`: what it stands for,
    without text; `reach`: from where to where the row goes that it is a part of."""

    number: int
    line: PlacedLine
    table: Table | None = None
    reach: tuple[float, float] = (0.0, 0.0)

    @property
    def middle(self) -> float:
        """Height of its middle."""
        return (self.line.bottom + self.line.top) / 2


@dataclass(slots=True)
class Band:
    """A part of a page from left to right: either what reaches over a strip, or what lies beside it."""

    over: list[Placed] = field(default_factory=list)
    left: list[Placed] = field(default_factory=list)
    right: list[Placed] = field(default_factory=list)

    def n_parted(self, known: Strip | None, height: float) -> tuple[int, float | None]:
        """Lines beside the strip, and where the left one of the two columns begins that it parts: both are
        prose, or begin where they do on other pages. 0 where it parts none."""
        lefts = [piece.line for piece in self.left if piece.table is None]
        rights = [piece.line for piece in self.right if piece.table is None]
        at = beside_one_another(lefts, rights) if lefts and rights else None
        if at is None and known is not None and lefts and rights:
            gutter = min(line.left for line in rights) - max(line.right for line in lefts)
            fits = begin_at(lefts, known.left) and begin_at(rights, known.right)
            at = known.left if fits and gutter >= GUTTER * height else None
        return (0, None) if at is None else (len(self.left) + len(self.right), at)


def begin_at(lines: Sequence[PlacedLine], left: float) -> bool:
    """Whether enough of the lines begin there."""
    return sum(-SAME_LEFT <= line.left - left <= line.height for line in lines) >= KNOWN_SHARE * len(lines)


def reading_order(
    items: Sequence[Placed], known: Sequence[Strip] = (), found: list[Strip] | None = None
) -> list[list[Placed]] | None:
    """Runs of the items, each in the engine's order, to be read one after another; lines that the engine
    reads across columns are cut. None where there are no columns of prose, nor columns as on other pages
    (`known`). The strips between columns are added to `found`."""
    if not may_have_columns(items):
        return None
    pieces = with_reach(cut(items))
    runs = columns(pieces, known, [] if found is None else found)
    if len(runs) < 2:
        return None
    whole = {item.number: item for item in items}
    n_pieces = Counter(piece.number for piece in pieces)
    return [list(rejoined(run, whole, n_pieces)) for run in runs]


def learned_strips(pages: Iterable[Sequence[PlacedLine]]) -> tuple[tuple[Strip, ...], bool]:
    """The strips that part columns on the pages; whether the engine reads lines across them."""
    found: list[Strip] = []
    is_joined = False
    for lines in pages:
        runs = reading_order([Placed(i, line) for i, line in enumerate(lines)], (), found)
        is_joined |= runs is not None and sum(map(len, runs)) > len(lines)
    counted = Counter(Strip(round(strip.left), round(strip.right)) for strip in found)
    return tuple(Strip(*strip) for strip, _ in counted.most_common(4)), is_joined


def may_have_columns(items: Sequence[Placed]) -> bool:
    """A cheap look: whether enough lines, or parts of them, begin far from the left."""
    left = min((item.line.left for item in items), default=0.0)
    n_right = 0
    for item in items:
        line = item.line
        if line.left > left + LEAST_WIDTH or has_gap(line):
            n_right += 1
            if n_right >= LEAST_LINES:
                return True
    return False


def widest_gap(line: PlacedLine) -> float:
    """The widest free space in a line."""
    return max((after.left - word.right for word, after in pairwise(line.words)), default=0.0)


def has_gap(line: PlacedLine) -> bool:
    """Whether a gap as wide as between columns lies in a line."""
    return widest_gap(line) > GUTTER * line.height


def cut(items: Sequence[Placed]) -> list[Placed]:
    """The items' pieces, parted at gaps as wide as between columns, where there are many such gaps."""
    gaps = {item.number for item in items if item.table is None and has_gap(item.line)}
    top = max(items, key=lambda item: item.line.bottom)
    if widest_gap(top.line) > HEADER_GAP * (top.line.right - top.line.left):
        gaps.discard(top.number)  # a header and the page's number
    if len(gaps) < max(LEAST_LINES, CUT_SHARE * len(items)):
        return list(items)
    pieces: list[Placed] = []
    for item in items:
        if item.number not in gaps:
            pieces.append(item)
            continue
        words = item.line.words
        for part in parts_of(item.number, item.line, GUTTER):
            n_words = part.text.count(" ") + 1
            pieces.append(Placed(item.number, line_of(item.line, words[:n_words])))
            words = words[n_words:]
    return pieces


def with_reach(pieces: Sequence[Placed]) -> list[Placed]:
    """The pieces, each knowing how far those reach that follow it on its row: a raised sign parts a line."""
    rows: list[list[Placed]] = []
    for piece in pieces:
        if rows and goes_on_in_row(rows[-1][-1].line, piece.line):
            rows[-1].append(piece)
        else:
            rows.append([piece])
    return [
        piece._replace(reach=(min(p.line.left for p in row), max(p.line.right for p in row)))
        for row in rows
        for piece in row
    ]


def goes_on_in_row(before: PlacedLine, after: PlacedLine) -> bool:
    """Whether a line stands close behind another, if a little higher or lower."""
    height = max(before.height, after.height)
    gap = after.left - before.right
    return -0.3 * height < gap < GUTTER * height and abs(before.bottom - after.bottom) < SAME_ROW * height


def line_of(line: PlacedLine, words: Sequence[Word]) -> PlacedLine:
    """The words of a line as a line of their own."""
    return line._replace(
        text=" ".join(word.text for word in words),
        left=words[0].left,
        right=words[-1].right,
        word_width=words[0].right - words[0].left,
        words=tuple(words),
        raised=(),
    )


def rejoined(run: Iterable[Placed], whole: dict[int, Placed], n_pieces: Counter[int]) -> Iterable[Placed]:
    """The pieces in the engine's order, those of one line as one again."""
    ordered = sorted(run, key=lambda piece: (piece.number, piece.line.left))
    for number, group in groupby(ordered, key=lambda piece: piece.number):
        pieces = list(group)
        if len(pieces) == n_pieces[number]:
            yield whole[number]
        else:
            words = [word for piece in pieces for word in piece.line.words]
            yield Placed(number, line_of(pieces[0].line, words))


def columns(
    pieces: list[Placed], known: Sequence[Strip], found: list[Strip], depth: int = 0
) -> list[list[Placed]]:
    """The pieces as runs to be read one after another: parted at the strip that most lines stand beside."""
    best: list[list[Placed]] = []
    most, strip = 0, Strip(0.0, 0.0)
    height = median(piece.line.height for piece in pieces) if pieces else 0.0
    for right, expected in strips(pieces, known) if depth < MOST_DEPTH else []:
        bands = bands_at(pieces, right - GUTTER / 2 * height)
        parted = [band.n_parted(expected, height) for band in bands]
        n_parted = sum(n for n, _ in parted)
        n_beside = sum(len(band.left) + len(band.right) for band in bands)
        if n_parted > most and n_parted >= PARTED_SHARE * n_beside:
            most, strip = n_parted, Strip(next(at for _, at in parted if at is not None), right)
            best = [
                side
                for band, (n, _) in zip(bands, parted, strict=True)
                for side in sides(band, is_parted=n > 0)
            ]
    if not best:
        return [pieces]
    found.append(strip)
    return [run for side in best for run in columns(side, known, found, depth + 1)]


def sides(band: Band, is_parted: bool) -> list[list[Placed]]:
    """What of the band is read one after another."""
    has_two = bool(band.left and band.right) and all(
        has_words([piece.line for piece in side if piece.table is None]) for side in (band.left, band.right)
    )
    return [band.left, band.right] if is_parted or has_two else [band.over + band.left + band.right]


def strips(pieces: Sequence[Placed], known: Sequence[Strip]) -> list[tuple[float, Strip | None]]:
    """Where a right column may begin: where enough lines do, or where it does on other pages."""
    if len(pieces) < 2 * LEAST_LINES:
        return []
    lines = [piece.line for piece in pieces if piece.table is None]
    least = min(piece.line.left for piece in pieces) + LEAST_WIDTH
    found = clusters(lines)
    expected = {round(strip.right - strip.left): strip for strip in known}  # left and right pages are shifted
    shifted = [
        Strip(right - width, right)
        for width, strip in expected.items()
        for right in found
        if abs(right - strip.right) <= SHIFT
    ]
    return [*((left, None) for left in found if left >= least), *((s.right, s) for s in shifted)]


def bands_at(pieces: Sequence[Placed], at: float) -> list[Band]:
    """The page from the top, parted by what reaches over the strip."""
    bands: list[Band] = []
    for piece in sorted(pieces, key=lambda piece: -piece.middle):
        is_over = piece.reach[0] < at < piece.reach[1]
        if not bands or is_over != bool(bands[-1].over):
            bands.append(Band())
        side = bands[-1].over if is_over else bands[-1].left if piece.reach[0] < at else bands[-1].right
        side.append(piece)
    return bands
