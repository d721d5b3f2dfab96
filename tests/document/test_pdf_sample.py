"""The sample document that `make demo` summarises is what its README says."""

from __future__ import annotations

import re
from pathlib import Path

from localctx.document.pdf import PdfHeader, PdfPage, extract_pdf

SAMPLE = Path(__file__).resolve().parents[2] / "docs" / "samples" / "state-of-the-union.pdf"


def test_the_sample_has_outline_labels_and_flowing_prose() -> None:
    header, *events = extract_pdf(SAMPLE)
    pages = [event for event in events if isinstance(event, PdfPage)]
    assert isinstance(header, PdfHeader)
    assert header.n_pages == len(pages) == 33
    assert [page.label for page in pages] == ["i", "ii", *map(str, range(1, 32))]
    assert not any(page.text.endswith(f"\n{page.label}") for page in pages[2:])  # a label, no text
    assert all(page.quality == 1.0 for page in pages)
    titles = [(heading.title, page.label) for page in pages for heading in page.headings]
    assert titles[1] == ("George Washington: Second Annual Message", "1")
    assert len(titles) == len(header.outline) == 7
    contents = pages[1].text.splitlines()
    assert all(f"{title} {label}" in contents for title, label in titles[1:])
    paragraphs = [part for page in pages[2:] for part in page.text.split("\n\n")]
    assert not [part for part in paragraphs if "\n" in part]
    assert 8_000 < len(re.findall(r"\w+", " ".join(paragraphs))) < 14_000
    assert SAMPLE.stat().st_size < 300_000
