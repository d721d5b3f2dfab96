"""What a user must be able to rely on: nothing invented stands, nothing is left out in silence."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from session.conftest import CHAPTERS, answer_of, of_kind

from localctx.document import Document
from localctx.engine import EchoModel
from localctx.session.ask import ask
from localctx.session.events import Notice, Planned, Replaced
from localctx.session.prompts import NOT_FOUND
from localctx.settings import Settings


def says(text: str) -> EchoModel:
    return EchoModel(lambda prompt: text)


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("Which vitamin do oranges contain?", "The river Orle rises near Tannau."),
        ("Who opened the gold mine of Pellworm?", "Anna Feld opened it in 1742."),
        ("What did the railway cost in 1931?", "It cost 4.5 million crowns."),
        ("How long is the river Orle?", "It is 377 kilometres long."),
    ],
)
def test_a_question_that_is_not_answered_is_declined(book: Document, question: str, answer: str) -> None:
    for strategy in ("exact", "retrieve"):
        events = list(ask([book], says(answer), question, Settings(strategy=strategy)))
        found = answer_of(events)
        assert (found.support, found.text, found.citations) == ("none", NOT_FOUND, ())
        assert [event.text for event in of_kind(events, Replaced)] == [NOT_FOUND]
        assert any(answer in warning for warning in found.warnings), "what the model wrote is kept"
        assert found.to_json()["statements"] == []


def test_an_invented_half_is_marked_and_not_cited(book: Document) -> None:
    text = "Anna Feld opened the silver mine in 1742. Two dragons guarded its copper gates."
    found = answer_of(list(ask([book], says(text), "Who opened the silver mine of Quarz?", Settings())))
    assert found.support == "partial"
    assert [(text[s.start : s.end], s.verdict) for s in found.statements] == [
        ("Anna Feld opened the silver mine in 1742.", "supported"),
        ("Two dragons guarded its copper gates.", "none"),
    ]
    assert [c.quote for c in found.citations] == ["The silver mine of Quarz was opened in 1742 by Anna Feld."]


def test_a_half_answer_in_the_documents_words_is_not_called_supported(book: Document) -> None:
    text = "Anna Feld, whom the miners paid every Friday in crowns."
    found = answer_of(list(ask([book], says(text), "Who opened the silver mine of Quarz?", Settings())))
    assert found.support == "partial"


@pytest.mark.parametrize("first", [True, False])
def test_what_is_longer_than_the_context_is_searched_and_told(
    open_text: Callable[..., Document], first: bool
) -> None:
    filler = "The weather was mild and nothing happened that day in the village. " * 400
    code = "The secret word is Zinnober."
    document = open_text(f"{code}\n\n{filler}" if first else f"{filler}\n\n{code}", "long.txt")
    events = list(ask([document], says("Zinnober."), "What is the secret word?", Settings(ctx=1024)))
    found = answer_of(events)
    coverage = found.coverage
    assert found.strategy == of_kind(events, Planned)[0].strategy == "retrieve"
    assert coverage.tokens_total == len(EchoModel().tokenize(document.read(0, 10**9)))
    assert coverage.tokens_read + coverage.tokens_dropped == coverage.tokens_total
    assert 0 < coverage.tokens_read < coverage.tokens_total
    assert [c.quote for c in found.citations] == [code]


def test_counting_from_passages_says_how_it_was_done(open_text: Callable[..., Document]) -> None:
    records = "\n".join(f'{{"id": {n}, "name": "record {n}"}}' for n in range(2000))
    document = open_text(records, "min.json")
    events = list(
        ask([document], says("There are 40 records."), "How many records are there?", Settings(ctx=1024))
    )
    found = answer_of(events)
    assert found.strategy == "retrieve" and found.coverage.tokens_dropped > 0
    assert any("needs the whole document" in notice.text for notice in of_kind(events, Notice))
    assert found.support != "supported"


def test_quotes_are_the_documents_own_words_on_their_page(open_text: Callable[..., Document]) -> None:
    document = open_text(CHAPTERS)
    text = "It was finished in 1871 and cost 4.5 million crowns."
    found = answer_of(
        list(ask([document], says(text), "When was the railway to Quarz finished?", Settings()))
    )
    assert found.citations
    for citation in found.citations:
        assert document.read(citation.start, citation.end) == citation.quote
        assert citation.heading_path == ("Railways",)
