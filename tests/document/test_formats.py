"""What each format's text, sections and pages look like."""

from __future__ import annotations

import pytest
from document.conftest import Open
from document.inputs import docx, epub, line, paragraph, pdf, pptx, shape, text_of, without
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document import Document
from localctx.document.json import Unescape, open_escape
from localctx.document.xml import FLUSH_CHARACTERS
from localctx.errors import InputError, NoTextError, UsageError


def outline(document: Document) -> list[tuple[int, str, str]]:
    """(level, title, first word of the section's text) of each section."""
    return [(s.level, s.title, document.read(s.start, s.end)[: len(s.title)]) for s in document.sections]


def test_markdown_keeps_its_text_and_finds_headings(open_bytes: Open) -> None:
    data = (
        b"# One #\n\ntext\n\nTwo\n---\n```\n# not\n```\n### Three [l](u) *x*\nend\r\n"
        b"| a | b |\n|---|---|\n\na\nb\n===\n# Four"
    )
    document = open_bytes(data, "a.md")
    assert text_of(document) == data.decode()
    assert [(s.level, s.title) for s in document.sections] == [
        (1, "One"),
        (2, "Two"),
        (3, "Three l x"),
        (1, "Four"),
    ]
    three = document.sections[2].start
    assert document.read(three, three + 9) == "### Three"
    assert document.heading_path_at(three + 5) == ("One", "Two", "Three l x")
    assert document.heading_path_at(len(data) - 1) == ("Four",)
    assert document.page_at(3) is None


def test_sections_nest_and_end_where_the_next_begins(open_bytes: Open) -> None:
    document = open_bytes(b"intro\n# A\n## B\nx\n## C\n# D\n", "a.md")
    assert document.heading_path_at(0) == ()
    spans = [(s.title, document.read(s.start, s.end)) for s in document.sections]
    assert spans == [("A", "# A\n## B\nx\n## C\n"), ("B", "## B\nx\n"), ("C", "## C\n"), ("D", "# D\n")]


def test_html(open_bytes: Open) -> None:
    page = (
        "<html><head><title>T</title><style>p{}</style><body><nav>nav</nav><h1>A <b>b</b></h1><p>x "
        "&amp; y<br>z<script>1</script><ul><li>one<li>two<p>para</ul>"
        "<table><tr><td>1<td>2<tr><th>3<td><p>4<p>5</table>"
        "<pre>a\n   b</pre><h2>sub</h2>text<div>div</div><!-- c -->"
    )
    document = open_bytes(page.encode(), "a.html")
    assert text_of(document) == (
        "T\n\nA b\n\nx & y\nz\n\n- one\n- two\n\npara\n\n1 | 2\n3 | 4 5\n\na\n   b\n\nsub\n\ntext\ndiv\n"
    )
    assert outline(document) == [(1, "A b", "A b"), (2, "sub", "sub")]


def test_preformatted_text_in_a_cell_stays_in_its_row(open_bytes: Open) -> None:
    page = "<html><table><tr><td>a<td><pre>b\n  c</pre><td>d</table>"
    page += "<h2>head <pre>more</pre></h2><pre>x\n y</pre>"
    document = open_bytes(page.encode(), "a.html")
    assert text_of(document) == "a | b c | d\n\nhead more\n\nx\n y\n"
    assert [section.title for section in document.sections] == ["head more"]


def test_formulas_are_text(open_bytes: Open) -> None:
    formula = "<math><semantics><mrow><mi>E</mi><mo>=</mo><mn>5</mn></mrow>"
    formula += "<annotation encoding='application/x-tex'>E=5</annotation></semantics></math>"
    page = f"<html><p>So {formula} holds.<svg><text>picture</text></svg></p>"
    assert text_of(open_bytes(page.encode(), "a.html")) == "So E=5 holds.\n"


def test_html_declares_its_encoding(open_bytes: Open) -> None:
    page = '<html><meta charset="windows-1251"><p>Договор</p>'.encode("cp1251")
    document = open_bytes(page, "a.html")
    assert (text_of(document), document.encoding) == ("Договор\n", "cp1251")


def test_large_html_is_parsed_in_a_child_with_the_same_result(open_bytes: Open) -> None:
    items = "".join(f"<p>item {n}</p>" for n in range(5000))
    document = open_bytes(f"<html><h1>Head</h1>{items}".encode(), "a.html")
    expected = "Head\n\n" + "\n".join(f"item {n}\n" for n in range(5000))
    assert text_of(document) == expected
    assert outline(document) == [(1, "Head", "Head")]


def test_xml_records_become_labelled_paragraphs_without_sections(open_bytes: Open) -> None:
    data = (
        '<catalog><book id="b1"><author>Gambardella, Matthew</author><title>XML Guide</title>'
        "<address><street>Main</street></address><desc>An <b>in-depth</b>\n   look.</desc></book>\n"
        "<book><author>Ralls</author><e a='1'/></book></catalog>"
    )
    document = open_bytes(data.encode(), "a.xml")
    assert text_of(document) == (
        "catalog\nbook id=b1\nauthor: Gambardella, Matthew\ntitle: XML Guide\naddress\nstreet: Main\n\n"
        "desc: An in-depth\nlook.\n\nbook\nauthor: Ralls\ne a=1\n\n"
    )
    assert document.sections == ()


def test_xml_prose_has_sections(open_bytes: Open) -> None:
    data = (
        "<article><title>Main</title><section><title>Intro</title><para><b>Bold</b> start.</para>"
        "<section><title>Deep</title><para>x</para></section></section></article>"
    )
    document = open_bytes(data.encode(), "a.xml")
    assert outline(document) == [(1, "Main", "Main"), (2, "Intro", "Intro"), (3, "Deep", "Deep")]
    assert "Bold start.\n\n" in text_of(document)


@pytest.mark.parametrize("tag", ["note", "p"])
def test_long_xml_text_that_begins_with_an_element_is_not_interrupted(open_bytes: Open, tag: str) -> None:
    words = " ".join(f"word{n}" for n in range(3 * FLUSH_CHARACTERS // 8))
    assert len(words) > 2 * FLUSH_CHARACTERS
    data = f"<r><{tag}><b>First</b> {words}</{tag}><end>x</end></r>"
    text = text_of(open_bytes(data.encode(), "a.xml"))
    label = "" if tag == "p" else f"{tag}: "
    assert text == f"r\n{label}First {words}\n\nend: x\n\n"
    short = open_bytes(data.replace(words, "few words").encode(), "b.xml")
    assert text_of(short) == text.replace(words, "few words")


def test_xml_declares_its_encoding_and_broken_xml_is_text(open_bytes: Open) -> None:
    data = '<?xml version="1.0" encoding="iso-8859-1"?><a>Größe</a>'.encode("latin-1")
    document = open_bytes(data, "a.xml")
    assert (text_of(document), document.encoding) == ("a: Größe\n", "iso8859-1")
    broken = open_bytes(b"<a><b>words</a>", "b.xml")
    assert (broken.format, text_of(broken)) == ("text", "<a><b>words</a>")
    assert "not well-formed XML (line 1" in broken.warnings[0]


def test_docx(open_bytes: Open) -> None:
    styles = (
        '<w:style w:styleId="U1"><w:name w:val="heading 1"/></w:style>'
        '<w:style w:styleId="Own"><w:name w:val="Mine"/><w:basedOn w:val="U1"/></w:style>'
        '<w:style w:styleId="L"><w:basedOn w:val="L"/></w:style>'
    )
    table = "".join(
        f"<w:tr>{''.join(f'<w:tc>{paragraph(cell)}</w:tc>' for cell in row)}</w:tr>" for row in ("ab", "cd")
    )
    body = (
        paragraph("Title here", "U1")
        + paragraph("Loop style", "L")
        + f"<w:tbl>{table}</w:tbl>"
        + paragraph("Second", "Own")
        + "<w:p><w:pPr><w:tabs><w:tab w:val='left'/></w:tabs></w:pPr><w:r><w:t>a</w:t><w:tab/>"
        "<w:t>b</w:t></w:r><w:del><w:r><w:t>gone</w:t></w:r></w:del>"
        "<w:r><w:footnoteReference w:id='2'/></w:r></w:p>"
    )
    notes = (
        f'<w:footnote w:id="-1"><w:p/></w:footnote><w:footnote w:id="2">{paragraph("Note text")}</w:footnote>'
    )
    document = open_bytes(docx(body, styles=styles, footnotes=notes), "a.docx")
    assert text_of(document) == (
        "Title here\n\nLoop style\n\n| a | b |\n| --- | --- |\n| c | d |\n\n"
        "Second\n\na\tb[2]\n\n\n[2] Note text\n"
    )
    assert outline(document) == [(1, "Title here", "Title here"), (1, "Second", "Second")]


def test_docx_notes_are_read_as_the_body_is(open_bytes: Open) -> None:
    run = "<w:r><w:t>a</w:t><w:tab/><w:t>b</w:t><w:br/><w:t>c</w:t><w:noBreakHyphen/><w:t>d</w:t></w:r>"
    gone = "<w:del><w:r><w:t>gone</w:t></w:r></w:del><w:r><w:instrText>PAGE</w:instrText></w:r>"
    row = f"<w:tbl><w:tr><w:tc>{paragraph('x')}</w:tc><w:tc>{paragraph('y')}</w:tc></w:tr></w:tbl>"
    notes = f'<w:footnote w:id="1"><w:p>{run}{gone}</w:p>{paragraph("second")}{row}</w:footnote>'
    notes += f'<w:footnote w:id="0">{paragraph("separator")}</w:footnote>'
    ends = f'<w:endnote w:id="3">{paragraph("last")}</w:endnote>'
    document = open_bytes(docx(paragraph("Body"), footnotes=notes, endnotes=ends), "a.docx")
    assert text_of(document) == "Body\n\n\n[1] a b c-d second x | y\n\n[3] last\n"


def test_missing_slides_and_chapters_are_counted(open_bytes: Open) -> None:
    data = pptx(shape("One"), shape("Two"), shape("Three"))
    lost = without(data, "ppt/slides/slide2.xml")
    document = open_bytes(lost, "a.pptx")
    assert (text_of(document), len(document.pages)) == ("One\n\nThree\n\n", 2)
    assert "1 of 3 slides are missing in the file" in document.warnings
    book = epub(
        {"a.xhtml": "<p>A</p>", "b.xhtml": "<p>B</p>", "c.svg": ""}, ["a.xhtml", "b.xhtml", "c.svg", "d"]
    )
    package = "OPS/book.opf"
    book = without(
        book,
        "OPS/b.xhtml",
        {package: (b'"c.svg" media-type="application/xhtml+xml"', b'"c.svg" media-type="image/svg+xml"')},
    )
    document = open_bytes(book, "a.epub")
    assert text_of(document) == "A\n\n"
    assert document.warnings == (
        "2 of 4 chapters are missing in the file: left out",
        "1 of 4 chapters are not text: left out",
    )


def test_pptx_slides_are_pages_in_the_order_of_the_show(open_bytes: Open) -> None:
    table = (
        "<p:graphicFrame><a:tbl><a:tr><a:tc><a:p><a:r><a:t>x</a:t></a:r></a:p></a:tc><a:tc><a:p><a:r><a:t>y"
    )
    table += "</a:t></a:r></a:p></a:tc></a:tr></a:tbl></p:graphicFrame>"
    data = pptx(
        shape("First", "title") + shape("one\ntwo") + shape("7", "sldNum"),
        "<p:pic/>",
        shape("Last", "title") + table,
    )
    document = open_bytes(data, "a.pptx")
    assert text_of(document) == "First\n\none\ntwo\n\nLast\n\nx | y\n\n"
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert document.pages_without_text == (2,)
    assert "no text on page 2" in document.warnings
    page = document.page_at(document.text.n_code_points - 1)
    assert page is not None and page.number == 3
    part = open_bytes(data, "b.pptx", pages=(3, 9))
    assert (text_of(part), part.pages[0].number) == ("Last\n\nx | y\n\n", 3)
    with pytest.raises(UsageError, match="3 slides"):
        open_bytes(data, "c.pptx", pages=(4, 9))


def test_epub_follows_the_spine_and_names_chapters(open_bytes: Open) -> None:
    contents = "<navPoint><navLabel><text>The Second</text></navLabel><content src='b.xhtml#x'/></navPoint>"
    data = epub(
        {
            "a.xhtml": "<h1>Chapter A</h1><p>Text A</p>",
            "b.xhtml": "<p>Text B</p>",
            "c.xhtml": "<p>not read</p>",
        },
        ["b.xhtml", "a.xhtml"],
        contents,
    )
    document = open_bytes(data, "a.epub")
    assert text_of(document) == "Text B\n\nChapter A\n\nText A\n\n"
    assert [(s.level, s.title) for s in document.sections] == [(1, "The Second"), (1, "Chapter A")]


def test_protected_epub_is_refused(open_bytes: Open) -> None:
    lock = (
        '<encryption><EncryptionMethod Algorithm="http://www.w3.org/2001/04/xmlenc#aes128-cbc"/></encryption>'
    )
    with pytest.raises(InputError, match="DRM"):
        open_bytes(epub({"a": "<p>x</p>"}, ["a"], encryption=lock), "a.epub")


def test_json_escapes_become_readable_and_no_surrogate_leaks(open_bytes: Open) -> None:
    document = open_bytes(rb'{"a":"\u00e9\ud83d\ude00 \ud835 \\u0041 \u0022\u005c\u0009\n"}', "a.json")
    assert text_of(document) == r'{"a":"é😀 ' + "\ufffd" + r' \\u0041 \u0022\u005c\u0009\n"}'
    assert document.replaced_characters == 1


@settings(deadline=None)
@given(st.text(alphabet='\\ud83dDe0"x', max_size=40), st.integers(0, 40))
def test_json_escapes_do_not_depend_on_where_pieces_end(text: str, cut: int) -> None:
    head, tail = text[:cut], text[cut:]
    held = open_escape(head)
    stop = len(head) if held is None else held
    unescape = Unescape()
    assert unescape(head[:stop]) + unescape(head[stop:] + tail) == Unescape()(text)


def test_pdf_pages_sections_and_missing_text(open_bytes: Open) -> None:
    document = open_bytes(
        pdf(line(b"Page one ends."), b"0.5 g 72 72 400 400 re f\n", line(b"Page three")), "a.pdf"
    )
    assert text_of(document) == "Page one ends.\n\nPage three\n"
    assert [page.number for page in document.pages] == [1, 2, 3]
    assert document.pages_without_text == (2,)
    assert document.pages[0].engine
    with pytest.raises(NoTextError, match=r"no extractable text \(3 pages, images only\)"):
        open_bytes(pdf(*[b"0.5 g 72 72 400 400 re f\n"] * 3), "scan.pdf")
    assert text_of(open_bytes(pdf(line(b"One."), line(b"Two.")), "b.pdf", pages=(2, 2))) == "Two.\n\n"


def test_pages_need_a_paged_format(open_bytes: Open) -> None:
    with pytest.raises(UsageError, match="no pages"):
        open_bytes(b"text", pages=(1, 2))
    with pytest.raises(UsageError, match="no range"):
        open_bytes(b"text", pages=(3, 2))


def test_language_comes_from_the_text(open_bytes: Open) -> None:
    german = "Die Prüfung der Verträge für größere Häuser dauert immer länger als man vorher gedacht hatte. "
    assert open_bytes((german * 300).encode()).language == "de"
    assert open_bytes(b"12, 34", "b.csv").language is None
