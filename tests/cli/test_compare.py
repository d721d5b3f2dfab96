"""`localctx compare` as a user types it: reports, exit codes, formats of one text, hostile input."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from document.inputs import docx, paragraph, pdf
from reportlab.lib.styles import getSampleStyleSheet
from reportlab.platypus import Paragraph, SimpleDocTemplate

Run = Callable[..., Any]
ROOT = Path(__file__).parents[2]
OLD = """1. Term

The lease runs for three years from 1 May 2025. It is renewed under Section 3 unless a party
objects in time.

2. Rent

The monthly rent is EUR 1,250 and is due within thirty (30) days after the invoice was received by
the Tenant.

3. Notices

Notices must be in writing and sent by registered mail to the last known address of the other party.
"""
NEW = """1. Notices

Notices must be in writing and sent by registered mail to the last known address of the other party.

2. Term

The lease runs for three years from 1 May 2025. It is renewed under Section 1 unless a party objects in time.

3. Rent

The monthly rent is EUR 1,300 and is due within thirty (30) days after the invoice was received by the Tenant.
"""


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """old.txt and new.txt, in the current folder."""
    (tmp_path / "old.txt").write_text(OLD)
    (tmp_path / "new.txt").write_text(NEW)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def paragraphs(text: str) -> list[str]:
    return [" ".join(part.split()) for part in text.split("\n\n") if part.strip()]


def as_pdf(text: str) -> bytes:
    """A PDF whose paragraphs are set and wrapped by reportlab."""
    buffer, styles = io.BytesIO(), getSampleStyleSheet()
    parts = [Paragraph(part, styles["Normal" if len(part) > 40 else "Heading2"]) for part in paragraphs(text)]
    SimpleDocTemplate(buffer).build(parts)
    return buffer.getvalue()


def test_the_text_report(localctx: Run, files: Path) -> None:
    result = localctx("compare", "old.txt", "new.txt")
    assert (result.code, result.err) == (0, "")
    assert result.out.splitlines()[:3] == [
        "old.txt → new.txt",
        "1 of 3 clauses kept, 1 number changed, 1 moved; 97.2% of the words in common",
        "3 clauses renumbered, 1 cross-reference adapted to it",
    ]
    assert "number changed: 2 Rent → 3 Rent\n    EUR 1,250 → EUR 1,300\n" in result.out
    assert "moved: 3 Notices → 1 Notices" in result.out
    kept = localctx("compare", "old.txt", "new.txt", "--kept")
    assert kept.out.endswith("kept  1 Term → 2 Term\n")


def test_the_page_shows_what_is_printed(localctx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    page = (ROOT / "docs" / "compare.md").read_text("utf-8")
    words, _, shown = page.split("$ localctx ", 1)[1].split("```", 1)[0].partition("\n")
    assert localctx(*words.split()).out == shown


def test_json_says_both_places(localctx: Run, files: Path) -> None:
    result = localctx("compare", "old.txt", "new.txt", "--json")
    number = next(d for d in result.json["differences"] if d["class"] == "number")
    assert OLD[number["a"]["start"] : number["a"]["end"]] == number["a"]["quote"]
    assert NEW[number["b"]["start"] : number["b"]["end"]] == number["b"]["quote"]
    assert number["changes"] == [{"from": "EUR 1,250", "to": "EUR 1,300"}]
    assert (result.json["schema"], result.json["same"]) == ("localctx.compare/1", False)


def test_exit_codes(localctx: Run, files: Path) -> None:
    assert localctx("compare", "old.txt", "new.txt", "--exit-code", "--quiet").code == 10
    assert localctx("compare", "old.txt", "old.txt", "--exit-code").code == 0
    assert localctx("compare", "old.txt", "gone.txt", "--exit-code").code == 3
    assert localctx("compare", "-", "-").code == 2
    assert localctx("compare", "old.txt", "new.txt", "--paragraph-similarity", "2").code == 2
    assert localctx("compare", "old.txt", "new.txt", "--report", "pdf").code == 2
    assert localctx("compare", "old.txt", "new.txt", "--json", "--report", "html").code == 2
    assert localctx("compare", "old.txt", "new.txt", "--strategy", "exact").code == 2
    assert localctx("compare", "old.txt", "new.txt", "--schema", "s.json").code == 2
    assert localctx("compare", "old.txt", "new.txt", "-o", "old.txt").code == 2
    assert (files / "old.txt").read_text() == OLD


def test_standard_input_is_one_of_the_two(localctx: Run, files: Path) -> None:
    result = localctx("compare", "-", "new.txt", stdin=NEW.encode())
    assert (result.code, "no difference" in result.out) == (0, True)


@pytest.mark.parametrize("name", ["r.html", "r.json", "r.txt"])
def test_the_report_in_a_file_has_the_form_of_its_name(localctx: Run, files: Path, name: str) -> None:
    result = localctx("compare", "old.txt", "new.txt", "-o", name)
    assert (result.code, result.out) == (0, "")
    begin = {"r.html": "<!DOCTYPE html>", "r.json": '{"schema"', "r.txt": "old.txt → new.txt"}[name]
    assert (files / name).read_text("utf-8").startswith(begin)


def test_html_shows_what_the_files_hold_and_obeys_none_of_it(localctx: Run, tmp_path: Path) -> None:
    evil = "<script>alert(1)</script><img src=x onerror=alert(2)> \u202egnp.exe"
    (tmp_path / "a<b>.txt").write_text(f"1. {evil}\n\nThe fee is 5 euros a day for all of it.\n", "utf-8")
    (tmp_path / "b.txt").write_text(f"1. {evil}\n\nThe fee is 7 euros a day for all of {evil}.\n", "utf-8")
    page = localctx("compare", str(tmp_path / "a<b>.txt"), str(tmp_path / "b.txt"), "--report", "html").out
    assert "<script" not in page
    assert "<img" not in page
    assert "\u202e" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "default-src 'none'" in page
    assert "<del>5 euros</del>" in page
    assert "<ins>7 euros</ins>" in page


def test_a_pdf_and_a_docx_of_one_text_are_the_same(localctx: Run, files: Path) -> None:
    (files / "old.pdf").write_bytes(as_pdf(OLD))
    (files / "old.docx").write_bytes(docx("".join(map(paragraph, paragraphs(OLD)))))
    for a, b in (("old.docx", "old.pdf"), ("old.txt", "old.pdf"), ("old.txt", "old.docx")):
        result = localctx("compare", a, b)
        assert (result.code, "no difference" in result.out) == (0, True), result.out
    (files / "new.pdf").write_bytes(as_pdf(NEW))
    found = localctx("compare", "old.docx", "new.pdf", "--json").json
    assert [d["class"] for d in found["differences"]] == ["number", "moved"]
    assert found["differences"][0]["b"]["page"] == 1


def test_what_cannot_be_read_is_named(localctx: Run, files: Path) -> None:
    (files / "empty.txt").write_text("")
    (files / "scan.pdf").write_bytes(pdf(b"0.5 g 72 72 400 400 re f\n"))
    (files / "noise.bin").write_bytes(bytes(range(256)) * 40)
    for name in ("empty.txt", "scan.pdf", "noise.bin"):
        for words in (("old.txt", name), (name, "old.txt")):
            result = localctx("compare", *words)
            assert (result.code, result.out) == (3, "")
            assert name in result.err
            assert result.err.count("\n") <= 2


def test_unrelated_files_are_compared_and_warned_of(localctx: Run, files: Path) -> None:
    (files / "other.txt").write_text(
        "1. Eggs\n\nBoil them in salted water until they are firm, then peel them.\n"
    )
    result = localctx("compare", "old.txt", "other.txt")
    assert (result.code, "they may be no two versions of one text" in result.err) == (0, True)
    assert localctx("compare", "old.txt", "other.txt", "--quiet").err == ""


@pytest.mark.model
@pytest.mark.slow
def test_explanations_of_the_embedded_model(localctx: Run, files: Path, smollm2_path: Path) -> None:
    words = ["--explain", "--model", str(smollm2_path), "--store", "off"]
    found = localctx("compare", "old.txt", "new.txt", "--json", *words).json
    number = next(d for d in found["differences"] if d["class"] == "number")
    assert (number["explanation"] is None) == (found["explanations_dropped"] == 1)
    assert found["model"] is not None
