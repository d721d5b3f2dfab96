"""When a step is waited for: a GPU computes one while the next one's masks are made."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from engine.conftest import ask, collect
from engine.kv_tools import document

from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.llama_context import LlamaContext
from localctx.engine.llama_decoder import _Pace
from localctx.engine.options import EngineOptions
from localctx.engine.plan import Slice
from localctx.engine.thread_choice import ThreadChoice
from localctx.errors import ModelError
from localctx.kv import KVPart
from localctx.values import Sampling


class Counted:
    """llama_cpp with its waits counted."""

    def __init__(self, lib: Any) -> None:
        self._lib = lib
        self.n_waits = self.n_steps = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lib, name)

    def llama_synchronize(self, handle: Any) -> None:
        self.n_waits += 1
        self._lib.llama_synchronize(handle)

    def llama_decode(self, *of: Any) -> int:
        self.n_steps += 1
        return int(self._lib.llama_decode(*of))


def counted(context: LlamaContext) -> Counted:
    lib = context.decoder._lib = Counted(context.decoder._lib)
    return lib


def test_a_long_text_is_waited_for_once(tiny_model_path: Any) -> None:
    with open_model(tiny_model_path, EngineOptions(n_batch=64)) as model:
        context = model.open_context(512)
        lib = counted(context)
        context.snapshot(document(model, 256), is_wanted=lambda _: False)
        assert (lib.n_steps, lib.n_waits) == (4, 1)
        collect(context, [ask(model, "x" * 20, max_tokens=3)])
        assert lib.n_waits == 1 + 3  # each step that a token is sampled from


def test_restoring_is_waited_for_once(tiny: LlamaModel) -> None:
    tokens = document(tiny, 200)
    with tiny.open_kv_context(512) as context:
        context.place(tokens, [])
        state = context.export(0, 200)
        lib = counted(context)
        parts = [KVPart(state, 0, 50, 0), KVPart(state, 60, 50, 60), KVPart(state, 120, 50, 120)]
        context.place(tokens, parts)
        assert (lib.n_steps, lib.n_waits) == (3, 1)


def test_the_pace_is_known_by_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.s)
    pace, seen = _Pace(1024, adapts=True), []
    for took_s in (0.1, 0.1, 0.8, 0.4, 0.1):
        seen.append((pace.n_batch, pace.is_changing))
        with pace.step(pace.n_batch):
            now.s += took_s
    assert seen == [(512, True), (1024, False), (1024, False), (512, True), (512, True)]
    assert not _Pace(1024, adapts=False).is_changing


def test_a_step_behind_another_is_not_timed_as_both(monkeypatch: pytest.MonkeyPatch) -> None:
    now = SimpleNamespace(s=0.0)
    monkeypatch.setattr(time, "monotonic", lambda: now.s)
    pace = _Pace(512, adapts=True)
    with pace.step(512):
        pass  # a GPU has it, nobody waits
    with pace.step(512):
        now.s += 2 * 0.4
        pace.waited()
    assert pace.n_batch == 512
    with pace.step(512):
        now.s += 0.8
        pace.waited()
    assert pace.n_batch == 256


class Seen(ThreadChoice):
    """The sizes of steps that were measured."""

    def __init__(self) -> None:
        super().__init__(2)
        self.sizes: list[int] = []

    def took(self, n_tokens: int, seconds: float) -> None:
        self.sizes.append(n_tokens)


def test_only_whole_steps_say_how_many_threads_are_worth_it(
    tiny: LlamaModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tiny.open_context(64) as context:
        seen = context.decoder._threads = Seen()
        batch = [Slice(0, 0, np.array([1, 2, 3], np.int32), True)]
        assert context.decoder.evaluate(batch)
        lib = context.decoder._lib = Counted(context.decoder._lib)
        monkeypatch.setattr(lib, "llama_decode", lambda *of: 2, raising=False)
        assert not context.decoder.evaluate(batch)
        monkeypatch.setattr(lib, "llama_decode", lambda *of: -1, raising=False)
        with pytest.raises(ModelError):
            context.decoder.evaluate(batch)
    assert seen.sizes == [3]


@pytest.mark.parametrize("is_offloaded", [False, True])
def test_threads_are_chosen_where_the_cpu_computes(
    tiny_model_path: Any, monkeypatch: pytest.MonkeyPatch, is_offloaded: bool
) -> None:
    monkeypatch.setattr(LlamaModel, "is_offloaded", is_offloaded)
    with open_model(tiny_model_path, EngineOptions(shares_cpus=True)) as model:
        assert (model.open_context(64).decoder._threads is None) is is_offloaded


def test_what_is_no_number_is_no_token(tiny: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> None:
    with tiny.open_context(64) as context:
        decoder = context.decoder
        decoder.begin(0, Sampling(temperature=0))
        row = np.zeros(tiny.info.n_vocab, np.float32)
        row[[40, 50, 60]] = np.nan, 2.0, 1.0
        monkeypatch.setattr(decoder, "_row", lambda _: row)
        assert decoder.sample(0, 0) == 50
        row[:] = np.nan
        with pytest.raises(ModelError, match="gives no numbers") as caught:
            decoder.sample(0, 0)
    assert caught.value.hint and "\n" not in caught.value.message
