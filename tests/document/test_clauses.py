"""Clauses of a text: numbers of several kinds, headings, and what only looks like one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document.clause_heads import MOST_LISTS, Heads, han_number, plain_number
from localctx.document.clauses import Clause, clauses_of
from localctx.values import Section


def named(text: str) -> list[tuple[str, str]]:
    """Number and title of each clause."""
    return [(clause.number, clause.title) for clause in clauses_of(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1. Term\n\nIt runs.\n\n2. Rent\n\nIt is due.\n", [("1", "Term"), ("2", "Rent")]),
        ("1. Term\nIt runs.\n2. Rent\nIt is due.\n", [("1", "Term"), ("2", "Rent")]),
        ("2.1 The rent is due.\n\n2.2 It is paid.\n", [("2.1", ""), ("2.2", "")]),
        ("§ 1 Laufzeit\n\nEr gilt.\n\n§ 2 Miete\n\nSie ist fällig.\n", [("1", "Laufzeit"), ("2", "Miete")]),
        ("Article IV – Term\n\nIt runs.\n", [("4", "Term")]),
        ("Article 3\nTerm\nIt runs.\n", [("3", "Term")]),
        ("第一条 期限\n\n本合同有效。\n\n第十二条 通知\n\n书面。\n", [("1", "期限"), ("12", "通知")]),
        ("1. 期限\n\n本合同有效。\n", [("1", "期限")]),
        ("## 2. Rent\n\nIt is due.\n", [("2", "Rent")]),
        ("CONFIDENTIALITY\n\nIt is secret.\n", [("", "CONFIDENTIALITY")]),
        ("Schedule A\n\nPrices.\n", [("A", "")]),
    ],
)
def test_heads(text: str, expected: list[tuple[str, str]]) -> None:
    assert named(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It is due within\n30 days after the invoice.\n",
        "They met in\n2025. The rent was due.\n",
        "As provided in\nSection 5 the rent is due.\n",
        "按照\n第五条规定支付。\n",
        "He paid\n§ 5 applies to it.\n",
    ],
)
def test_a_wrapped_line_is_no_head(text: str) -> None:
    assert [clause.number for clause in clauses_of(text)] == [""]


def test_numbers_go_on_where_they_stopped() -> None:
    text = "1. Term\n\nIt runs.\n\n7. Rent\n\nA gap of six is no clause.\n\n2. Notices\n\nIn writing.\n"
    assert named(text) == [("1", "Term"), ("2", "Notices")]


def test_a_list_goes_on_behind_many_that_began_inside_it() -> None:
    inner = "".join(f"For area {n}:\n\n1. First {n}\n\n2. Second {n}\n\n3. Third {n}\n\n" for n in range(200))
    found = named(f"1. Term\n\nIt runs.\n\n2. Rent\n\n{inner}4. Fifth\n\n3. Pets\n\nNone.\n")
    assert found[:2] == [("1", "Term"), ("2", "Rent")]
    assert found[-1] == ("3", "Pets")
    assert found.count(("1", "First 150")) == 1


def test_few_of_many_lists_are_remembered() -> None:
    """Every number is held against all of them: time would grow with the square of the lists."""
    heads = Heads()
    for _ in range(2000):
        assert heads.head("1. Item", "", "") is not None
    assert len(heads.counts) <= 2 * MOST_LISTS


def test_a_clause_inside_a_line_is_found_by_the_very_next_number() -> None:
    text = "2.1 The rent is due. 2.2 It is paid by 3.5 per cent. 2.4 Never.\n"
    assert [text[c.start : c.end].strip() for c in clauses_of(text)] == [
        "2.1 The rent is due.",
        "2.2 It is paid by 3.5 per cent. 2.4 Never.",
    ]


def test_a_german_line_that_was_full_is_no_title() -> None:
    full = "2.2 Änderungen des Umfangs bedürfen einer schriftlichen\nVereinbarung beider Parteien.\n"
    filler = "Die Parteien behandeln alle Informationen vertraulich und das.\n" * 8
    assert [clause.title for clause in clauses_of(f"2.1 Erstens gilt.\n\n{full}\n{filler}")] == ["", ""]


def test_headings_that_the_format_knows_are_heads() -> None:
    text = "Term\n\nIt runs.\n\nRent\n\nIt is due.\n"
    sections = (Section(1, "Term", 0, 16), Section(1, "Rent", 16, 34))
    assert [(c.title, c.start) for c in clauses_of(text, sections)] == [("Term", 0), ("Rent", 16)]


@settings(deadline=None)
@given(st.text(st.sampled_from("1.2§ \nTermß第一条，。()A"), max_size=200))
def test_clauses_are_the_whole_text_in_order(text: str) -> None:
    clauses: tuple[Clause, ...] = clauses_of(text)
    assert all(0 <= c.start <= c.title_start <= c.body_start <= c.end for c in clauses)
    joined = "".join(text[c.start : c.end] for c in clauses)
    assert "".join(joined.split()) == "".join(text.split())


@pytest.mark.parametrize(
    ("number", "plain"), [("IV", "4"), ("XIX", "19"), ("C", "C"), ("7", "7"), ("I", "1")]
)
def test_roman_numbers(number: str, plain: str) -> None:
    assert plain_number(number) == plain


@pytest.mark.parametrize(
    ("number", "plain"), [("十", "10"), ("二十三", "23"), ("一百零二", "102"), ("8", "8")]
)
def test_chinese_numbers(number: str, plain: str) -> None:
    assert han_number(number) == plain
