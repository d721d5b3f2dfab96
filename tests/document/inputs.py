"""Small documents for these tests, made in memory."""

from __future__ import annotations

import io
import zipfile

from localctx.document import Document

SENTENCE = "Café – naïve “quotes” 日本語 😀. The vault code is 7734.\n"
WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"


def zipped(members: dict[str, str | bytes], method: int = zipfile.ZIP_DEFLATED) -> bytes:
    """A zip file of the members."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def without(data: bytes, member: str, changes: dict[str, tuple[bytes, bytes]] | None = None) -> bytes:
    """The zip file with a member left out and, in others, bytes replaced."""
    members: dict[str, str | bytes] = {}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        for name in archive.namelist():
            members[name] = archive.read(name).replace(*(changes or {}).get(name, (b"\0", b"\0")))
    del members[member]
    return zipped(members)


def relations(*rows: tuple[str, str, str]) -> str:
    """A .rels part of (id, kind, target) rows."""
    items = "".join(f'<Relationship Id="{i}" Type="{OFFICE}/{kind}" Target="{to}"/>' for i, kind, to in rows)
    return f'<Relationships xmlns="{RELATIONS}">{items}</Relationships>'


def docx(body: str, prolog: str = "", **parts: str) -> bytes:
    """A DOCX with this body; parts are further members of word/ (styles, footnotes)."""
    document = (
        f'<?xml version="1.0"?>{prolog}<w:document xmlns:w="{WORD}"><w:body>{body}</w:body></w:document>'
    )
    members: dict[str, str | bytes] = {
        "[Content_Types].xml": "<Types/>",
        "_rels/.rels": relations(("r1", "officeDocument", "word/document.xml")),
        "word/document.xml": document,
    }
    for name, content in parts.items():
        members[f"word/{name}.xml"] = f'<w:{name} xmlns:w="{WORD}">{content}</w:{name}>'
    return zipped(members)


def paragraph(text: str, style: str = "") -> str:
    """One w:p."""
    properties = f'<w:pPr><w:pStyle w:val="{style}"/></w:pPr>' if style else ""
    return f"<w:p>{properties}<w:r><w:t>{text}</w:t></w:r></w:p>"


def pptx(*slides: str) -> bytes:
    """A PPTX whose slides are listed in the given order but stored under reversed names."""
    names = [f"slides/slide{len(slides) - n}.xml" for n in range(len(slides))]
    ids = "".join(f'<p:sldId id="{256 + n}" r:id="s{n}"/>' for n in range(len(slides)))
    spaces = f'xmlns:p="p" xmlns:a="a" xmlns:r="{OFFICE}"'
    members: dict[str, str | bytes] = {
        "ppt/presentation.xml": f"<p:presentation {spaces}><p:sldIdLst>{ids}</p:sldIdLst></p:presentation>",
        "ppt/_rels/presentation.xml.rels": relations(
            *((f"s{n}", "slide", name) for n, name in enumerate(names))
        ),
    }
    for name, slide in zip(names, slides, strict=True):
        members[f"ppt/{name}"] = f"<p:sld {spaces}>{slide}</p:sld>"
    return zipped(members)


def shape(text: str, kind: str = "") -> str:
    """A shape of a slide with one paragraph a line."""
    place = f'<p:nvPr><p:ph type="{kind}"/></p:nvPr>' if kind else ""
    lines = "".join(f"<a:p><a:r><a:t>{line}</a:t></a:r></a:p>" for line in text.split("\n"))
    return f"<p:sp>{place}<p:txBody>{lines}</p:txBody></p:sp>"


def epub(chapters: dict[str, str], spine: list[str], contents: str = "", **extra: str) -> bytes:
    """An EPUB of XHTML chapters (file name → body), read in the order of the spine."""
    items = "".join(f'<item id="{n}" href="{n}" media-type="application/xhtml+xml"/>' for n in chapters)
    refs = "".join(f'<itemref idref="{name}"/>' for name in spine)
    items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>' if contents else ""
    container = '<container><rootfiles><rootfile full-path="OPS/book.opf"/></rootfiles></container>'
    members: dict[str, str | bytes] = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": container,
        "OPS/book.opf": f"<package><manifest>{items}</manifest><spine>{refs}</spine></package>",
        **{f"OPS/{name}": f"<html><body>{body}</body></html>" for name, body in chapters.items()},
        **{f"META-INF/{name}.xml": content for name, content in extra.items()},
    }
    if contents:
        members["OPS/toc.ncx"] = f"<ncx><navMap>{contents}</navMap></ncx>"
    return zipped(members)


def pdf(*pages: bytes) -> bytes:
    """A PDF with one content stream a page, in Helvetica under the name F."""
    kids = b" ".join(b"%d 0 R" % (5 + 2 * n) for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (len(pages), kids),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    for number, content in enumerate(pages):
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(content), content))
        objects.append(
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F 3 0 R>>>>"
            b"/Contents %d 0 R>>" % (4 + 2 * number)
        )
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    size = len(objects) + 1
    return (
        out
        + b"xref\n0 %d\n0000000000 65535 f \n%s" % (size, table)
        + b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF" % (size, len(out))
    )


def line(text: bytes) -> bytes:
    """A content stream that shows one line."""
    return b"BT /F 12 Tf 72 700 Td (%s) Tj ET\n" % text


def text_of(document: Document) -> str:
    """The whole text of a small document."""
    return document.read(0, document.text.n_code_points)
