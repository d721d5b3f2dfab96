"""A document's first tokens that stay attended while the window moves on. Tiny models, real llama.cpp."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from engine.kv_tools import NOISE, differs, document, just_rebased, prefill, stream_values
from engine.test_kv_context import SMALL_BATCH, encoded, prefix_of
from engine.tiny_architectures import write_architecture

from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.prefill import HIGHEST_POSITION
from localctx.kv import KVChunk, KVPart, PrefillPolicy

SINKS = PrefillPolicy("window", 128, 128)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Two layers, trained for 512 positions, evaluated 128 tokens at a time."""
    path = write_architecture(tmp_path_factory.mktemp("sinks") / "short.gguf", "llama", n_ctx_train=512)
    with open_model(path, SMALL_BATCH) as opened:
        yield opened


@pytest.fixture(scope="module")
def context(model: LlamaModel) -> LlamaKVContext:
    return model.open_kv_context(512)


@pytest.fixture(scope="module")
def long_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaKVContext]:
    """The same weights, trained for 8,192 positions."""
    path = write_architecture(tmp_path_factory.mktemp("sinks") / "long.gguf", "llama", n_ctx_train=8192)
    with open_model(path, SMALL_BATCH) as opened:
        yield opened.open_kv_context(1024)


def test_sinks_and_window_as_long_as_the_document_are_plain_decoding(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    prefix, tokens = prefix_of(model), document(model, 380)
    wanted = stream_values(prefill(context, prefix, tokens, PrefillPolicy("exact")))
    for policy in (PrefillPolicy("window", 512, 128), PrefillPolicy("window", 128, 256)):
        got = stream_values(prefill(context, prefix, tokens, policy))
        for one, two in zip(got, wanted, strict=True):
            assert differs(one, two) < NOISE


def test_sinks_are_attended_for_ever_and_what_is_between_is_not(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    tokens = document(model, 1500)
    first = [*tokens[300:328], *tokens[28:]]  # differs in the sinks
    between = [*tokens[:130], *tokens[300:328], *tokens[158:]]  # differs behind them
    one, two, three = (stream_values(prefill(context, (), t, SINKS))[1] for t in (tokens, first, between))
    assert differs(one[-128:], two[-128:]) > NOISE
    assert differs(one[256:384], three[256:384]) > NOISE
    assert (one[768:] == three[768:]).all()


@pytest.mark.parametrize("highest", [0, HIGHEST_POSITION])
def test_a_chunk_is_what_is_decoded_behind_prefix_sinks_and_window(
    model: LlamaModel, context: LlamaKVContext, monkeypatch: pytest.MonkeyPatch, highest: int
) -> None:
    """Where prefix and window just came together, there is no gap between, as place() puts it."""
    monkeypatch.setattr("localctx.engine.prefill.HIGHEST_POSITION", highest)
    prefix, tokens = prefix_of(model), document(model, 1500)
    chunks = prefill(context, prefix, tokens, SINKS)
    n_before = len(prefix) + 256
    assert all(chunk.state.positions.max() < 512 for chunk in chunks) == (highest == 0)
    rebased = just_rebased(context, len(prefix), chunks, SINKS)
    for chunk in (rebased[0], rebased[-1]):
        start, number = chunk.first, chunks.index(chunk)
        attended = [*prefix, *tokens[:128], *tokens[start - 128 : start], *tokens[start : start + 128]]
        parts = [
            KVPart(encoded(chunks[0]), 0, 128, len(prefix)),
            KVPart(encoded(chunks[number - 1]), 0, 128, len(prefix) + 128),
        ]
        assert context.place(attended[: n_before + chunk.n_tokens], parts) == len(prefix) + chunk.n_tokens
        state = context.export(n_before, n_before + chunk.n_tokens)
        oracle = KVChunk(start, chunk.n_tokens, state, chunk.rope)
        for one, two in zip(stream_values([oracle]), stream_values([chunk]), strict=True):
            assert differs(one, two) < NOISE


def test_a_stream_with_sinks_goes_on_from_what_was_stored(
    model: LlamaModel, context: LlamaKVContext, long_context: LlamaKVContext
) -> None:
    """In the sinks, before anything was evicted, and after, where positions were taken back or not."""
    tokens, prefix = document(model, 1300), prefix_of(model)
    for where, sinks in ((context, 100), (long_context, 300)):  # in whole runs 128 and 384
        policy = PrefillPolicy("window", 128, sinks)
        n_sinks = -(-sinks // 128)
        whole = prefill(where, prefix, tokens, policy)
        for n in (1, 2, 4, 5, 8):
            stored = whole[:n] if n <= n_sinks + 1 else [*whole[:n_sinks], *whole[n - 1 : n]]
            left = [KVPart(encoded(chunk), 0, 128, 0) for chunk in stored]
            rest = prefill(where, prefix, tokens, policy, first=128 * n, left=left)
            for one, two in zip(rest, whole[n:], strict=True):
                assert (one.first, list(one.state.positions)) == (two.first, list(two.state.positions))
            for got, wanted in zip(stream_values(rest), stream_values(whole), strict=True):
                assert differs(got, wanted[128 * n :]) < NOISE
