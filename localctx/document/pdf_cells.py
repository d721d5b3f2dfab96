"""What tables of a page are made of: parts of lines, cells, Markdown. Pure; knows not how they are found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from localctx.document.markdown_table import header_rule, table_row
from localctx.document.pdf_clean import HYPHEN_MARKS, clean_text
from localctx.document.pdf_layout import PlacedLine

__all__ = ["Part", "Rows", "Table", "cell_text", "parts_of"]

Rows = list[list[str]]
SAME_EDGE = 12.0
"""Points by which the columns of a table's two parts may differ."""
SAME_ROW = 0.45
"""Base lines nearer than this, by the height of the text, are one."""


class Part(NamedTuple):
    """Words of a line (by its number) that no wide gap parts."""

    text: str
    left: float
    right: float
    bottom: float
    top: float
    line: int

    @property
    def height(self) -> float:
        """Height of the font's box."""
        return self.top - self.bottom


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of equally many cells, the first `n_header` of which head the columns; the numbers of the lines
    that they are made of; edges of its columns; a title that stood above the columns."""

    rows: Rows
    n_header: int
    lines: frozenset[int]
    xs: tuple[float, ...] = ()
    caption: str = ""

    @property
    def header(self) -> list[str]:
        """The rows of the header as one: what stands above one another in a column, each once."""
        columns = zip(*self.rows[: self.n_header], strict=True)
        return [" ".join(dict.fromkeys(filter(None, column))) for column in columns]

    def markdown(self, header: list[str] | None = None) -> str:
        """As Markdown, without columns that hold nothing; with a header from the page before, all rows follow
        that. No line end after the last row."""
        rows = [self.header, *self.rows[self.n_header :]] if header is None else [header, *self.rows]
        kept = [j for j in range(len(rows[0])) if any(row[j] for row in rows)]
        lines = [table_row(row[j] for j in kept) for row in rows]
        lines.insert(1, header_rule(len(kept)))
        return "\n".join(lines)

    def continues(self, before: Table) -> bool:
        """Whether its columns stand where those of another do."""
        return len(self.xs) == len(before.xs) and all(
            abs(a - b) < SAME_EDGE for a, b in zip(self.xs, before.xs, strict=True)
        )


def parts_of(number: int, line: PlacedLine, gap: float) -> list[Part]:
    """A line's words as parts, cut where more than `gap` of its height is free; 0: word by word."""
    if not line.words:
        return []
    height = line.top - line.bottom
    parts: list[Part] = []
    texts: list[str] = []
    left = line.words[0].left
    for i, word in enumerate(line.words):
        texts.append(word.text)
        is_last = i + 1 == len(line.words)
        if is_last or gap == 0 or line.words[i + 1].left - word.right > gap * height:
            parts.append(Part(" ".join(texts), left, word.right, line.bottom, line.top, number))
            texts = []
            if not is_last:
                left = line.words[i + 1].left
    return parts


def cell_text(parts: Iterable[Part]) -> str:
    """The words of a cell as one line: rows from the top, in each from the left; cut words joined."""
    rows: list[list[Part]] = []
    for part in sorted(parts, key=lambda p: -p.bottom):
        if rows and abs(rows[-1][0].bottom - part.bottom) < SAME_ROW * part.height:
            rows[-1].append(part)
        else:
            rows.append([part])
    lines = [" ".join(p.text for p in sorted(row, key=lambda p: p.left)) for row in rows]
    text = "\n".join(lines)
    for mark in HYPHEN_MARKS:
        text = text.replace(mark + " ", mark)
    return " ".join(clean_text(text).split())
