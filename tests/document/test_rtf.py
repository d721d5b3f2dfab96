"""RTF: text, encodings, headings, tables, notes, and what is left out or flagged."""

from __future__ import annotations

import pytest
from document.conftest import Open
from document.inputs import text_of
from hypothesis import given
from hypothesis import strategies as st

from localctx.document.limits import Limits
from localctx.document.rtf_tokens import tokens
from localctx.errors import LimitExceeded, NoTextError

HEAD = (
    rb"{\rtf1\ansi\ansicpg1252\deff0{\fonttbl{\f0\fcharset0 A;}{\f1\fcharset204 B;}{\f2\fcharset134 C;}}"
    rb"{\stylesheet{\s0 Normal;}{\s1\outlinelevel0 heading 1;}{\s2 heading 2;}}{\info{\title Not read}}"
)


def test_text_headings_tables_and_notes(open_bytes: Open) -> None:
    data = HEAD + (
        rb"{\pict\pngblip 89504e47}\pard\s1 Vertrag \'fcber Miete\par\pard Preis 1\~234 \u8364?, \{x\}"
        rb"{\footnote\chftn  See annex.}.\line Next.{\deleted gone}\par"
        rb"\trowd\intbl A\cell B\par C\cell\row\intbl 1\cell 2\cell\row\pard\s2 Second\par\pard"
        rb"{\*\unknown drop}text \u-10179?\u-8704? end{\bin5 {}{}{}\par"
        rb"{\field{\*\fldinst HYPERLINK x}{\fldrslt link}}\par}junk"
    )
    document = open_bytes(data, "a.rtf")
    assert text_of(document) == (
        "Vertrag über Miete\n\nPreis 1\u00a0234 €, {x}[1].\nNext.\n\nA | B C\n1 | 2\nSecond\n\n"
        "text 😀 end\n\nlink\n\n\n[1] See annex.\n"
    )
    assert [(s.level, s.title) for s in document.sections] == [(1, "Vertrag über Miete"), (2, "Second")]
    assert document.warnings == ()


def test_each_font_has_its_encoding(open_bytes: Open) -> None:
    data = HEAD + rb"\pard{\f1 \'cf\'f0\'e8} {\f2 \'c4\'e3\'ba\'c3} \'80\par}"
    assert text_of(open_bytes(data, "a.rtf")) == "При 你好 €\n\n"


def test_a_group_takes_back_table_and_style(open_bytes: Open) -> None:
    table = rb"{\pard\intbl A\cell B\cell\row}\par next paragraph\par one more\par"
    style = rb"{\pard\s1 Title\par}body\par{\outlinelevel1 Part\par}{\*}end\par\s2 Last}"
    document = open_bytes(HEAD + table + style, "a.rtf")
    paragraphs = "next paragraph\n\none more\n\nTitle\n\nbody\n\nPart\n\nend\n\nLast\n\n"
    assert text_of(document) == "A | B\n" + paragraphs
    assert [(s.level, s.title) for s in document.sections] == [(1, "Title"), (2, "Part"), (2, "Last")]


def test_plain_text_has_the_default_fonts_encoding(open_bytes: Open) -> None:
    data = HEAD + rb"\pard\f1 \'cf\'f0 \plain caf\'e9\par}"
    assert text_of(open_bytes(data, "a.rtf")) == "Пр café\n\n"
    data = HEAD.replace(rb"\deff0", rb"\deff1") + rb"\pard \'cf\'f0 {\f0 caf\'e9} \plain \'e8\par}"
    assert text_of(open_bytes(data, "a.rtf")) == "Пр café и\n\n"
    data = HEAD.replace(rb"\ansicpg1252", rb"\ansicpg1251") + rb"\pard \'cf\'f0 {\f0 caf\'e9}\par}"
    assert text_of(open_bytes(data, "a.rtf")) == "Пр café\n\n"


def test_hidden_text_and_a_cut_file_are_told(open_bytes: Open) -> None:
    document = open_bytes(HEAD + rb"\pard seen {\v hidden}\par more", "a.rtf")
    assert text_of(document) == "seen hidden\n\nmore\n\n"
    assert document.warnings == (
        "the RTF ends inside a group: it may be cut short",
        "6 characters of hidden text were read too",
    )


def test_limits(open_bytes: Open) -> None:
    with pytest.raises(LimitExceeded, match="nested deeper"):
        open_bytes(b"{\\rtf1 " + b"{" * 20_000, "a.rtf")
    with pytest.raises(LimitExceeded, match="one paragraph"):
        open_bytes(b"{\\rtf1 " + b"a" * 3000 + b"}", "a.rtf", limits=Limits(token_bytes=2000))
    with pytest.raises(NoTextError):
        open_bytes(b"{\\rtf1 {\\pict 00}}", "a.rtf")


WORDS = rb"{ } \par \u123? \'e9 text \b \bin3a{}{ \ \~".split()
PIECES = st.sampled_from([*WORDS, b"\n", b"\\pard\r\n", b" "])


@given(st.lists(PIECES, max_size=60), st.integers(1, 40))
def test_tokens_do_not_depend_on_the_pieces_that_they_come_in(pieces: list[bytes], size: int) -> None:
    data = b"".join(pieces)
    whole, parts = ["".join(map(str, _joined(tokens(chunks)))) for chunks in ([data], _cut(data, size))]
    assert whole == parts


def _cut(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def _joined(found: object) -> list[tuple[object, ...]]:
    """Tokens with neighbouring texts joined: where a text is cut means nothing."""
    made: list[tuple[object, ...]] = []
    for word, number, data in found:  # type: ignore[attr-defined]  # an iterator of tokens
        if word == "" and made and made[-1][0] == "":
            made[-1] = ("", None, made[-1][2] + data)
        else:
            made.append((word, number, data))
    return made
