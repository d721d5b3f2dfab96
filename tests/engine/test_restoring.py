"""KV put back slice by slice is what it is in one piece; gaps apart see what was restored alone."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import NOISE, differs, document, logits_after, parts_at, prefill, stream_values
from engine.tiny_architectures import write_architecture

from localctx._native import Run, State
from localctx.engine import restoring
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.kv import KVPart, PrefillPolicy

WINDOW = PrefillPolicy("window", 256)
EXACT = PrefillPolicy("exact")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Trained for 1,024 positions, evaluated 128 tokens at a time."""
    path = write_architecture(tmp_path_factory.mktemp("slices") / "short.gguf", "llama", n_ctx_train=1024)
    with open_model(path, EngineOptions(n_batch=128)) as opened:
        yield opened


@pytest.fixture(scope="module")
def context(model: LlamaModel) -> LlamaKVContext:
    return model.open_kv_context(1024, n_outputs=16)


@pytest.fixture(params=[1, 1 << 30], ids=["many slices", "one slice"])
def slice_bytes(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(restoring, "SLICE_BYTES", request.param)
    return int(request.param)


def test_slices_are_the_parts_rows_in_order(model: LlamaModel, context: LlamaKVContext) -> None:
    chunks = prefill(context, (), document(model, 600), EXACT)
    parts = [KVPart(chunk.state, 1, chunk.n_tokens - 1, 0) for chunk in chunks]
    positions = np.arange(10, 10 + sum(part.n_tokens for part in parts), dtype=np.int32)
    slices = list(restoring.slices_of(parts, positions, 256))
    assert [len(one.positions) for one in slices] == [256, 256, 83]
    assert all(a.positions[-1] + 1 == b.positions[0] for a, b in pairwise(slices))
    rows = [
        (part.source, part.first + i) for one in slices for part in one.parts for i in range(part.n_tokens)
    ]
    assert rows == [(part.source, part.first + i) for part in parts for i in range(part.n_tokens)]


def test_what_is_placed_does_not_depend_on_the_slices(
    model: LlamaModel, context: LlamaKVContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    prefix, tokens = model.tokenize("The clerk reads this: "), document(model, 700)
    chunks, found = prefill(context, prefix, tokens, EXACT), []
    for n_bytes in (1, 1 << 30):
        monkeypatch.setattr(restoring, "SLICE_BYTES", n_bytes)
        assert context.place([*prefix, *tokens], parts_at(chunks, len(prefix))) == len(prefix)
        assert context.restore_times.compose_s > 0 < context.restore_times.upload_s
        found.append(logits_after(context, model.tokenize("What was the price?")))
    assert np.array_equal(*found)


@pytest.mark.usefixtures("slice_bytes")
def test_moving_back_within_the_trained_range_changes_nothing_but_rounding(
    model: LlamaModel, context: LlamaKVContext, tmp_path: Path
) -> None:
    """Without a prefix only distances matter, so the same weights with 8,192 positions are the oracle."""
    tokens = document(model, 2500)
    path = write_architecture(tmp_path / "long.gguf", "llama", n_ctx_train=8192)
    with open_model(path, EngineOptions(n_batch=128)) as long_model:
        wanted = prefill(long_model.open_kv_context(1024), (), tokens, WINDOW)
    got = prefill(context, (), tokens, WINDOW)
    for one, two in zip(stream_values(got), stream_values(wanted), strict=True):
        assert differs(one, two) < NOISE


def gaps_of(chunks: list[KVPart], lengths: list[int]) -> tuple[list[int], list[KVPart]]:
    """Where parts stand with so many new tokens before each."""
    at, starts, parts = 0, [], []
    for part, n_new in zip(chunks, lengths, strict=True):
        starts.append(at)
        parts.append(KVPart(part.source, part.first, part.n_tokens, at + n_new))
        at += n_new + part.n_tokens
    return starts, parts


@pytest.mark.parametrize("n_parts", [3, 5])
def test_gaps_apart_see_the_parts_and_not_each_other(
    model: LlamaModel, context: LlamaKVContext, n_parts: int
) -> None:
    header, question = model.tokenize(" [gate] "), model.tokenize("What was the price?")
    tokens = document(model, 128 * n_parts)
    chunks = [KVPart(chunk.state, 0, 128, 0) for chunk in prefill(context, (), tokens, EXACT)]
    starts, parts = gaps_of(chunks, [len(header)] * n_parts)
    whole = [token for n in range(n_parts) for token in (*header, *tokens[128 * n : 128 * (n + 1)])]
    n_new = len(header) * n_parts
    assert context.place(whole, parts) == n_new
    in_order = logits_after(context, question)
    assert context.place(whole, parts, apart=()) == n_new
    apart = logits_after(context, question)
    kept = [KVPart(context.export(at, at + len(header)), 0, len(header), at) for at in starts]
    assert differs(apart, in_order) > 1e-4  # it is not the same
    assert context.place(whole, parts, apart=kept) == 0  # evaluated before
    assert differs(logits_after(context, question), apart) < NOISE
    assert context.place(whole, parts, apart=kept[1:]) == len(header)  # what is kept is not seen either
    assert differs(logits_after(context, question), apart) < NOISE
    for number, at in enumerate(starts):  # each in a context where no other is
        others = kept[:number]
        context.place(whole[: at + len(header)], parts[:number], apart=others)
        alone, together = context.export(at, at + len(header)), kept[number].source
        assert differs(values_of(alone), values_of(together)) < NOISE


def values_of(state: State | Run) -> np.ndarray:
    """The last layer's values by position: rows come in the order of cells."""
    assert isinstance(state, State)
    return state.values(1)[np.argsort(state.positions)]
