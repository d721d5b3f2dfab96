"""Requests that come and go in one cache, put together from kept KV: as if each had the cache for itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest
from engine.kv_tools import NOISE, differs, document, parts_at, prefill, stream_values
from engine.tiny_architectures import write_architecture

from localctx._native import State
from localctx.engine import restoring
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.open_batch import OpenBatch
from localctx.engine.options import EngineOptions
from localctx.errors import LocalctxError, UsageError
from localctx.kv import KVChunk, KVPart, PrefillPolicy, Shared
from localctx.values import Piece, Prompt, Request, Sampling

EXACT = PrefillPolicy("exact")
N_TOKENS = 300


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Trained for 1,024 positions, evaluated 256 tokens at a time."""
    path = write_architecture(tmp_path_factory.mktemp("batch") / "short.gguf", "llama", n_ctx_train=1024)
    with open_model(path, EngineOptions(n_batch=256)) as opened:
        yield opened


@pytest.fixture(scope="module")
def chunks(model: LlamaModel) -> list[KVChunk]:
    with model.open_kv_context(1024) as context:
        return prefill(context, (), document(model, N_TOKENS), EXACT)


@pytest.fixture
def batch(model: LlamaModel) -> Iterator[OpenBatch]:
    with model.open_kv_context(2048, 3, n_longest=1024) as context:
        opened = context.open_batch()
        yield opened
        opened.close()


def request(tokens: Sequence[int], max_tokens: int = 12) -> Request:
    return Request(Prompt(tuple(tokens)), Sampling(max_tokens=max_tokens))


def without(parts: Sequence[KVPart], *gaps: tuple[int, int]) -> list[KVPart]:
    """The parts without the positions of the gaps."""
    kept = []
    for part in parts:
        at = part.position
        for start, end in [*gaps, (1 << 20, 1 << 20)]:
            stop = min(max(start, at), part.position + part.n_tokens)
            if stop > at:
                kept.append(KVPart(part.source, part.first + at - part.position, stop - at, at))
            at = max(at, end)
    return kept


def alone(model: LlamaModel, tokens: Sequence[int], parts: Sequence[KVPart], one: Request) -> str:
    """The answer in a context of its own."""
    with model.open_kv_context(1024) as context:
        context.place(tokens, parts)
        return "".join(piece.text for piece in context.generate([one]))


def run(batch: OpenBatch) -> dict[int, list[Piece]]:
    pieces: dict[int, list[Piece]] = {}
    while not batch.is_idle:
        for piece in batch.step():
            pieces.setdefault(piece.request, []).append(piece)
    return pieces


def text_of(pieces: Sequence[Piece]) -> str:
    return "".join(piece.text for piece in pieces)


@pytest.mark.parametrize("slice_bytes", [1, 1 << 30])
def test_answers_are_those_of_a_context_for_each(
    model: LlamaModel,
    batch: OpenBatch,
    chunks: list[KVChunk],
    slice_bytes: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(restoring, "SLICE_BYTES", slice_bytes)
    tokens, parts = document(model, N_TOKENS), parts_at(chunks, 0)
    gaps = [
        (),
        ((0, 20),),
        ((40, 41), (130, 170), (171, 175), (290, 300)),
        ((128, 256),),
        ((5, 9), (299, 300)),
    ]
    wanted, numbers = [], []
    for number, some in enumerate(gaps):
        kept = without(parts, *some)
        prompt = [*tokens, *model.tokenize(f" {number}. The clerk says")]
        wanted.append((alone(model, tokens, kept, request(prompt)), prompt, kept))
    for _, prompt, kept in wanted:
        numbers.append(batch.submit(request(prompt), kept, Shared(str(kept).encode(), 0)))
    pieces = run(batch)
    assert [text_of(pieces[number]) for number in numbers] == [text for text, _, _ in wanted]
    for number, (_, prompt, kept) in zip(numbers, wanted, strict=True):
        assert pieces[number][-1].n_evaluated == len(prompt) - sum(part.n_tokens for part in kept)
    assert len({text for text, _, _ in wanted}) > 1


def test_what_is_made_of_the_same_is_there_once(
    model: LlamaModel, batch: OpenBatch, chunks: list[KVChunk]
) -> None:
    tokens, parts = document(model, N_TOKENS), without(parts_at(chunks, 0), (100, 110))
    prompts = [[*tokens, *model.tokenize(f" {number}. The price of")] for number in range(3)]
    expected = [alone(model, tokens, parts, request(prompt)) for prompt in prompts]
    shared = Shared(b"the same", N_TOKENS)
    for prompt in prompts:
        batch.submit(request(prompt), parts, shared)
    pieces = run(batch)
    assert [text_of(pieces[number]) for number in range(3)] == expected
    assert pieces[0][-1].n_evaluated == len(prompts[0]) - N_TOKENS + 10
    assert all(pieces[number][-1].n_evaluated == len(prompts[number]) - N_TOKENS for number in (1, 2))
    other = batch.submit(request(prompts[0]), parts, Shared(b"another", N_TOKENS))
    assert run(batch)[other][-1].n_evaluated == pieces[0][-1].n_evaluated


def test_what_ended_can_be_taken_out_until_the_next_step(
    model: LlamaModel, batch: OpenBatch, chunks: list[KVChunk]
) -> None:
    tokens = document(model, N_TOKENS)
    number = batch.submit(request([*tokens, *model.tokenize(" So")]), without(parts_at(chunks, 0), (64, 96)))
    run(batch)
    state: State = batch.export(number, 60, 100)
    assert list(state.positions) == list(range(60, 100))
    _, values = stream_values(chunks)
    assert differs(state.values(state.n_layer - 1), values[60:100]) < NOISE
    batch.step()
    with pytest.raises(KeyError):
        batch.export(number, 60, 100)


def test_a_cancelled_request_leaves_no_cell_behind(
    model: LlamaModel, batch: OpenBatch, chunks: list[KVChunk]
) -> None:
    tokens, parts = document(model, N_TOKENS), parts_at(chunks, 0)
    prompt = [*tokens, *model.tokenize(" The clerk")]
    for _ in range(8):  # of 2,048 cells these would take more
        first = batch.submit(request(prompt), without(parts, (0, 200)), Shared(b"x", 0))
        second = batch.submit(request(prompt), without(parts, (0, 250)), Shared(b"y", 0))
        batch.step()
        batch.cancel(first)
        batch.cancel(second)
        batch.cancel(second)
        assert batch.is_idle
        assert batch.step() == []
    number = batch.submit(request(prompt), parts)
    assert text_of(run(batch)[number]) == alone(model, tokens, parts, request(prompt))


def test_a_stop_ends_all_and_says_so(model: LlamaModel, batch: OpenBatch) -> None:
    for number in range(5):
        batch.submit(request(model.tokenize(f"{number} The clerk"), 50))
    batch.step()
    batch.stop()
    last = {piece.request: piece.finish_reason for piece in batch.step()}
    assert last == dict.fromkeys(range(5), "cancelled")
    assert batch.is_idle


def test_what_cannot_be_is_refused(model: LlamaModel, batch: OpenBatch, chunks: list[KVChunk]) -> None:
    tokens, parts = document(model, N_TOKENS), parts_at(chunks, 0)
    with pytest.raises(UsageError, match="does not fit"):
        batch.submit(request([5] * 3000))
    with pytest.raises(ValueError, match="another up to"):
        batch.submit(request([*tokens, 5]), [*parts, parts[0]])
    with pytest.raises(ValueError, match="evaluates nothing"):
        batch.submit(request(tokens), parts)
    with pytest.raises(ValueError, match="rows"):
        batch.submit(request([*tokens, 5]), [KVPart(chunks[0].state, 200, 100, 0)])
    assert batch.is_idle
    batch.close()
    with pytest.raises(LocalctxError, match="closed"):
        batch.step()


def test_the_context_is_the_batch_s_own_until_it_is_closed(model: LlamaModel) -> None:
    with model.open_kv_context(512, 2) as context:
        opened = context.open_batch()
        with pytest.raises(LocalctxError, match="at work"):
            context.place([5, 6], ())
        opened.close()
        assert context.place([5, 6], ()) == 2


def test_together_they_may_be_longer_than_training_but_not_one_alone(model: LlamaModel) -> None:
    with model.open_kv_context(4096, 4, n_longest=1024) as context:
        assert isinstance(context, LlamaKVContext)
        assert context.n_ctx == 4096
    with pytest.raises(UsageError, match="trained for"):
        model.open_kv_context(4096, 4)
    with pytest.raises(UsageError, match="trained for"):
        model.open_kv_context(4096, 4, n_longest=2048)
