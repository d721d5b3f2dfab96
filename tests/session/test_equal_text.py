"""Greedy text from stored f16 is that of KV that was never exported, but for tokens that are nearly even."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from pydoc_data.topics import topics  # five texts of real prose that every Python has

import numpy as np
import pytest
from session.conftest import answer_of

from localctx.document import open_document
from localctx.engine import EngineOptions
from localctx.engine.batch_context import BatchContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.llama_decoder import LlamaDecoder
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.indexing import index_documents
from localctx.settings import Settings
from localctx.values import Piece, Progress, Request

QUESTION = "What does this text say? Explain it in detail."
N_TOKENS = 64
TEXT_CHARACTERS = 3500
EVEN = 0.05
"""So close two logits may change places."""
TOPICS = ("class", "naming", "objects", "raise", "with")


@dataclass
class Watch:
    """The prompts that were asked for, and the tokens sampled after each; None ends an answer."""

    prompts: list[tuple[int, ...]]
    tokens: list[list[int | None]]


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Watch:
    """See what is sampled."""
    seen = Watch([], [])
    generate, sample = BatchContext.generate, LlamaDecoder.sample

    def watched_generate(
        self: BatchContext, requests: Sequence[Request], on_prefill: Progress | None = None
    ) -> Iterator[Piece]:
        (request,) = requests
        seen.prompts.append(tuple(request.prompt.tokens))
        seen.tokens.append([])
        return generate(self, requests, on_prefill)

    def watched_sample(self: LlamaDecoder, sequence: int, row: int) -> int | None:
        token = sample(self, sequence, row)
        seen.tokens[-1].append(token)
        return token

    monkeypatch.setattr(BatchContext, "generate", watched_generate)
    monkeypatch.setattr(LlamaDecoder, "sample", watched_sample)
    return seen


@pytest.fixture(scope="module")
def smollm2(smollm2_path: Path) -> Iterator[LlamaModel]:
    with open_model(smollm2_path, EngineOptions()) as model:
        yield model


def gaps_of(model: LlamaModel, prompt: Sequence[int], tokens: Sequence[int]) -> np.ndarray:
    """How far the best logit is ahead of the second at the steps after the prompt and after each token."""
    gaps: list[float] = []

    def take(_: int, rows: np.ndarray) -> None:
        best = np.sort(rows, axis=1)[:, -2:]
        gaps.extend(best[:, 1] - best[:, 0])

    with model.open_context(len(prompt) + len(tokens) + 1, n_outputs=64) as context:
        context.score([*prompt, *tokens], take)
    return np.array(gaps[len(prompt) - 1 :])


def part_at(model: LlamaModel, watch: Watch, one: int, other: int) -> tuple[int, float] | None:
    """Where two answers to the same prompt part, and how even the two best tokens were there; or None."""
    assert watch.prompts[one] == watch.prompts[other]
    first, second = watch.tokens[one], watch.tokens[other]
    same = list(takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))
    if len(same) == len(first) == len(second):
        return None
    tokens = [token for token, _ in same if token is not None]
    return len(same), float(gaps_of(model, watch.prompts[one], tokens)[-1])


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("topic", TOPICS)
def test_stored_f16_says_what_kv_that_was_never_exported_says(
    topic: str, smollm2: LlamaModel, watch: Watch, tmp_path: Path
) -> None:
    path = tmp_path / f"{topic}.txt"
    path.write_text(topics[topic][:TEXT_CHARACTERS], "utf-8")
    kept = Settings(store=str(tmp_path / "store"), max_tokens=N_TOKENS, strategy="exact")

    def asked(settings: Settings) -> Answer:
        with open_document(str(path), cache_dir=None) as document:
            return answer_of(list(ask([document], smollm2, QUESTION, settings)))

    with open_document(str(path), cache_dir=None) as document:
        list(index_documents([document], smollm2, kept))
    stored, plain = asked(kept), asked(replace(kept, store="off"))
    assert stored.tokens.restored >= stored.coverage.tokens_total > 600
    assert stored.tokens.evaluated < 100
    assert plain.tokens.restored == 0
    parted = part_at(smollm2, watch, -2, -1)
    print(f"{topic}: {stored.coverage.tokens_total} tokens, {len(watch.tokens[-1])} sampled, parted {parted}")
    assert parted is None or parted[1] < EVEN
    assert (stored.text == plain.text) == (parted is None)


def test_two_answers_part_where_a_token_differs(tiny_model_path: Path) -> None:
    """The measure itself: the step is found, and the gap is that of the logits there."""
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        prompt = tuple(model.tokenize("The harbour of the old town lies open to the west."))
        best = Watch([prompt, prompt], [[7, 8, 9, None], [7, 8, 5, 5]])
        found = part_at(model, best, 0, 1)
        assert found is not None
        with model.open_context(64, n_outputs=64) as context:
            rows: list[np.ndarray] = []
            context.score([*prompt, 7, 8], lambda _, more: rows.append(more))
        second, first = np.sort(np.concatenate(rows)[-1])[-2:]
        assert found == (2, pytest.approx(float(first - second), abs=1e-4))
        assert part_at(model, Watch([prompt, prompt], [[7, None], [7, None]]), 0, 1) is None
        assert part_at(model, Watch([prompt, prompt], [[7, None], [7, 8]]), 0, 1) is not None
