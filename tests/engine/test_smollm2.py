"""The embedded model itself: it loads, answers, and answers the same from shared cells and in parallel."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest
from engine.conftest import ask, check_buffers, collect, text_of
from engine.kv_tools import logits_after, prefill
from engine.tiny_gguf import TRAINING_TEXT

from localctx._native import Run, encode
from localctx.engine.llama import LlamaModel, open_model
from localctx.kv import KVPart, PrefillPolicy
from localctx.values import Request, Sampling

pytestmark = [pytest.mark.model, pytest.mark.slow]

NOTE = "The ferry to Vlieland leaves Harlingen at 9:05 and takes 95 minutes. Tickets cost 31 euros. "


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[LlamaModel]:
    with open_model(smollm2_path) as model:
        yield model


def test_facts_and_rope_are_those_of_the_file(smollm2: LlamaModel) -> None:
    assert (smollm2.info.n_ctx_train, smollm2.info.n_layer, smollm2.info.n_vocab) == (8192, 30, 49152)
    context = smollm2.open_context(512)
    assert (context.rope.type, context.rope.freq_base, context.rope.freq_scale) == ("norm", 100_000.0, 1.0)
    context.close()


@pytest.mark.parametrize("n_ctx", [512, 8192])
@pytest.mark.parametrize("n_seq", [1, 4])
def test_buffers_are_a_little_more_than_llama_cpp_says(n_ctx: int, n_seq: int, smollm2_path: Path) -> None:
    check_buffers(smollm2_path, n_ctx, n_seq, 512)


def test_greedy_answers_are_the_same_alone_side_by_side_and_on_a_reused_prefix(smollm2: LlamaModel) -> None:
    questions = ["How long does the ferry take?", "What do tickets cost?"]
    requests = [ask(smollm2, NOTE + question, max_tokens=12) for question in questions]
    one, two = smollm2.open_context(512), smollm2.open_context(512, 2)
    alone = [collect(one, [request])[0] for request in requests]
    together = collect(two, requests)
    assert [text_of(pieces) for pieces in together] == [text_of(pieces) for pieces in alone]
    assert "Harlingen" in text_of(alone[0])
    assert alone[1][-1].n_evaluated < 16 < alone[0][-1].n_evaluated  # the note is read once
    assert {pieces[-1].finish_reason for pieces in alone} <= {"stop", "length"}
    one.close()
    two.close()


def test_greedy_text_from_stored_kv_is_that_of_kv_never_exported(smollm2: LlamaModel) -> None:
    """64 tokens; they may part where the two best logits are closer than 0.05."""
    prompt = ask(smollm2, TRAINING_TEXT * 2 + "Tell me about the harbour.", max_tokens=64).prompt
    (start, end) = prompt.content[-1]
    prefix, body, tail = (list(prompt.tokens[a:b]) for a, b in ((0, start), (start, end), (end, None)))
    request = Request(prompt, Sampling(max_tokens=64))
    context = smollm2.open_kv_context(1024, n_outputs=8)
    fresh = collect(smollm2.open_context(1024), [request])[0]
    chunks = prefill(context, prefix, body, PrefillPolicy("window", 4096))
    runs = [Run(encode(chunk.state, 0, chunk.n_tokens, chunk.rope, "f16")) for chunk in chunks]
    assert sum(run.n_tokens for run in runs) == len(body)
    parts = [
        KVPart(run, 0, run.n_tokens, start + chunk.first) for run, chunk in zip(runs, chunks, strict=True)
    ]
    held = [*prefix, *body]
    assert context.place(held, parts) == len(prefix)
    stored = collect(context, [request])[0]
    assert stored[-1].n_evaluated == len(tail)
    if text_of(stored) != text_of(fresh):
        both = zip(text_of(stored), text_of(fresh), strict=False)
        same = "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], both))
        context.place(held, ())
        best = np.sort(logits_after(context, [*tail, *smollm2.tokenize(same)])[-1])[-2:]
        assert best[1] - best[0] < 0.05
