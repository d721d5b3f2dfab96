"""Pages that are pictures → their text, by OCR in a child process; without the extra, what to install.

The models come inside the wheel of the extra; nothing is downloaded. Knows neither boxes nor engines.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from localctx.document.events import OCR_ENGINE
from localctx.document.isolate import ChildFailed, IsolationLimits, isolated
from localctx.document.limits import Limits
from localctx.document.pages import page_list, page_ranges
from localctx.document.pdf import LAST_PAGE, PdfEnd, PdfEvent, PdfPage
from localctx.errors import InputError

__all__ = ["INSTALL", "engine_version", "how_to_read", "ocr_limits", "ocr_summary", "read_scans"]

INSTALL = "pip install 'localctx[ocr]'"
UNSURE = 0.85
"""Mean confidence below which a page is named."""
MAX_LOST_PAGES = 3
NOTHING_FOUND = "OCR found no text"


def engine_version() -> str | None:
    """The installed OCR's name and version; None without the extra."""
    if importlib.util.find_spec(OCR_ENGINE) is None or importlib.util.find_spec("onnxruntime") is None:
        return None
    return f"{OCR_ENGINE} {importlib.metadata.version(OCR_ENGINE)}"


def ocr_limits(limits: Limits, size_bytes: int) -> IsolationLimits:
    """The caps on the child that reads images."""
    seconds = limits.ocr_seconds
    return IsolationLimits(2 * seconds, seconds, 24 * 3600, limits.ocr_bytes + size_bytes)


def ocr_summary(confidences: dict[int, float], blank: Sequence[int] = ()) -> Iterator[str]:
    """What the user should know of pages read by OCR, {page: confidence}, and of those without text."""
    if blank:
        yield f"{page_list(blank)}: {NOTHING_FOUND}"
    if not confidences:
        return
    mean = sum(confidences.values()) / len(confidences)
    were = "were" if len(confidences) > 1 else "was"
    yield f"{page_list(sorted(confidences))} {were} read by OCR (mean confidence {mean:.2f})"
    if unsure := sorted(number for number, value in confidences.items() if value < UNSURE):
        yield f"OCR was unsure on {page_list(unsure)} (confidence below {UNSURE}): compare with the scan"


@dataclass(slots=True)
class Scans:
    """The child's pages, asked for in ascending order; one on which the child dies is given up."""

    path: str
    password: str | None
    limits: Limits
    items: Generator[Any, None, None] | None = None
    next_one: dict[str, Any] | None = None
    failures: list[str] = field(default_factory=list)
    lost: set[int] = field(default_factory=set)
    not_tried: list[int] = field(default_factory=list)

    def page(self, number: int) -> dict[str, Any] | None:
        """The recognised page; None where OCR has nothing for it."""
        if len(self.lost) > MAX_LOST_PAGES:
            self.not_tried.append(number)
            return None
        try:
            if self.items is None:
                self.start(number)
            while self.items is not None and (self.next_one is None or self.next_one["number"] < number):
                self.next_one = next(self.items, None)
                if self.next_one is None:
                    return None
        except (ChildFailed, InputError) as failure:
            self.close()
            self.lost.add(number)
            self.failures.append(f"page {number} was not read by OCR: its reading {failure}")
            if len(self.lost) > MAX_LOST_PAGES:
                self.failures.append("OCR failed too often and was given up")
            return None
        found = self.next_one
        return found if found is not None and found["number"] == number else None

    def told_of(self, unread: list[int], is_able: bool) -> Iterator[str]:
        """What the user should know of the pages that stayed without text and were not told of as lost."""
        if self.not_tried:
            yield f"{page_list(self.not_tried)}: images only; not read, since OCR was given up"
        if blank := sorted({*unread} - self.lost - {*self.not_tried}):
            how = NOTHING_FOUND if is_able else how_to_read(self.limits)
            yield f"{page_list(blank)}: images only; {how}"

    def start(self, number: int) -> None:
        """Start a child at a page."""
        arguments = {
            "path": str(Path(self.path).absolute()),
            "password": self.password,
            "ranges": page_ranges(range(number, LAST_PAGE)),
        }
        caps = ocr_limits(self.limits, Path(self.path).stat().st_size)
        self.next_one = None
        self.items = isolated("localctx.document.ocr_child:read_pdf", arguments, caps)

    def close(self) -> None:
        """End the child."""
        if self.items is not None:
            self.items.close()
        self.items = None


def read_scans(
    events: Iterator[PdfEvent], path: str, password: str | None, limits: Limits
) -> Generator[PdfEvent, None, None]:
    """The events of a PDF, its pages that are pictures only read by OCR where that is on and installed."""
    scans = Scans(path, password, limits)
    is_able = limits.ocr and engine_version() is not None
    confidences: dict[int, float] = {}
    unread: list[int] = []
    with closing(scans):
        for event in events:
            if isinstance(event, PdfPage) and is_picture(event):
                found = scans.page(event.number) if is_able else None
                if found is not None and found["text"].strip():
                    confidences[event.number] = found["confidence"]
                    yield replace(event, text=found["text"], quality=found["confidence"], engine=OCR_ENGINE)
                    continue
                unread.append(event.number)
            elif isinstance(event, PdfEnd):
                told = (*scans.failures, *ocr_summary(confidences), *scans.told_of(unread, is_able))
                yield PdfEnd((*event.warnings, *told))
                continue
            yield event


def is_picture(page: PdfPage) -> bool:
    """Whether a page was loaded and draws something, but holds no text."""
    return not page.text and page.quality == 0.0 and bool(page.engine)


def how_to_read(limits: Limits) -> str:
    """What makes OCR read a scan, as a clause."""
    if engine_version() is None:
        return f"{INSTALL} has them read by OCR"
    return "--ocr auto has them read by OCR" if not limits.ocr else NOTHING_FOUND
