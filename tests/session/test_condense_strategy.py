"""The strategy `condense` of ask, and summaries under a token budget, over the echo engine."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_bert import write_tiny_bert
from session.conftest import answer_of, of_kind

from localctx.document import Document
from localctx.engine import EchoModel
from localctx.engine.embedder import EmbedderFile
from localctx.errors import UsageError
from localctx.session.ask import ask
from localctx.session.condense_embedding import embed_for
from localctx.session.events import Planned
from localctx.session.summarize import summarize
from localctx.settings import Settings
from localctx.values import Message, Prompt

FACT = "The silver mine of Quarz was opened in 1742 by Anna Feld."
QUESTION = "Who opened the silver mine of Quarz?"
LONG = "".join(
    f"# Chapter {n}\n\nThe town number {n} has {n * 37} houses and one mill. "
    + (f"{FACT} " if n == 13 else "")
    + " ".join(
        f"In year {year} of town {n} the bridge was painted again by {n + year} men." for year in range(20)
    )
    + "\n\n"
    for n in range(1, 31)
)


class Listening(EchoModel):
    """An echo model that keeps what it was given as documents."""

    def __init__(self, reply: Callable[[str], str], n_ctx_train: int = 8192) -> None:
        super().__init__(reply, n_ctx_train=n_ctx_train)
        self.given: list[str] = []

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        self.given.append("".join(messages[1].content))
        return super().prompt(messages)


def last_line(prompt: str) -> str:
    return prompt.strip().rpartition("\n")[2]


@pytest.mark.parametrize("budget", [200, 1500])
def test_a_question_reads_sentences_within_the_budget(
    open_text: Callable[..., Document], budget: int
) -> None:
    model = Listening(lambda prompt: "Anna Feld opened it in 1742.")
    document = open_text(LONG)
    events = list(ask([document], model, QUESTION, Settings(strategy="condense", kv=f"budget={budget}")))
    answer = answer_of(events)
    assert (answer.strategy, answer.support) == ("condense", "supported")
    assert of_kind(events, Planned)[0].strategy == "condense"
    given = model.given[-1]
    assert FACT in given
    assert given.startswith("[")
    assert given.count("book.md") == 1
    assert "Chapter 13]\n" in given[: given.index(FACT)]
    assert len(model.tokenize(given)) <= budget
    assert 0 < answer.coverage.tokens_attended == answer.coverage.tokens_read <= budget
    assert answer.coverage.tokens_read + answer.coverage.tokens_dropped == answer.coverage.tokens_total
    assert answer.citations[0].quote == FACT
    assert answer.citations[0].heading_path == ("Chapter 13",)
    assert any("sentences are read" in warning for warning in answer.warnings)
    assert not any("--kv budget" in warning for warning in answer.warnings)


def test_every_document_has_its_share(open_text: Callable[..., Document]) -> None:
    model = Listening(lambda prompt: "Anna Feld opened it in 1742.")
    documents = [open_text(LONG, "a.md"), open_text(LONG.replace("town", "village"), "b.md")]
    list(ask(documents, model, QUESTION, Settings(strategy="condense", kv="budget=600")))
    assert "a.md" in model.given[-1]
    assert "b.md" in model.given[-1]
    assert len(model.tokenize(model.given[-1])) <= 600


def test_a_context_too_small_is_refused(open_text: Callable[..., Document]) -> None:
    model = EchoModel(last_line, n_ctx_train=8192)
    with pytest.raises(UsageError, match="context"):
        list(ask([open_text(LONG)], model, QUESTION, Settings(strategy="condense", ctx=128, max_tokens=40)))


@pytest.mark.parametrize("strategy", ["map-reduce", "condense"])
def test_a_summary_reads_no_more_than_its_budget(open_text: Callable[..., Document], strategy: str) -> None:
    model = EchoModel(last_line, n_ctx_train=4096)
    settings = Settings(strategy=strategy, kv="budget=7000")
    answer = answer_of(list(summarize([open_text(LONG)], model, settings)))
    assert answer.strategy == strategy
    assert 4000 < answer.coverage.tokens_read <= 7000 < answer.coverage.tokens_total
    assert answer.coverage.tokens_read + answer.coverage.tokens_dropped == answer.coverage.tokens_total


def test_a_budget_above_the_document_changes_nothing(open_text: Callable[..., Document]) -> None:
    model = EchoModel(last_line, n_ctx_train=4096)
    settings = Settings(strategy="map-reduce", kv="budget=10000000")
    answer = answer_of(list(summarize([open_text(LONG)], model, settings)))
    assert answer.coverage.tokens_dropped == 0


# --- meaning --------------------------------------------------------------------------------------------


@pytest.fixture
def embedder(tmp_path: Path) -> Iterator[EmbedderFile]:
    path = tmp_path / "tiny.gguf"
    write_tiny_bert(path)
    with EmbedderFile(path, "tiny", ("en",), "query: ", "passage: ") as file:
        yield file


def test_question_and_passages_have_their_own_prefixes(embedder: EmbedderFile) -> None:
    embed = embed_for(embedder, QUESTION, "en")
    assert callable(embed)
    found = embed([QUESTION, FACT])
    right = embedder.open().vectors([f"query: {QUESTION}", f"passage: {FACT}"])
    np.testing.assert_allclose(found, right, atol=1e-5)


def test_an_embedder_of_another_language_is_told_and_not_asked(embedder: EmbedderFile) -> None:
    for question, language in (("Wer hat das Silberbergwerk von Quarz eröffnet?", "en"), (QUESTION, "de")):
        assert "'de'" in str(embed_for(embedder, question, language))
    assert embed_for("not installed", QUESTION, "en") == "not installed"
    assert embed_for(None, QUESTION, "en") is None


def test_the_strategy_takes_the_embedder_and_warns_without(
    open_text: Callable[..., Document], embedder: EmbedderFile
) -> None:
    model = Listening(lambda prompt: "Anna Feld opened it in 1742.")
    settings = Settings(strategy="condense", kv="budget=300")
    with_it = answer_of(list(ask([open_text(LONG)], model, QUESTION, settings, embedder=embedder)))
    assert not any("words alone" in warning for warning in with_it.warnings)
    without = answer_of(list(ask([open_text(LONG)], model, QUESTION, settings, embedder="not installed")))
    assert "sentences are chosen by words alone: not installed" in without.warnings
