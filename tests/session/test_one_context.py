"""One context serves all that a question needs: its prefill and its answer; it says how large it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from session.conftest import answer_of
from session.test_kept_kv import LONG, SHORT, Place, chapters

from localctx.document import open_document
from localctx.engine.llama import open_model
from localctx.engine.llama_context import LlamaContext
from localctx.engine.options import EngineOptions
from localctx.session import loaded_runs
from localctx.session.ask import ask
from localctx.session.cache import Cache
from localctx.session.kept import Kept
from localctx.session.one_context import Held, sharing_one_context

TWO_QUESTIONS = ("code of gate 7?", "code of gate 12?")


@dataclass
class Opened:
    """Cells of the contexts that were opened, and how many were open at once at most."""

    n_ctx: list[int] = field(default_factory=list)
    open: int = 0
    most: int = 0


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> Opened:
    """Watches every context of llama.cpp."""
    seen = Opened()
    begin, close = LlamaContext.__init__, LlamaContext.close

    def opening(self: LlamaContext, *words: Any, **named: Any) -> None:
        begin(self, *words, **named)
        seen.n_ctx.append(self.n_ctx)
        seen.open += 1
        seen.most = max(seen.most, seen.open)

    def closing(self: LlamaContext) -> None:
        if not self._closed:
            seen.open -= 1
        close(self)

    monkeypatch.setattr(LlamaContext, "__init__", opening)
    monkeypatch.setattr(LlamaContext, "close", closing)
    return seen


@pytest.mark.parametrize(
    "kv", ["lazy=on,refresh=0", "lazy=on", "lazy=off,refresh=0", "lazy=auto", "lazy=off,policy=independent"]
)
def test_prefill_and_answer_share_one(place: Place, opened: Opened, kv: str) -> None:
    file = place.write(LONG)
    for _ in range(2):
        answer = place.ask(file, strategy="stream", kv=kv)
        assert opened.n_ctx == [answer.n_ctx]
        assert (opened.most, opened.open) == (1, 0)
        opened.n_ctx.clear()


def test_so_they_do_where_the_whole_is_attended(place: Place, opened: Opened) -> None:
    files = place.write(SHORT), place.write(chapters(3, seed=2), "two.md")
    for some in (files[:1], files):
        answer = place.ask(*some)
        assert answer.strategy == "exact"
        assert opened.n_ctx == [answer.n_ctx]
        opened.n_ctx.clear()


def test_a_long_answer_is_thought_of_when_the_prefill_opens_it(place: Place, opened: Opened) -> None:
    answer = place.ask(place.write(LONG), strategy="stream", kv="lazy=on,window=128", max_tokens=600)
    assert opened.n_ctx == [answer.n_ctx]
    assert answer.n_ctx > 1000


def test_its_opening_is_load_time(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]
    begin = LlamaContext.__init__

    def slow(self: LlamaContext, *words: Any, **named: Any) -> None:
        clock[0] += 1000.0
        begin(self, *words, **named)

    monkeypatch.setattr("localctx.session.cache.time.perf_counter", lambda: clock[0])
    monkeypatch.setattr(LlamaContext, "__init__", slow)
    file = place.write(SHORT)
    for settings in ({}, {"strategy": "stream"}, {"store": "off"}):
        before = clock[0]
        timings = place.ask(file, **settings).timings
        assert timings.load_ms == (clock[0] - before) * 1000 == 1_000_000
        assert timings.prefill_ms + timings.select_ms + timings.assemble_ms + timings.decode_ms == 0


class FakeContext:
    """Counts whether it is open."""

    notices = ()

    def __init__(self, n_ctx: int) -> None:
        self.n_ctx = n_ctx


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What Cache.context() is asked for."""
    from contextlib import contextmanager

    lines: list[str] = []

    @contextmanager
    def context(self: Cache, n_ctx: int) -> Iterator[FakeContext]:
        lines.append(f"open {n_ctx}")
        yield FakeContext(n_ctx)
        lines.append(f"close {n_ctx}")

    monkeypatch.setattr(Cache, "context", context)
    return lines


def test_a_larger_one_takes_the_place_of_a_smaller_one(log: list[str]) -> None:
    nothing: Any = None
    cache = Cache(nothing, nothing, nothing, nothing, nothing, 4096)
    with sharing_one_context(cache) as shared:
        assert shared.n_ctx is None
        for wanted, found in ((512, 512), (256, 512), (1024, 1024), (1000, 1024)):
            with shared.context(wanted) as context:
                assert (context.n_ctx, shared.n_ctx) == (found, found)
        assert log == ["open 512", "close 512", "open 1024"]
        assert shared.limit == 4096
    assert log[3:] == ["close 1024"]


def test_it_is_closed_after_a_failure(place: Place, opened: Opened, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*words: Any) -> None:
        raise RuntimeError("on the way")

    monkeypatch.setattr("localctx.session.placing.decode_one", fail)
    with pytest.raises(RuntimeError):
        place.ask(place.write(LONG), strategy="stream", kv="lazy=on")
    assert (len(opened.n_ctx), opened.open) == (1, 0)


def test_questions_that_follow_each_other_share_it(place: Place, opened: Opened) -> None:
    file = place.write(LONG)
    alone = [place.ask(file, strategy="stream", question=text, kv="refresh=0") for text in TWO_QUESTIONS]
    opened.n_ctx.clear()
    with (
        closing(Held(Kept(place.store, lambda text: None))) as held,
        open_model(place.model, EngineOptions(n_threads=1)) as model,
        open_document(file, cache_dir=None) as document,
    ):
        settings = place.settings(strategy="stream", kv="refresh=0")
        told = [answer_of(list(ask([document], model, text, settings, held=held))) for text in TWO_QUESTIONS]
        assert (len(opened.n_ctx), opened.open) == (1, 1)
        assert [one.text for one in told] == [one.text for one in alone]
        plain = answer_of(
            list(ask([document], model, "Why?", place.settings(strategy="retrieve"), held=held))
        )
        assert (plain.strategy, opened.open, opened.most) == ("retrieve", 0, 1)  # not beside another one
        answer_of(list(ask([document], model, TWO_QUESTIONS[0], settings, held=held)))
        assert opened.open == 1
    assert opened.open == 0


def test_many_questions_hold_few_files_open(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_runs, "MAX_LOADS", 1)
    file = place.write(LONG)
    settings = place.settings(strategy="stream", kv="refresh=0")
    questions = [f"code of gate {gate}?" for gate in range(1, 13)]
    n_open, texts = [], []
    with (
        closing(Held(Kept(place.store, lambda text: None))) as held,
        open_model(place.model, EngineOptions(n_threads=1)) as model,
        open_document(file, cache_dir=None) as document,
    ):
        for question in [*questions, *questions, *questions]:
            texts.append(answer_of(list(ask([document], model, question, settings, held=held))).text)
            n_open.append(len(list(Path("/dev/fd").iterdir())))
    assert texts[12:24] == texts[24:]
    assert max(n_open[12:]) <= n_open[0] + 12


def test_the_one_of_another_model_is_not_used(place: Place) -> None:
    file = place.write(LONG)
    held = Held(Kept(place.store, lambda text: None))
    texts = [place.ask(file, strategy="stream", kv="refresh=0", held=held).text for _ in range(2)]
    held.close()
    assert texts[0] == texts[1]
