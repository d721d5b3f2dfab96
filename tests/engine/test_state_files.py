"""llama.cpp's own state files and single steps: what comes back is what was there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import document
from engine.tiny_gguf import Shape

from localctx.engine.llama import LlamaModel
from localctx.engine.llama_context import LlamaContext
from localctx.engine.state_files import retyped_context
from localctx.engine.stepping import step_seconds
from localctx.errors import Interrupted, ModelError, UsageError

N = 100


def logits(context: LlamaContext, tokens: list[int]) -> np.ndarray:
    rows: list[np.ndarray] = []
    context.score(tokens, lambda _, values: rows.append(values))
    return np.concatenate(rows)


def filled(model: LlamaModel, tokens: list[int]) -> LlamaContext:
    context = model.open_context(256)
    context.snapshot(tokens)
    return context


def test_a_file_brings_back_what_was_saved(tiny: LlamaModel, tmp_path: Path) -> None:
    tokens = document(tiny, N + 8)
    context, other = filled(tiny, tokens[:N]), tiny.open_context(256)
    path = tmp_path / "state.bin"
    assert context.save_file(path, tokens[:N]) == path.stat().st_size
    other.load_file(path, tokens[:N])
    assert (logits(other, tokens[N:]) == logits(context, tokens[N:])).all()


def test_files_that_are_not_what_they_should_be(tiny: LlamaModel, tmp_path: Path) -> None:
    tokens = document(tiny, N)
    context, path = filled(tiny, tokens), tmp_path / "state.bin"
    context.save_file(path, tokens)
    with pytest.raises(ModelError, match="does not take back"):
        context.load_file(path, [*tokens[:-1], tokens[0]])
    with pytest.raises(ModelError, match="does not take back"):
        context.load_file(tmp_path / "none.bin", tokens)
    with pytest.raises(ModelError, match="cannot write"):
        context.save_file(tmp_path / "none" / "state.bin", tokens)
    with pytest.raises(UsageError, match="do not fit"):
        context.load_file(path, tokens * 3)
    assert context.snapshot(tokens) is not None  # it goes on


def test_a_context_of_another_type_is_of_the_same_model(tiny: LlamaModel) -> None:
    tokens = document(tiny, N + 8)
    context = filled(tiny, tokens[:N])
    with retyped_context(context, "bf16") as other:
        other.snapshot(tokens[:N])
        one, two = logits(context, tokens[N:]), logits(other, tokens[N:])
        assert 0 < np.abs(one - two).max() < one.std()
        assert other.n_ctx == context.n_ctx
    with retyped_context(context, "f32") as other:
        blob = other.snapshot(tokens[:N])
        assert blob is not None and len(blob) > N * 2 * tiny.info.kv_bytes_per_token
    assert Shape().n_embd // Shape().n_head < 32
    with pytest.raises(ModelError, match="block size 32"):
        retyped_context(context, "q8_0")


def test_steps_leave_no_trace(tiny: LlamaModel) -> None:
    tokens = document(tiny, N + 8)
    context = filled(tiny, tokens[:N])
    before = logits(context, tokens[N:])
    seconds = step_seconds(context, tokens[N : N + 5])
    assert len(seconds) == 5 and min(seconds) > 0
    assert (logits(context, tokens[N:]) == before).all()
    with pytest.raises(UsageError, match="do not fit"):
        step_seconds(context, tokens[:1] * 157)


def test_steps_can_be_cancelled(tiny: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = document(tiny, N + 8)
    context = filled(tiny, tokens[:N])
    evaluate, n_steps = context.decoder.evaluate, 0

    def counted(batch: object, **more: bool) -> bool:
        nonlocal n_steps
        n_steps += 1
        if n_steps == 3:
            context.cancel()
        return evaluate(batch, **more)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(context.decoder, "evaluate", counted)
    with pytest.raises(Interrupted):
        step_seconds(context, tokens[N:])
    assert n_steps == 3
    monkeypatch.undo()
    assert len(step_seconds(context, tokens[N:])) == 8
