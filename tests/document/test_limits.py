"""Hostile input costs bounded time, memory and disk, and reads nothing but itself."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from document.conftest import Open
from document.inputs import docx, paragraph, pptx, shape, text_of, zipped

from localctx.document import Limits, open_document
from localctx.errors import InputError, LimitExceeded

SMALL = Limits(ratio_free_bytes=1 << 16, zip_ratio=10, gzip_ratio=10)
BOMB = '<!DOCTYPE r [<!ENTITY a "ha">' + "".join(
    f'<!ENTITY {name} "{f"&{inner};" * 10}">' for inner, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def test_zip_and_gzip_bombs_are_stopped(open_bytes: Open) -> None:
    bomb = docx(paragraph("a" * 3_000_000))
    assert len(bomb) < 10_000
    with pytest.raises(LimitExceeded, match="unpacks to more than"):
        open_bytes(bomb, "bomb.docx", limits=SMALL)
    with pytest.raises(LimitExceeded, match="unpacks to more than"):
        open_bytes(gzip.compress(b"a" * 3_000_000), "bomb.gz", limits=SMALL)
    assert open_bytes(bomb, "good.docx").text.n_code_points == 3_000_002


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_methods_that_inflate_without_bounds_are_refused(open_bytes: Open, method: int) -> None:
    data = zipped({"word/document.xml": "<document><p><r><t>fine</t></r></p></document>"}, method)
    damaged = bytearray(data)
    damaged[60:70] = b"\xff" * 10  # inside the packed data: no error of the packer's own may come through
    for number, content in enumerate((data, bytes(damaged))):
        with pytest.raises(InputError, match=f"not read.*method {method}"):
            open_bytes(content, f"{number}.docx")
    stored = zipped(
        {"word/document.xml": "<document><p><r><t>fine</t></r></p></document>"}, zipfile.ZIP_STORED
    )
    assert text_of(open_bytes(stored, "stored.docx")) == "fine\n\n"


def test_a_cut_local_header_is_one_line(open_bytes: Open) -> None:
    data = bytearray(docx(paragraph("x")))
    at = data.index(b"PK\x01\x02")
    while at >= 0:  # every member seems to begin near the end of the file
        data[at + 42 : at + 46] = (len(data) - 10).to_bytes(4, "little")
        at = data.find(b"PK\x01\x02", at + 1)
    with pytest.raises(InputError, match="damaged archive"):
        open_bytes(bytes(data), "x.docx")


def test_a_large_directory_is_refused_before_it_is_built(
    open_bytes: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    many = zipped({"word/document.xml": "<a/>", **{f"m{n}": "" for n in range(2000)}})

    def must_not_run(*_: object, **__: object) -> None:
        raise AssertionError("made an object of a member")

    monkeypatch.setattr(zipfile, "ZipInfo", must_not_run)
    for name in ("a.docx", "b.txt"):  # while sniffing, whatever the name
        with pytest.raises(LimitExceeded, match=f"{name}: has more than 1,000 members"):
            open_bytes(many, name, limits=Limits(zip_members=1000))
    end = len(many) - 22
    lying = many[: end + 8] + (1).to_bytes(2, "little") * 2 + many[end + 12 :]  # "one member"
    with pytest.raises(LimitExceeded, match="members"):
        open_bytes(lying, "c.docx", limits=Limits(zip_members=1000))


CELL = "<w:tc>{}</w:tc>"
LONG = "word " * 1000
TOO_LONG = {
    "paragraph.docx": docx(paragraph(LONG)),
    "cell.docx": docx(f"<w:tbl><w:tr>{CELL.format(paragraph('x' * 40) * 40)}</w:tr></w:tbl>"),
    "empty cells.docx": docx(f"<w:tbl><w:tr>{'<w:tc/>' * 1000}</w:tr></w:tbl>{paragraph('x')}"),
    "breaks.docx": docx(f"<w:p><w:r>{'<w:br/>' * 2000}<w:t>x</w:t></w:r></w:p>"),
    "note.docx": docx(
        paragraph("x"), footnotes=f'<w:footnote w:id="2">{paragraph("word " * 10) * 40}</w:footnote>'
    ),
    "shape.pptx": pptx(shape("\n".join(["line of words"] * 200))),
    "title.pptx": pptx(shape(LONG, "title")),
}


@pytest.mark.parametrize("name", TOO_LONG)
def test_what_is_held_in_memory_is_capped(open_bytes: Open, name: str) -> None:
    with pytest.raises(LimitExceeded, match=f"{name}: .* longer than 1,500 characters"):
        open_bytes(TOO_LONG[name], name, limits=Limits(token_bytes=1500))
    assert open_bytes(TOO_LONG[name], name).text.n_code_points


def test_many_short_paragraphs_are_no_long_one(open_bytes: Open) -> None:
    rows = f"<w:tbl><w:tr>{CELL.format(paragraph('x'))}</w:tr></w:tbl>" * 200
    notes = "".join(f'<w:footnote w:id="{n}">{paragraph("note")}</w:footnote>' for n in range(1, 200))
    document = open_bytes(
        docx(paragraph("word " * 20) * 200 + rows, footnotes=notes), "a.docx", limits=Limits(token_bytes=1500)
    )
    assert "[199] note" in text_of(document)
    slides = pptx(shape("some words") * 200)
    assert open_bytes(slides, "a.pptx", limits=Limits(token_bytes=1500)).text.n_code_points > 2000


def test_lists_of_a_zip_document_are_capped(open_bytes: Open) -> None:
    slides = pptx(shape("some words") * 2000)
    with pytest.raises(LimitExceeded, match=r"slide1\.xml is larger than 10,000 bytes"):
        open_bytes(slides, "a.pptx", limits=Limits(tree_bytes=10_000))


def test_members_text_and_streams_are_capped(open_bytes: Open) -> None:
    many = zipped({"word/document.xml": "<a/>", **{f"m{n}": "" for n in range(20)}})
    with pytest.raises(LimitExceeded, match="members"):
        open_bytes(many, "a.docx", limits=Limits(zip_members=10))
    with pytest.raises(LimitExceeded, match=r"file.txt: more than 1,000 bytes of text"):
        open_bytes(b"\xef\xbb\xbf" + b"word " * 1000, limits=Limits(text_bytes=1000))
    with pytest.raises(LimitExceeded, match="HTML larger"):
        open_bytes(b"<html>" + b"word " * 1000, "a.html", limits=Limits(tree_bytes=1000))


def test_xml_nesting_and_endless_tags_are_capped(open_bytes: Open) -> None:
    with pytest.raises(LimitExceeded, match="nested"):
        open_bytes(b"<a>" * 200_000, "a.xml")
    endless = b'<?xml version="1.0"?><a b="' + b"x" * 300_000 + b'">y</a>'
    with pytest.raises(LimitExceeded, match="tag is longer"):
        open_bytes(endless, "b.xml", limits=Limits(token_bytes=100_000))


def test_a_limit_names_the_file_even_where_its_name_is_a_common_word() -> None:
    stream = io.BytesIO(b'<?xml version="1.0"?><a b="' + b"x" * 300_000 + b'">y</a>')
    stream.name = "XML"  # which the message holds too
    with pytest.raises(LimitExceeded, match=r"^XML: one XML tag is longer"):
        open_document(stream, limits=Limits(token_bytes=100_000))


def test_entities_are_neither_expanded_nor_fetched(open_bytes: Open, tmp_path: Path) -> None:
    secret = tmp_path / "secret.txt"
    secret.write_text("TOPSECRET")
    data = f'{BOMB}<!ENTITY x SYSTEM "{secret.as_uri()}">]><r><p>start &i; &x; end &lt;</p></r>'
    document = open_bytes(data.encode(), "a.xml")
    assert text_of(document).strip() == "r\nstart &i; &x; end <"
    prolog = f'{BOMB}<!ENTITY x SYSTEM "{secret.as_uri()}">]>'
    word = open_bytes(docx(paragraph("start &i; &x; end"), prolog), "a.docx")
    assert text_of(word) == "start &i; &x; end\n\n"
    in_attribute = open_bytes(f'{BOMB}]><r q="{"&i;" * 50}">text</r>'.encode(), "b.xml")
    assert in_attribute.text.n_code_points < 10_000


def test_deep_html_is_stopped_by_the_clock_of_its_child(open_bytes: Open) -> None:
    page = b"<html>" + b"<div>" * 60_000 + b"text"
    with pytest.raises(LimitExceeded, match=r"no progress|processor time"):
        open_bytes(page, "deep.html", limits=Limits(child_seconds=1.0))


def test_archive_members_with_hostile_names_write_nothing(open_bytes: Open, tmp_path: Path) -> None:
    target = "../" * 8 + "../escape.xml"
    relation = f'<Relationship Id="r" Type="x/officeDocument" Target="{target}"/>'
    members = {
        "_rels/.rels": f"<Relationships>{relation}</Relationships>",
        "word/document.xml": "<document><p><r><t>fine</t></r></p></document>",
        target: "<document><p><r><t>other</t></r></p></document>",
    }
    assert text_of(open_bytes(zipped(members), "a.docx")) == "fine\n\n"
    assert sorted(item.name for item in tmp_path.iterdir()) == ["a.docx"]


@pytest.mark.parametrize("part", ["word/document.xml", "_rels/.rels"])
def test_broken_xml_inside_an_archive_is_one_line(open_bytes: Open, part: str) -> None:
    members = {"word/document.xml": "<document/>", part: "<a><b></a>"}
    with pytest.raises(InputError, match="damaged document"):
        open_bytes(zipped(members), "a.docx")


READ_XML = """
import resource, sys
from localctx.document import open_document
from localctx.document import xml, cache, language
status = dict(line.split(":", 1) for line in open("/proc/self/status"))
limit = int(status["VmSize"].split()[0]) * 1024 + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
with open_document(sys.argv[1], cache_dir=None) as document:
    n = sum(len(piece) for piece in document.text.stream())
    print(n, document.text.n_code_points, len(document.sections), repr(document.read(n - 12, n)))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="reads the address space from /proc")
def test_xml_larger_than_the_address_space_that_is_left_streams(tmp_path: Path) -> None:
    record = "<record><name>Somebody</name><note>{}</note></record>\n".format("words and more words " * 400)
    path = tmp_path / "big.xml"
    with path.open("w") as file:
        file.write("<root><records>")
        for _ in range(8000):
            file.write(record)
        file.write("<record><name>LAST</name></record></records></root>")
    assert path.stat().st_size > 60 << 20
    # the text at rest is mapped (64 MiB at most); what is left beside it is far smaller than the file
    limit = (64 << 20) + (24 << 20)
    run = subprocess.run(
        [sys.executable, "-c", READ_XML, str(path), str(limit)],
        capture_output=True, text=True, check=False, env={**os.environ},
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    counts, tail = run.stdout.split(" '", 1)
    n, total, n_sections = map(int, counts.split())
    assert (n, n_sections) == (total, 0)
    assert "name: LAST" in tail.replace("\\n", "\n")
