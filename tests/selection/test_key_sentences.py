"""Key sentences and citations: verbatim, in order, with exact offsets."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.selection import Passage, key_sentences, sentences, supporting_sentences

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
