"""Share of the numbers and names in summaries that occur in their source, for each mode of summarising.

Knows neither models nor terminals: the caller hands in how a text is summarised and read. A share says
nothing of what a summary leaves out, or of words that are all there in the wrong relation.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localctx.errors import LocalctxError, UsageError
from localctx.selection import claims, without_evidence
from localctx.values import Section, TextSource

__all__ = ["Figures", "ModeFigures", "Report", "TextFigures", "excerpts", "faithfulness", "run", "texts_in"]

COUNTED = ("number", "name", "code")
MAX_EXAMPLES = 8
N_EXCERPTS = 10
EXCERPT_CHARACTERS = 24_000
MIN_EXCERPT_CHARACTERS = 2_000


@dataclass(frozen=True, slots=True)
class Figures:
    """Claims of one summary and how many the source holds; `examples` are claims that it does not hold."""

    n_claims: int
    n_supported: int
    examples: tuple[str, ...] = ()

    @property
    def share(self) -> float | None:
        """Supported claims by claims; None where a summary claims nothing checkable."""
        return self.n_supported / self.n_claims if self.n_claims else None


@dataclass(frozen=True, slots=True)
class TextFigures:
    """One text summarised in one mode. `error` instead of figures where summarising failed."""

    text: str
    mode: str
    figures: Figures
    n_words: int
    seconds: float
    error: str = ""


@dataclass(frozen=True, slots=True)
class ModeFigures:
    """All texts of one mode: claims summed over texts, the worst text's share, texts that failed."""

    mode: str
    n_texts: int
    n_failed: int
    n_claims: int
    n_supported: int
    share: float | None
    worst_share: float | None
    worst_text: str
    n_words: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Report:
    """The result of a run: a row for each text and mode, and a row for each mode."""

    texts: tuple[TextFigures, ...]
    modes: tuple[ModeFigures, ...]

    def as_json(self) -> dict[str, Any]:
        """The report as plain values."""
        return {
            "schema": "localctx.bench.faithfulness/1",
            "modes": [asdict(mode) for mode in self.modes],
            "texts": [{**asdict(row), "share": row.figures.share} for row in self.texts],
        }


def faithfulness(summary: str, source: str | Iterable[str]) -> Figures:
    """Count the summary's numbers, names and code words, and those that the source (text or pieces) holds."""
    found = [claim for claim in claims(summary) if claim.kind in COUNTED]
    missing = without_evidence(found, source)
    return Figures(
        len(found), len(found) - len(missing), tuple(claim.text for claim in missing[:MAX_EXAMPLES])
    )


def run(
    texts: Sequence[Path],
    modes: Sequence[str],
    summarise: Callable[[Path, str], str],
    read: Callable[[Path], Iterable[str]],
    on_result: Callable[[TextFigures], None] | None = None,
) -> Report:
    """Summarise every text in every mode and measure; a text that fails is a row with its error.

    summarise(path, mode) gives the summary's text, read(path) the source's text in pieces; on_result is told
    each row as it is done. Raises UsageError when there is nothing to do.
    """
    if not texts or not modes:
        raise UsageError("no texts to summarise", "name a folder of texts with --texts DIR")
    rows: list[TextFigures] = []
    for mode in modes:
        for path in texts:
            rows.append(_measure(path, mode, summarise, read))
            if on_result is not None:
                on_result(rows[-1])
    return Report(
        tuple(rows), tuple(_sum_up(mode, [row for row in rows if row.mode == mode]) for mode in modes)
    )


def _measure(
    path: Path, mode: str, summarise: Callable[[Path, str], str], read: Callable[[Path], Iterable[str]]
) -> TextFigures:
    """One row."""
    started = time.perf_counter()
    try:
        summary = summarise(path, mode)
        seconds = time.perf_counter() - started
        figures = faithfulness(summary, read(path))
    except LocalctxError as error:
        return TextFigures(path.name, mode, Figures(0, 0), 0, time.perf_counter() - started, str(error))
    return TextFigures(path.name, mode, figures, len(summary.split()), seconds)


def _sum_up(mode: str, rows: Sequence[TextFigures]) -> ModeFigures:
    """The row of one mode."""
    done = [row for row in rows if not row.error]
    n_claims = sum(row.figures.n_claims for row in done)
    n_supported = sum(row.figures.n_supported for row in done)
    judged = [(share, row.text) for row in done if (share := row.figures.share) is not None]
    worst_share, worst_text = min(judged, default=(None, ""))
    return ModeFigures(
        mode=mode,
        n_texts=len(done),
        n_failed=len(rows) - len(done),
        n_claims=n_claims,
        n_supported=n_supported,
        share=n_supported / n_claims if n_claims else None,
        worst_share=worst_share,
        worst_text=worst_text,
        n_words=sum(row.n_words for row in done),
        seconds=sum(row.seconds for row in done),
    )


def texts_in(folder: Path) -> list[Path]:
    """The files of a folder by name, hidden ones left out. Raises UsageError when there are none."""
    if not folder.is_dir():
        raise UsageError(f"not a folder: {folder}", "--texts names a folder of documents")
    found = sorted(path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    if not found:
        raise UsageError(f"no files in {folder}", "--texts names a folder of documents")
    return found


def excerpts(
    text: TextSource,
    sections: Sequence[Section],
    n: int = N_EXCERPTS,
    max_characters: int = EXCERPT_CHARACTERS,
) -> Iterator[tuple[str, str]]:
    """Up to `n` (title, text) cut from a document: its sections of the level that has enough long ones.

    Without such sections, equal slices. Each is at most `max_characters` long, cut before white space.
    """
    spans = _spans(text, sections, n)
    for title, start, end in spans:
        cut = text.read(start, min(end, start + max_characters))
        if end - start > max_characters:
            head = cut.rsplit(None, 1)[0]
            cut = head if len(head) > max_characters // 2 else cut
        yield title, cut


def _spans(text: TextSource, sections: Sequence[Section], n: int) -> list[tuple[str, int, int]]:
    """Title and span of what is cut out, spread evenly over the document."""
    for level in sorted({section.level for section in sections}):
        long = [s for s in sections if s.level == level and s.end - s.start >= MIN_EXCERPT_CHARACTERS]
        if len(long) >= n:
            return [(s.title, s.start, s.end) for s in (long[len(long) * k // n] for k in range(n))]
    total = text.n_code_points
    n = max(1, min(n, total // MIN_EXCERPT_CHARACTERS))
    return [(f"part {k + 1}", total * k // n, total * (k + 1) // n) for k in range(n)]
