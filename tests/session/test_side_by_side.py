"""Questions side by side say what they say one after the other, over a real tiny model; they come and go."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import ExitStack
from itertools import takewhile
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from session.conftest import answer_of
from session.test_kept_kv import LONG, SHORT, Place, chapters
from session.test_one_context import Opened, opened

from localctx.document import Document, open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.generation import Generation
from localctx.engine.llama import LlamaModel
from localctx.engine.plan import Slice
from localctx.errors import LocalctxError, ModelError, OutOfMemory, UsageError
from localctx.session import seat
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.events import Event, Failed, Finished, Text
from localctx.session.judging import judge
from localctx.session.seats import Need, Seats
from localctx.session.side_by_side import SideBySide, ask_many
from localctx.session.streaming import streamed
from localctx.settings import Settings

__all__ = ["opened"]

QUESTIONS = tuple(f"code of gate {number}?" for number in (7, 12, 3, 18, 7, 1))
HARDLY = 0.012
"""In spreads of the logits: twice what rounding was seen to make of them."""
KV = ("refresh=0", "refresh=40", "refresh=100", "refresh=auto")


class Written:
    """The tokens of each request, and by how much each was the best, in spreads of the logits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.by_request: dict[int, list[tuple[int, float]]] = {}
        collect = Generation._collect

        def watched(generation: Generation, batch: Sequence[Slice]) -> None:
            request_of = {sequence: request for request, sequence in generation._scheduler.running()}
            row = -1
            for part in batch:
                row += len(part.tokens)
                if part.sample:
                    logits = generation._decoder.logits(row)  # type: ignore[attr-defined]  # llama.cpp's
                    least, best = np.sort(logits)[-2:]
                    found = int(logits.argmax()), float((best - least) / logits.std())
                    self.by_request.setdefault(request_of[part.sequence], []).append(found)
            collect(generation, batch)

        monkeypatch.setattr(Generation, "_collect", watched)

    def taken(self, request: int) -> list[tuple[int, float]]:
        return self.by_request.pop(request, [])


Answered: TypeAlias = tuple[list[tuple[int, float]], Answer]
"""The tokens, each with how sure it was, and the answer."""


class Bench(Place):
    """A place with the model and a document open."""

    def __init__(self, folder: Path, model: Path, stack: ExitStack, written: Written) -> None:
        super().__init__(folder, model)
        self.written = written
        self.open = stack.enter_context(open_model(model, EngineOptions(n_threads=1)))
        self._stack = stack

    def document(self, text: str, name: str = "book.md") -> Document:
        return self._stack.enter_context(open_document(self.write(text, name), cache_dir=None))

    def one_by_one(
        self, documents: list[Document], questions: tuple[str, ...], **settings: object
    ) -> list[Answered]:
        """Each in a context of its own, on a copy of the store."""
        found = []
        for number, question in enumerate(questions):
            store = self.folder / f"store{number}"
            if self.store.exists():
                shutil.copytree(self.store, store)
            events = list(
                ask(documents, self.open, question, self.settings(**{**settings, "store": str(store)}))
            )
            found.append((self.written.taken(0), answer_of(events)))
            shutil.rmtree(store, ignore_errors=True)
        return found

    def together(
        self, documents: list[Document], questions: tuple[str, ...], n_parallel: int, **settings: object
    ) -> list[Answered]:
        answers: dict[int, Answer] = {}
        with SideBySide(self.open, self.settings(**settings), n_parallel=n_parallel) as asking:
            for question in questions:
                asking.submit(documents, question)
            seats = [question.seat for question in asking._queue]
            for ticket, event in asking:
                assert not isinstance(event, Failed), event.error
                if isinstance(event, Finished):
                    answers[ticket] = event.answer
        return [(self.written.taken(seat.number or 0), answers[n]) for n, seat in enumerate(seats)]


@pytest.fixture
def bench(tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    with ExitStack() as stack:
        yield Bench(tmp_path, tiny_model_path, stack, Written(monkeypatch))


def same(together: list[Answered], alone: list[Answered]) -> None:
    """The same tokens up to one that was hardly the best: batches of other sizes add in another order."""
    n_sure = 0
    for (tokens, answer), (expected, by_itself) in zip(together, alone, strict=True):
        sure = len(list(takewhile(lambda one: one[1] > HARDLY, expected)))
        assert [token for token, _ in tokens[:sure]] == [token for token, _ in expected[:sure]]
        n_sure += sure
        fields = ["question", "strategy", "coverage", "documents"]
        if sure == len(expected):
            fields += ["text", "support", "citations", "statements", "finish_reason"]
            assert answer.tokens.generated == by_itself.tokens.generated
        for field in fields:
            assert getattr(answer, field) == getattr(by_itself, field)
    assert n_sure >= 3 * len(alone)


@pytest.mark.parametrize("kv", KV)
def test_stored_kv_gives_the_same_answers(bench: Bench, kv: str) -> None:
    bench.index(bench.write(LONG))
    documents = [bench.document(LONG)]
    alone = bench.one_by_one(documents, QUESTIONS, strategy="stream", kv=kv)
    together = bench.together(documents, QUESTIONS, 3, strategy="stream", kv=kv)
    same(together, alone)
    for (_, answer), (_, by_itself) in zip(together, alone, strict=True):
        n_all = answer.tokens.evaluated + answer.tokens.restored
        assert n_all >= by_itself.coverage.tokens_attended
        assert answer.tokens.evaluated <= by_itself.tokens.evaluated
    assert len({answer.tokens.generated and tuple(tokens) for tokens, answer in together}) > 2


def test_choosing_and_judging_go_on_while_the_model_is_at_work(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = bench.document(LONG)
    bench.index(bench.folder / "book.md")
    settings = {"strategy": "stream", "max_tokens": 8, "kv": "refresh=0"}
    alone = bench.one_by_one([book], QUESTIONS, **settings)
    beside: dict[str, list[bool]] = {"streamed": [], "judge": []}
    asking = SideBySide(bench.open, bench.settings(**settings), n_parallel=2)

    def watched(name: str, of: Callable[..., Generator[Event, None, Any]]) -> None:
        def run(*given: object) -> Generator[Event, None, Any]:
            beside[name].append(asking._seats.is_evaluating)
            return (yield from of(*given))

        monkeypatch.setattr(f"localctx.session.ask.{name}", run)

    watched("streamed", streamed)
    watched("judge", judge)
    monkeypatch.setattr(Seats, "overlaps", True)
    answers: dict[int, Answer] = {}
    with asking:
        for question in QUESTIONS:
            asking.submit([book], question)
        seats = [question.seat for question in asking._queue]
        for ticket, event in asking:
            assert not isinstance(event, Failed), event.error
            if isinstance(event, Finished):
                answers[ticket] = event.answer
    same([(bench.written.taken(seat.number or 0), answers[n]) for n, seat in enumerate(seats)], alone)
    assert beside["streamed"][1:] == [True] * 5  # before the first there is nothing to evaluate
    assert beside["judge"][0]
    assert not beside["judge"][-1]  # nor after the last


def test_what_is_not_indexed_is_prefilled_beside_the_others(bench: Bench) -> None:
    documents = [bench.document(LONG)]
    alone = bench.one_by_one(documents, QUESTIONS[:4], strategy="stream", kv="lazy=on,refresh=0")
    together = bench.together(documents, QUESTIONS[:4], 3, strategy="stream", kv="lazy=on,refresh=0")
    assert [answer.citations for _, answer in together] == [answer.citations for _, answer in alone]
    assert together[0][1].tokens.evaluated > 1000


def test_a_whole_document_is_there_once(bench: Bench, opened: Opened) -> None:
    documents = [bench.document(SHORT)]
    alone = bench.one_by_one(documents, QUESTIONS)
    bench.one_by_one(documents, QUESTIONS[:1])
    opened.n_ctx.clear()
    together = bench.together(documents, QUESTIONS, 6)
    same(together, alone)
    n_document = together[0][1].coverage.tokens_total
    assert together[0][1].strategy == "exact"
    assert opened.n_ctx[-1] < n_document + 6 * 160 + 256
    assert all(answer.tokens.evaluated < 100 for _, answer in together[1:])
    assert all(answer.tokens.restored >= n_document for _, answer in together[1:])


def test_a_document_that_fills_the_context_is_answered_from(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Room for longer questions is no room that the context must have."""
    needs: list[Need] = []
    need_of = seat._need

    def watched(*given: Any) -> Need:
        needs.append(need_of(*given))
        return needs[-1]

    monkeypatch.setattr(seat, "_need", watched)
    short = bench.document(SHORT)
    bench.together([short], QUESTIONS[:1], 1, max_tokens=8, strategy="exact")
    n_beside = needs[0].n_tokens - len(bench.open.tokenize(SHORT, False))
    n_document = bench.open.info.n_ctx_train - n_beside + seat.LONGER // 2
    words, text = LONG.split(" "), ""
    while len(bench.open.tokenize(text, False)) < n_document - 4:
        text += words.pop(0) + " "
    documents = [bench.document(text, "full.md")]
    together = bench.together(documents, QUESTIONS[:2], 2, max_tokens=8, strategy="exact")
    assert {answer.strategy for _, answer in together} == {"exact"}
    longest = max(need.n_tokens for need in needs)
    assert bench.open.info.n_ctx_train - seat.LONGER < longest <= bench.open.info.n_ctx_train


def test_text_alone_gives_the_same_answers(bench: Bench) -> None:
    documents = [bench.document(LONG)]
    alone = bench.one_by_one(documents, QUESTIONS, strategy="retrieve")
    same(bench.together(documents, QUESTIONS, 3, strategy="retrieve"), alone)


def test_several_documents_each_with_its_own_questions(bench: Bench) -> None:
    one, two = bench.document(chapters(3)), bench.document(chapters(4, seed=2), "two.md")
    expected = bench.one_by_one([one], QUESTIONS[:1]) + bench.one_by_one([two, one], QUESTIONS[:1])
    with SideBySide(bench.open, bench.settings(), n_parallel=2) as asking:
        asking.submit([one], QUESTIONS[0])
        asking.submit([two, one], QUESTIONS[0])
        answers = {n: event.answer for n, event in asking if isinstance(event, Finished)}
        asking.forget([one])
        again = asking.submit([one], QUESTIONS[0])
        answers |= {n: event.answer for n, event in asking if isinstance(event, Finished)}
    for n, m in ((0, 0), (1, 1), (again, 0)):
        assert answers[n].coverage == expected[m][1].coverage
        assert answers[n].documents == expected[m][1].documents
        assert answers[n].tokens.generated == expected[m][1].tokens.generated
    assert len(answers[1].documents) == 2


# --- coming and going ---------------------------------------------------------------------------------


@pytest.fixture
def echo() -> Iterator[EchoModel]:
    with EchoModel(lambda question: "The silver mine of Quarz was opened in 1742 by Anna Feld.") as model:
        yield model


def settings_of(**given: Any) -> Settings:
    return Settings(store="off", **given)


def run(asking: SideBySide) -> list[tuple[int, Event | Failed]]:
    return [one for one in asking if isinstance(one[1], (Finished, Failed))]


def test_a_short_answer_is_told_before_a_longer_one(book: Document, echo: EchoModel) -> None:
    with SideBySide(echo, settings_of(), n_parallel=2) as asking:
        asking.submit([book], "who opened the silver mine?")
        asking.submit([book], "who opened the mine?", settings=settings_of(max_tokens=2))
        asking.submit([book], "who opened it?", settings=settings_of(max_tokens=1))
        assert [ticket for ticket, _ in run(asking)] == [1, 2, 0]


def test_a_question_may_come_while_others_run(book: Document, echo: EchoModel) -> None:
    with SideBySide(echo, settings_of(), n_parallel=2) as asking:
        assert asking.is_idle
        assert asking.step() == []
        asking.submit([book], "who opened the silver mine?")
        finished = []
        for ticket, event in asking:
            if isinstance(event, Text) and asking._n_submitted < 4:
                asking.submit([book], "when?", settings=settings_of(max_tokens=1))
            if isinstance(event, Finished):
                finished.append((ticket, event.answer.question))
        assert sorted(finished)[1:] == [(n, "when?") for n in (1, 2, 3)]
        assert finished[-1][0] == 0


def test_one_that_fails_does_not_touch_the_rest(bench: Bench) -> None:
    documents, questions = [bench.document(SHORT)], (QUESTIONS[0], " ", "what " * 3000, QUESTIONS[1])
    outcomes = dict(ask_many(documents, bench.open, questions, bench.settings(), n_parallel=2))
    kinds = [type(outcomes[number]) for number in range(4)]
    assert kinds == [Answer, UsageError, UsageError, Answer]
    together = [(bench.written.taken(n), outcomes[m]) for n, m in ((0, 0), (1, 3))]
    expected = bench.one_by_one(documents, (QUESTIONS[0], QUESTIONS[1]))
    same(together, expected)  # type: ignore[arg-type]  # these are answers


def test_a_cancelled_question_is_silent_and_gives_its_place_back(bench: Bench) -> None:
    documents = [bench.document(SHORT)]
    expected = bench.one_by_one(documents, QUESTIONS[:3], max_tokens=20)
    with SideBySide(bench.open, bench.settings(max_tokens=20), n_parallel=1) as asking:
        tickets = [asking.submit(documents, question) for question in QUESTIONS[:3]]
        told_of: dict[int, list[Event | Failed]] = {}
        for ticket, event in asking:
            told_of.setdefault(ticket, []).append(event)
            if isinstance(event, Text) and ticket == tickets[0]:
                asking.cancel(ticket)
                asking.cancel(tickets[2])
                asking.cancel(99)
        assert isinstance(told_of[1][-1], Finished)
        same([(bench.written.taken(1), told_of[1][-1].answer)], expected[1:2])
        assert not isinstance(told_of[0][-1], Finished)
        assert 2 not in told_of


def test_closing_in_the_middle_frees_everything(bench: Bench, opened: Opened) -> None:
    documents = [bench.document(SHORT)]
    asking = SideBySide(bench.open, bench.settings(), n_parallel=3)
    for question in QUESTIONS:
        asking.submit(documents, question)
    while not any(isinstance(event, Text) for _, event in asking.step()):
        pass
    assert opened.open == 1
    asking.close()
    asking.close()
    assert opened.open == 0
    outcomes = ask_many(documents, bench.open, QUESTIONS, bench.settings(), n_parallel=3)
    next(outcomes)
    outcomes.close()  # type: ignore[attr-defined]  # a generator
    assert opened.open == 0


def test_stopping_ends_what_is_begun_and_begins_no_other(book: Document, echo: EchoModel) -> None:
    with SideBySide(echo, settings_of(), n_parallel=2) as asking:
        for _ in range(4):
            asking.submit([book], "who opened the silver mine?")
        seen: dict[int, Finished] = {}
        for ticket, event in asking:
            if isinstance(event, Text) and ticket == 1:
                asking.stop()
            if isinstance(event, Finished):
                seen[ticket] = event
        assert {one.answer.finish_reason for one in seen.values()} == {"cancelled"}
        assert {0, 1} <= set(seen) <= {0, 1, 2}  # one is made ready ahead


def break_next_step(asking: SideBySide) -> None:
    decoder: Any = asking._seats.context._decoder  # type: ignore[union-attr]  # of the open context
    evaluate: Callable[..., bool] = decoder.evaluate

    def failing(batch: Any) -> bool:
        decoder.evaluate = evaluate
        raise ModelError("out of order")

    decoder.evaluate = failing


def test_a_step_that_fails_fails_those_it_was_for(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [bench.document(SHORT)]
    expected = bench.one_by_one(documents, QUESTIONS[:4])
    with SideBySide(bench.open, bench.settings(), n_parallel=2) as asking:
        for question in QUESTIONS[:4]:
            asking.submit(documents, question)
        outcomes: dict[int, Answer | LocalctxError] = {}
        is_broken = False
        for ticket, event in asking:
            if isinstance(event, Text) and not is_broken:
                is_broken = True
                break_next_step(asking)
            if isinstance(event, Finished):
                outcomes[ticket] = event.answer
            elif isinstance(event, Failed):
                outcomes[ticket] = event.error
    failed = {ticket for ticket, outcome in outcomes.items() if isinstance(outcome, ModelError)}
    assert failed
    assert len(outcomes) == 4
    assert {n for n in range(4) if n not in failed}
    for n in set(range(4)) - failed:
        assert outcomes[n].coverage == expected[n][1].coverage  # type: ignore[union-attr]  # an answer


# --- one memory budget --------------------------------------------------------------------------------


def test_as_many_places_as_memory_holds(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    documents = [bench.document(SHORT)]
    open_one = LlamaModel.open_kv_context

    def short_of_memory(self: LlamaModel, n_ctx: int, n_seq: int = 1, **more: Any) -> Any:
        if n_seq > 2:
            raise OutOfMemory(f"{n_ctx} cells are too many")
        return open_one(self, n_ctx, n_seq, **more)

    expected = bench.one_by_one(documents, QUESTIONS)
    monkeypatch.setattr(LlamaModel, "open_kv_context", short_of_memory)
    together = bench.together(documents, QUESTIONS, 5)
    same(together, expected)
    assert "2 questions side by side, not 5" in "".join(together[0][1].warnings)


def test_a_longer_question_waits_for_a_larger_context(bench: Bench, opened: Opened) -> None:
    bench.index(bench.write(SHORT), strategy="exact")
    documents = [bench.document(SHORT, "same.md")]
    questions = (QUESTIONS[0], QUESTIONS[1] + " of gate" * 300, QUESTIONS[2])
    expected = bench.one_by_one(documents, questions)
    opened.n_ctx.clear()
    together = bench.together(documents, questions, 1)
    assert [answer.coverage for _, answer in together] == [answer.coverage for _, answer in expected]
    assert len(opened.n_ctx) == 2
    assert opened.n_ctx[0] < opened.n_ctx[1]
    assert opened.most == 1


def test_more_than_there_are_sequences_is_refused(bench: Bench) -> None:
    with pytest.raises(UsageError, match="side by side"):
        SideBySide(bench.open, bench.settings(), n_parallel=101)
