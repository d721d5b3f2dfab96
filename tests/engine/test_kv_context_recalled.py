"""Earlier runs put back before the window while a document is prefilled. Tiny models, real llama.cpp."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest
from engine.kv_tools import NOISE, differs, document, just_rebased, prefill, stream_values
from engine.test_kv_context import encoded, prefix_of
from engine.tiny_architectures import write_architecture

from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.engine.prefill import HIGHEST_POSITION
from localctx.errors import UsageError
from localctx.kv import RUN_TOKENS, KVChunk, KVPart, OnChunk, PrefillPolicy, Route

BATCH = EngineOptions(n_batch=256)
EXACT = PrefillPolicy("exact")
Choice = Callable[[range, int], Sequence[int]]
"""(runs that have left the window, first token of the chunk) → those that are put back."""


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_architecture(tmp_path_factory.mktemp("routed") / "short.gguf", "llama", n_ctx_train=1024)


@pytest.fixture(scope="module")
def model(path: Path) -> Iterator[LlamaModel]:
    """Two layers, trained for 1,024 positions."""
    with open_model(path, BATCH) as opened:
        yield opened


@pytest.fixture(scope="module")
def context(model: LlamaModel) -> LlamaKVContext:
    return model.open_kv_context(1024)


@pytest.fixture(scope="module")
def long_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaKVContext]:
    """The same weights, trained for 8,192 positions."""
    path = write_architecture(tmp_path_factory.mktemp("routed") / "long.gguf", "llama", n_ctx_train=8192)
    with open_model(path, BATCH) as opened:
        yield opened.open_kv_context(4096)


def everything(candidates: range, start: int) -> Sequence[int]:
    return candidates


def third_and_fifth(candidates: range, start: int) -> Sequence[int]:
    return [run for run in (2, 4) if run in candidates]


def recalling(
    context: LlamaKVContext,
    prefix: Sequence[int],
    tokens: Sequence[int],
    policy: PrefillPolicy,
    choose: Choice,
    known: Sequence[KVChunk] = (),
    **more: object,
) -> list[KVChunk]:
    """A stream whose own chunks are put back as runs of f16."""
    chunks: list[KVChunk] = []
    parts: dict[int, KVPart] = {}

    def take(chunk: KVChunk) -> None:
        chunks.append(chunk)
        for row in range(0, chunk.n_tokens - RUN_TOKENS + 1, RUN_TOKENS):
            number = (chunk.first + row) // RUN_TOKENS
            parts[number] = KVPart(encoded(chunk), row, RUN_TOKENS, 0)

    def route(first: int, keep_from: int, start: int, end: int) -> list[KVPart]:
        assert first % RUN_TOKENS == keep_from % RUN_TOKENS == start % 256 == 0
        return [parts[n] for n in choose(range(first // RUN_TOKENS, keep_from // RUN_TOKENS), start)]

    for chunk in known:
        take(chunk)
    chunks.clear()
    on_chunk: OnChunk = take
    asked: Route = route
    context.stream(prefix, tokens, policy, on_chunk, route=asked, **more)  # type: ignore[arg-type]  # as it has them
    return chunks


def test_with_all_that_left_the_window_put_back_it_is_plain_decoding(
    model: LlamaModel, long_context: LlamaKVContext
) -> None:
    prefix, tokens = prefix_of(model), document(model, 1500)
    wanted = stream_values(prefill(long_context, prefix, tokens, EXACT))
    for policy in (PrefillPolicy("window", 128, 0, 12), PrefillPolicy("window", 256, 128, 9)):
        got = stream_values(recalling(long_context, prefix, tokens, policy, everything))
        for one, two in zip(got, wanted, strict=True):
            assert differs(one, two) < NOISE
    window = stream_values(prefill(long_context, prefix, tokens, PrefillPolicy("window", 128)))
    assert differs(window[1], wanted[1]) > NOISE  # the oracle can tell


def test_with_nothing_put_back_it_is_the_window_bit_for_bit(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    prefix, tokens = prefix_of(model), document(model, 700)
    wanted = prefill(context, prefix, tokens, PrefillPolicy("window", 256, 128))
    got = recalling(
        context, prefix, tokens, PrefillPolicy("window", 256, 128, 2), lambda candidates, start: ()
    )
    for one, two in zip(got, wanted, strict=True):
        assert (one.state.positions == two.state.positions).all()
        for layer in range(one.state.n_layer):
            assert (one.state.keys(layer) == two.state.keys(layer)).all()
            assert (one.state.values(layer) == two.state.values(layer)).all()


def test_only_what_is_put_back_is_attended(model: LlamaModel, context: LlamaKVContext) -> None:
    policy, tokens = PrefillPolicy("window", 128, 0, 2), document(model, 2400)
    third = [*tokens[:260], *tokens[600:640], *tokens[300:]]  # differs in run 2
    fourth = [*tokens[:390], *tokens[600:640], *tokens[430:]]  # in run 3
    one, two, three = (
        stream_values(recalling(context, (), t, policy, third_and_fifth))[1] for t in (tokens, third, fourth)
    )
    assert differs(one[-256:], two[-256:]) > NOISE
    assert (one[1280:] == three[1280:]).all()


@pytest.mark.parametrize("highest", [0, HIGHEST_POSITION])
def test_a_chunk_is_what_is_decoded_behind_prefix_sinks_runs_and_window(
    model: LlamaModel, context: LlamaKVContext, monkeypatch: pytest.MonkeyPatch, highest: int
) -> None:
    """Where prefix and window just came together, nothing stands between; place() is the oracle."""
    monkeypatch.setattr("localctx.engine.prefill.HIGHEST_POSITION", highest)
    prefix, tokens = prefix_of(model), document(model, 2700)
    policy = PrefillPolicy("window", 128, 128, 2)
    chunks = recalling(context, prefix, tokens, policy, third_and_fifth)
    n_before = len(prefix) + 4 * RUN_TOKENS
    assert all(chunk.state.positions.max() < 1024 for chunk in chunks) == (highest == 0)
    rebased = just_rebased(context, len(prefix), chunks, policy)
    for chunk in (rebased[0], rebased[-1]):
        runs = [0, 2, 4, chunk.first // RUN_TOKENS - 1]
        attended = [token for run in runs for token in tokens[run * RUN_TOKENS : (run + 1) * RUN_TOKENS]]
        parts = [
            KVPart(encoded(chunks[run // 2]), run % 2 * RUN_TOKENS, RUN_TOKENS, len(prefix) + n * RUN_TOKENS)
            for n, run in enumerate(runs)
        ]
        own = tokens[chunk.first : chunk.first + chunk.n_tokens]
        assert context.place([*prefix, *attended, *own], parts) == len(prefix) + chunk.n_tokens
        state = context.export(n_before, n_before + chunk.n_tokens)
        oracle = KVChunk(chunk.first, chunk.n_tokens, state, chunk.rope)
        for one, two in zip(stream_values([oracle]), stream_values([chunk]), strict=True):
            assert differs(one, two) < NOISE


def test_a_stream_goes_on_from_what_was_stored(model: LlamaModel, context: LlamaKVContext) -> None:
    prefix, tokens = prefix_of(model), document(model, 2300)
    policy = PrefillPolicy("window", 128, 0, 2)
    whole = recalling(context, prefix, tokens, policy, third_and_fifth)
    for n in (1, 3, 6):
        left = [KVPart(encoded(chunk), 0, 256, 0) for chunk in whole[:n]]
        rest = recalling(
            context, prefix, tokens, policy, third_and_fifth, whole[:n], first=256 * n, left=left
        )
        for one, two in zip(rest, whole[n:], strict=True):
            assert (one.first, list(one.state.positions)) == (two.first, list(two.state.positions))
        for got, wanted in zip(stream_values(rest), stream_values(whole), strict=True):
            assert differs(got, wanted[256 * n :]) < NOISE


def test_what_cannot_be_is_refused(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 1200)
    policy = PrefillPolicy("window", 128, 0, 1)
    with pytest.raises(ValueError, match="which earlier runs"):
        prefill(context, (), tokens, policy)
    with pytest.raises(ValueError, match="inside a chunk"):
        recalling(context, (), tokens, policy, everything, first=128)
    with pytest.raises(ValueError, match="there is room for"):
        recalling(context, (), tokens, policy, lambda candidates, start: [*candidates, *candidates])
    with pytest.raises(UsageError, match=r"needs 1,\d\d\d tokens of context") as error:
        recalling(context, (), tokens, PrefillPolicy("window", 128, 0, 8), everything)
    assert "routed=K" in error.value.hint
