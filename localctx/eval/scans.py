"""Word recall of OCR on rendered scans: five pages whose text is known, turned, noisy, small, in columns.

    python -m localctx.eval.scans [--font FILE] [--chinese-font FILE] [--seed 0] [--keep DIR] [--json]

A word is found where it stands in the recognised text, as often as it does; of Chinese pairs of characters
count. In order: the share of found words that the longest common order keeps. Fonts are those of the machine;
the Chinese page is left out without one.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING

from localctx.bench.program import run_as_program
from localctx.document import open_document
from localctx.eval.chinese import CHINESE
from localctx.eval.english import ENGLISH
from localctx.eval.german import GERMAN
from localctx.eval.language import Language
from localctx.eval.prose import made_sentences
from localctx.index.terms import words

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = ["PAGES", "Row", "ScanPage", "in_order", "measure", "recall", "render_scan"]

A4 = (1654, 2339)
"""Pixels of an A4 page at 200 dots an inch."""
MARGIN = 140


@dataclass(frozen=True, slots=True)
class ScanPage:
    """How a page looks: degrees it is turned, share of noise, dots an inch, columns."""

    name: str
    language: Language
    angle: float = 0.0
    noise: float = 0.1
    dots_per_inch: int = 200
    n_columns: int = 1


PAGES = (
    ScanPage("English, turned 0.8°", ENGLISH, angle=0.8),
    ScanPage("English, 100 dpi", ENGLISH, dots_per_inch=100, noise=0.05),
    ScanPage("English, two columns", ENGLISH, angle=-0.4, n_columns=2),
    ScanPage("German, noisy", GERMAN, angle=-0.6, noise=0.22),
    ScanPage("Chinese, turned 0.5°", CHINESE, angle=0.5),
)


@dataclass(frozen=True, slots=True)
class Row:
    """What was recognised of a page."""

    page: str
    n_words: int
    recall: float
    in_order: float
    confidence: float
    seconds: float


def render_scan(page: ScanPage, font_file: str, seed: int) -> tuple[str, Image]:
    """(text, picture) of a page full of made sentences."""
    from PIL import Image, ImageDraw, ImageFilter, ImageFont

    source = random.Random(seed)  # noqa: S311  # made text, no secret
    font = ImageFont.truetype(font_file, 32)
    image = Image.new("L", A4, 250)
    draw = ImageDraw.Draw(image)
    gap = 70
    width = (A4[0] - 2 * MARGIN - gap * (page.n_columns - 1)) // page.n_columns
    shown: list[str] = []
    made = made_sentences(page.language, source)
    left_over: list[str] = []
    for column in range(page.n_columns):
        left = MARGIN + column * (width + gap)
        for top in range(MARGIN, A4[1] - MARGIN - 50, 50):
            line, left_over = next_line(left_over, made, page.language, lambda t: font.getlength(t) <= width)
            draw.text((left, top), line, font=font, fill=25)
            shown.append(line)
    image = image.rotate(page.angle, Image.Resampling.BICUBIC, fillcolor=250)
    scale = page.dots_per_inch / 200
    if scale != 1:
        image = image.resize((round(A4[0] * scale), round(A4[1] * scale)), Image.Resampling.BICUBIC)
    grain = Image.frombytes("L", image.size, source.randbytes(image.width * image.height))
    return "\n".join(shown), Image.blend(image, grain, page.noise).filter(ImageFilter.GaussianBlur(0.6))


def next_line(
    waiting: list[str], made: Iterator[str], language: Language, fits: Callable[[str], bool]
) -> tuple[str, list[str]]:
    """The longest line of words that fits, and the words that are left."""
    line = ""
    while True:
        if not waiting:
            sentence = next(made)
            waiting = sentence.split() if language.space else list(sentence)
        longer = f"{line}{language.space if line else ''}{waiting[0]}"
        if not fits(longer):
            return line, waiting
        line, waiting = longer, waiting[1:]


def recall(wanted: str, found: str) -> float:
    """The share of the wanted words that were found."""
    there = Counter(words(found))
    counts = Counter(words(wanted))
    return sum(min(n, there[word]) for word, n in counts.items()) / max(1, sum(counts.values()))


def in_order(wanted: str, found: str) -> float:
    """The share of found words that stand in the wanted order."""
    ours, theirs = words(wanted), words(found)
    matcher = SequenceMatcher(None, ours, theirs, autojunk=False)
    n_matched = sum(block.size for block in matcher.get_matching_blocks())
    n_found = sum((Counter(ours) & Counter(theirs)).values())
    return n_matched / max(1, n_found)


def measure(pages: Sequence[ScanPage], fonts: dict[str, str], seed: int, folder: Path) -> Iterator[Row]:
    """One row a page. Raises what open_document() does."""
    for number, page in enumerate(pages):
        text, image = render_scan(page, fonts.get(page.language.code, fonts["en"]), seed + number)
        path = folder / f"scan{number + 1}.png"
        image.save(path, dpi=(page.dots_per_inch, page.dots_per_inch))
        started = time.perf_counter()
        with open_document(path, cache_dir=None) as document:
            seconds = time.perf_counter() - started
            found = document.read(0, document.text.n_code_points)
            confidence = document.confidences.get(1, 0.0)
        yield Row(
            page=page.name,
            n_words=len(words(text)),
            recall=round(recall(text, found), 4),
            in_order=round(in_order(text, found), 4),
            confidence=round(confidence, 4),
            seconds=round(seconds, 1),
        )


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.scans")
    parser.add_argument("--font", default="DejaVuSerif.ttf", help="a TrueType font")
    parser.add_argument("--chinese-font", help="one that has Chinese characters")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--keep", type=Path, help="folder to leave the pictures in")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    fonts = {"en": asked.font} | ({"zh": asked.chinese_font} if asked.chinese_font else {})
    pages = [page for page in PAGES if page.language.code != "zh" or "zh" in fonts]
    with tempfile.TemporaryDirectory() as folder:
        place = asked.keep or Path(folder)
        place.mkdir(parents=True, exist_ok=True)
        for row in measure(pages, fonts, asked.seed, place):
            sys.stdout.write((json.dumps(asdict(row)) if asked.json else line_of(row)) + "\n")
            sys.stdout.flush()


def line_of(row: Row) -> str:
    """A row for people."""
    return (
        f"{row.page:<22} {row.n_words:>4} words  recall {row.recall:.3f}  in order {row.in_order:.3f}"
        f"  confidence {row.confidence:.2f}  {row.seconds:.1f} s"
    )


if __name__ == "__main__":
    run_as_program(main)
