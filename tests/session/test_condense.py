"""Text within a token budget: never over, in order, verbatim, and what is said of it is true."""

from __future__ import annotations

from collections.abc import Sequence
from unittest import mock

import numpy as np
import pytest
from blocks.text_cases import GPT2_WORDS, LLAMA3_WORDS, StringText, WordRules, texts
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from localctx.errors import UsageError
from localctx.selection.truncation import Shares
from localctx.session import condense_scan, condense_scores
from localctx.session.condense import condense
from localctx.values import Section

TOKENIZE = WordRules(GPT2_WORDS)
FILLER = [
    f"On day {n} the {what} of the {where} was counted again by {who}."
    for n, (what, where, who) in enumerate(
        (a, b, c)
        for a in ("grain", "timber", "linen", "copper", "salt")
        for b in ("northern store", "old mill", "quay", "abbey")
        for c in ("the bailiff", "two clerks", "Marten Holt")
    )
]
FACT = "The lighthouse burns olive oil."
STORY = " ".join([*FILLER[:40], FACT, *FILLER[40:]])


def condensed(text: str, budget: int, **options: object):  # type: ignore[no-untyped-def]  # as condense()
    return condense(StringText(text), TOKENIZE, budget, **options)  # type: ignore[arg-type]  # passed on


@settings(deadline=None, max_examples=120)
@given(
    texts, st.integers(1, 80), st.sampled_from([GPT2_WORDS, LLAMA3_WORDS]), st.sampled_from([None, "end?"])
)
def test_any_text_stays_within_any_budget(text: str, budget: int, words: str, question: str | None) -> None:
    tokenize = WordRules(words)
    result = condense(StringText(text), tokenize, budget, question=question)
    assert result.n_tokens == len(tokenize(result.text, True)) <= budget
    pieces = [text[start:end] for start, end in result.spans]
    assert "".join(result.text.split()) == "".join("".join(pieces).split())
    assert [*result.spans] == sorted(result.spans)
    assert all(a[1] <= b[0] for a, b in zip(result.spans, result.spans[1:], strict=False))


def test_a_text_that_fits_comes_back_as_it_is() -> None:
    text = "  One. Two.\n\n\nThree. "
    result = condensed(text, 100)
    assert (result.text, result.spans) == (text, ((0, len(text)),))
    assert result.coverage.tokens_total == result.coverage.tokens_kept == result.n_tokens
    assert result.coverage.terms == 1.0


@pytest.mark.parametrize("question", ["What does the lighthouse burn?", "olive?"])
def test_the_sentence_that_answers_stays(question: str) -> None:
    result = condensed(STORY, 60, question=question)
    assert FACT in result.text
    assert result.n_tokens <= 60
    assert result.coverage.question_words == 1.0


def test_meaning_finds_what_no_word_does() -> None:
    def embed(some: Sequence[str]) -> NDArray[np.float32]:
        return np.array(
            [[1, 0] if "day 37" in text or "fuel" in text else [0, 1] for text in some], np.float32
        )

    question = "Which fuel lights the beacon?"
    assert FILLER[37] not in condensed(STORY, 60, question=question).text
    result = condensed(STORY, 60, question=question, embed=embed)
    assert FILLER[37] in result.text
    assert result.coverage.embedded == 1.0


def test_a_long_text_is_embedded_in_passages_and_says_how_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(condense_scores, "MOST_EMBEDDED", 10)
    monkeypatch.setattr(condense_scores, "PASSAGE_TOKENS", 30)
    n_seen: list[int] = []

    def embed(some: Sequence[str]) -> NDArray[np.float32]:
        n_seen.append(len(some))
        return np.ones((len(some), 2), np.float32) / np.float32(np.sqrt(2))

    result = condensed(STORY, 60, question="What does the lighthouse burn?", embed=embed)
    assert sum(n_seen) <= 11
    assert 0 < result.coverage.embedded < 1
    assert FACT in result.text


def test_without_a_question_much_is_covered_and_copies_are_not_repeated() -> None:
    text = "The quay is made of stone. " * 30 + " ".join(FILLER)
    result = condensed(text, 300)
    assert result.text.count("The quay is made of stone.") <= 1
    assert result.coverage.duplicates == 29
    words = {"grain", "timber", "linen", "copper", "salt", "abbey", "bailiff", "Marten"}
    assert all(word in result.text for word in words)


def test_head_and_tail_stay() -> None:
    result = condensed(STORY, 200, shares=Shares(0.2, 0.3))
    assert result.spans[0][0] == 0
    assert result.spans[-1][1] == len(STORY)
    assert result.text.startswith(FILLER[0])


def test_a_part_of_the_text_is_condensed_alone() -> None:
    start, end = STORY.index(FACT), len(STORY)
    result = condensed(STORY, 60, question="lighthouse", span=(start, end))
    assert all(start <= a < b <= end for a, b in result.spans)
    assert FACT in result.text


def test_a_sentence_longer_than_the_budget_is_cut_at_a_word() -> None:
    result = condensed("Immeasurable consequences followed whenever anyone touched it.", 4)
    assert 0 < result.n_tokens <= 4
    assert "Immeasurable consequences followed".startswith(result.text)


def test_stretches_and_estimates_of_long_texts_change_neither_budget_nor_order() -> None:
    with (
        mock.patch.object(condense_scores, "STRETCH_UNITS", 8),
        mock.patch.object(condense_scan, "COUNTED_CODE_POINTS", 1000),
    ):
        result = condensed(STORY, 200)
    assert result.coverage.is_estimate
    assert 150 < result.n_tokens <= 200
    assert [*result.spans] == sorted(result.spans)
    assert result.spans[0][0] < len(STORY) // 4 < 3 * len(STORY) // 4 < result.spans[-1][1]


def test_the_same_twice() -> None:
    assert condensed(STORY, 150) == condensed(STORY, 150)


def test_sections_are_counted() -> None:
    middle = len(STORY) // 2
    sections = [Section(1, "A", 0, middle), Section(1, "B", middle, len(STORY))]
    coverage = condensed(STORY, 60, sections=sections, question="lighthouse").coverage
    assert (coverage.sections_total, 1 <= coverage.sections_kept <= 2) == (2, True)


def test_paragraphs_stay_apart_and_neighbours_together() -> None:
    text = f"{FILLER[0]} {FILLER[1]}\n\n{FACT} It never goes out.\n\n" + "\n\n".join(FILLER[2:])
    result = condensed(text, 60, question="What does the lighthouse burn? Does it go out never?")
    assert f"{FACT} It never goes out." in result.text


@pytest.mark.parametrize(("budget", "question"), [(0, None), (-5, None), (10, "  ")])
def test_what_cannot_be_asked_for_is_refused(budget: int, question: str | None) -> None:
    with pytest.raises(UsageError):
        condensed(STORY, budget, question=question)


@pytest.mark.parametrize("text", ["", " \n ", "x", "." * 5000, "a" * 9000, "1 2 3\n" * 400, "\u0301" * 50])
def test_degenerate_texts(text: str) -> None:
    for question in (None, "x", "word " * 2000):
        result = condensed(text, 20, question=question)
        assert result.n_tokens <= 20
