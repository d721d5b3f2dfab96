"""Turns, what stands before a question, what of it is evaluated: with the echo engine and a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from session.conftest import answer_of, of_kind
from session.test_kept_kv import LONG, chapters

from localctx.document import Document, open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.kv_context import LlamaKVContext
from localctx.errors import UsageError
from localctx.session.conversation import Conversation
from localctx.session.events import Event, Notice, Text
from localctx.session.prompts import question_task
from localctx.settings import Settings
from localctx.values import Message, Model, Prompt

OFF = Settings(store="off", max_tokens=40)


class Listening(EchoModel):
    """The echo model; it writes down the turns of every prompt."""

    def __init__(self, **named: object) -> None:
        super().__init__(**named)  # type: ignore[arg-type]  # by name
        self.heard: list[list[Message]] = []

    def prompt(self, messages: list[Message]) -> Prompt:  # type: ignore[override]  # a list is given
        self.heard.append(list(messages))
        return super().prompt(messages)


def said(conversation: Conversation, question: str) -> list[Event]:
    return list(conversation.say(question))


def test_a_question_is_answered_as_asked_behind_those_before_it(book: Document) -> None:
    model = Listening(reply=lambda text: "It is 212 kilometres long.")
    with Conversation([book], model, OFF) as conversation:
        said(conversation, "How long is the river Orle?")
        events = said(conversation, "And where does it rise?")
    roles = [message.role for message in model.heard[-1]]
    assert roles == ["system", "user", "assistant", "user", "assistant", "user"]
    *_, asked, answered, task = model.heard[-1]
    assert asked.content == question_task("How long is the river Orle?")
    assert answered.content == ("It is 212 kilometres long.",)
    assert task.content == question_task("And where does it rise?")
    assert answer_of(events).question == "And where does it rise?"
    assert "Orle" in conversation.turns[1].sought


def test_without_a_store_later_questions_evaluate_little_too(book: Document, tiny_model_path: Path) -> None:
    settings = Settings(store="off", max_tokens=4, embedder="off")
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        Conversation([book], model, settings) as conversation,
    ):
        answers = [answer_of(said(conversation, f"How long is river {n}?")) for n in range(3)]
    n_document = answers[0].coverage.tokens_total
    assert {answer.strategy for answer in answers} == {"exact"}
    for answer in answers[1:]:
        assert answer.tokens.restored > n_document > 2 * answer.tokens.evaluated


def test_without_a_document_there_is_nothing_to_ask() -> None:
    with Conversation([], EchoModel(), OFF) as conversation, pytest.raises(UsageError, match="no document"):
        said(conversation, "What?")
    assert conversation.turns == []


@pytest.mark.parametrize("n_pieces", [0, 1, 3])
def test_a_stopped_answer_is_a_turn_and_the_roles_stay_in_turns(book: Document, n_pieces: int) -> None:
    model = Listening(reply=lambda text: "The Orle is 212 kilometres long and carries timber in spring.")
    with Conversation([book], model, OFF) as conversation:
        events = conversation.say("How long is the river Orle?")
        n_texts = 0
        for event in events:
            n_texts += isinstance(event, Text)
            if n_texts >= n_pieces:
                break
        events.close()  # type: ignore[attr-defined]  # a generator
        (turn,) = conversation.turns
        assert (turn.finish_reason, bool(turn.answer)) == ("cancelled", n_pieces > 0)
        said(conversation, "What does it carry?")
    roles = [message.role for message in model.heard[-1]]
    assert roles == ["system", *["user", "assistant"] * (1 + bool(n_pieces)), "user"]


def test_ctrl_c_is_handed_on_and_leaves_the_turn(book: Document, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> Iterator[Event]:
        yield Text("It is")
        raise KeyboardInterrupt

    conversation = Conversation([book], EchoModel(), OFF)
    monkeypatch.setattr(conversation, "_asked", interrupted)
    with conversation, pytest.raises(KeyboardInterrupt):
        said(conversation, "How long is the Orle?")
    assert [(turn.answer, turn.finish_reason) for turn in conversation.turns] == [("It is", "cancelled")]


def test_undo_and_clear(book: Document) -> None:
    model = Listening(reply=lambda text: "It is 212 kilometres long.")
    with Conversation([book], model, OFF) as conversation:
        assert conversation.undo() is None
        said(conversation, "How long is the river Orle?")
        said(conversation, "Where does it rise?")
        undone = conversation.undo()
        assert undone is not None
        assert undone.question == "Where does it rise?"
        said(conversation, "What does it carry?")
        assert len(model.heard[-1]) == 6
        conversation.clear()
        said(conversation, "What does it carry?")
    assert len(model.heard[-1]) == 4
    assert conversation.turns[0].sought == "What does it carry?"


def test_each_document_is_asked_by_itself(open_text: Callable[..., Document]) -> None:
    documents = [
        open_text("The river Orle is 212 km long.", "a.md"),
        open_text("The Lom is 90 km long.", "b.md"),
    ]
    with Conversation(documents, EchoModel(), OFF) as conversation:
        asked = list(conversation.ask_each("How long is the river?"))
    assert [document for document, _ in asked] == sorted((d for d, _ in asked), key=documents.index)
    assert {document.source for document, _ in asked} == {document.source for document in documents}
    assert conversation.turns == []


def test_a_long_conversation_is_rebuilt_in_a_small_window(book: Document) -> None:
    model = Listening(
        reply=lambda text: "The river Orle is 212 kilometres long and carries timber in spring."
    )
    question = "How long is the river Orle, " + " ".join(f"word{n}" for n in range(20)) + "?"
    notices: list[str] = []
    settings = Settings(store="off", ctx=1024, kv="block=64")
    with Conversation([book], model, settings) as conversation:
        for number in range(10):
            events = said(conversation, f"{number}. {question}")
            notices += [notice.text for notice in of_kind(events, Notice) if "window" in notice.text]
            assert answer_of(events).finish_reason in ("stop", "length")
    assert notices
    assert "earlier turns" in notices[0]
    assert 4 < len(model.heard[-1]) < 24  # some turns are there, not all


# --- stored KV --------------------------------------------------------------------------------------


@pytest.fixture
def tiny(tiny_model_path: Path) -> Iterator[Model]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        yield model


Talk = Callable[..., tuple[Conversation, list[int]]]


@pytest.fixture
def stored_talk(tmp_path: Path, tiny: Model) -> Iterator[Talk]:
    """A conversation on a stored document, and the tokens that each turn evaluated."""
    with ExitStack() as stack:

        def call(text: str, n_turns: int, **settings: object) -> tuple[Conversation, list[int]]:
            path = tmp_path / "book.md"
            path.write_text(text, "utf-8")
            document = stack.enter_context(open_document(str(path), cache_dir=None))
            given = {"store": str(tmp_path / "store"), "max_tokens": 12, **settings}
            conversation = Conversation([document], tiny, Settings(**given))  # type: ignore[arg-type]  # by name
            stack.enter_context(conversation)
            counts = []
            for number in range(n_turns):
                question = f"What is the code of gate {number}?" if number % 3 else "And gate 5?"
                counts.append(answer_of(said(conversation, question)).tokens.evaluated)
            return conversation, counts

        yield call


@pytest.mark.parametrize("strategy", ["exact", "stream"])
def test_the_tenth_turn_evaluates_little(strategy: str, stored_talk: Talk) -> None:
    text = chapters(5) if strategy == "exact" else LONG
    _, counts = stored_talk(text, 10, strategy=strategy, kv="lazy=off")
    assert all(n_evaluated < 250 for n_evaluated in counts[1:]), counts
    assert counts[-1] < 200


@pytest.mark.parametrize("strategy", ["exact", "stream"])
def test_turns_are_put_back_not_evaluated(strategy: str, stored_talk: Talk) -> None:
    text = chapters(3) if strategy == "exact" else LONG
    conversation, counts = stored_talk(text, 4, strategy=strategy, kv="lazy=off,refresh=0")
    conversation.turns.pop()
    conversation._dialogue.carried.clear()
    again = answer_of(said(conversation, "And gate 5?"))
    assert again.tokens.evaluated > counts[-1] + 100  # three turns and the acknowledgement


def test_what_is_put_back_says_the_same_as_what_is_evaluated(stored_talk: Talk) -> None:
    """Exact: every token stands where it stood, so only rounding may differ."""
    carried, _ = stored_talk(chapters(3), 3)
    again, _ = stored_talk(chapters(3), 2)
    again._dialogue.carried.clear()
    fresh = answer_of(said(again, "What is the code of gate 2?"))
    assert fresh.text == carried.turns[-1].answer


def test_a_stopped_answer_leaves_what_was_carried(stored_talk: Talk, monkeypatch: pytest.MonkeyPatch) -> None:
    conversation, _ = stored_talk(LONG, 2, strategy="stream", kv="lazy=off")

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(LlamaKVContext, "generate", interrupted)
        said(conversation, "What is the code of gate 3?")
    assert conversation.turns[-1].answer == ""
    assert not conversation._dialogue.carried.is_empty
    answer = answer_of(said(conversation, "What is the code of gate 3?"))
    assert answer.finish_reason in ("stop", "length")
    assert answer.tokens.evaluated < 250
