"""KV put back slice by slice is as in one piece; gaps evaluated at once become what they are in order."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from engine.kv_tools import NOISE, differs, document, logits_after, parts_at, prefill, stream_values
from engine.tiny_architectures import write_architecture

from localctx._native import State
from localctx.engine import restoring
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.engine.schedule import Slice
from localctx.kv import KVPart, PrefillPolicy

WINDOW = PrefillPolicy("window", 256)
EXACT = PrefillPolicy("exact")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Trained for 1,024 positions, evaluated 256 tokens at a time."""
    path = write_architecture(tmp_path_factory.mktemp("slices") / "short.gguf", "llama", n_ctx_train=1024)
    with open_model(path, EngineOptions(n_batch=256)) as opened:
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
    assert [len(one.positions) for one in slices] == [256, 256, 85]
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
    with open_model(path, EngineOptions(n_batch=256)) as long_model:
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


@pytest.fixture
def sweeping(model: LlamaModel, monkeypatch: pytest.MonkeyPatch) -> LlamaKVContext:
    """A context that takes itself for one on a GPU."""
    monkeypatch.setattr(LlamaModel, "is_offloaded", True)
    return model.open_kv_context(1024, n_outputs=16)


def test_after_as_many_sweeps_as_there_are_layers_it_is_as_in_order(
    model: LlamaModel, sweeping: LlamaKVContext
) -> None:
    """After n sweeps the first n gaps are right, and the first n layers of all; this model has two."""
    n_parts, header, question = 4, model.tokenize(" [gate] "), model.tokenize("What was the price?")
    tokens = document(model, 128 * n_parts)
    halves = [(chunk.state, first) for chunk in prefill(sweeping, (), tokens, EXACT) for first in (0, 128)]
    chunks = [KVPart(state, first, 128, 0) for state, first in halves]
    starts, parts = gaps_of(chunks, [len(header)] * n_parts)
    whole = [token for n in range(n_parts) for token in (*header, *tokens[128 * n : 128 * (n + 1)])]
    assert sweeping.can_sweep([(at, at + len(header)) for at in starts], len(whole))

    def placed(n_sweeps: int) -> tuple[np.ndarray, list[np.ndarray]]:
        assert sweeping.place(whole, parts, n_sweeps=n_sweeps) == len(header) * n_parts
        states = [sweeping.export(at, at + len(header)) for at in starts]
        return logits_after(sweeping, question), [values_of(state) for state in states]

    in_order, values = placed(0)
    off = [[differs(*pair) for pair in zip(placed(n)[1], values, strict=True)] for n in (1, 2, 3)]
    assert off[0][0] < NOISE < min(off[0][1:])
    assert max(off[1]) < NOISE > max(off[2])
    assert differs(placed(2)[0], in_order) < NOISE


def test_gaps_of_several_batches_are_swept_alike(
    model: LlamaModel, sweeping: LlamaKVContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_parts, header = 4, model.tokenize(" [gate] ")
    tokens = document(model, 128 * n_parts)
    halves = [(chunk.state, first) for chunk in prefill(sweeping, (), tokens, EXACT) for first in (0, 128)]
    starts, parts = gaps_of(
        [KVPart(state, first, 128, 0) for state, first in halves], [len(header)] * n_parts
    )
    whole = [token for n in range(n_parts) for token in (*header, *tokens[128 * n : 128 * (n + 1)])]
    found, sizes, run_batch = [], [], LlamaKVContext.run_batch

    def counting(context: LlamaKVContext, batch: Sequence[Slice]) -> None:
        sizes.append(sum(len(one.tokens) for one in batch))
        run_batch(context, batch)

    monkeypatch.setattr(LlamaKVContext, "run_batch", counting)
    for n_batch in (1024, 3 * len(header) - 1):
        monkeypatch.setattr(type(sweeping.decoder), "n_batch", n_batch)
        sizes.clear()
        sweeping.place(whole, parts, n_sweeps=2)
        found.append([values_of(sweeping.export(at, at + len(header))) for at in starts])
        assert sizes == [len(header) * n for n in ((4, 4) if n_batch == 1024 else (2, 2, 2, 2))]
    assert max(differs(*pair) for pair in zip(*found, strict=True)) < NOISE


def test_only_short_gaps_on_a_gpu_are_swept(
    model: LlamaModel, context: LlamaKVContext, sweeping: LlamaKVContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    def gaps(n: int, n_tokens: int) -> list[tuple[int, int]]:
        return [(20 * number, 20 * number + n_tokens) for number in range(n)]

    assert sweeping.can_sweep(gaps(4, 10), 500)
    assert not sweeping.can_sweep(gaps(2, 10), 500)  # two steps are two steps
    assert not sweeping.can_sweep(gaps(4, 40), 500)  # the tokens take longer than the steps
    assert not sweeping.can_sweep(gaps(4, 10), 1000)  # no room to do it twice
    assert not sweeping.can_sweep(
        gaps(len(sweeping._spares) + 1, 2), 500
    )  # more than there are spare sequences
    monkeypatch.setattr(LlamaModel, "is_offloaded", False)
    assert not context.can_sweep(gaps(4, 10), 500)


def values_of(state: State) -> np.ndarray:
    """The last layer's values by position: rows come in the order of cells."""
    return state.values(1)[np.argsort(state.positions)]
