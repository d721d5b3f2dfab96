"""Key sentences and citations: verbatim, in order, with exact offsets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.selection import Passage, figures, key_sentences, sentences, supporting_sentences

TEXT = (
    "Annual Report\n\n"
    "The harbour of Port Ellery was dredged in 1902 to let steamers unload at the quay. "
    "The dredging of the harbour cost the town 1,250,000 dollars and took three years. "
    "Well, well. "
    "The harbour was dredged in 1902 so that steamers could unload at the quay of Port Ellery. "
    "Herring made the town rich until the fish stayed away after 1955.\n\n"
    "Year\tBoats\tTons\tCrew\n1926\t84\t31000\t400\n1970\t6\t900\t20\n\n"
    "Copyright 1980, all rights reserved by the harbour council of the town of Port Ellery. "
    "See https://example.org/harbour for the harbour, the quay, the steamers and the dredging of the town.\n"
    "Today the ferry carries visitors who come for the puffins on Gull Rock."
)


def test_sentences_are_verbatim_and_cover_the_words() -> None:
    found = sentences(TEXT)
    assert all(TEXT[s.start : s.end] == s.text == s.text.strip() for s in found)
    assert all(a.end <= b.start for a, b in itertools.pairwise(found))
    assert "".join("".join(s.text.split()) for s in found) == "".join(TEXT.split())


@settings(deadline=None, max_examples=80)
@given(st.text(alphabet=st.sampled_from("ab .!?\n\t-1。你好é😀\x00"), max_size=200), st.integers(0, 5))
def test_any_text(text: str, n: int) -> None:
    found = sentences(text)
    assert all(text[s.start : s.end] == s.text for s in found)
    chosen = key_sentences(text, n)
    assert len(chosen) <= n
    assert all(text[s.start : s.end] == s.text and 0 < s.score <= 1 for s in chosen)
    assert [s.start for s in chosen] == sorted(s.start for s in chosen)


def test_key_sentences_say_the_most_and_do_not_repeat_each_other() -> None:
    chosen = key_sentences(TEXT, 3)
    texts = " | ".join(s.text for s in chosen)
    assert len(chosen) == 3
    assert texts.count("in 1902") == 1
    assert "Copyright" not in texts and "https" not in texts and "\t" not in texts and "Well" not in texts
    assert "Annual Report" not in texts
    assert chosen == key_sentences(TEXT, 3)


def test_copies_of_a_sentence_enter_once() -> None:
    text = "The harbour of Port Ellery was dredged in 1902. " * 5
    assert len(key_sentences(text, 3)) == 1


def test_a_short_sentence_is_told_where_it_answers_the_focus() -> None:
    text = "The harbour was built in 1871. Anna Feld designed it. It cost 3,000 florins. They met on Friday."
    assert [one.text for one in key_sentences(text, 1, focus="who designed it")] == ["Anna Feld designed it."]


def test_the_focus_decides() -> None:
    assert (
        "puffins" in key_sentences(TEXT, 1, focus="Which birds, puffins perhaps, are on Gull Rock?")[0].text
    )
    assert "Herring" in key_sentences(TEXT, 1, focus="herring")[0].text


def test_chinese() -> None:
    text = (
        "港口在1902年疏浚，轮船可以停靠码头。疏浚港口花费了一百万元，用了三年。"
        "天气很好。鲱鱼让这个港口城市富裕起来。"
    )
    chosen = key_sentences(text, 2, language="zh")
    assert len(chosen) == 2
    assert all(text[s.start : s.end] == s.text for s in chosen)
    assert "天气很好。" not in [s.text for s in chosen]


def test_without_prose_the_best_of_the_rest() -> None:
    assert [s.text for s in key_sentences("Chapter One", 2)] == ["Chapter One"]
    assert key_sentences("", 3) == () and key_sentences(" \n ", 3) == () and key_sentences(TEXT, 0) == ()


def test_over_long_lines_are_cut_and_avoided() -> None:
    long = "harbour quay steamers dredging " * 2000
    found = sentences(long)
    assert max(len(s.text) for s in found) <= 600
    assert "puffins" in key_sentences(f"{long}\n\nThe puffins live on the Gull Rock in summer.", 1)[0].text


LONG = (
    "The harbour of Port Ellery was dredged by the council, which paid for it with a loan from the bank, "
    "so that the steamers of the company could unload at the quay in every season of the year."
)


def test_sentences_over_the_limit_give_way_to_shorter_prose() -> None:
    short = "The council repaid the loan for the dredging within nine years."
    text = f"{LONG} {LONG.replace('Ellery', 'Maur')} {short} Port\n\nEllery"
    assert [s.text for s in key_sentences(text, 1, max_characters=120)] == [short]
    assert key_sentences(text, 1)[0].text != short


def test_a_lone_sentence_over_the_limit_is_cut_at_a_clause_or_a_space() -> None:
    cut = key_sentences(f"Annual Report\n\n{LONG}", 1, max_characters=120)
    assert [s.text for s in cut] == [LONG[: LONG.index(", so that")]]
    assert cut[0].start == len("Annual Report\n\n")
    plain = LONG.replace(",", "")
    (cut,) = key_sentences(plain, 1, max_characters=50)
    assert cut.text == "The harbour of Port Ellery was dredged by the" and plain[: cut.end] == cut.text


def test_chinese_without_marks_is_bounded() -> None:
    text = "港口在这一年疏浚轮船可以停靠码头花费了一百万元" * 60
    (cut,) = key_sentences(text, 1, language="zh", max_characters=240)
    assert cut.text == text[cut.start : cut.end] and len(cut.text) == 240


@settings(deadline=None, max_examples=60)
@given(
    st.text(alphabet=st.sampled_from("ab .,!\n你。é😀"), max_size=150), st.integers(1, 4), st.integers(1, 40)
)
def test_no_sentence_exceeds_the_limit(text: str, n: int, most: int) -> None:
    chosen = key_sentences(text, n, max_characters=most)
    assert len(chosen) <= n and bool(chosen) == bool(text.strip())
    assert all(0 < len(s.text) <= most and text[s.start : s.end] == s.text == s.text.strip() for s in chosen)


@pytest.mark.parametrize(
    "opener",
    [
        "Ladies and gentlemen of the council, the dredging of the harbour is what I speak of tonight.",
        "Thank you for the dredging of the harbour, members of the harbour council of Port Ellery.",
        "I come before the harbour council of Port Ellery to speak of the dredging of the harbour.",
        "12 of the harbour council of Port Ellery for the dredging of the harbour in that year.",
    ],
)
def test_openers_of_speeches_and_torn_sentences_give_way(opener: str) -> None:
    said = "The dredging of the harbour cost the council of Port Ellery a million dollars."
    rest = "Herring made the town rich until the fish stayed away after that."
    assert said in [s.text for s in key_sentences(f"{opener} {said} {rest}", 1)]
    assert opener in [s.text for s in key_sentences(f"{opener} {rest}", 2)]


def test_citations_are_verbatim_at_document_offsets() -> None:
    first, second = TEXT[:200], TEXT[200:]
    passages = [Passage(7, 0, first), Passage(9, 200, second)]
    cited = supporting_sentences("Puffins on Gull Rock.", passages, question="What do visitors come for?")
    assert cited[0].index == 9 and "puffins" in cited[0].quote
    assert all(TEXT[c.start : c.end] == c.quote and 0 < c.score <= 1 for c in cited)


def test_numbers_decide_between_alike_sentences() -> None:
    text = "The tax on tea was 3 percent in 1765. The tax on tea was 5 percent in 1767."
    for number, wanted in (("3%", "1765"), ("5%", "1767")):
        cited = supporting_sentences(
            f"The tax was {number}.", [Passage(0, 0, text)], question="What was the tax on tea?"
        )
        assert wanted in cited[0].quote


def test_an_answer_in_two_places_is_cited_twice_but_copies_once() -> None:
    text = (
        "Marsh founded the port. Bread is baked at dawn. Thorne kept the lighthouse. Marsh founded the port."
    )
    cited = supporting_sentences(
        "Marsh founded the port and Thorne kept the lighthouse.", [Passage(0, 0, text)]
    )
    assert sorted(c.quote for c in cited) == ["Marsh founded the port.", "Thorne kept the lighthouse."]


@pytest.mark.parametrize("answer", ["", "Nothing alike whatsoever.", "???"])
def test_no_citation_rather_than_a_wrong_one(answer: str) -> None:
    assert supporting_sentences(answer, [Passage(0, 0, TEXT)]) == ()
    assert supporting_sentences("Puffins", []) == ()


def test_a_figure_of_something_named_is_kept() -> None:
    text = (
        "The harbour and its boats were a sight that many people of the coast came to see in summer. "
        "The boats of the harbour went out with the people of the coast when the summer came. "
        "At Brimwell they counted 4,812 boats of the coast. "
        "The people of the harbour and the coast loved their boats, and the summer was long."
    )
    (chosen,) = key_sentences(text, 1)
    assert "4,812" in chosen.text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was 4,812 boats and 7.5 % of 30 men.", ("4812", "7.5", "30")),
        ("It was 75 % and 7,5 %.", ("75", "7.5")),
        ("In 1848 and 2019, see p. 32 [12] and Ge1:14.", ()),
        ("It cost $5 or 12 crowns.", ("5", "12")),
        (
            "It cost $4,812, then € 12.5 million, £1.250,50, ¥1,250,000 and $1950.",
            ("4812", "12.5", "1250.50", "1250000", "1950"),
        ),
        (
            "It cost 4,812 dollars, 12.5 million, 1.250.000 or 1,234.5 in Ps 119:176.",
            ("4812", "12.5", "1250000", "1234.5"),
        ),
        ("They dug 125m and 12.5km.", ("125", "12.5")),
    ],
)
def test_figures_are_no_years_pages_or_verses(text: str, expected: tuple[str, ...]) -> None:
    assert figures(text) == expected
