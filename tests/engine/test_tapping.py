"""Texts decoded beside a prefill: what they see, that the prefill's own KV stays what it was, stops."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from engine.conftest import collect, text_of
from engine.kv_tools import NOISE, differs, document, parts_at, prefill, stream_values
from engine.tiny_architectures import write_architecture

from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.kv import KVChunk, PrefillPolicy
from localctx.kv_taps import Tap, Tapped, TappingContext, Taps
from localctx.values import Prompt, Request, Sampling

N_ANSWER = 12
EXACT = PrefillPolicy("exact", 0)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Two layers, trained for 1,024 positions, evaluated 128 tokens at a time."""
    path = write_architecture(tmp_path_factory.mktemp("kv") / "tapped.gguf", "llama", n_ctx_train=1024)
    with open_model(path, EngineOptions(n_batch=128)) as opened:
        yield opened


@pytest.fixture(scope="module")
def context(model: LlamaModel) -> LlamaKVContext:
    """Cells for long streams with taps."""
    return model.open_kv_context(4096, n_longest=1024)


def asked(model: LlamaModel, text: str = " What is said here?") -> Request:
    """The end of a prompt; drawn tokens: the likeliest one is always the last one."""
    sampling = Sampling(temperature=20.0, top_k=0, top_p=1.0, min_p=0.0, seed=7, max_tokens=N_ANSWER)
    return Request(Prompt(tuple(model.tokenize(text))), sampling)


def tapped(
    context: LlamaKVContext,
    prefix: list[int],
    tokens: list[int],
    policy: PrefillPolicy,
    spans: list[tuple[int, int]],
    n_side: int = 4,
) -> tuple[list[KVChunk], dict[int, Tapped]]:
    """The chunks of a stream, and what came of its taps."""
    request, found = asked(context._model), dict[int, Tapped]()  # type: ignore[arg-type]  # it is a LlamaModel
    taps = Taps(
        [Tap(start, end, lambda: request) for start, end in spans],
        lambda one: found.update({one.number: one}),
        n_side,
        len(request.prompt.tokens) + N_ANSWER,
    )
    with context.tapping(taps):
        return prefill(context, prefix, tokens, policy), found


def test_a_text_is_what_the_same_prompt_gives_alone(model: LlamaModel, context: LlamaKVContext) -> None:
    """The first span follows the prefix: its text is that of a plain prompt of prefix, span and question."""
    assert isinstance(context, TappingContext)
    prefix, tokens = model.tokenize("The clerk reads: "), document(model, 600)
    request = asked(model)
    spans = [(0, 5), (0, 170), (170, 341), (341, 600)]
    assert len(prefix) > 5
    _, found = tapped(context, prefix, tokens, EXACT, spans)
    for number, (_, end) in enumerate(spans[:2]):
        whole = Prompt((*prefix, *tokens[:end], *request.prompt.tokens))
        alone = text_of(collect(context, [Request(whole, request.sampling)])[0])
        assert found[number].text == alone
    assert found[0].n_generated == N_ANSWER
    assert found[0].n_evaluated == len(request.prompt.tokens)
    assert sorted(found) == [0, 1, 2, 3]


def test_the_prefill_gives_the_same_kv_with_taps_and_without(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    """Positions are taken back on the way, and more spans end than are decoded side by side."""
    prefix, tokens = model.tokenize("The clerk reads: "), document(model, 2000)
    window = PrefillPolicy("window", 256)
    spans = [(start, min(start + 90, 2000)) for start in range(0, 2000, 90)]
    chunks, found = tapped(context, prefix, tokens, window, spans, n_side=2)
    plain = prefill(context, prefix, tokens, window)
    for got, wanted in zip(stream_values(chunks), stream_values(plain), strict=True):
        assert differs(got, wanted) < NOISE
    assert [chunk.first for chunk in chunks] == sorted(chunk.first for chunk in chunks)
    assert sorted(found) == list(range(len(spans)))
    assert all(one.finish_reason in ("stop", "length") for one in found.values())
    assert not context.held_tokens


def test_a_text_sees_the_span_and_nothing_after_it(model: LlamaModel, context: LlamaKVContext) -> None:
    """Other text behind the span changes nothing, other text in it does."""
    prefix, tokens = model.tokenize("The clerk reads: "), document(model, 500)
    spans = [(0, 200)]
    first = tapped(context, prefix, tokens, EXACT, spans)[1][0].text
    behind = tapped(context, prefix, [*tokens[:200], *tokens[100:400]], EXACT, spans)[1][0].text
    inside = tapped(context, prefix, [*tokens[150:350], *tokens[200:]], EXACT, spans)[1][0].text
    assert behind == first
    assert inside != first


def test_a_stop_leaves_nothing_open(model: LlamaModel, context: LlamaKVContext) -> None:
    """Stopped while a text is on its way: it is not told, and the context serves on."""
    tokens, told = document(model, 600), list[Tapped]()

    def stopping() -> Request:
        context.cancel()
        return asked(model)

    taps = Taps([Tap(0, 300, stopping)], told.append, 2, 64)
    with context.tapping(taps):
        chunks = prefill(context, [], tokens, EXACT)
    assert sum(chunk.n_tokens for chunk in chunks) < 600
    assert not told
    assert text_of(collect(context, [asked(model)])[0])


def test_taps_that_end_before_a_prefill_goes_on_are_left_out(
    model: LlamaModel, context: LlamaKVContext
) -> None:
    """Going on from stored KV, a span that began before is seen whole."""
    tokens = document(model, 512)
    chunks = prefill(context, [], tokens[:256], EXACT)
    request, found = asked(model), list[Tapped]()
    spans = [(0, 200), (200, 400), (400, 512)]
    taps = Taps([Tap(a, b, lambda: request) for a, b in spans], found.append, 2, 64)
    with context.tapping(taps):
        prefill(context, [], tokens, EXACT, first=256, left=parts_at(chunks, 0))
    assert sorted(one.number for one in found) == [1, 2]
    assert found[0].text == tapped(context, [], tokens, EXACT, spans)[1][1].text


def test_independent_units_have_none(model: LlamaModel, context: LlamaKVContext) -> None:
    taps = Taps([], lambda one: None, 1, 8)
    with context.tapping(taps), pytest.raises(ValueError, match="independent"):
        prefill(context, [], document(model, 256), PrefillPolicy("independent", 0))
    assert np.isfinite(prefill(context, [], document(model, 256), EXACT)[0].state.keys(0)).all()
