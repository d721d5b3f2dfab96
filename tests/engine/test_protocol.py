"""What every engine promises (values.Model, values.Context), run over the fake and a tiny llama."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from engine.conftest import ask, collect, text_of

from localctx.engine.echo import EchoModel
from localctx.engine.llama import open_model
from localctx.errors import LocalctxError, UsageError
from localctx.values import Message, Model, Prompt, Request, Sampling

LONG = "the ships that come in the evening bring salt, rope and news of the island " * 4


@pytest.fixture(params=["echo", "llama", "llama-spm"])
def model(request: pytest.FixtureRequest) -> Iterator[Model]:
    if request.param == "echo":
        model: Model = EchoModel(n_ctx_train=2048)
    else:
        name = "tiny_model_path" if request.param == "llama" else "tiny_spm_path"
        path: Path = request.getfixturevalue(name)
        model = open_model(path)
    yield model
    model.close()


def test_info_is_there_before_any_context(model: Model) -> None:
    assert model.info.n_ctx_train == 2048
    assert model.info.n_vocab > 256
    assert model.info.fingerprint


def test_the_last_piece_of_each_request_and_it_alone_has_the_reason(model: Model) -> None:
    context = model.open_context(1024, 2)
    requests = [ask(model, f"{LONG}{i}", max_tokens=5 + i) for i in range(5)]
    for number, pieces in enumerate(collect(context, requests)):
        assert [piece.finish_reason for piece in pieces[:-1]] == [None] * (len(pieces) - 1)
        assert pieces[-1].finish_reason in ("stop", "length")
        if pieces[-1].finish_reason == "length":
            assert pieces[-1].n_generated == 5 + number


def test_progress_counts_all_prompt_tokens_up_to_the_sum(model: Model) -> None:
    context = model.open_context(1024, 2)
    requests = [ask(model, f"{i} {LONG}", max_tokens=2) for i in range(3)]
    seen: list[tuple[int, int]] = []
    for _ in context.generate(requests, lambda done, total: seen.append((done, total))):
        pass
    total = sum(len(request.prompt.tokens) for request in requests)
    assert seen[-1] == (total, total)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_a_prompt_that_cannot_fit_is_refused_before_any_work(model: Model) -> None:
    context = model.open_context(256)
    request = Request(Prompt(tuple([5] * 256)))
    with pytest.raises(UsageError, match=r"256 tokens, context of 256"):
        context.generate([ask(model, "hello"), request])


def test_the_largest_prompt_that_fits_gives_one_token(model: Model) -> None:
    tokens = model.tokenize(LONG * 20)[:255]
    context = model.open_context(256)
    pieces = collect(context, [Request(Prompt(tuple(tokens)), Sampling(max_tokens=100))])[0]
    assert (pieces[-1].finish_reason, pieces[-1].n_generated) in [("length", 1), ("stop", 0)]


def test_a_context_longer_than_trained_is_refused_with_the_options_to_change(model: Model) -> None:
    with pytest.raises(UsageError, match=r"4096.*2,048") as caught:
        model.open_context(4096)
    assert "--ctx 2048" in caught.value.hint
    assert "--force" in caught.value.hint


def test_cancel_before_the_first_piece_ends_everything(model: Model) -> None:
    context = model.open_context(1024, 2)
    requests = [ask(model, f"{LONG}{i}", max_tokens=50) for i in range(4)]
    stream = context.generate(requests)
    context.cancel()
    assert [piece.finish_reason for piece in stream] == ["cancelled"] * 4


def test_cancel_from_another_thread_leaves_the_context_usable(model: Model) -> None:
    context = model.open_context(2048, 2)
    requests = [ask(model, f"{LONG}{i}", max_tokens=400) for i in range(3)]
    reasons = {}
    for piece in context.generate(requests):
        thread = threading.Thread(target=context.cancel)
        thread.start()
        thread.join()
        if piece.finish_reason:
            reasons[piece.request] = piece.finish_reason
    assert set(reasons) == {0, 1, 2}
    assert "cancelled" in reasons.values()
    again = ask(
        model, f"{LONG}0", max_tokens=12
    )  # few: on random weights rounding soon decides between equals
    after = collect(context, [again])[0]
    fresh = collect(model.open_context(2048, 2), [again])[0]
    assert text_of(after) == text_of(fresh)


def test_an_abandoned_stream_does_not_block_the_next(model: Model) -> None:
    context = model.open_context(1024, 2)
    kept = context.generate([ask(model, LONG, max_tokens=30)])
    next(kept, None)
    text = text_of(collect(context, [ask(model, "news of the island", max_tokens=8)])[0])
    assert text == text_of(
        collect(model.open_context(1024, 2), [ask(model, "news of the island", max_tokens=8)])[0]
    )
    assert [(piece.request, piece.finish_reason) for piece in kept][-1:] == [(0, "cancelled")]
    assert list(kept) == []


def test_a_stream_that_another_call_ends_still_finishes_each_request(model: Model) -> None:
    context = model.open_context(1024, 2)
    requests = [ask(model, f"{LONG[:120]}{i}", max_tokens=12) for i in range(4)]
    for n_taken in (0, 1, 9):
        stream = context.generate(requests)
        pieces = [piece for piece, _ in zip(stream, range(n_taken), strict=False)]
        collect(context, [ask(model, "news", max_tokens=2)])
        pieces += stream
        ends = [piece.request for piece in pieces if piece.finish_reason]
        assert sorted(ends) == [0, 1, 2, 3]
        assert "cancelled" in {piece.finish_reason for piece in pieces}
        last = {piece.request: piece.finish_reason for piece in pieces}
        assert None not in last.values()
    stream = context.generate(requests)
    context.close()
    assert [piece.finish_reason for piece in stream] == ["cancelled"] * 4


def test_a_context_has_notices_to_show(model: Model) -> None:
    for notices in (model.info.notices, model.open_context(256).notices):
        assert isinstance(notices, tuple)
        assert all(notice and "\n" not in notice for notice in notices)


def test_a_second_question_on_the_same_text_evaluates_the_tail_only(model: Model) -> None:
    context = model.open_context(1024)
    first = ask(model, LONG + "one?", max_tokens=6)
    second = ask(model, LONG + "two?", max_tokens=6)
    collect(context, [first])
    warm = collect(context, [second])[0]
    cold = collect(model.open_context(1024), [second])[0]
    assert text_of(warm) == text_of(cold)
    assert cold[-1].n_evaluated == len(second.prompt.tokens)
    assert warm[-1].n_evaluated < 30


def test_closed_things_say_so(model: Model) -> None:
    context = model.open_context(256)
    context.close()
    context.close()
    with pytest.raises(LocalctxError, match="closed"):
        context.generate([ask(model, "hello")])
    open_one = model.open_context(256)
    model.close()
    model.close()
    with pytest.raises(LocalctxError, match="closed"):
        open_one.generate([Request(Prompt((5,)))])


def test_content_tokens_concatenate_when_cut_before_a_space(model: Model) -> None:
    text = LONG + "ünï 😀 日本語 of the island"
    cut = text.index(" rope")
    assert model.tokenize(text) == model.tokenize(text[:cut]) + model.tokenize(text[cut:], first=False)


def test_fragments_of_one_message_are_data_of_one_turn(model: Model) -> None:
    system = Message("system", ("be brief",))
    parts = model.prompt([system, Message("user", ("a question", " about this"))])
    whole = model.prompt([system, Message("user", ("a question about this",))])
    turns = model.prompt([system, Message("user", ("a question",)), Message("user", (" about this",))])
    assert parts.tokens == whole.tokens
    assert len(turns.tokens) > len(parts.tokens)


def test_a_generator_that_is_dropped_frees_its_place(model: Model) -> None:
    context = model.open_context(512)
    for _ in range(3):
        next(context.generate([ask(model, LONG[:200], max_tokens=9)]), None)
        gc.collect()
    assert collect(context, [ask(model, "hello", max_tokens=1)])[0][-1].finish_reason in ("stop", "length")
