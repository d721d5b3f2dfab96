"""PDF files, whole and broken, through extract_pdf: text, labels, headings, warnings, errors."""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Generator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pikepdf
import pytest
from reportlab.lib.pagesizes import A5
from reportlab.pdfgen.canvas import Canvas

from localctx.document.isolate import ChildFailed, IsolationLimits, isolated
from localctx.document.pdf import PdfEnd, PdfHeader, PdfHeading, PdfLimits, PdfPage, extract_pdf
from localctx.document.pdf_child import read_pdf
from localctx.document.pdf_engines import Reading
from localctx.errors import InputError, LimitExceeded, PasswordNeeded, UsageError

PROSE = (
    "It is with great satisfaction that I meet you here to consider the efficient use of the revenue, "
    "the state of our commerce with all nations, and what remains to be done for the public good. "
)


def small_pdf(pages: Sequence[bytes], to_unicode: bytes = b"", kids: bytes | None = None) -> bytes:
    """A PDF of the given content streams in one font; `to_unicode` holds the lines of its character map."""
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b""]
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica"
    objects.append(font + (b"/ToUnicode 4 0 R>>" if to_unicode else b">>"))
    if to_unicode:
        cmap = (
            b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def /CMapType 2 def\n"
            b"1 begincodespacerange <00> <FF> endcodespacerange\n" + to_unicode + b"\nendcmap end end"
        )
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(cmap), cmap))
    numbers = []
    for content in pages:
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]"
            b"/Resources<</Font<</F 3 0 R>>>>/Contents %d 0 R>>" % len(objects)
        )
        numbers.append(len(objects))
    kids = kids if kids is not None else b" ".join(b"%d 0 R" % number for number in numbers)
    objects[1] = b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(numbers), kids)
    parts, offsets = [b"%PDF-1.4\n"], []
    for number, body in enumerate(objects, 1):
        offsets.append(sum(map(len, parts)))
        parts.append(b"%d 0 obj\n%s\nendobj\n" % (number, body))
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    parts.append(b"xref\n0 %d\n0000000000 65535 f \n%s" % (len(objects) + 1, table))
    start = sum(map(len, parts)) - len(parts[-1])
    parts.append(b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (len(objects) + 1, start))
    return b"".join(parts)


def shown(text: bytes, y: int = 700, size: int = 12) -> bytes:
    """Content that shows one line."""
    return b"BT /F %d Tf 72 %d Td (%s) Tj ET\n" % (size, y, text)


@pytest.fixture
def save(tmp_path: Path) -> Callable[[bytes], Path]:
    """Writes bytes to a file and answers its path."""

    def write(data: bytes, name: str = "file.pdf") -> Path:
        path = tmp_path / name
        path.write_bytes(data)
        return path

    return write


def read(path: Path | str, **options: object) -> tuple[PdfHeader, list[PdfPage], PdfEnd]:
    """All events of a document, sorted by kind and checked to come in order."""
    header, *pages, end = extract_pdf(path, **options)  # type: ignore[arg-type]  # the options of each test
    assert isinstance(header, PdfHeader)
    assert isinstance(end, PdfEnd)
    assert all(isinstance(page, PdfPage) for page in pages)
    return header, pages, end  # type: ignore[return-value]  # just checked


def nested_forms() -> bytes:
    """Forms that draw one another ten times each, eight deep: a hundred million lines of text."""
    document = pikepdf.open(io.BytesIO(small_pdf([shown(b"one")])))
    page = document.pages[0]
    inner = document.make_stream(shown(b"again"))
    for _ in range(8):
        inner.Type, inner.Subtype, inner.BBox = pikepdf.Name.XObject, pikepdf.Name.Form, [0, 0, 612, 792]
        inner.Resources = inner.get("/Resources", page.Resources)
        outer = document.make_stream(b"/X Do " * 10)
        outer.Resources = pikepdf.Dictionary(XObject=pikepdf.Dictionary(X=inner))
        inner = outer
    page.Resources = inner.Resources
    page.Contents = document.make_stream(b"/X Do " * 10)
    buffer = io.BytesIO()
    document.save(buffer)
    return buffer.getvalue()


def book() -> bytes:
    """Four pages set by reportlab, with bookmarks, labels i, 1, 2, 3, a heading on each and wrapped prose."""
    buffer = io.BytesIO()
    canvas = Canvas(buffer, pagesize=A5, invariant=1)
    canvas.addPageLabel(0, style="ROMAN_LOWER", start=1)
    canvas.addPageLabel(1, style="ARABIC", start=1)
    for i in range(4):
        canvas.bookmarkPage(f"c{i}")
        canvas.addOutlineEntry(f"Chapter {i} of the book", f"c{i}", level=min(i, 1))
        canvas.setFont("Times-Bold", 16)
        canvas.drawString(40, 500, f"Chapter {i} of the book")
        canvas.setFont("Times-Roman", 10)
        y = 470
        for line in (
            "It is with great satisfaction that I meet you here to consider the",
            "whole of it. And more.",
        ):
            canvas.drawString(40, y, line)
            y -= 12
        canvas.showPage()
    canvas.save()
    return buffer.getvalue()


def test_pages_labels_outline_and_paragraphs(save: Callable[[bytes], Path]) -> None:
    header, pages, end = read(save(book()))
    assert header.n_pages == 4
    assert [(entry.level, entry.title, entry.page) for entry in header.outline] == [
        (1 + (i > 0), f"Chapter {i} of the book", i + 1) for i in range(4)
    ]
    assert [page.label for page in pages] == ["i", "1", "2", "3"]
    assert pages[2].text == (
        "Chapter 2 of the book\n\n"
        "It is with great satisfaction that I meet you here to consider the whole of it. And more."
    )
    assert pages[2].headings == (PdfHeading(2, "Chapter 2 of the book", 0),)
    assert all(page.engine == "pdfium" and page.quality == 1.0 for page in pages)
    assert end.warnings == ()


def test_headings_from_font_sizes_where_there_is_no_outline(save: Callable[[bytes], Path]) -> None:
    body = b"".join(shown(PROSE[:80].encode(), y) for y in range(660, 400, -14))
    _, pages, _ = read(save(small_pdf([shown(b"First Part", 700, 20) + body, body])))
    assert pages[0].headings == (PdfHeading(1, "First Part", 0),)
    assert pages[1].headings == ()


def test_chosen_pages_only(save: Callable[[bytes], Path]) -> None:
    path = save(small_pdf([shown(b"This is page %d" % i) for i in range(1, 8)]))
    progress: list[tuple[int, int]] = []
    header, pages, end = read(path, pages=range(3, 5), on_progress=lambda *done: progress.append(done))
    assert header.n_pages == 7
    assert [(page.number, page.text) for page in pages] == [(3, "This is page 3"), (4, "This is page 4")]
    assert progress == [(1, 2), (2, 2)]
    assert [page.number for page in read(path, pages=[1, 2, 6])[1]] == [1, 2, 6]
    _, pages, end = read(path, pages=range(6, 20))
    assert [page.number for page in pages] == [6, 7]
    assert end.warnings == ("the document has 7 pages; those beyond were left out",)
    with pytest.raises(UsageError, match="no such page; the document has 7"):
        read(path, pages=range(8, 9))
    _, pages, end = read(path, pages=range(7, 10**30))  # longer than len() can say
    assert [page.number for page in pages] == [7]
    assert len(end.warnings) == 1


def test_hundreds_of_pages(save: Callable[[bytes], Path]) -> None:
    path = save(small_pdf([shown(b"Page %d. Its code is K%05d." % (i, i * 37)) for i in range(1, 601)]))
    _, pages, _ = read(path)
    assert len(pages) == 600
    assert (pages[0].text, pages[-1].text) == ("Page 1. Its code is K00037.", "Page 600. Its code is K22200.")


def test_no_text_layer(save: Callable[[bytes], Path]) -> None:
    _, pages, _ = read(save(small_pdf([b"0.5 g 72 72 400 400 re f\n", b""])))
    assert [(page.text, page.quality) for page in pages] == [("", 0.0), ("", 1.0)]


@pytest.mark.parametrize(
    ("target", "text"), [(b"D835", "AC value 42"), (b"0000", "AC value 42"), (b"FB01", "AfiC value 42")]
)
def test_what_is_not_text_goes(save: Callable[[bytes], Path], target: bytes, text: str) -> None:
    path = save(small_pdf([shown(b"ABC value 42")], b"1 beginbfchar <42> <%s> endbfchar" % target))
    _, [page], _ = read(path)
    assert page.text == text
    assert page.quality < 1.0 or target == b"FB01"


def test_shifted_letters_are_told(save: Callable[[bytes], Path]) -> None:
    shifted = bytes(c + 3 if 96 < c < 120 else c for c in PROSE.encode())
    page_content = shown(shifted[:90], 700) + shown(shifted[90:], 680)
    _, pages, end = read(save(small_pdf([page_content, shown(PROSE.encode()), page_content])))
    assert [page.quality < 0.75 for page in pages] == [True, False, True]
    assert end.warnings == ("pages 1, 3: the text looks garbled in every engine",)


@pytest.mark.parametrize("garbled", ["\x03\x04\x05 \x06\x07" * 20, "(cid:3)" * 20, "\ue001\ue002" * 20])
def test_a_second_opinion_wins_where_the_first_engine_reads_noise(
    save: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch, garbled: str
) -> None:
    monkeypatch.setattr(
        "localctx.document.pdf_pdfium.PdfiumReader.read", lambda self, index: Reading(garbled)
    )
    path = save(encrypted(small_pdf([shown(PROSE.encode())] * 2), user="user", owner="x", revision=6))
    items = read_pdf(str(path), "file.pdf", "user", [[1, 1]], "pdfium")
    header, provisional, page = items
    assert header["n_pages"] == 2
    assert (provisional["provisional"], provisional["engine"]) == (True, "pdfium")
    assert (page["number"], page["engine"], page["quality"]) == (2, "pdfminer", 1.0)
    assert page["text"] == PROSE.strip()


@pytest.mark.parametrize("cut", [2, 60])
def test_damaged_tail_is_recovered(save: Callable[[bytes], Path], cut: int) -> None:
    header, [page], _ = read(save(small_pdf([shown(b"Hello xref")])[:-cut]))
    assert page.text == "Hello xref"
    assert bool(header.warnings) == (cut == 60)


def test_cyclic_page_tree_ends(save: Callable[[bytes], Path]) -> None:
    pages = [shown(b"Round and round"), shown(b"we go")]
    _, [first, *rest], end = read(save(small_pdf(pages, kids=b"5 0 R 2 0 R")))
    assert first.text == "Round and round"
    assert [page.text for page in rest] == [""]
    assert end.warnings == ("page 2: damaged, no engine could read it",)


@pytest.mark.parametrize("data", [b"", b"<!doctype html><title>403</title>Forbidden", b"%PDF-1.7\ngarbage"])
def test_what_is_no_pdf_is_one_line_with_every_engine(save: Callable[[bytes], Path], data: bytes) -> None:
    path = save(data)
    with pytest.raises(InputError, match="not a readable PDF") as failure:
        read(path)
    message = failure.value.message
    assert message.startswith(f"{path}: ")
    assert all(engine in message for engine in ("pdfium", "pikepdf", "pdfminer"))
    assert "\n" not in message
    assert message.count(str(path)) == 1
    assert failure.value.hint


def test_any_file_name(tmp_path: Path) -> None:
    data = small_pdf([shown(b"Named oddly")])
    for name in (b"bad\xff\xf0name.pdf", "名前 mit ü & 'q' #%20.pdf".encode(), b"-n.PDF"):
        path = os.fsencode(tmp_path) + b"/" + name
        with open(path, "wb") as file:  # noqa: PTH123 - a path of bytes
            file.write(data)
        assert read(os.fsdecode(path))[1][0].text == "Named oddly"


Revision: TypeAlias = Literal[3, 4, 6]


def encrypted(data: bytes, *, user: str, owner: str, revision: Revision) -> bytes:
    """The document encrypted by pikepdf."""
    buffer = io.BytesIO()
    protection = pikepdf.Encryption(
        user=user, owner=owner, R=revision, aes=revision > 3, metadata=revision > 3
    )
    with pikepdf.open(io.BytesIO(data)) as document:
        document.save(buffer, encryption=protection)
    return buffer.getvalue()


@pytest.mark.parametrize("revision", [3, 4, 6])
@pytest.mark.parametrize(("user", "owner"), [("", "owner"), ("", ""), ("user", "")])
def test_empty_passwords_open(
    save: Callable[[bytes], Path], revision: Revision, user: str, owner: str
) -> None:
    path = save(encrypted(small_pdf([shown(b"Open to all")]), user=user, owner=owner, revision=revision))
    if user and revision < 6:  # an empty owner password means: the same as the user's
        with pytest.raises(PasswordNeeded):
            read(path)
    else:
        _, [page], _ = read(path)
        assert page.text == "Open to all"


@pytest.mark.parametrize(
    ("revision", "password"), [(3, "geheim"), (4, "schlüssel"), (6, "schlüssel"), (4, "owner"), (6, "owner")]
)
def test_passwords(save: Callable[[bytes], Path], revision: Revision, password: str) -> None:
    user = password if password != "owner" else "user"
    path = save(encrypted(small_pdf([shown(b"A secret")]), user=user, owner="owner", revision=revision))
    with pytest.raises(PasswordNeeded, match="is encrypted and needs a password") as failure:
        read(path)
    assert "--password-file" in failure.value.hint
    assert failure.value.exit_code == 3
    with pytest.raises(PasswordNeeded, match="the given password does not open it"):
        read(path, password="wrong")
    _, [page], _ = read(path, password=password)
    assert page.text == "A secret"


def failing_child(
    monkeypatch: pytest.MonkeyPatch, bad_pages: set[int], reason: Literal["crash", "cpu"] = "crash"
) -> None:
    """Let the child die on the given pages."""

    def failing(
        target: str, arguments: Mapping[str, object], limits: IsolationLimits
    ) -> Generator[Any, None, None]:
        for item in isolated(target, arguments, limits):
            if item.get("number") in bad_pages:
                raise ChildFailed(reason, "crashed (SIGSEGV)", 1)
            yield item

    monkeypatch.setattr("localctx.document.pdf.isolated", failing)


def test_a_page_that_kills_the_reader_costs_that_page(
    save: Callable[[bytes], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(small_pdf([shown(b"This is page %d" % i) for i in range(1, 6)]))
    failing_child(monkeypatch, {2, 5})
    _, pages, end = read(path)
    assert [page.text for page in pages] == ["This is page 1", "", "This is page 3", "This is page 4", ""]
    assert pages[1].quality == 0.0
    assert end.warnings == tuple(
        f"nothing was read of page {n}: its reading crashed (SIGSEGV)" for n in (2, 5)
    )


@pytest.mark.parametrize(("bad", "reason"), [({2, 3, 4, 5}, "crash"), ({2}, "cpu")])
def test_too_many_lost_pages_end_it(
    save: Callable[[bytes], Path],
    monkeypatch: pytest.MonkeyPatch,
    bad: set[int],
    reason: Literal["crash", "cpu"],
) -> None:
    path = save(small_pdf([shown(b"This is page %d" % i) for i in range(1, 6)]))
    failing_child(monkeypatch, bad, reason)
    with pytest.raises(LimitExceeded, match=f"reading page {max(bad)} crashed"):
        read(path)


def test_time_limit_names_the_page(save: Callable[[bytes], Path]) -> None:
    # Forms that draw each other ten at a time, eight deep: a hundred million lines from a small file.
    path = save(nested_forms())
    limits = PdfLimits(page_seconds=0.5, open_seconds=5.0, max_lost_pages=0)
    with pytest.raises(LimitExceeded, match=r"page 1 made no progress in 0\.5 s"):
        read(path, limits=limits)
