"""The lines of a page as pdfium places them, word by word; what nobody sees is put aside. In the child only.

Lines, words and their order are pdfium's own; of boxes, as few are asked for as tell words and wide gaps.
"""

from __future__ import annotations

import ctypes
import re
import struct
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import pypdfium2.raw as c

from localctx.document.pdf_layout import PlacedLine, Word
from localctx.document.pdf_objects import Box, Drawn, address

__all__ = ["Hidden", "LineReader"]

LINE = re.compile("[^\r\n\ufffe\x02]+[\ufffe\x02]?|[\ufffe\x02]")
"""A line without its end; pdfium's marks of a cut word end a line, and belong to it."""
WORD = re.compile(r"\S+")
WIDE_GAP = 0.7
"""Space between two words, by the height of the line, from which it is measured."""
CHARACTER_WIDTH = 0.24
"""Of a narrow character, by the height of the line: a word that may be narrower is measured to its end."""
TINY = 2.0
"""Text lower than this, in points, is not there to be read; on small pages, a 400th of their height."""

OUTSIDE = "outside the page"

char_box = c.FPDFText_GetLooseCharBox
box_fields = struct.Struct("4f").unpack
"""left, top, right, bottom: read at once in the time of one attribute."""


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

    def __init__(self, text_page: object, drawn: Drawn, page_box: Box) -> None:
        self.text_page = text_page
        self.hidden: list[Hidden] = []
        self._reasons = drawn.hidden
        self._page_box = page_box
        self._tiny = min(TINY, (page_box.top - page_box.bottom) / 400)
        self._box = c.FS_RECTF()
        self._one_to_one = True

    def lines(self) -> Iterator[PlacedLine]:
        """The lines in pdfium's order, with their boxes."""
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
            line = found[0]
            words = list(self._measured(line, found.start() + shift))
            if not self._one_to_one:
                shift += astral(line)
            seen = self._seen(words)
            if seen:
                yield self._placed(line if len(seen) == len(words) else " ".join(w.text for w in seen), seen)

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
            reason = OUTSIDE if is_outside else self._reason(word)
            if reason is None:
                seen.append(word)
            elif self.hidden and self.hidden[-1].reason == reason:
                self.hidden[-1] = Hidden(reason, f"{self.hidden[-1].text} {word.text}")
            else:
                self.hidden.append(Hidden(reason, word.text))
        return seen

    def _reason(self, word: Measured) -> str | None:
        """Why nobody sees a word, None where it is seen."""
        if self._reasons:
            item = c.FPDFText_GetTextObject(self.text_page, word.first)
            if item and (reason := self._reasons.get(address(item))):
                return reason
        if 0 < word.top - word.bottom < self._tiny and 0 < abs(word.right - word.left) < self._tiny:
            return "too small to read"
        return None

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


def astral(text: str) -> int:
    """How many code points of `text` take two UTF-16 units."""
    return 0 if text.isascii() else sum(character > "\uffff" for character in text)
