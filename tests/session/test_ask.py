"""`ask` end to end over the echo engine: what is read, said, cited and warned of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from session.conftest import CHAPTERS, answer_of, of_kind

from localctx.document import Document, open_document
from localctx.engine import EchoModel
from localctx.errors import UsageError
from localctx.session.ask import ask
from localctx.session.events import Notice, Overview, Planned, Progress, Replaced, Text
from localctx.session.prompts import NOT_FOUND
from localctx.settings import Settings
from localctx.values import Message, Prompt

QUESTION = "Who opened the silver mine of Quarz?"


def says(text: str) -> EchoModel:
    """A model that answers every request with `text`."""
    return EchoModel(lambda prompt: text)


def test_a_document_that_fits_is_read_whole(book: Document) -> None:
    progress: list[Progress] = []
    events = list(ask([book], says("Anna Feld opened it in 1742."), QUESTION, Settings(), progress.append))
    answer = answer_of(events)
    assert (answer.strategy, answer.support, answer.finish_reason) == ("exact", "supported", "stop")
    assert answer.coverage.tokens_read == answer.coverage.tokens_total == answer.coverage.tokens_attended
    assert answer.coverage.tokens_total == len(EchoModel().tokenize(CHAPTERS))
    assert answer.citations[0].quote == "The silver mine of Quarz was opened in 1742 by Anna Feld."
    assert answer.citations[0].heading_path == ("Mines",)
    assert book.read(answer.citations[0].start, answer.citations[0].end) == answer.citations[0].quote
    assert answer.tokens.evaluated > answer.coverage.tokens_total
    assert "".join(event.text for event in of_kind(events, Text)) == answer.text
    assert {step.what for step in progress} == {"reading", "prefill"}
    assert isinstance(events[0], Overview)
    assert [section.title for section in events[0].outline] == ["Rivers", "Mines", "Railways"]


def test_a_document_that_does_not_fit_is_searched(open_text: Callable[..., Document]) -> None:
    filler = "The weather was mild and nothing happened that day in the village. " * 400
    document = open_text(f"{CHAPTERS}\n# Chronicle\n\n{filler}")
    seen: list[str] = []

    def reply(prompt: str) -> str:
        seen.append(prompt)
        return "Anna Feld opened it in 1742."

    model = EchoModel(reply)
    prompts: list[str] = []
    tokenize = model.prompt

    def prompt(messages: Sequence[Message]) -> Prompt:
        prompts.append("".join(messages[1].content))
        return tokenize(messages)

    model.prompt = prompt  # type: ignore[method-assign]  # looks at what is put into the context
    events = list(ask([document], model, QUESTION, Settings(ctx=1024)))
    answer = answer_of(events)
    assert of_kind(events, Planned)[0].strategy == answer.strategy == "retrieve"
    coverage = answer.coverage
    assert coverage.tokens_total == coverage.tokens_read + coverage.tokens_dropped
    assert 0 < coverage.tokens_read < coverage.tokens_total
    assert answer.citations[0].quote == "The silver mine of Quarz was opened in 1742 by Anna Feld."
    assert "book.md › Mines]\n# Mines\n\nThe silver mine" in prompts[-1]
    assert "weather was mild" not in prompts[-1]
    assert QUESTION in seen[-1]


def test_an_answer_that_the_document_does_not_hold_is_replaced(book: Document) -> None:
    model = says("Napoleon Bonaparte sailed to Elba in 1814.")
    events = list(ask([book], model, "Who sailed to Elba?", Settings()))
    answer = answer_of(events)
    assert (answer.support, answer.text, answer.citations) == ("none", NOT_FOUND, ())
    assert any("Napoleon" in warning for warning in answer.warnings)
    assert [event.text for event in of_kind(events, Replaced)] == [NOT_FOUND]
    assert any("replaced" in notice.text for notice in of_kind(events, Notice))


def test_a_silent_model_is_no_answer(book: Document) -> None:
    answer = answer_of(list(ask([book], says(""), QUESTION, Settings())))
    assert (answer.support, answer.text) == ("none", NOT_FOUND)


def test_a_cut_answer_is_never_replaced(book: Document) -> None:
    model = says("Napoleon Bonaparte sailed to Elba in 1814.")
    answer = answer_of(list(ask([book], model, "Who sailed to Elba?", Settings(max_tokens=5))))
    assert answer.text.startswith("Nap")
    assert answer.finish_reason == "length"


def test_an_answer_in_another_language_stands(open_text: Callable[..., Document]) -> None:
    document = open_text("The house belongs to the baker, who came to the village many years ago.", "a.txt")
    for strategy in ("exact", "retrieve"):
        model = says("Dem Bäcker gehört es.")
        answer = answer_of(list(ask([document], model, "Wem gehört das Haus?", Settings(strategy=strategy))))
        assert answer.text == "Dem Bäcker gehört es."
        assert answer.support != "supported"


def test_numbers_and_names_that_are_nowhere_are_flagged(book: Document) -> None:
    answer = answer_of(
        list(ask([book], says("Anna Feld opened the silver mine in 1799."), QUESTION, Settings()))
    )
    assert "not in the document: 1799" in answer.warnings


@pytest.mark.parametrize("question", ["How many bridges are there?", "List all mines."])
def test_counting_from_a_few_passages_is_warned_of(book: Document, question: str) -> None:
    events = list(ask([book], says("Eleven bridges."), question, Settings(strategy="retrieve")))
    assert any("needs the whole document" in notice.text for notice in of_kind(events, Notice))
    assert any("needs the whole document" in warning for warning in answer_of(events).warnings)


def test_a_question_without_a_word_of_the_document_reads_its_beginning(book: Document) -> None:
    answer = answer_of(list(ask([book], says("Rivers."), "Xylophone?", Settings(strategy="retrieve"))))
    assert any("beginning of the document" in warning for warning in answer.warnings)
    assert answer.coverage.tokens_read > 0


def test_several_documents_are_told_apart(open_text: Callable[..., Document]) -> None:
    one, two = (
        open_text("The code of Rome is 4411.", "rome.txt"),
        open_text("The code of Oslo is 9922.", "oslo.txt"),
    )
    seen: list[str] = []

    def reply(prompt: str) -> str:
        seen.append(prompt)
        return "The code of Oslo is 9922."

    model = EchoModel(reply)
    answer = answer_of(
        list(ask([one, two], model, "What is the code of Oslo?", Settings(strategy="retrieve")))
    )
    assert answer.citations[0].source.endswith("oslo.txt")
    assert [d.coverage.tokens_total > 0 for d in answer.documents] == [True, True]
    assert answer.coverage.tokens_total == sum(d.coverage.tokens_total for d in answer.documents)
    assert len(answer.to_json()["documents"]) == 2


def test_a_cut_answer_says_so(book: Document) -> None:
    model = says("Anna Feld opened the silver mine of Quarz in 1742, and it was never flooded again.")
    answer = answer_of(list(ask([book], model, QUESTION, Settings(max_tokens=4))))
    assert answer.finish_reason == "length"
    assert any("cut at 4 tokens" in warning for warning in answer.warnings)


@pytest.mark.parametrize("ctx", [70, 130, 150])
def test_a_context_too_small_for_anything_is_one_clear_error(book: Document, ctx: int) -> None:
    with pytest.raises(UsageError):
        list(ask([book], says("x"), QUESTION, Settings(ctx=ctx, max_tokens=64)))


@pytest.mark.parametrize("n_ctx_train", [700, 1000, 2000, 2500, 3000])
def test_no_context_is_ever_longer_than_the_model_was_trained_for(book: Document, n_ctx_train: int) -> None:
    model = EchoModel(lambda prompt: "Anna Feld.", n_ctx_train=n_ctx_train)
    answer = answer_of(list(ask([book], model, QUESTION, Settings())))
    assert answer.n_ctx <= n_ctx_train


def test_long_header_lines_are_counted(open_text: Callable[..., Document]) -> None:
    headings = "".join(f"{'#' * level} {'第一部分关于银矿的历史与现状' * 5}\n\n" for level in (1, 2, 3, 4))
    document = open_text(headings + "银矿于一七四二年由安娜开办。" * 3 + "\n\n" + "天气很好。" * 400)
    answer = answer_of(
        list(ask([document], says("安娜"), "银矿由谁开办?", Settings(ctx=1024, max_tokens=32)))
    )
    assert answer.coverage.tokens_read > 0


def test_document_warnings_are_told(open_text: Callable[..., Document], tmp_path: Path) -> None:
    path = tmp_path / "bad.txt"
    path.write_bytes(b"Anna Feld opened the silver mine of Quarz. \xff\xfe bad \x80\n" + b"More text. " * 40)
    with open_document(str(path), cache_dir=None, encoding="utf-8") as document:
        events = list(ask([document], says("Anna Feld."), QUESTION, Settings()))
    assert any("could not be decoded" in notice.text for notice in of_kind(events, Notice))
    assert any("could not be decoded" in warning for warning in answer_of(events).warnings)


def test_an_empty_question_is_refused(book: Document) -> None:
    with pytest.raises(UsageError, match="question is empty"):
        list(ask([book], says("x"), " \n", Settings()))


def test_the_json_has_every_key_of_the_contract(book: Document) -> None:
    value = answer_of(list(ask([book], says("Anna Feld."), QUESTION, Settings()))).to_json()
    assert list(value) == [
        "schema", "command", "question", "answer", "support", "finish_reason", "strategy", "model",
        "citations", "statements", "coverage", "tokens", "timings", "warnings",
    ]  # fmt: skip
    assert value["statements"] == [{"start": 0, "end": len(value["answer"]), "support": value["support"]}]
    assert set(value["model"]) == {
        "name", "fingerprint", "n_ctx", "n_ctx_train", "rope", "requested", "devices",
    }  # fmt: skip
    assert set(value["model"]["rope"]) == {"type", "scaling", "freq_base", "freq_scale"}
    assert set(value["coverage"]) == {
        "tokens_total", "tokens_read", "tokens_attended", "tokens_dropped", "pages_total",
        "pages_without_text", "replaced_characters", "pulled_in_by_reference",
        "pages_by_ocr", "ocr_confidence",
    }  # fmt: skip
    assert set(value["tokens"]) == {"evaluated", "restored", "generated"}
    assert {"source", "page", "start", "end", "quote", "score"} <= set(value["citations"][0])
