"""PNG, JPEG, TIFF → one page a frame, its text by OCR in a child process. Knows no engine."""

from __future__ import annotations

from collections.abc import Iterator

from localctx.document.events import OCR_ENGINE, Event, Notice, Options, PageMark, Text
from localctx.document.isolate import ChildFailed, isolated
from localctx.document.ocr import ocr_limits, ocr_summary
from localctx.document.source import Source
from localctx.errors import InputError, LimitExceeded, UsageError

__all__ = ["convert"]


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The frames that were asked for. Raises InputError, LimitExceeded, UsageError (no such page)."""
    first, last = options.pages or (1, 1 << 30)
    confidences: dict[int, float] = {}
    blank: list[int] = []
    n_pages = 0
    with source.named_path() as path:
        items = isolated(
            "localctx.document.ocr_child:read_image",
            {"path": path, "name": source.name, "first": first, "last": last},
            ocr_limits(options.limits, source.size_bytes),
        )
        try:
            for item in items:
                if "n_pages" in item:
                    n_pages = item["n_pages"]
                    if first > n_pages:
                        raise UsageError(f"{source.name}: no such page; it has {n_pages}")
                    continue
                number = item["number"]
                if item["text"].strip():
                    confidences[number] = item["confidence"]
                else:
                    blank.append(number)
                yield PageMark(number, quality=item["confidence"], engine=OCR_ENGINE)
                yield Text(f"{item['text']}\n\n" if item["text"] else "")
                if options.on_progress is not None:
                    options.on_progress(number, n_pages)
        except ChildFailed as failure:
            kind = InputError if failure.reason in ("crash", "error") else LimitExceeded
            raise kind(f"{source.name}: its reading by OCR {failure.detail}") from None
        finally:
            items.close()
    yield from map(Notice, ocr_summary(confidences, blank))
