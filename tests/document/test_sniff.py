"""Content decides the format; what cannot be read is refused by name."""

from __future__ import annotations

import bz2
import gzip
from pathlib import Path

import pytest
from document.conftest import Open
from document.inputs import docx, epub, line, paragraph, pdf, pptx, shape, text_of, zipped

from localctx.document import SkippedEntry, walk
from localctx.document.limits import Limits
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


TABLE = b'name,born,paid\nAnna,1980,"1,200"\nBen,1991,"two\nlines"\n'


@pytest.mark.parametrize("name", ["-", "table", "table.out"])
@pytest.mark.parametrize(
    ("data", "format_name"),
    [
        (TABLE, "csv"),
        (TABLE.replace(b"\n", b"\r\n"), "csv"),
        (b"\xef\xbb\xbfname;born\r\nAnna;1980\r\nBen;1991\r\n", "csv"),
        (b"name\tborn\nAnna\t1980\nBen\t1991", "csv"),
        (b",name,born\n0,Anna,1980\n1,Ben,1991\n", "csv"),
        ("Größe,Straße\n1,Öhringer Weg\n2,Am Bach\n".encode("latin-1"), "csv"),
        (b"name,born,paid\n" + b"Anna,1980,1200\n" * 9000, "csv"),
        (b'name,note\nAnna,short\nBen,short\nCleo,"' + b"long\n" * 9000 + b'"\n', "csv"),
        (b"country,2019,2020\nNorway,1,2\nFrance,3,4\n", "csv"),
        (b'{"a": 1}\n{"a": 2}\n', "jsonl"),
        ('{"a": "one\u2028two"}\n{"a": "\u0085"}\n'.encode(), "jsonl"),
        (b'{"a": 1, "b": "' + b"x" * 300 + b'"}\n', "json"),
        (b'\n[{"a": 1},\n {"a": true}]\n', "json"),
        (b'[{"a": true, "b": [1, 2.5, "three"]}' + b', {"a": false, "b": null}' * 9000 + b"]", "json"),
        (b'{"a": "' + b"x" * 90_000 + b'"}', "json"),
    ],
)
def test_records_without_a_name_that_says_so(
    open_bytes: Open, name: str, data: bytes, format_name: str
) -> None:
    assert open_bytes(data, name).format == format_name


@pytest.mark.parametrize(
    "text",
    [
        "Roses are red,\nViolets are blue,\nSugar is sweet,\nAnd so are you,\n",
        "I came, I saw\nYou went, you heard\nWe stayed, we slept\nThey left, they woke\n",
        "Dear Anna,thank you.\nDear Ben,thank you!\nDear Cleo,come again.\n",
        "2026-01-02 10:00:00,123 INFO up\n2026-01-02 10:00:01,456 INFO down\n2026-01-02 10:00:02,1 INFO up\n",
        "\tone\n\ttwo\n\tthree\n\tfour\n",
        "3,5\n4,6\n7,8\n9,0\n",
        "| a | b |\n|---|---|\n| 1 | 2 |\n",
        "a,b\n1,2,3\n4,5\n",
        'a,b,c\n1,2,"3\n4,5,6\n',
        "name,name,name\n1,2,3\n4,5,6\n",
        '{"n": ' + "1" * 5000 + "}\n",
        "Once, upon\n\na time, there\n\nwas, a king\n",
        "[1] As Smith says.\n[2] As Jones says.\n",
        "{not json}\n",
        '{"a": 1} and more\n',
        "[" * 100_000,
        "one line, of prose",
        "a,b",
    ],
)
def test_prose_logs_and_lists_are_no_records(open_bytes: Open, text: str) -> None:
    for name in ("-", "notes"):
        assert open_bytes(text.encode(), name).format == "text"


def test_a_file_that_is_named_as_text_is_text(open_bytes: Open) -> None:
    assert open_bytes(TABLE, "table.txt").format == "text"


@pytest.mark.parametrize(
    ("name", "language"), [("a.py", "python"), ("b.RS", "rust"), ("run", "shell"), ("c.h", "c")]
)
def test_source_code_has_its_language(open_bytes: Open, name: str, language: str) -> None:
    document = open_bytes(b"#!/usr/bin/env bash\necho\n", name)
    assert (document.format, document.code_language, document.language) == ("code", language, None)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (zipped({"xl/workbook.bin": "x"}), "binary Excel"),
        (
            zipped({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": "<a/>"}),
            "OpenDocument",
        ),
        (zipped({"a.txt": "x"}), "zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512), "old binary Office"),
        (
            b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(512) + "EncryptedPackage".encode("utf-16-le"),
            "password",
        ),
        (b"SQLite format 3\0" + bytes(64), "SQLite"),
        (b"\x7fELF" + bytes(64), "program"),
        (b"x" * 257 + b"ustar\x0000" + bytes(64), "tar"),
        (b"GGUF" + bytes(64), "model file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n", "LFS"),
        (gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "inside"),
    ],
)
def test_known_other_files_are_refused_by_name(open_bytes: Open, data: bytes, what: str) -> None:
    with pytest.raises(UnknownFormat, match=what) as caught:
        open_bytes(data, "thing.txt")
    assert caught.value.exit_code == 3
    assert caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "OTTO von Bismarck was the first chancellor.",
        "ID3 is an algorithm that grows a decision tree.",
        "The big WAVE came at noon.",
        "A small AVI is a video. GIF89a is an image.",
        "GIF89a is how an image begins.",
        "RIFF and WEBP and WAVE are names.",
        "it, ftyp is four letters.",
        "GGUF is a file format for models.",
        "BZhang wrote this. BZh9 too.",
        "PAR1S is no city.",
        "OggS, fLaC, 8BPS, wOFF: names of formats.",
        "fLaC is a format.",
        "8BPS begins a picture.",
        "%!PS and what it means.",
        "!<arch>\nis how an archive begins.",
        "!BDN!",
        "AT&TFORM is another.",
        "x" * 257 + "ustar stands in a tar archive",
        "x" * 60 + "BOOKMOBI stands in a book",
        "Received: 12 boxes\nfrom the harbour.\n",
        "Received: 12 boxes\nSent: 3 boxes\n",
        "MIME-Version: what is it? A header line.\n",
        "Every file of this kind begins with %PDF-1.4 and then has 1 0 obj in it.\n",
        "OTTO von Größe",
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "latin-1"])
def test_letters_that_a_text_may_begin_with_are_no_magic(open_bytes: Open, text: str, encoding: str) -> None:
    document = open_bytes(text.encode(encoding))
    assert (document.format, text_of(document)) == ("text", text)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"OTTO\0\x0b\x80", "font"),
        (b"ID3\4\0\0\0\0", "sound"),
        (b"RIFF\x24\0\0\0WAVEfmt ", "sound"),
        (bz2.compress(b"some words, and some more words"), "bzip2"),
        (b"GIF89a\1\0\1\0", "GIF"),
        (b"!<arch>\ndebian-binary   " + bytes(9), "Debian"),
        (b"%!PS-Adobe-3.0\n%%Title: x\n", "PostScript"),
    ],
)
def test_the_files_themselves_still_are(open_bytes: Open, data: bytes, what: str) -> None:
    with pytest.raises(UnknownFormat, match=what):
        open_bytes(data, "thing.txt")


def test_a_pdf_behind_other_bytes_is_one(open_bytes: Open) -> None:
    assert open_bytes(b"\0junk\n" + PDF, "download").format == "pdf"


def test_any_number_of_comments_may_stand_before_a_page(open_bytes: Open) -> None:
    # by an ambiguous pattern, forty of them took longer than anyone waits
    assert open_bytes(b"<!---->" * 1000 + b"x").format == "text"
    assert open_bytes(b"<!-- " * 1000 + b"<html>").format == "text"
    assert open_bytes(b"<!--a-->\n" * 1000 + b"<html>words", "page").format == "html"
    assert open_bytes(b"<?xml version='1.0'?><!-- x --> <html>words</html>", "page").format == "html"


@pytest.mark.parametrize("name", ["notes.txt", "notes.md", "notes", "notes.eml", "notes.mbox"])
@pytest.mark.parametrize(
    "text",
    [
        b"From Monday 12 May 2025 on:\nHours: 9 to 5\nPhone: 123\n\nClosed on Sundays.\n",
        b"From 10:00 on 12 May 2025\nHours: 9 to 5\n\nClosed.\n",
    ],
)
def test_a_text_that_begins_as_mail_does_keeps_its_lines(open_bytes: Open, name: str, text: bytes) -> None:
    document = open_bytes(text, name)
    assert (document.format in ("text", "markdown"), text_of(document)) == (True, text.decode())


@pytest.mark.parametrize(
    "text",
    [
        b"Received: from the bank, 12 May\nAmount: 500 EUR\n\nPaid.\n",
        b"Received: from the bank\nDate: 12 May\nSubject: rent\n\nPaid.\n",
        b"Received: from the bank by post; Monday\nAmount: 500 EUR\n\nPaid.\n",
        b"MIME-Version: 1 is old\nAmount: 500 EUR\n\nPaid.\n",
        b"From me@x.de 12 May 2025 on\nHours: 9 to 5\nSubject: rent\n\nClosed.\n",
    ],
)
def test_one_name_that_mail_has_too_makes_no_message(open_bytes: Open, text: bytes) -> None:
    for name in ("notes.md", "notes"):
        assert text_of(open_bytes(text, name)) == text.decode()


@pytest.mark.parametrize("name", ["report.eml", "archive.mbox"])
def test_what_is_named_as_mail_but_is_none_is_text(open_bytes: Open, name: str) -> None:
    document = open_bytes(b"From a friend\n", name)
    assert (document.format, text_of(document)) == ("text", "From a friend\n")
    assert "its content is plain text" in document.warnings[0]


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"Return-Path: <a@b>\nSubject: x\n\nHi\n", "eml"),
        (b"Received: from a.example by b.example\n\tfor <c@d>; Mon\nSubject: x\n\nHi", "eml"),
        (b"Received: by b.example; Mon\r\nX-Odd: 1\r\nSubject: x\r\n\r\nHi", "eml"),
        (b"From a@b Mon Jan  1 00:00:00 2024\nSubject: x\n\nHi\n", "mbox"),
        (b"From 17@xxx Mon Jan 01 10:00:00 +0000 2024\r\nX-Odd: 1\r\nSubject: x\r\n\r\nHi\r\n", "mbox"),
        (b"From foo at bar.com  Mon Jan  1 10:00:00 2024\nFrom: foo\n\nHi\n", "mbox"),
        (b"From a@b Mon, 1 Jan 2024 10:00:00 +0100\nFrom: a@b\n\nHi\n", "mbox"),
        (b"From a@b 2024-01-01\nFrom: a@b\nSubject: x\n\nHi\n", "mbox"),
        (b"{\\rtf1 Hi}", "rtf"),
    ],
)
def test_mail_and_rtf_are_known_by_their_beginning(open_bytes: Open, data: bytes, kind: str) -> None:
    document = open_bytes(data, "thing")
    assert (document.format, text_of(document).split()[-1]) == (kind, "Hi")


@pytest.mark.parametrize("magic", [b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"II*\0", b"MM\0*"])
def test_images_are_refused_where_ocr_is_off(open_bytes: Open, magic: bytes) -> None:
    with pytest.raises(UnknownFormat, match="image") as caught:
        open_bytes(magic + bytes(64), "scan", limits=Limits(ocr=False))
    assert "--ocr auto" in caught.value.hint


def test_a_folders_images_are_passed_over(tmp_path: Path) -> None:
    (tmp_path / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(64))
    (entry,) = walk(tmp_path)
    assert isinstance(entry, SkippedEntry)
    assert entry.reason == "is a PNG image"


def test_damaged_archives_are_one_line(open_bytes: Open, tmp_path: Path) -> None:
    for data in (WORD[:200], WORD[: len(WORD) - 30], b"PK\x03\x04" + bytes(50)):
        with pytest.raises(InputError, match="damaged"):
            open_bytes(data, "x.docx")
    with pytest.raises(InputError, match="cut short"):
        open_bytes(gzip.compress(b"abc" * 1000)[:-9], "x.txt.gz")
    with pytest.raises(InputError, match="damaged gzip"):
        open_bytes(gzip.compress(b"abc") + b"trailing junk", "y.txt.gz")
    assert text_of(open_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + bytes(9), "z.gz")) == "one two"
