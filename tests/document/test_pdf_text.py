"""Cleaning, quality and layout of a page's text: the pure parts of reading a PDF."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document.pdf_clean import clean_text, fold_title
from localctx.document.pdf_headings import HeadingSizes, locate_titles
from localctx.document.pdf_layout import PlacedLine, flow
from localctx.document.pdf_quality import GOOD_ENOUGH, count_case_jumps, count_characters, text_quality

PROSE = (
    "Fellow citizens of the Senate and House of Representatives, it is with great satisfaction that I meet "
    "you here to consider the state of our nation, its trade and its revenue, and what remains to be done."
)


@pytest.mark.parametrize(
    ("raw", "clean"),
    [
        ("eﬃcient ﬂoors ﬁnd ﬀ ﬅ ﬆ ﬄ", "efficient floors find ff st st ffl"),
        ("com\ufffeputation", "computation"),
        ("com\x02\r\nputation", "computation"),
        ("Anglo\ufffeSaxon", "Anglo-Saxon"),
        ("ends here com\ufffe", "ends here com-"),
        ("well-\nknown and Jean-\nPaul", "wellknown and Jean-Paul"),
        ("- item\n- next", "- item\n- next"),
        ("pass\x00word \ud835\x07\x9f\ufeff", "password"),
        ("soft\xad\nhyphen so\xadft", "softhyphen soft"),
        ("a\r\nb\rc\x0cd", "a\nb\nc\nd"),
        ("tail  \t\nnext \n\n\n\n end ", "tail\nnext\n\n end"),
        ("na\xa8\u0131ve caf\xb4e", "naïve café"),
        ("1\xa0000", "1 000"),
        ("Chapter . . . . . . . . . 12", "Chapter ... 12"),
        ("日本\ufffe語", "日本語"),
        ("", ""),
    ],
)
def test_cleaning(raw: str, clean: str) -> None:
    assert clean_text(raw) == clean


@settings(deadline=None)
@given(st.text(st.characters(codec=None), max_size=200))
def test_clean_text_can_be_stored_and_stays_clean(raw: str) -> None:
    text = clean_text(raw)
    text.encode("utf-8")
    assert not [c for c in text if unicodedata.category(c) in ("Cc", "Cs") and c not in "\t\n"]
    assert not set(text) & set("\xad\ufb00\ufb01\ufb02\ufb03\ufb04\ufb05\ufb06\ufffe\uffff\ufeff")
    assert not any(line != line.rstrip(" \t") for line in text.split("\n"))
    assert "\n\n\n" not in text


def test_titles_are_one_line() -> None:
    assert fold_title("  A\r\nlong\x00 title ") == "A long title"


@pytest.mark.parametrize(
    "text",
    [
        PROSE,
        "Wszystkie istoty ludzkie rodzą się wolne i równe pod względem swej godności i swych praw. " * 3,
        "Kaikki ihmiset syntyvät vapaina ja tasavertaisina arvoltaan ja oikeuksiltaan. " * 3,
        "Tất cả mọi người sinh ra đều được tự do và bình đẳng về nhân phẩm và quyền lợi. " * 3,
        "Все люди рождаются свободными и равными в своём достоинстве и правах. " * 3,
        "人人生而自由，在尊严和权利上一律平等。" * 5,
        "كل الناس يولدون أحرارا ومتساوين في الكرامة والحقوق. " * 3,
        "def readLines(fileName): return openFile(fileName).readAll().splitLines() # getText[i] " * 3,
        "1 234 567 8.9 10% 11 (12) 13\n" * 20,
        "x = α + β, ΔT = 5 K, μm and kΩ: the usual signs of physics in a line of English text.",
        "com\ufffeputation of the text\x02\n" * 3 + PROSE,
    ],
)
def test_language_is_good_enough(text: str) -> None:
    assert text_quality(text) >= GOOD_ENOUGH


@pytest.mark.parametrize(
    "text",
    [
        "".join(chr((ord(c) - 94) % 26 + 97) if c.islower() else c for c in PROSE.lower()),
        "".join(chr(max(33, ord(c) - 29)) if c != " " else c for c in PROSE),
        "(cid:12)(cid:7)(cid:33) the (cid:9)(cid:14)" * 10,
        "\x02\x03\x05\x02\x1a the \x02\x02\x07" * 10,
        PROSE.replace("e", "\ufffd"),
        "\ue000\ue001\ue002 and \ue003" * 10,
        "Предложение о сотрудничестве".encode().decode("latin-1") * 3,
        "aбc dжe fшg hюi jяk lмn oпq rсt uфx yцz " * 3,
        "F]ZDUWHN SLĈWHN N\\QD~þWHFK",
    ],
)
def test_noise_gets_a_second_opinion(text: str) -> None:
    assert text_quality(text) < GOOD_ENOUGH


@settings(deadline=None)
@given(st.text(st.characters(codec=None), max_size=300))
def test_quality_is_a_share(text: str) -> None:
    assert 0.0 <= text_quality(text) <= 1.0


@given(st.one_of(st.text(st.characters(codec="ascii")), st.text(min_size=150, max_size=300)))
def test_quick_counts_are_exact(text: str) -> None:
    assert count_characters(text) == Counter(text)
    ascii_text = text.encode("ascii", "replace").decode("ascii")
    assert count_case_jumps(ascii_text) == len(re.findall("[a-z][A-Z]", ascii_text))


def test_many_different_characters_are_counted() -> None:
    text = "".join(map(chr, range(0x4E00, 0x4F00))) * 2
    assert count_characters(text) == Counter(text)


def column(*lines: str, left: float = 50.0, top: float = 700.0, size: float = 10.0) -> list[PlacedLine]:
    """Lines under one another, every character half a size wide."""
    half = size / 2
    return [
        PlacedLine(
            line,
            left + half * (len(line) - len(line.lstrip())),
            left + half * len(line),
            top - i * 1.2 * size,
            top - i * 1.2 * size + size,
            half * len(line.split(" ")[0]),
        )
        for i, line in enumerate(lines)
    ]


def test_prose_flows_and_short_lines_stay() -> None:
    prose = column("The House met at noon, and the Speaker laid before", "it the message of the President.")
    verse = column("Roses are red,", "violets are blue", top=600)
    assert flow(prose + verse) == (
        "The House met at noon, and the Speaker laid before it the message of the President.\n\n"
        "Roses are red,\nviolets are blue"
    )


def test_gap_indent_and_size_end_paragraphs() -> None:
    lines = [
        *column("A heading", size=14, top=740),
        *column(
            "The first paragraph is long enough to be wrapped once",
            "and then it ends here in the line below.",
        ),
        *column(
            "   The second one begins with an indent and it goes",
            "on for another line without any further ado.",
            top=676,
        ),
        *column("A caption that ends without a full stop, wide as can be", top=630),
        *column("after a gap goes on in lower case.", top=600),
    ]
    paragraphs = flow(lines).split("\n\n")
    assert [paragraph.split()[0] for paragraph in paragraphs] == ["A", "The", "The", "A", "after"]
    assert not any("\n" in paragraph for paragraph in paragraphs)


def test_sentence_continues_in_the_next_column() -> None:
    left = column(
        "The jury said that the evidence did show that the",
        "law was broken in both of the cases that it had",
        top=120,
    )
    right = column("heard during the month of May.", left=350)
    assert "that it had heard during" in flow(left + right)


def test_rows_of_a_table_of_contents_stay() -> None:
    lines = column(
        "Introduction and a summary of what was found there 1",
        "The second chapter and what it is all about here 12",
    )
    assert flow(lines).count("\n") == 1


def test_text_without_spaces_is_joined_without_spaces() -> None:
    assert (
        flow(column("人人生而自由在尊严和权利上一律平等他们", "赋有理性和良心"))
        == "人人生而自由在尊严和权利上一律平等他们赋有理性和良心"
    )


def test_headings_by_size_join_their_lines() -> None:
    sizes = HeadingSizes((20.0, 14.0))
    lines = [
        *column("A Long", "Title", size=20),
        *column("Body text.", top=640),
        *column("1.1", size=14, top=600),
        *column("Part", size=14, top=570),
    ]
    assert sizes.headings(lines) == [(1, "A Long Title"), (2, "1.1 Part")]


def test_titles_are_found_as_lines_first() -> None:
    text = "See Results below.\n\n2.1 Results\n\nThe results. Out\nlook"
    titles = [(1, "RESULTS"), (2, "Out look"), (3, "Absent")]
    assert locate_titles(titles, text) == [(1, "RESULTS", 20), (2, "Out look", 46), (3, "Absent", 46)]
