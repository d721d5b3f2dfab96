"""Scans: pages that are pictures, images, reading order, and what is said where OCR is off or missing."""

from __future__ import annotations

import importlib.util
import io
import random
import struct
from pathlib import Path
from typing import Any

import pypdfium2
import pytest
from document.inputs import line, pdf, text_of

from localctx.document import Limits, open_document
from localctx.document.isolate import ChildFailed
from localctx.document.ocr import Scans, engine_version, ocr_summary, read_scans
from localctx.document.ocr_order import Box, text_of_boxes
from localctx.document.pdf import PdfEnd, PdfHeader, PdfPage
from localctx.errors import InputError, NoTextError, UnknownFormat

ENGLISH = "The vault code is 7734 and the river rises in spring."
GERMAN = "Der Mieter zahlt die Übergabe der Räume: 1.234,56 Euro."


def scan(*texts: str, angle: float = 0.7, seed: int = 7) -> Any:
    """A page with these lines as a scanner sees it: turned a little, grey, with noise."""
    from PIL import Image, ImageFilter

    shown = " ".join(
        f"1 0 0 1 60 {700 - 40 * n} Tm <{text.encode('cp1252').hex()}> Tj" for n, text in enumerate(texts)
    )
    page = pdf(f"BT /F 14 Tf {shown} ET".encode()).replace(
        b"/BaseFont/Helvetica", b"/BaseFont/Helvetica/Encoding/WinAnsiEncoding"
    )
    with pypdfium2.PdfDocument(page) as document:
        image = document[0].render(scale=2).to_pil().convert("L").crop((0, 100, 1000, 500))
    image = image.rotate(angle, fillcolor=255, resample=Image.Resampling.BICUBIC)
    noise = Image.frombytes("L", image.size, random.Random(seed).randbytes(image.width * image.height))
    return Image.blend(image, noise, 0.12).filter(ImageFilter.GaussianBlur(0.7))


def saved(image: Any, kind: str, **options: Any) -> bytes:
    """The image as a file."""
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def words_found(text: str, wanted: str) -> float:
    """The share of words that stand in the text."""
    words = wanted.split()
    return sum(word in text.split() for word in words) / len(words)


@pytest.fixture
def mixed_pdf(tmp_path: Path) -> Path:
    """A page of text, a scan, a page of text."""
    import pikepdf

    path = tmp_path / "mixed.pdf"
    with pikepdf.open(io.BytesIO(pdf(line(b"Words on page one"), line(b"Words on page three")))) as document:
        with pikepdf.open(io.BytesIO(saved(scan(ENGLISH, GERMAN), "PDF", resolution=150))) as picture:
            document.pages.insert(1, picture.pages[0])
        document.save(path)
    return path


@pytest.mark.slow
def test_a_scanned_page_between_others_is_read(mixed_pdf: Path, tmp_path: Path) -> None:
    with open_document(mixed_pdf, cache_dir=tmp_path / "cache") as document:
        text = text_of(document)
        places = [document.page_at(text.index(word)) for word in ("one", "vault", "three")]
        assert [page.number for page in places if page is not None] == [1, 2, 3]
        assert words_found(text, ENGLISH) == 1
        assert words_found(text, GERMAN) >= 0.85
        assert [page.engine == "rapidocr" for page in document.pages] == [False, True, False]
        assert document.confidences.keys() == {2}
        assert document.confidences[2] > 0.85
        assert document.warnings[0].startswith("page 2 was read by OCR (mean confidence 0.")
        first = document.content_hash
    with open_document(mixed_pdf, cache_dir=tmp_path / "cache") as kept:
        assert (kept.content_hash, kept.confidences) == (first, document.confidences)
    with open_document(mixed_pdf, cache_dir=tmp_path / "cache", limits=Limits(ocr=False)) as without:
        assert without.pages_without_text == (2,)
        assert "page 2: images only; --ocr auto has them read by OCR" in without.warnings


@pytest.mark.slow
def test_an_image_of_several_frames_is_a_document_of_pages(tmp_path: Path) -> None:
    path = tmp_path / "fax.tif"
    path.write_bytes(saved(scan(ENGLISH), "TIFF", save_all=True, append_images=[scan(GERMAN, angle=-0.6)]))
    with open_document(path, cache_dir=None, pages=(2, 2)) as document:
        assert (document.format, [page.number for page in document.pages]) == ("image", [2])
        assert words_found(text_of(document), GERMAN) >= 0.85
        assert words_found(text_of(document), ENGLISH) < 0.3


def test_without_the_extra_the_error_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "rapidocr" else find(name))
    assert engine_version() is None
    picture, document = tmp_path / "scan.png", tmp_path / "scan.pdf"
    picture.write_bytes(saved(scan(ENGLISH), "PNG"))
    document.write_bytes(saved(scan(ENGLISH), "PDF"))
    with pytest.raises(UnknownFormat, match="is a PNG image") as caught:
        open_document(picture, cache_dir=None)
    assert "pip install 'localctx[ocr]'" in caught.value.hint
    with pytest.raises(NoTextError, match="images only") as refused:
        open_document(document, cache_dir=None)
    assert (refused.value.exit_code, "pip install 'localctx[ocr]'" in refused.value.hint) == (3, True)


@pytest.mark.parametrize(
    ("mode", "values", "kind", "options"),
    [
        ("I;16B", ">4H", "TIFF", {}),
        ("I;16", "<4H", "TIFF", {}),
        ("I;16", "<4H", "PNG", {"transparency": 0}),
        ("I", "=4i", "TIFF", {}),
        ("F", "=4f", "TIFF", {}),
    ],
)
def test_wide_greys_are_scaled_whatever_their_bytes(
    mode: str, values: str, kind: str, options: dict[str, Any]
) -> None:
    from PIL import Image

    from localctx.document.ocr_child import flattened

    image = Image.frombytes(mode, (4, 1), struct.pack(values, 0, 30_000, 60_000, 65_535))
    with Image.open(io.BytesIO(saved(image, kind, **options))) as opened:
        assert opened.mode == mode
        made = flattened(opened)
        assert [made.getpixel((x, 0)) for x in range(4)] == [(n,) * 3 for n in (0, 116, 233, 255)]


def test_a_damaged_image_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "cut.png"
    path.write_bytes(saved(scan(ENGLISH), "PNG")[:3000])
    with pytest.raises(InputError, match=r"cut\.png: not a readable image"):
        open_document(path, cache_dir=None)


def test_a_page_on_which_ocr_dies_costs_that_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    path = tmp_path / "x.pdf"
    path.write_bytes(b"x")
    started = []

    def child(target: str, arguments: dict[str, Any], caps: object) -> Any:
        started.append(arguments["ranges"][0][0] + 1)
        for number in range(started[-1], 9):
            if number in (3, 4):
                raise ChildFailed("memory", "was killed", 0)
            if number == 2:
                yield {"number": 2, "text": " ", "confidence": 0.0}
            elif number != 6:  # the child sees text there
                yield {"number": number, "text": f"page {number}", "confidence": 0.5 + number / 20}

    monkeypatch.setattr("localctx.document.ocr.isolated", child)
    monkeypatch.setattr("localctx.document.ocr.engine_version", lambda: "rapidocr 1")
    pages = [PdfPage(n, "", quality=0.0, engine="pdfium") for n in range(2, 8)]
    blank = PdfPage(8, "", quality=1.0, engine="pdfium")
    events = list(read_scans(iter([PdfHeader(8), *pages, blank, PdfEnd()]), str(path), None, Limits()))
    texts = [event.text for event in events if isinstance(event, PdfPage)]
    assert texts == ["", "", "", "page 5", "", "page 7", ""]
    assert started == [2, 4, 5]
    assert isinstance(events[-1], PdfEnd)
    assert events[-1].warnings == (
        "page 3 was not read by OCR: its reading was killed",
        "page 4 was not read by OCR: its reading was killed",
        "pages 5, 7 were read by OCR (mean confidence 0.80)",
        "OCR was unsure on page 5 (confidence below 0.85): compare with the scan",
        "pages 2, 6: images only; OCR found no text",
    )


def test_ocr_that_keeps_dying_is_given_up(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "x.pdf").write_bytes(b"x")

    def dying(*_: object) -> Any:
        raise ChildFailed("crash", "crashed", 0)
        yield

    monkeypatch.setattr("localctx.document.ocr.isolated", dying)
    scans = Scans(str(tmp_path / "x.pdf"), None, Limits())
    assert [scans.page(number) for number in range(1, 20)] == [None] * 19
    assert len(scans.failures) == 5
    pages = [PdfPage(n, "", quality=0.0, engine="pdfium") for n in range(1, 20)]
    monkeypatch.setattr("localctx.document.ocr.engine_version", lambda: "rapidocr 1")
    *_, end = read_scans(iter([*pages, PdfEnd()]), str(tmp_path / "x.pdf"), None, Limits())
    assert isinstance(end, PdfEnd)
    assert end.warnings[4:] == (
        "OCR failed too often and was given up",
        "pages 5-19: images only; not read, since OCR was given up",
    )


def test_a_frame_without_text_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def child(target: str, arguments: dict[str, Any], caps: object) -> Any:
        yield {"n_pages": 2}
        yield {"number": 1, "text": "words", "confidence": 0.9}
        yield {"number": 2, "text": "", "confidence": 0.0}

    monkeypatch.setattr("localctx.document.image.isolated", child)
    path = tmp_path / "fax.tif"
    path.write_bytes(saved(scan(ENGLISH), "TIFF"))
    with open_document(path, cache_dir=None) as document:
        assert document.confidences == {1: 0.9}
        assert document.warnings[:2] == (
            "page 2: OCR found no text",
            "page 1 was read by OCR (mean confidence 0.90)",
        )


def boxes(*lines: tuple[str, float, float], width: float = 300) -> list[Box]:
    """Lines 20 high at (text, left, top)."""
    return [Box(text, left, top, left + width, top + 20) for text, left, top in lines]


def test_columns_are_read_one_after_the_other_and_titles_first() -> None:
    left = [(f"left {n}.", 0.0, 100 + 30.0 * n) for n in range(6)]
    right = [(f"right {n}.", 360.0, 104 + 30.0 * n) for n in range(6)]
    title = boxes(("Title over both", 100, 40), width=460)
    page = [*boxes(*sorted(left + right, key=lambda one: one[2])), *title]
    random.Random(3).shuffle(page)
    found = text_of_boxes(page).split()
    expected = " ".join(["Title over both", *(t for t, *_ in left), *(t for t, *_ in right)]).split()
    assert found == expected


def test_cells_of_a_row_stay_together() -> None:
    cells = [(f"r{y}c{x}", 120.0 * x, 40.0 * y + x) for y in range(5) for x in range(3)]
    text = text_of_boxes(boxes(*cells, width=60))
    assert [row.split(" | ") for row in text.split("\n") if row] == [
        [f"r{y}c{x}" for x in range(3)] for y in range(5)
    ]


def test_nothing_recognised_is_no_text() -> None:
    assert text_of_boxes([]) == ""
    assert text_of_boxes([Box(" ", 0, 0, 9, 9), Box("x", 5, 5, 5, 9)]) == ""
    assert list(ocr_summary({})) == []
