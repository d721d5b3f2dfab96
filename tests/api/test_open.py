"""localctx.open: a document and a model in a few lines of Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine.tiny_bert import write_tiny_bert

import localctx
from localctx.api import OpenDocument
from localctx.document import open_document
from localctx.engine.echo import EchoModel
from localctx.errors import InputError, ModelError, UsageError
from localctx.settings import Settings

TEXT = "The vault code is 7734. The door is green.\n"


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))
    file = tmp_path / "a.txt"
    file.write_text(TEXT)
    return file


def echo(path: Path) -> OpenDocument:
    """The document beside a model that says the code."""
    return OpenDocument(
        [open_document(path, cache_dir=None)],
        EchoModel(reply=lambda _: "The vault code is 7734."),
        Settings(),
    )


def test_ask_gives_the_answer_with_its_places(path: Path) -> None:
    with echo(path) as document:
        answer = document.ask("What is the vault code?")
    assert answer.text == "The vault code is 7734."
    assert (answer.command, answer.support, answer.strategy) == ("ask", "supported", "exact")
    assert answer.citations[0].quote == "The vault code is 7734."
    assert TEXT[answer.citations[0].start : answer.citations[0].end] == answer.citations[0].quote


def test_ask_streams_the_same_text(path: Path) -> None:
    with echo(path) as document:
        pieces = list(document.ask("What is the vault code?", stream=True))
    assert len(pieces) > 1
    assert "".join(pieces).strip() == "The vault code is 7734."


def test_many_questions_are_numbered_and_one_may_fail(path: Path) -> None:
    with echo(path) as document:
        outcomes = dict(document.ask_many(["What is the vault code?", " ", "Which code?"], n_parallel=2))
    assert sorted(outcomes) == [0, 1, 2]
    assert isinstance(outcomes[1], UsageError)
    texts = [outcomes[number].text for number in (0, 2)]  # type: ignore[union-attr]  # they are answers
    assert texts == ["The vault code is 7734."] * 2


def test_closing_ends_questions_that_nobody_reads(path: Path) -> None:
    with echo(path) as document:
        outcomes = document.ask_many(["What is the vault code?"] * 3, n_parallel=1)
        next(outcomes)
    assert list(outcomes) == []


def test_summarize_gives_points(path: Path) -> None:
    with echo(path) as document:
        answer = document.summarize(length="short", focus="code")
    assert answer.command == "summarize"
    assert "7734" in answer.text
    assert answer.coverage.tokens_read == answer.coverage.tokens_total > 0


def test_open_takes_settings_by_name(path: Path, tiny_model_path: Path) -> None:
    with localctx.open(path, model=str(tiny_model_path), ctx=1024, max_tokens=4, store="off") as document:
        assert (document.settings.ctx, document.settings.max_tokens) == (1024, 4)
        assert document.document.source == str(path)
        assert document.ask("What is the code?").n_ctx <= 1024
    with pytest.raises(ValueError, match="closed"):
        document.document.read(0, 1)


def test_open_refuses_in_one_line(path: Path, tiny_model_path: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        localctx.open(tmp_path / "none.txt", model=str(tiny_model_path))
    with pytest.raises(ModelError, match="no such model file"):
        localctx.open(path, model=str(tmp_path / "none.gguf"))
    with pytest.raises(UsageError, match="unknown setting 'ctxx'"):
        localctx.open(path, model=str(tiny_model_path), ctxx=1)
    with pytest.raises(UsageError, match="--length 'tiny'"), echo(path) as document:
        document.summarize(length="tiny")


def test_a_stream_that_is_left_ends_with_the_document(path: Path) -> None:
    with echo(path) as document:
        stream = document.ask("What is the vault code?", stream=True)
        assert next(stream)
    assert list(stream) == []


def test_one_model_serves_document_after_document(path: Path, tiny_model_path: Path) -> None:
    other = path.with_name("b.txt")
    other.write_text("The roof is red.\n")
    with localctx.load_model(str(tiny_model_path), max_tokens=4, store="off") as model:
        with model.open(path) as one:
            assert one.ask("What is the code?").n_ctx > 0
        with pytest.raises(ValueError, match="closed"):
            one.document.read(0, 1)
        with model.open(path, other) as both:
            answer = both.ask("What is red?")
            assert [row.source for row in answer.documents] == [str(path), str(other)]
            assert [document.read(0, 8) for document in both.documents] == ["The vaul", "The roof"]
        with pytest.raises(InputError, match="no such file"):
            model.open(path, path.with_name("none.txt"))
        with pytest.raises(UsageError, match="no document"):
            model.open()


def test_index_keeps_what_the_next_question_restores(path: Path, tiny_model_path: Path) -> None:
    path.write_text(TEXT * 20)
    settings = {"model": str(tiny_model_path), "max_tokens": 4, "store": str(path.parent / "store")}
    with localctx.open(path, **settings) as document:
        (row,) = document.index().documents
    assert row.tokens_stored == row.tokens_total > 0
    with localctx.open(path, **settings) as document:
        answer = document.ask("What is the code?")
    assert answer.tokens.restored >= row.tokens_total
    with pytest.raises(UsageError), localctx.open(path, model=str(tiny_model_path), store="off") as document:
        document.index()


def test_index_makes_vectors_that_the_next_question_finds(path: Path, tiny_model_path: Path) -> None:
    path.write_text(TEXT * 20)
    bert = write_tiny_bert(path.with_name("bert.gguf"))
    settings = {"model": str(tiny_model_path), "max_tokens": 4, "store": str(path.parent / "store")}
    with localctx.open(path, embedder=str(bert), strategy="stream", **settings) as document:
        made = document.index().vectors
        answer = document.ask("What is the code?")
    assert made is not None
    assert made["passages_embedded"] == made["passages"]
    assert answer.selection is not None
    assert answer.selection["passages_with_vectors"] == made["passages"]


def test_open_wants_a_document(tiny_model_path: Path) -> None:
    with pytest.raises(UsageError, match="no document"):
        localctx.open(model=str(tiny_model_path))
