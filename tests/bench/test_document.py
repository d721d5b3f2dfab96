"""The document benchmark with tiny inputs: it measures what it says, and fails where reading fails."""

from __future__ import annotations

import itertools
import json
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree as etree

import pytest

from localctx.bench import document as bench
from localctx.bench.document_inputs import paragraphs, write_pdf, write_text, write_xml
from localctx.document.pdf import OutlineEntry, PdfHeader, PdfPage, extract_pdf
from localctx.errors import LocalctxError, UsageError

TINY = bench.Sizes(pdf_pages=60, text_bytes=3 << 20, xml_bytes=2 << 20, xml_memory_bytes=1 << 30)


def test_every_benchmark_counts_its_input(tmp_path: Path) -> None:
    results = {result.name: result for result in bench.run(TINY, folder=tmp_path)}
    assert list(results) == ["pdf", "open", "stream", "xml"]
    assert (results["pdf"].n_items, results["pdf"].unit) == (60, "pages")
    assert results["open"].n_items == 1
    n_words = sum(len(text.split()) for text in first_paragraphs(3 << 20))
    assert n_words / 192 <= results["stream"].n_items <= n_words / 60
    assert results["xml"].size_bytes > TINY.xml_bytes
    assert all(result.seconds > 0 and result.peak_memory_bytes > 5 << 20 for result in results.values())
    assert list(tmp_path.iterdir()) == []


def first_paragraphs(n_bytes: int) -> list[str]:
    """The paragraphs of a text of `n_bytes`."""
    sizes = itertools.accumulate(len(text) + 2 for text in paragraphs(1))
    n_paragraphs = next(i for i, size in enumerate(sizes, 1) if size >= n_bytes)
    return list(itertools.islice(paragraphs(1), n_paragraphs))


def test_inputs_are_what_they_claim(tmp_path: Path) -> None:
    write_text(tmp_path / "a.txt", 1_500_000)
    write_text(tmp_path / "b.txt", 1_500_000)
    assert (tmp_path / "a.txt").stat().st_size == 1_500_000
    assert (tmp_path / "a.txt").read_bytes() == (tmp_path / "b.txt").read_bytes()
    n_records = write_xml(tmp_path / "a.xml", 100_000)
    assert len(etree.parse(tmp_path / "a.xml").getroot()) == n_records


def test_the_long_pdf_is_full_of_prose_and_has_chapters(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", 101)
    header, *pages, _ = extract_pdf(tmp_path / "a.pdf")
    assert isinstance(header, PdfHeader)
    assert header.outline == tuple(OutlineEntry(1, f"Chapter {i}", i * 50 - 49) for i in (1, 2, 3))
    assert all(isinstance(page, PdfPage) and len(page.text) > 2000 for page in pages)


def test_limits_decide_what_passes() -> None:
    result = bench.Result("pdf", 1, 1, "pages", 2.0, 300, seconds_limit=2.0, memory_limit_bytes=300)
    assert result.passed
    assert result.line == "pdf: 1 pages of 0.0 MB in 2.00 s, peak 0 MB (aim 2 s; aim 0 MB; met)"
    assert not bench.Result("pdf", 1, 1, "pages", 2.1, 300, seconds_limit=2.0).passed
    assert not bench.Result("pdf", 1, 1, "pages", 2.0, 301, memory_limit_bytes=300).passed


def test_scale_changes_inputs_and_not_limits() -> None:
    assert bench.Sizes().scaled(0.125) == bench.Sizes(312, 1 << 27, 1 << 29, 1 << 30)


@pytest.mark.parametrize("scale", [float("nan"), 0.0, -1.0, float("inf")])
def test_a_scale_that_makes_no_sense_is_refused(tmp_path: Path, scale: float) -> None:
    with pytest.raises(UsageError, match="--scale"):
        list(bench.run(TINY, folder=tmp_path, scale=scale))


def test_unknown_names_and_failing_jobs_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such benchmark: speed"):
        list(bench.run(TINY, only=["pdf", "speed"]))
    (tmp_path / "empty.txt").write_bytes(b"")
    with pytest.raises(LocalctxError, match="bench blocks: "):
        bench.measured("blocks", tmp_path / "empty.txt")


def test_memory_is_that_of_the_measuring_process(tmp_path: Path) -> None:
    hoard = bytearray(200 << 20)
    write_text(tmp_path / "a.txt", 100_000)
    _, _, memory = bench.measured("first_block", tmp_path / "a.txt")
    assert memory < len(hoard)


def test_the_process_runs_anywhere(tmp_path: Path) -> None:
    write_pdf(tmp_path / "a.pdf", 2)
    job = json.dumps({"job": "extract", "path": "a.pdf", "memory_bytes": None})
    command = [sys.executable, "-m", "localctx.bench.document", job]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["n_items"] == 2
