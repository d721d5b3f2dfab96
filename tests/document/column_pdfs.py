"""Made PDFs with columns, what spans them, and footnotes, drawn in the orders that programs draw them."""

from __future__ import annotations

import io
from collections.abc import Sequence

from reportlab.lib.pagesizes import A4
from reportlab.lib.utils import simpleSplit
from reportlab.pdfgen.canvas import Canvas

__all__ = ["ORDERS", "Page", "story"]

ORDERS = ("columns", "rows", "last first")
"""How columns are drawn: one after another, line by line across all of them, or the last one first."""
SENTENCES = (
    "The harbour was closed for the winter of {} and no ship left it before the ice had gone.",
    "In the year {} the council met twice, and what it decided was written down by its clerk.",
    "Nobody in the town could say how the {} barrels had come to stand behind the old mill.",
    "A letter of {} lines reached the governor, who read it aloud to all that were present.",
)
FONT, SIZE, LEADING = "Times-Roman", 10.0, 12.0
LEFT, WIDTH = 60.0, A4[0] - 120.0


def story(seed: int, n_sentences: int) -> str:
    """A text of that many sentences, no two of which are the same."""
    numbers = [100 * seed + i for i in range(n_sentences)]
    return " ".join(SENTENCES[number % len(SENTENCES)].format(number) for number in numbers)


class Page:
    """A page that is filled from the top."""

    def __init__(self) -> None:
        self.out = io.BytesIO()
        self.canvas = Canvas(self.out, pagesize=A4, invariant=1)
        self.y = A4[1] - 70.0

    def heading(self, text: str, size: float = 15.0) -> None:
        """A heading over all columns."""
        self.canvas.setFont("Times-Bold", size)
        self.canvas.drawCentredString(A4[0] / 2, self.y, text)
        self.y -= 2 * LEADING

    def columns(self, texts: Sequence[str], order: str, gutter: float = 16.0) -> None:
        """Texts beside one another; paragraphs of a text are parted by blank lines."""
        width = (WIDTH - gutter * (len(texts) - 1)) / len(texts)
        placed = []
        lowest = self.y
        for column, text in enumerate(texts):
            y = self.y
            for paragraph in text.split("\n\n"):
                for line in simpleSplit(paragraph, FONT, SIZE, width):
                    placed.append((column, y, line))
                    y -= LEADING
                y -= LEADING / 2
            lowest = min(lowest, y)
        if order == "rows":
            placed.sort(key=lambda item: (-item[1], item[0]))
        elif order == "last first":
            placed.sort(key=lambda item: -item[0])
        self.canvas.setFont(FONT, SIZE)
        for column, y, line in placed:
            self.canvas.drawString(LEFT + column * (width + gutter), y, line)
        self.y = lowest - LEADING

    def figure(self, caption: str, height: float = 60.0) -> None:
        """A drawing over all columns with a caption."""
        self.canvas.ellipse(LEFT + 80, self.y - height, LEFT + WIDTH - 80, self.y)
        self.y -= height + LEADING
        self.canvas.setFont(FONT, SIZE - 1)
        self.canvas.drawCentredString(A4[0] / 2, self.y, caption)
        self.y -= 2 * LEADING

    def note_line(self, text: str, x: float, y: float, size: float = SIZE) -> None:
        """A line in which ^1 is a raised 1."""
        out = self.canvas.beginText(x, y)
        for i, piece in enumerate(text.split("^")):
            if i:
                out.setFont(FONT, 0.65 * size)
                out.setRise(0.35 * size)
                out.textOut(piece[0])
                out.setRise(0)
            out.setFont(FONT, size)
            out.textOut(piece[1:] if i else piece)
        self.canvas.drawText(out)

    def pdf(self) -> bytes:
        """The document of this page."""
        self.canvas.save()
        return self.out.getvalue()
