"""Content decides the format; what cannot be read is refused by name."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from document.conftest import Open
from document.inputs import docx, epub, line, paragraph, pdf, pptx, shape, text_of, zipped

from localctx.errors import InputError, UnknownFormat

PDF = pdf(line(b"Hello xref"))
WORD = docx(paragraph("The vault code is 7734."))


@pytest.mark.parametrize(
    ("name", "data", "format_name", "warns"),
    [
        ("a.pdf", PDF, "pdf", False),
        ("A.PDF", PDF, "pdf", False),
        ("pdf_as.txt", PDF, "pdf", True),
        ("junk_before.pdf", b"\n\njunk " * 60 + PDF, "pdf", False),
        ("html_as.pdf", b"<!doctype html><title>403</title>Forbidden", "html", True),
        ("notzip.docx", b"plain text named docx", "text", True),
        ("about_pdf.txt", b"A PDF starts with %PDF-1.7 and ends with EOF.", "text", False),
        ("page", b"\xef\xbb\xbf <!-- x --><HTML><p>Hi", "html", False),
        ("data", b"<?xml version='1.0'?><a>text</a>", "xml", False),
        ("data.xml", b"<a>text</a>", "xml", False),
        ("letter.docx", WORD, "docx", False),
        ("letter.zip", WORD, "docx", False),
        ("x.epub", epub({"c.xhtml": "<p>Once</p>"}, ["c.xhtml"]), "epub", False),
        ("x.pptx", pptx(shape("Slide")), "pptx", False),
        ("n.md", b"# T\n", "markdown", False),
        ("t.csv", b"a,b\n1,2\n", "csv", False),
        ("t.json", b"[1]", "json", False),
        ("t.jsonl", b"1\n2\n", "jsonl", False),
        ("t.php", b"<html><?php echo 1 ?>", "code", False),
    ],
)
def test_formats(open_bytes: Open, name: str, data: bytes, format_name: str, warns: bool) -> None:
    document = open_bytes(data, name)
    assert document.format == format_name
    assert any("read as that" in warning for warning in document.warnings) is warns
    packed = open_bytes(gzip.compress(data), name + ".gz")
    assert packed.format == format_name
    assert text_of(packed) == text_of(document)
    assert packed.content_hash == document.content_hash


@pytest.mark.parametrize(
    ("name", "language"), [("a.py", "python"), ("b.RS", "rust"), ("run", "shell"), ("c.h", "c")]
)
def test_source_code_has_its_language(open_bytes: Open, name: str, language: str) -> None:
    document = open_bytes(b"#!/usr/bin/env bash\necho\n", name)
    assert (document.format, document.code_language, document.language) == ("code", language, None)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (zipped({"xl/workbook.xml": "<a/>"}), "Excel"),
        (
            zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a/>"}),
            "OpenDocument",
        ),
        (zipped({"a.txt": "x"}), "zip archive"),
        (b"{\\rtf1 hello}", "RTF"),
        (b"Return-Path: <a@b>\nSubject: x\n\nHi\n", "e-mail"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "old binary Office"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "EncryptedPackage".encode("utf-16-le"),
            "password",
        ),
        (b"\x89PNG\r\n\x1a\n" + bytes(64), "PNG"),
        (b"SQLite format 3\0" + bytes(64), "SQLite"),
        (b"\x7fELF" + bytes(64), "program"),
        (b"x" * 257 + b"ustar\x0000" + bytes(64), "tar"),
        (b"GGUF" + bytes(64), "model file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n", "LFS"),
        (gzip.compress(gzip.compress(b"x")), "inside"),
    ],
)
def test_known_other_files_are_refused_by_name(open_bytes: Open, data: bytes, what: str) -> None:
    with pytest.raises(UnknownFormat, match=what) as caught:
        open_bytes(data, "thing.txt")
    assert caught.value.exit_code == 3
    assert caught.value.hint


@pytest.mark.parametrize("name", ["report.eml", "archive.mbox"])
def test_mail_is_refused_by_its_extension(open_bytes: Open, name: str) -> None:
    with pytest.raises(UnknownFormat, match="mail"):
        open_bytes(b"From a friend\n", name)


def test_damaged_archives_are_one_line(open_bytes: Open, tmp_path: Path) -> None:
    for data in (WORD[:200], WORD[: len(WORD) - 30], b"PK\x03\x04" + bytes(50)):
        with pytest.raises(InputError, match="damaged"):
            open_bytes(data, "x.docx")
    with pytest.raises(InputError, match="cut short"):
        open_bytes(gzip.compress(b"abc" * 1000)[:-9], "x.txt.gz")
    with pytest.raises(InputError, match="damaged gzip"):
        open_bytes(gzip.compress(b"abc") + b"trailing junk", "y.txt.gz")
    assert text_of(open_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(9), "z.gz")) == "one two"
