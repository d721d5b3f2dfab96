"""KV taken out, moved and put back: streams, placed parts, cancelling. Tiny models, real llama.cpp."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.conftest import ask, collect, text_of
from engine.kv_tools import NOISE, differs, document, logits_after, parts_at, prefill, stream_values
from engine.tiny_architectures import write_architecture

from localctx._native import Run, encode
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.errors import LocalctxError, UsageError
from localctx.kv import KVChunk, KVPart, PrefillPolicy
from localctx.values import Prompt, Request, Sampling

SMALL_BATCH = EngineOptions(n_batch=128)
WINDOW = PrefillPolicy("window", 128)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Two layers, trained for 512 positions, evaluated 128 tokens at a time."""
    path = write_architecture(tmp_path_factory.mktemp("kv") / "short.gguf", "llama", n_ctx_train=512)
    with open_model(path, SMALL_BATCH) as opened:
        yield opened


@pytest.fixture(scope="module")
def context(model: LlamaModel) -> LlamaKVContext:
    return model.open_kv_context(512, n_outputs=16)


@pytest.fixture(scope="module")
def long_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaKVContext]:
    """The same weights, trained for 8,192 positions."""
    path = write_architecture(tmp_path_factory.mktemp("kv") / "long.gguf", "llama", n_ctx_train=8192)
    with open_model(path, SMALL_BATCH) as opened:
        yield opened.open_kv_context(1024)


def encoded(chunk: KVChunk) -> Run:
    """The chunk as f16 run."""
    return Run(encode(chunk.state, 0, chunk.n_tokens, chunk.rope, "f16"))


def prefix_of(model: LlamaModel) -> list[int]:
    return model.tokenize("The clerk reads this: ")


# --- streams -------------------------------------------------------------------------------------------


def test_with_a_window_as_long_as_the_document_it_is_plain_decoding(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    prefix, tokens, question = prefix_of(model), document(model, 300), model.tokenize("What was the price?")
    for policy in (PrefillPolicy("exact"), PrefillPolicy("window", 384)):
        chunks = prefill(context, prefix, tokens, policy)
        assert [(chunk.first, chunk.n_tokens) for chunk in chunks] == [(0, 128), (128, 128), (256, 44)]
        whole = [*prefix, *tokens]
        assert context.place(whole, parts_at(chunks, len(prefix))) == len(prefix)
        got = logits_after(context, question)
        assert context.place(whole, ()) == len(whole)
        assert differs(got, logits_after(context, question)) < NOISE


@pytest.mark.parametrize(("highest", "end"), [(0, 512), (1200, 1200), (10**6, 3000)])
def test_positions_past_the_trained_range_are_taken_back_again_and_again(
    model: LlamaModel,
    context: LlamaKVContext,
    long_context: LlamaKVContext,
    monkeypatch: pytest.MonkeyPatch,
    highest: int,
    end: int,
) -> None:
    """Without a prefix only distances matter, so the same weights with 8,192 positions are the oracle."""
    monkeypatch.setattr("localctx.engine.prefill.HIGHEST_POSITION", highest)
    tokens = document(model, 3000)
    got = prefill(context, (), tokens, WINDOW)
    assert context.n_rebased > 5
    wanted = prefill(long_context, (), tokens, WINDOW)
    assert long_context.n_rebased == 0
    assert [chunk.first for chunk in got] == list(range(0, 3000, 128))
    assert max(chunk.state.positions.max() for chunk in got) < end
    assert wanted[-1].state.positions.max() == 2999
    for chunk in got:
        assert (np.diff(chunk.state.positions) == 1).all()
    for one, two in zip(stream_values(got), stream_values(wanted), strict=True):
        assert differs(one, two) < NOISE


@pytest.mark.parametrize("policy", [WINDOW, PrefillPolicy("window", 128, 128)])
def test_prefix_and_sinks_that_follow_the_window_are_the_window_that_comes_to_them(
    model: LlamaModel, context: LlamaKVContext, monkeypatch: pytest.MonkeyPatch, policy: PrefillPolicy
) -> None:
    prefix, tokens = prefix_of(model), document(model, 2500)
    followed = stream_values(prefill(context, prefix, tokens, policy))
    assert context.n_rebased > 3
    for highest in (0, 1200):
        monkeypatch.setattr("localctx.engine.prefill.HIGHEST_POSITION", highest)
        chunks = prefill(context, prefix, tokens, policy)
        for one, two in zip(followed, stream_values(chunks), strict=True):
            assert differs(one, two) < NOISE
        left = parts_at(chunks[:14], 0)  # as stored, where positions were taken back or prefixes lifted
        rest = stream_values(prefill(context, prefix, tokens, policy, first=14 * 128, left=left))
        for one, two in zip(followed, rest, strict=True):
            assert differs(one[14 * 128 :], two) < NOISE


def test_what_left_the_window_is_not_attended(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 1100)
    other = [*tokens[200:228], *tokens[28:]]  # differs in the first 28 tokens
    one, two = (stream_values(prefill(context, (), t, WINDOW))[1] for t in (tokens, other))
    assert differs(one[128:256], two[128:256]) > NOISE  # they saw it
    # a layer sees one window, the layer above it two: nothing remains of it after that
    assert (one[512:] == two[512:]).all()


def test_the_prefix_is_always_attended(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 1500)
    one = stream_values(prefill(context, prefix_of(model), tokens, WINDOW))[1]
    two = stream_values(prefill(context, prefix_of(model)[::-1], tokens, WINDOW))[1]
    assert differs(one[-128:], two[-128:]) > NOISE


def test_a_stream_goes_on_from_what_was_stored(model: LlamaModel, context: LlamaKVContext) -> None:
    """Even where positions were taken back before, and with a prefix, to which distances count."""
    tokens, prefix = document(model, 900), prefix_of(model)
    for policy, n_left in ((WINDOW, 128), (PrefillPolicy("window", 256), 384)):
        whole = prefill(context, prefix, tokens, policy)
        left = [KVPart(encoded(chunk), 0, 128, 0) for chunk in whole[:4]][-n_left // 128 :]
        rest = prefill(context, prefix, tokens, policy, first=512, left=left)
        assert [chunk.first for chunk in rest] == [512, 640, 768, 896]
        for one, two in zip(stream_values(rest), stream_values(whole), strict=True):
            assert differs(one, two[512:]) < NOISE


def test_lazy_gives_a_passage_alone_what_it_has_in_the_whole(
    model: LlamaModel, long_context: LlamaKVContext
) -> None:
    tokens, prefix = document(model, 900), prefix_of(model)
    policy = PrefillPolicy("lazy", 200)  # 256 in whole runs
    whole = prefill(long_context, prefix, tokens, policy)
    assert sum(chunk.n_tokens for chunk in whole) == 900
    left = [KVPart(encoded(chunk), 0, chunk.n_tokens, 0) for chunk in whole if chunk.first < 640]
    for first, end, given in ((512, 640, 0), (128, 300, 1), (640, 850, 1), (640, 768, 5)):
        alone = prefill(
            long_context,
            prefix,
            tokens[:end],
            policy,
            first=first,
            left=left[first // 128 - given : first // 128],
        )
        for got, wanted in zip(stream_values(alone), stream_values(whole), strict=True):
            assert len(got) == end - first
            assert differs(got, wanted[first:end]) < NOISE


def test_lazy_evaluates_the_segment_before_and_no_more(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens, prefix = document(model, 900), prefix_of(model)
    n = context.stream(prefix, tokens[:640], PrefillPolicy("lazy", 128), lambda chunk: None, first=512)
    assert n == len(prefix) + 128 + 128


@pytest.mark.parametrize("starts", [(), (0, 100, 130, 400, 420)])
def test_independent_units_see_the_prefix_and_themselves(starts: tuple[int, ...], tmp_path: Path) -> None:
    """Side by side (a batch of 512) and alone (one of 128) they are the same."""
    path = write_architecture(tmp_path / "m.gguf", "llama")
    results = []
    for n_batch in (512, 128):
        with open_model(path, EngineOptions(n_batch=n_batch)) as model:
            context, tokens, prefix = model.open_kv_context(600), document(model, 500), prefix_of(model)
            chunks = prefill(context, prefix, tokens, PrefillPolicy("independent"), units=starts)
            assert chunks[0].first == 0
            for chunk in chunks:
                n_before = chunk.first - max(
                    start for start in (starts or range(0, 500, 128)) if start <= chunk.first
                )
                assert chunk.state.positions[0] == len(prefix) + n_before
            results.append(stream_values(chunks))
            alone = tokens[400:420]
            got = prefill(context, prefix, alone, PrefillPolicy("exact"))
            if starts:
                assert differs(stream_values(got)[1], results[-1][1][400:420]) < NOISE
    for one, two in zip(*results, strict=True):
        assert len(one) == 500
        assert differs(one, two) < NOISE


def test_a_working_set_that_does_not_fit_is_refused_before_anything_runs(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    tokens = document(model, 900)
    for policy in (PrefillPolicy("exact"), PrefillPolicy("window", 512), PrefillPolicy("lazy", 384)):
        with pytest.raises(UsageError, match=f"policy {policy.kind} needs .* there are 512") as caught:
            context.stream((), tokens, policy, lambda chunk: None)
        assert "--ctx" in caught.value.hint


# --- cancelling ------------------------------------------------------------------------------------------


def test_cancelling_keeps_what_is_complete_and_leaves_the_context_empty(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    tokens, chunks = document(model, 900), []

    def take(chunk: KVChunk) -> None:
        chunks.append(chunk)
        if len(chunks) == 2:
            context.cancel()

    assert context.stream((), tokens, WINDOW, take) == 256
    assert [chunk.first for chunk in chunks] == [0, 128]
    assert context.cells.export_size(0) == model.open_kv_context(256).cells.export_size(0)
    request = ask(model, "Who came?", max_tokens=6)
    assert collect(context, [request])[0][-1].n_evaluated == len(request.prompt.tokens)


def test_ctrl_c_ends_it_between_two_steps(model: LlamaModel, context: LlamaKVContext) -> None:
    chunks: list[KVChunk] = []

    def take(chunk: KVChunk) -> None:
        chunks.append(chunk)
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        context.stream((), document(model, 900), WINDOW, take)
    assert len(chunks) == 1
    assert context.place(document(model, 50), ()) == 50


def test_an_error_of_the_receiver_comes_out_and_the_context_goes_on(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    def take(chunk: KVChunk) -> None:
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        context.stream((), document(model, 300), WINDOW, take)
    assert context.place(document(model, 50), ()) == 50


def test_the_cache_has_one_user_at_a_time(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 200)

    def take(chunk: KVChunk) -> None:
        with pytest.raises(LocalctxError, match="at work"):
            context.generate([ask(model, "x")])
        with pytest.raises(LocalctxError, match="at work"):
            context.place(tokens, ())
        with pytest.raises(LocalctxError, match="at work"):
            context.close()

    context.stream((), tokens, WINDOW, take)


def test_placing_stops_too_and_holds_nothing_then(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 400)
    evaluate, n_batches = context.decoder.evaluate, []

    def cancel_in_second(batch: object, **more: bool) -> bool:
        n_batches.append(1)
        if len(n_batches) == 2:
            context.cancel()
        return evaluate(batch, **more)  # type: ignore[arg-type]  # passed on

    context.decoder.evaluate = cancel_in_second  # type: ignore[method-assign]  # a look at the batches
    try:
        assert context.place(tokens, ()) < 400
    finally:
        context.decoder.evaluate = evaluate  # type: ignore[method-assign]  # as before
    request = Request(Prompt(tuple(tokens[:60])), Sampling(max_tokens=1))
    assert collect(context, [request])[0][-1].n_evaluated == 60


# --- placed parts ----------------------------------------------------------------------------------------


def test_gaps_are_evaluated_in_order_and_see_everything_before(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    """Whatever is left out of exact KV is computed again to the same: at the start, inside, at the end."""
    tokens, question = document(model, 380), model.tokenize("When was it?")
    chunks = prefill(context, (), tokens, PrefillPolicy("exact"))
    context.place(tokens, ())
    wanted = logits_after(context, question)
    holes = [(0, 30), (100, 128), (128, 140), (200, 210), (255, 300), (370, 380)]
    parts, at = [], 0
    for start, end in [*holes, (380, 380)]:
        for chunk in chunks:
            a, b = max(at, chunk.first), min(start, chunk.first + chunk.n_tokens)
            if a < b:
                parts.append(KVPart(chunk.state, a - chunk.first, b - a, a))
        at = end
    n_holes = sum(end - start for start, end in holes)
    assert context.place(tokens, parts[::-1]) == n_holes
    assert differs(logits_after(context, question), wanted) < NOISE
    first_only = [part for part in parts if part.position < 128]
    assert context.place(tokens, first_only) == 380 - 70
    assert differs(logits_after(context, question), wanted) < NOISE


def test_encoded_parts_may_stand_anywhere(model: LlamaModel, context: LlamaKVContext) -> None:
    """Independent KV moved to where the same text would have been evaluated behind nothing but the prefix."""
    prefix, tokens = prefix_of(model), document(model, 256)
    states = prefill(context, prefix, tokens, PrefillPolicy("independent"))
    runs = [KVPart(encoded(chunk), 0, 128, len(prefix)) for chunk in states]
    for i, part in enumerate(runs):
        text = tokens[128 * i : 128 * (i + 1)]
        assert context.place([*prefix, *text], [part]) == len(prefix)
        got = logits_after(context, tokens[:9])
        context.place([*prefix, *text], ())
        assert differs(got, logits_after(context, tokens[:9])) < NOISE
    both = [*prefix, *tokens[128:], *tokens[:128]]
    swapped = [runs[1], KVPart(runs[0].source, 0, 128, len(prefix) + 128)]
    assert context.place(both, swapped) == len(prefix)
    assert np.isfinite(logits_after(context, tokens[:9])).all()


def test_generate_evaluates_only_what_follows_and_says_so(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 300)
    chunks = prefill(context, (), tokens, PrefillPolicy("exact"))
    question = model.tokenize("Who writes the name of each ship?")
    request = Request(Prompt((*tokens, *question)), Sampling(max_tokens=8))
    fresh = collect(model.open_context(512), [request])[0]
    context.place(tokens, parts_at(chunks, 0))
    placed = collect(context, [request])[0]
    assert fresh[-1].n_evaluated == 300 + len(question)
    assert placed[-1].n_evaluated == len(question)
    assert text_of(placed) == text_of(fresh)
    again = collect(context, [request])[0]  # what was placed is still there
    assert again[-1].n_evaluated == 1


def test_nothing_remains_of_what_was_placed_before(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens, question = document(model, 300), model.tokenize("Who?")
    context.place(tokens[:40], ())
    wanted = logits_after(context, question)
    chunks = prefill(context, (), tokens, PrefillPolicy("exact"))
    context.place(tokens, parts_at(chunks, 0))
    context.place(tokens[:40], [KVPart(chunks[0].state, 0, 40, 0)])
    assert (np.abs(logits_after(context, question) - wanted) < NOISE * wanted.std()).all()
    context.place((), ())
    request = Request(Prompt(tuple(tokens[:40])), Sampling(max_tokens=1))
    assert collect(context, [request])[0][-1].n_evaluated == 40


def test_parts_that_overlap_or_stand_outside_are_refused(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens = document(model, 128)
    state = prefill(context, (), tokens, PrefillPolicy("exact"))[0].state
    for parts in (
        [KVPart(state, 0, 50, 0), KVPart(state, 0, 50, 40)],
        [KVPart(state, 0, 128, 1)],
        [KVPart(state, 100, 50, 0)],
    ):
        with pytest.raises(ValueError, match=r"a part at|rows \["):
            context.place(tokens, parts)
    with pytest.raises(UsageError, match="do not fit"):
        context.place(document(model, 512), ())


# --- taken out --------------------------------------------------------------------------------------------


def test_what_was_placed_and_generated_is_taken_out_and_put_back_bit_by_bit(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    tokens, question = document(model, 300), model.tokenize("Who writes the name of each ship?")
    stored = prefill(context, (), tokens[:128], PrefillPolicy("exact"))
    assert context.place(tokens, parts_at(stored, 0)) == 172
    request = Request(Prompt((*tokens, *question)), Sampling(max_tokens=8))
    first = text_of(collect(context, [request])[0])
    state = context.export(100, 300)
    assert (state.positions == np.arange(100, 300)).all()
    again = context.export(0, 300)
    for layer in range(state.n_layer):
        assert (again.keys(layer)[100:] == state.keys(layer)).all()
    assert context.place(tokens, [KVPart(again, 0, 100, 0), KVPart(state, 0, 200, 100)]) == 0
    restored = context.export(0, 300)
    for layer in range(state.n_layer):
        assert (restored.keys(layer) == again.keys(layer)).all()
        assert (restored.values(layer) == again.values(layer)).all()
    assert text_of(collect(context, [request])[0]) == first


def test_only_what_the_cache_holds_is_taken_out(model: LlamaModel, context: LlamaKVContext) -> None:
    context.place(document(model, 50), ())
    for first, end in ((0, 51), (-1, 5), (5, 5), (60, 70)):
        with pytest.raises(ValueError, match="that the cache holds"):
            context.export(first, end)
    assert context.export(0, 50).n_tokens == 50


def test_placing_says_how_far_it_is(model: LlamaModel, context: LlamaKVContext) -> None:
    tokens, steps = document(model, 400), list[tuple[int, int]]()
    chunks = prefill(context, (), tokens, PrefillPolicy("exact"))
    context.place(tokens, parts_at(chunks[1:2], 0), lambda done, total: steps.append((done, total)))
    assert steps == [(128, 272), (256, 272), (272, 272)]


# --- logits -----------------------------------------------------------------------------------------------


def test_scored_tokens_are_forgotten_and_come_in_small_batches(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    tokens = document(model, 200)
    context.place(tokens[:100], ())
    firsts: list[int] = []
    assert context.score(tokens[100:150], lambda first, rows: firsts.append((first, *rows.shape))) == 50
    assert firsts == [(first, 16 if first < 48 else 2, model.info.n_vocab) for first in (0, 16, 32, 48)]
    one, two = logits_after(context, tokens[100:150]), logits_after(context, tokens[100:150])
    assert (one == two).all()
    request = Request(Prompt(tuple(tokens[:120])), Sampling(max_tokens=1))
    assert collect(context, [request])[0][-1].n_evaluated == 20
