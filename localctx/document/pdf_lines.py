"""The lines of a page as pdfium places them, word by word; what nobody sees is put aside. In the child only.

Lines, words and their order are pdfium's own; of boxes, as few are asked for as tell words and wide gaps.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import NamedTuple

import pypdfium2.raw as c

from localctx.document.pdf_footnotes import note_marks, parted
from localctx.document.pdf_hints import WIDE_GAP, may_hold_table
from localctx.document.pdf_layout import PlacedLine, Word
from localctx.document.pdf_objects import Box, Drawn, address
from localctx.document.pdf_raised import box_fields, char_box, with_raised

__all__ = ["Hidden", "LineReader", "usual_widths"]

LINE = re.compile("[^\r\n\ufffe\x02]+[\ufffe\x02]?|[\ufffe\x02]")
"""A line without its end; pdfium's marks of a cut word end a line, and belong to it."""
WORD = re.compile(r"\S+")
CHARACTER_WIDTH = 0.24
"""Of a narrow character, by the height of the line: a word that may be narrower is measured to its end."""
TINY = 2.0
"""Text lower than this, in points, is not there to be read; on small pages, a 400th of their height."""

LEAST_CHARACTERS, LEAST_LINES = 25, 20
"""Of lines from which is learned how wide text usually is."""
SLACK = 1.1
OUTSIDE = "outside the page"
TOO_SMALL = "too small to read"


class Hidden(NamedTuple):
    """Words that nobody sees, and why."""

    reason: str
    text: str


class Measured(NamedTuple):
    """A word: where it is in its line, its first and last character on the page, and the first one's box."""

    text: str
    first: int
    last: int
    left: float
    top: float
    right: float
    bottom: float


class LineReader:
    """Reads the lines of one page; `hidden` has what was put aside once they are read."""

    def __init__(
        self,
        text_page: object,
        drawn: Drawn,
        page_box: Box,
        usual_widths: Mapping[float, float],
        places_words: bool = False,
    ) -> None:
        self.text_page = text_page
        self.hidden: list[Hidden] = []
        self._reasons = drawn.hidden
        self._places_words = places_words or (len(drawn.upright) > 1 and len(drawn.level) > 1)
        self._has_rules = len(drawn.level) > 1
        self._usual_widths = usual_widths
        self._page_box = page_box
        self._tiny = min(TINY, (page_box.top - page_box.bottom) / 400)
        self._box = c.FS_RECTF()
        self._one_to_one = True

    def lines(self) -> list[PlacedLine]:
        """The lines in pdfium's order, with their boxes. Words are placed where a table may be: on pages with
        a grid, with wide gaps in lines, or with lines beside one another; else a line is one word.
        """
        starts = list(self._starts())
        placed = self._all(starts)
        lines = [line for line in placed if line is not None]
        marks = frozenset(note_marks(parted(lines)).values()) if self._one_to_one else frozenset()
        if not marks:
            return lines
        pairs = zip(placed, starts, strict=True)
        return [with_raised(self.text_page, line, at, marks) for line, (_, at) in pairs if line is not None]

    def _all(self, starts: Sequence[tuple[str, int]]) -> list[PlacedLine | None]:
        """Every line, None where nobody sees any of it."""
        if not (self._places_words or self._reasons):
            sketch = [self._sketched(line, start) for line, start in starts]
            if None not in sketch and not may_hold_table(
                [line for line in sketch if line], has_rules=self._has_rules
            ):
                return sketch
        return [self._whole(line, start) for line, start in starts]

    def _starts(self) -> Iterator[tuple[str, int]]:
        """Every line that is not blank, and its place in the page's text."""
        n_characters = c.FPDFText_CountChars(self.text_page)
        if n_characters <= 0:
            return
        buffer = (ctypes.c_ushort * (2 * n_characters + 2))()
        n_units = c.FPDFText_GetText(self.text_page, 0, n_characters, buffer) - 1
        if n_units <= 0:
            return
        text = bytes(buffer)[: 2 * n_units].decode("utf-16-le", "surrogatepass")
        self._one_to_one = n_units == n_characters == len(text)
        shift = 0  # code points beyond the basic plane take two units of pdfium's text
        for found in LINE.finditer(text):
            if not found[0].isspace():
                yield found[0], found.start() + shift
            if not self._one_to_one:
                shift += astral(found[0])

    def _whole(self, line: str, start: int) -> PlacedLine | None:
        """A line with every word in its place, without those that nobody sees."""
        words = list(self._measured(line, start))
        seen = self._seen(words)
        if not seen:
            return None
        return self._placed(line if seen == words else " ".join(word.text for word in seen), seen)

    def _sketched(self, line: str, start: int) -> PlacedLine | None:
        """A line as one word where it is no wider than usual; None where it may be hidden."""
        words = WORD.findall(line)
        first = start + line.index(words[0])
        last = start + len(line.rstrip()) - 1
        if not self._one_to_one:
            return self._whole(line, start)
        box, text_page, page = self._box, self.text_page, self._page_box
        char_box(text_page, first, box)
        left, top, _, bottom = box_fields(box)
        char_box(text_page, last, box)
        _, _, right, last_bottom = box_fields(box)
        height = top - bottom
        if (
            height < self._tiny
            or left < page.left
            or left >= page.right
            or top > page.top
            or bottom < page.bottom
        ):
            return None
        usual = self._usual_widths.get(size_key(height), 0.0)
        if abs(last_bottom - bottom) > height or right - left > usual * (last + 1 - first):
            return self._whole(line, start)
        if len(words[0]) > 1:
            char_box(text_page, first + len(words[0]) - 1, box)
            word_width = box_fields(box)[2] - left
        else:
            word_width = (right - left) / (last + 1 - first)
        return PlacedLine(line, left, right, bottom, top, word_width, (Word(line.strip(), left, right),))

    def _measured(self, line: str, start: int) -> Iterator[Measured]:
        """The words of a line whose first character has that index in pdfium's text."""
        box, text_page = self._box, self.text_page
        for found in WORD.finditer(line):
            first, last = start + found.start(), start + found.end() - 1
            if not self._one_to_one:
                first += astral(line[: found.start()])
                last += astral(line[: found.end() - 1])
                first = c.FPDFText_GetCharIndexFromTextIndex(text_page, first)
                last = c.FPDFText_GetCharIndexFromTextIndex(text_page, last)
            char_box(text_page, first, box)
            yield Measured(found[0], first, last, *box_fields(box))

    def _seen(self, words: list[Measured]) -> list[Measured]:
        """The words that can be seen; the others are put aside."""
        page, tiny = self._page_box, self._tiny
        low, high, left, right = page.bottom, page.top, page.left, page.right
        if not self._reasons and all(
            w.top - w.bottom >= tiny and w.bottom < high and w.top > low and left <= w.left < right
            for w in words
        ):
            return words
        seen: list[Measured] = []
        is_outside = all(map(self._is_outside, words))  # a line that only runs over the edge is read whole
        for word in words:
            for reason, piece in [(OUTSIDE, word)] if is_outside else self._pieces(word):
                if reason is None:
                    seen.append(piece)
                else:
                    self._put_aside(reason, piece.text)
        return seen

    def _put_aside(self, reason: str, text: str) -> None:
        """Keep words that nobody sees, with those before them where the reason is the same."""
        if self.hidden and self.hidden[-1].reason == reason:
            self.hidden[-1] = Hidden(reason, f"{self.hidden[-1].text} {text}")
        else:
            self.hidden.append(Hidden(reason, text))

    def _pieces(self, word: Measured) -> Iterator[tuple[str | None, Measured]]:
        """The characters of a word that are seen, then those that are not, with the reason. A word may be
        drawn in pieces: what hides one says nothing of the others."""
        first, last = self._item(word.first), self._item(word.last)
        n = len(word.text)
        if first == last or word.last - word.first != n - 1:
            yield self._reasons.get(first) or self._small(word), word
            return
        places: dict[str | None, list[int]] = {}
        for i in range(n):
            places.setdefault(self._reasons.get(self._item(word.first + i)), []).append(i)
        for reason in sorted(places, key=lambda reason: reason is not None):
            text = "".join(word.text[i] for i in places[reason])
            first, last = word.first + places[reason][0], word.first + places[reason][-1]
            char_box(self.text_page, first, self._box)
            yield reason, Measured(text, first, last, *box_fields(self._box))

    def _item(self, character: int) -> int:
        """The address of the object that draws a character; 0 where none does or nothing drawn is hidden."""
        item = c.FPDFText_GetTextObject(self.text_page, character) if self._reasons else None
        return address(item) if item else 0

    def _small(self, word: Measured) -> str | None:
        """Why nobody sees a small word. Fonts that have no height are measured by their signs, of which a
        dash or a point is small at any size."""
        is_small = 0 < word.top - word.bottom < self._tiny and 0 < abs(word.right - word.left) < self._tiny
        return TOO_SMALL if is_small and word.text[0].isalnum() else None

    def _is_outside(self, word: Measured) -> bool:
        """Whether a word is drawn where no page is."""
        page = self._page_box
        is_beside = word.right <= page.left or word.left >= page.right
        return is_beside or word.bottom >= page.top or word.top <= page.bottom

    def _placed(self, line: str, words: Sequence[Measured]) -> PlacedLine:
        """A line's box from its first word, the end of that, and its last character."""
        head, tail = words[0], words[-1]
        _, _, head_right, _ = self._end(head)
        _, last_top, right, last_bottom = self._end(tail)
        height = head.top - head.bottom
        if abs(last_bottom - head.bottom) > max(height, last_top - last_bottom):  # the line is not level
            return PlacedLine(line, head.left, head.left, head.bottom, head.bottom, 0.0)
        placed = []
        for word, after in pairwise(words):
            end = after.left
            if end - word.left > (len(word.text) * CHARACTER_WIDTH + WIDE_GAP) * height:
                end = self._end(word)[2]
            placed.append(Word(word.text, word.left, end))
        placed.append(Word(tail.text, tail.left, right))
        return PlacedLine(
            line, head.left, right, head.bottom, head.top, head_right - head.left, tuple(placed)
        )

    def _end(self, word: Measured) -> tuple[float, float, float, float]:
        """The box of a word's last character: left, top, right, bottom."""
        if word.last == word.first:
            return word.left, word.top, word.right, word.bottom
        char_box(self.text_page, word.last, self._box)
        left, top, right, bottom = box_fields(self._box)
        return left, top, right, bottom


def gaps(line: PlacedLine) -> int:
    """How many wide gaps a line has."""
    least = WIDE_GAP * line.height
    return sum(after.left - word.right > least for word, after in pairwise(line.words))


def size_key(height: float) -> float:
    """A height to half a point."""
    return round(height * 2) / 2


def usual_widths(lines: Iterable[PlacedLine]) -> dict[float, float]:
    """By height of the text, the most that a character usually takes in lines without gaps."""
    widths: dict[float, list[float]] = {}
    for line in lines:
        if len(line.text) >= LEAST_CHARACTERS and len(line.words) > 1 and not gaps(line):
            widths.setdefault(size_key(line.height), []).append((line.right - line.left) / len(line.text))
    return {
        height: SLACK * sorted(values)[int(0.9 * (len(values) - 1))]
        for height, values in widths.items()
        if len(values) >= LEAST_LINES
    }


def astral(text: str) -> int:
    """How many code points of `text` take two UTF-16 units."""
    return 0 if text.isascii() else sum(character > "\uffff" for character in text)
