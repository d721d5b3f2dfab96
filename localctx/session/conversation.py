"""A conversation over documents: its turns, and each question put through `ask` with what was said before.

A question is answered as it was put; passages are chosen by it as it would be put alone. What was interrupted
leaves questions and answers in turns. Knows no terminal, and no file that conversations are kept in.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import TracebackType
from typing import Any, Self

from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.engine.reranker import RerankerFile
from localctx.errors import UsageError
from localctx.selection.followup import Exchange, Standalone, kept_turns, standalone
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.dialogue import Dialogue
from localctx.session.events import Event, Finished, Listener, Notice, Replaced, Text, ignore_progress
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.session.prompts import document_messages, question_task
from localctx.settings import Settings
from localctx.values import FinishReason, Message, Model

__all__ = ["Conversation", "Turn"]

WINDOW_SHARE = 4
"""Earlier turns may take a fourth of the context, or what the documents leave of it."""
ANSWER_SHARE = 4
"""An answer may take as much."""
LEAST_PASSAGE_TOKENS = 192
TURN_SCAFFOLD = 24
"""Tokens round a turn's question and answer, about."""


@contextmanager
def ended(events: Iterator[Event]) -> Iterator[Iterator[Event]]:
    """The events, of which none is under way afterwards."""
    try:
        yield events
    finally:
        if isinstance(events, Generator):
            events.close()


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and what was answered. sought: the question as it would be put alone · record: the answer
    as JSON (localctx.answer/1), empty where it was interrupted.
    """

    question: str
    sought: str
    answer: str
    finish_reason: FinishReason
    record: Mapping[str, Any] = field(default_factory=dict)

    @property
    def messages(self) -> tuple[Message, ...]:
        """The turn as it stands before later questions; nothing where nothing was answered."""
        if not self.answer.strip():
            return ()
        return Message("user", question_task(self.question)), Message("assistant", (self.answer,))


class Conversation:
    """Close it, or use `with`; documents, model and selectors are the caller's.

    held: runs and context of an owner that outlives it; default: its own, from the settings' store.
    """

    def __init__(
        self,
        documents: Sequence[Document],
        model: Model,
        settings: Settings,
        *,
        held: Held | None = None,
        embedder: EmbedderFile | str | None = None,
        reranker: RerankerFile | None = None,
        turns: Sequence[Turn] = (),
    ) -> None:
        self.documents = list(documents)
        self.model = model
        self.settings = settings
        self.embedder, self.reranker = embedder, reranker
        self.turns = list(turns)
        self._dialogue = Dialogue()
        self._owns_held = held is None
        shared = held or Held(Kept.of_settings(settings, lambda text: None))
        self._held = Held(shared.kept, shared.context, self._dialogue)
        self._kept: list[int] | None = None

    # --- asking ---------------------------------------------------------------------------------------

    def say(self, question: str, listen: Listener = ignore_progress) -> Iterator[Event]:
        """Answer the question and enter it as a turn; events as `ask` has them.

        Where it is stopped (KeyboardInterrupt, or closed half-way) what was answered so far is entered.
        Raises UsageError without a document, and what `ask` raises, entering nothing then.
        """
        if not self.documents:
            raise UsageError("no document is open", "/open FILE, or localctx chat FILE")
        sought = self.standalone(question)
        settings = self._settings()
        yield from self._prepare(question, sought.text, settings)
        said: list[str] = []
        try:
            with ended(self._asked(question, settings, listen)) as events:
                for event in events:
                    if isinstance(event, Finished):
                        self._enter(question, sought.text, event.answer)
                    elif isinstance(event, Text):
                        said.append(event.text)
                    elif isinstance(event, Replaced):
                        said = [event.text]
                    yield event
        except (KeyboardInterrupt, GeneratorExit):
            if len(self.turns) == 0 or self.turns[-1].question is not question:
                self.turns.append(Turn(question, sought.text, "".join(said).strip(), "cancelled"))
            raise

    def ask_each(self, question: str, listen: Listener = ignore_progress) -> Iterator[tuple[Document, Event]]:
        """The question put to each document by itself, outside of the conversation."""
        held = Held(self._held.kept, self._held.context)
        for document in list(self.documents):
            events = ask(
                [document], self.model, question, self._settings(), listen,
                held=held, embedder=self.embedder, reranker=self.reranker,
            )  # fmt: skip
            for event in events:
                yield document, event

    def standalone(self, question: str) -> Standalone:
        """The question as it would be put without those before it."""
        answered = [Exchange(turn.sought, turn.answer) for turn in self.turns if turn.answer]
        return standalone(question, answered)

    # --- what was said --------------------------------------------------------------------------------

    def undo(self) -> Turn | None:
        """Take the last turn back; None where there is none."""
        self._kept = None
        return self.turns.pop() if self.turns else None

    def clear(self) -> None:
        """Begin anew, with the same documents."""
        self.turns.clear()
        self._kept = None
        self._dialogue.carried.clear()

    def use_model(self, model: Model, settings: Settings) -> None:
        """Go on with another model; the one before may be closed then."""
        self._held.context.close()
        self._dialogue.carried.clear()
        self.model, self.settings, self._kept = model, settings, None

    def close(self) -> None:
        """Let go of context and runs; again is harmless."""
        self._dialogue.carried.clear()
        if self._owns_held:
            self._held.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # --- inside ---------------------------------------------------------------------------------------

    @property
    def limit(self) -> int:
        """The largest context, in tokens."""
        return self.model.usable_n_ctx(self.settings.ctx)

    @property
    def n_context_tokens(self) -> int | None:
        """Tokens that the context held at the end of the last answer; None where that is not known."""
        return self._dialogue.carried.n_tokens or None

    def _settings(self) -> Settings:
        """The settings, with answers that leave room in a small context."""
        most = max(32, self.limit // ANSWER_SHARE)
        return replace(self.settings, max_tokens=min(self.settings.max_tokens, most))

    def _asked(self, question: str, settings: Settings, listen: Listener) -> Iterator[Event]:
        return ask(
            self.documents, self.model, question, settings, listen,
            held=self._held, embedder=self.embedder, reranker=self.reranker,
        )  # fmt: skip

    def _enter(self, question: str, sought: str, answer: Answer) -> None:
        self.turns.append(Turn(question, sought, answer.text, answer.finish_reason, answer.to_json()))

    def _prepare(self, question: str, sought: str, settings: Settings) -> Iterator[Event]:
        """Which earlier turns stand before the question: all, until the window is reached."""
        said = [turn for turn in self.turns if turn.messages]
        costs = [self._cost(turn) for turn in said]
        kept = [number for number in range(len(said)) if self._kept is None or self._is_kept(number)]
        room = self._room(question, settings, costs)
        if sum(costs[number] for number in kept) > room:
            texts = [f"{turn.sought} {turn.answer}" for turn in said]
            kept = kept_turns(costs, texts, sought, room // 2) or kept_turns(costs, texts, sought, room)
            self._kept = [*kept, len(said)]
            yield Notice(
                f"the window is reached: the conversation goes on with {len(kept)} of its {len(said)} "
                "earlier turns (--ctx N holds more, /clear begins anew)"
            )
        self._dialogue.turns = tuple(message for number in kept for message in said[number].messages)
        self._dialogue.sought = sought

    def _is_kept(self, number: int) -> bool:
        """Whether a turn is one of those kept at the last rebuilding, or came after it."""
        return self._kept is None or number in self._kept[:-1] or number >= self._kept[-1]

    def _cost(self, turn: Turn) -> int:
        return len(self.model.tokenize(f"{turn.question}\n{turn.answer}")) + TURN_SCAFFOLD

    def _room(self, question: str, settings: Settings, costs: Sequence[int]) -> int:
        """Tokens for earlier turns: what whole documents leave, else a share of the context."""
        scaffold = self.model.prompt(document_messages([""], question_task(question)))
        left = self.limit - len(scaffold.tokens) - settings.max_tokens
        share = max(0, min(self.limit // WINDOW_SHARE, left - LEAST_PASSAGE_TOKENS))
        record = self.turns[-1].record if self.turns else {}
        if record and record["strategy"] == "exact" and costs:
            beside = left - int(record["coverage"]["tokens_total"])
            if beside >= costs[-1]:
                return beside
        return share
