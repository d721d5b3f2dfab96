"""Running headers, footers, page numbers of a PDF: learned from some pages, told apart on every page. Pure.

A row of text is running where rows at its height say the same on neighbouring pages, numbers aside. The first
page that says something keeps it: nothing that is printed is lost, only what is printed again and again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from statistics import median

from localctx.document.pdf_cells import SAME_ROW
from localctx.document.pdf_layout import PlacedLine
from localctx.document.pdf_objects import Box

__all__ = ["Margins", "learned_margins", "sampled_pages"]

N_GROUPS = 8
GROUP = 3
"""Neighbouring pages looked at together: headers of left and right pages may differ."""
MOST_ROWS = 3
"""Rows at either end of a page that may be running."""
MARGIN_SHARE = 0.14
"""Of a page's height, at either end, in which running rows stand."""
SAME_HEIGHT = 2.0
"""Points by which the same row may stand higher on another page."""
RUNNING_SHARE = 0.5
ENDS = (0, -1, -3)
"""Words of a row that may be the page's number."""
CHAPTER_WORDS = frozenset({"chapter", "section", "part", "appendix", "kapitel", "teil", "anhang", "chapitre"})
LARGER = 1.2
"""What is larger than the page's text by this is a title."""
LONGEST = 160
"""Characters; a longer row is no header."""
ROMAN = re.compile(r"(?=[ivxlc])(?:c{0,3})(?:x[cl]|l?x{0,3})(?:i[xv]|v?i{0,3})$", re.IGNORECASE)
NUMBER = re.compile(r"\d+")
LABEL = re.compile(r"\d{1,5}$")
EDGES = " \t.,:;|/()[]–—-·•"
PAGE_WORD = (
    "(?:page|pages|pg|p|seite|s|página|pagina|pág|pag|side|sida|strona|str|strana|sivu|oldal|стр|страница|第)"
)
ONLY_A_NUMBER = re.compile(rf"(?:{PAGE_WORD}\W*)?#(?:\W*(?:of|von|de|di|van|av|z|из|/)?\W*#)?\W*[页頁]?$")
"""Such as "12", "Page 12", "12 of 40", "- 12 -"."""
IS_PAGE_WORD = re.compile(rf"{PAGE_WORD}$")
COUNTED = re.compile(
    r"(?:.*[#№º]|no|nos|nr|num|number|nummer|numéro|número|numero|id|invoice|rechnung|facture|factura|order|case|"
    r"customer|lot|item|part|slide|sheet|vol|volume|issue|version|rev|figure|fig|table|form|exhibit|article|§)$"
)
"""What a number after it counts: no pages."""
MOST_AHEAD = 20
"""By how much a page's number among other words may be larger than the number of pages."""


@dataclass(frozen=True, slots=True)
class EdgeRow:
    """A row at the end of a page: numbers of its lines, its words, distance of its base line from that end
    (positive from the top, negative from the bottom)."""

    lines: tuple[int, ...]
    words: tuple[str, ...]
    at: float

    def without(self, number: str | None) -> tuple[str, ...]:
        """The words in small letters without the page's number, in an order of their own: the numbers of left
        and right pages stand at different ends."""
        return tuple(sorted(word.casefold() for word in self.words if number_word(word) != number))

    @property
    def bare(self) -> str:
        """The same, every number as #, Roman ones too."""
        words = ("#" if ROMAN.match(word.strip(EDGES)) else word for word in self.words)
        return NUMBER.sub("#", " ".join(words)).casefold().strip(EDGES)


@dataclass(slots=True)
class Band:
    """A height at which rows are running; `offsets`: printed page numbers there less the page's index."""

    at: float
    offsets: frozenset[int]


@dataclass(slots=True)
class Margins:
    """Where running rows stand, what they said so far, and the titles that need not be said by them."""

    bands: list[Band] = field(default_factory=list)
    titles: frozenset[str] = frozenset()
    n_pages: int = 0
    seen: set[tuple[str, ...]] = field(default_factory=set)

    def split(
        self, index: int, lines: Sequence[PlacedLine], box: Box | None
    ) -> tuple[list[PlacedLine], str | None, list[str]]:
        """The lines of a page without those that are running, the number that is printed there, and the rows
        that went as they were said before."""
        if box is None or not self.bands:
            return list(lines), None, []
        gone: list[str] = []
        kept: list[PlacedLine | None] = list(lines)
        label: str | None = None
        for row in edge_rows(lines, box):
            band = next((band for band in self.bands if abs(band.at - row.at) <= SAME_HEIGHT), None)
            if band is None:
                continue
            number = printed_number(row, band, index, self.n_pages)
            label = label or number
            said = row.without(number)
            is_number = number is not None and ONLY_A_NUMBER.match(row.bare) is not None
            is_new = not is_number and said not in self.seen and title_key(row.words) not in self.titles
            if not (is_number or is_new):
                gone.append(" ".join(row.words))
            self.seen.add(said)
            for i in row.lines:
                kept[i] = without_number(lines[i], number) if is_new else None
        return [line for line in kept if line is not None], label, gone


def title_key(words: Iterable[str]) -> str:
    """A title's words in small letters, without numbers and without what chapters are called."""
    bare = (word.strip(EDGES).casefold() for word in words)
    return " ".join(word for word in bare if word and word not in CHAPTER_WORDS and number_in(word) is None)


def without_number(line: PlacedLine, number: str | None) -> PlacedLine | None:
    """The line without the page's number; None where nothing else is in it."""
    if number is None:
        return line
    words = [word for word in line.text.split() if number_word(word) != number]
    return line._replace(text=" ".join(words), words=()) if words else None


def sampled_pages(n_pages: int) -> list[int]:
    """Indices of pages spread over the document, in groups of neighbours."""
    step = max(GROUP, n_pages // N_GROUPS)
    return [i for start in range(0, n_pages, step) for i in range(start, min(start + GROUP, n_pages))]


def learned_margins(
    pages: Mapping[int, tuple[Sequence[PlacedLine], Box | None]], titles: Iterable[str], n_pages: int
) -> Margins:
    """What runs on the sampled pages (index → lines and box); `titles` are those of the outline, `n_pages`
    the document's."""
    rows = {i: list(edge_rows(lines, box)) for i, (lines, box) in pages.items() if box is not None}
    heights = sorted(row.at for page in rows.values() for row in page)
    clusters: list[list[float]] = []
    for at in heights:
        if clusters and at - clusters[-1][0] <= SAME_HEIGHT:
            clusters[-1].append(at)
        else:
            clusters.append([at])
    found = (band_at(median(cluster), rows, n_pages) for cluster in clusters if len(cluster) > 1)
    keys = frozenset(title_key(title.split()) for title in titles) - {""}
    return Margins([band for band in found if band is not None], keys, n_pages)


def band_at(at: float, rows: Mapping[int, Sequence[EdgeRow]], n_pages: int) -> Band | None:
    """The band at a height, None where the rows there are not running."""
    here = {i: row for i, page in rows.items() for row in page if abs(row.at - at) <= SAME_HEIGHT}
    repeated: set[int] = set()
    offsets: Counter[int] = Counter()
    for (i, a), (j, b) in combinations(sorted(here.items()), 2):
        if j - i >= GROUP:
            continue
        counted = False
        for first, second in zip(numbers_of(a, n_pages), numbers_of(b, n_pages), strict=True):
            if first is not None and second is not None and second - first == j - i:
                offsets[first - i] += 1
                counted = True
        if a.words == b.words or counted:
            repeated |= {i, j}
    if len(repeated) < 2 or len(repeated) < RUNNING_SHARE * len(here):
        return None
    return Band(at, frozenset(offsets))


def edge_rows(lines: Sequence[PlacedLine], box: Box) -> Iterator[EdgeRow]:
    """The rows nearest to the page's upper and lower end."""
    order = sorted(
        (i for i, line in enumerate(lines) if line.words and line.height > 0), key=lambda i: -lines[i].bottom
    )
    rows: list[list[int]] = []
    for i in order:
        if rows and abs(lines[rows[-1][0]].bottom - lines[i].bottom) < SAME_ROW * lines[i].height:
            rows[-1].append(i)
        else:
            rows.append([i])
    middle = (box.bottom + box.top) / 2
    n_rows = min(MOST_ROWS, (len(rows) - 1) // 3)  # what is alone on a page is its content
    if n_rows <= 0:
        return
    largest = LARGER * median(lines[i].height for i in order)
    for row in [*rows[:n_rows], *rows[len(rows) - n_rows :]]:
        row.sort(key=lambda i: lines[i].left)
        words = tuple(word for i in row for word in lines[i].text.split())
        bottom = lines[row[0]].bottom
        at = box.top - bottom if bottom > middle else box.bottom - bottom
        is_small = lines[row[0]].height <= largest and sum(map(len, words)) <= LONGEST
        if is_small and abs(at) <= MARGIN_SHARE * (box.top - box.bottom):
            yield EdgeRow(tuple(row), words, at)


def numbers_of(row: EdgeRow, n_pages: int) -> list[int | None]:
    """The numbers at the places where a page's own may stand: first, last, and before "/ 233"."""
    return [
        number_at(row, place % len(row.words), n_pages) if -len(row.words) <= place < len(row.words) else None
        for place in ENDS
    ]


def number_at(row: EdgeRow, place: int, n_pages: int) -> int | None:
    """The number of a word if it can be that of a page: it stands alone, beside a word for pages, or does not
    count something else and is no larger than pages are numbered."""
    number = number_in(row.words[place])
    if number is None or ONLY_A_NUMBER.match(row.bare):
        return number
    before = row.words[place - 1].casefold().strip(EDGES) if place else ""
    if IS_PAGE_WORD.match(before):
        return number
    return number if 0 < number <= n_pages + MOST_AHEAD and not COUNTED.match(before) else None


def printed_number(row: EdgeRow, band: Band, index: int, n_pages: int) -> str | None:
    """The page's number as it is printed in the row: one that counts as its neighbours' do, or alone."""
    found = [
        (row.words[place], number)
        for place, number in zip(ENDS, numbers_of(row, n_pages), strict=True)
        if number
    ]
    for word, number in found:
        if number - index in band.offsets:
            return number_word(word)
    return number_word(found[0][0]) if found and ONLY_A_NUMBER.match(row.bare) else None


def number_word(word: str) -> str:
    """A word without what surrounds a number: "12/40" and "(12)" are "12"."""
    return word.partition("/")[0].strip(EDGES)


def number_in(word: str) -> int | None:
    """A word's number, Arabic or Roman."""
    word = number_word(word)
    if LABEL.match(word):
        return int(word)
    if not ROMAN.match(word):
        return None
    values = [{"i": 1, "v": 5, "x": 10, "l": 50, "c": 100}[letter] for letter in word.lower()]
    return sum(-a if a < b else a for a, b in zip(values, [*values[1:], 0], strict=True))
