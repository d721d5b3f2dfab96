"""Routed prefill beside a window, a wider one and exact attention: perplexity, facts far back, two hops.

    python -m localctx.eval.routed [TEXT ...] [--documents 4] [--tokens 4096] [--window 512] [--routed 4]
        [--stride 512] [--arms NAME,NAME] [--seed 0] [--model M] [--embedder M] [--json]

Perplexity is that of the second half of each TEXT's first tokens (default: Python's documentation), chunk by
chunk, each behind what its arm attends to. In documents of made prose eight people live in eight cities, and
a sister with each, all said further from the end, and from each other, than the window: of the eight cities
the right one is to be the most likely one behind "NAME lives in". The passage alone: only the
block with the sentence about the sister is put before the question, so that its KV has to know the city.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field

import numpy as np

from localctx.bench.inputs import tokens_of
from localctx.bench.program import run_as_program
from localctx.errors import UsageError
from localctx.eval.rope import loss_of
from localctx.eval.routed_arms import (
    ARMS,
    Arm,
    Embed,
    Prefix,
    ScoredContext,
    ScoredKVModel,
    Streamed,
    arms_of,
    rows_behind,
    text_of,
)
from localctx.eval.routed_texts import CITIES, Homes, homes
from localctx.eval.rows_told import told
from localctx.from_settings import choose_model, open_model_for
from localctx.kv import RECALL_CHUNK_TOKENS, RUN_TOKENS
from localctx.registry.selectors import opened_embedder
from localctx.session.frame import frame_of

__all__ = ["Row", "measure", "render"]


@dataclass(slots=True)
class Row:
    """One arm. losses: -log p of each target token, texts one after the other · right: of the questions, by
    kind · seconds: of prefilling · working_set: tokens attended to beside the chunk, at most.
    """

    arm: str
    working_set: int
    losses: list[float] = field(default_factory=list)
    right: dict[str, list[bool]] = field(default_factory=dict)
    margins: dict[str, list[float]] = field(default_factory=dict)
    seconds: float = 0.0
    n_tokens: int = 0

    @property
    def perplexity(self) -> float:
        """Of all target tokens."""
        return math.exp(float(np.mean(self.losses))) if self.losses else math.nan


def measure(
    model: ScoredKVModel,
    texts: Sequence[Sequence[int]],
    documents: Sequence[Homes],
    arms: Sequence[Arm],
    embed: Embed | None = None,
) -> Iterator[Row]:
    """One row an arm. Raises UsageError where a text is longer than the model was trained for."""
    frame = frame_of(model, ["task"])
    before = frame.prefix if frame is not None else ()
    longest = max(len(tokens) for tokens in (*texts, *(document.tokens for document in documents)))
    n_ctx = len(before) + longest + RECALL_CHUNK_TOKENS
    if n_ctx > model.info.n_ctx_train:
        raise UsageError(f"{n_ctx:,} tokens do not fit {model.info.name}", "fewer --tokens")
    with closing(model.open_kv_context(n_ctx, n_outputs=RECALL_CHUNK_TOKENS)) as context:
        prefix = Prefix.of(context, before)
        for arm in arms:
            policy = arm.policy
            row = Row(arm.name, longest if policy.kind == "exact" else policy.window + policy.recalled_tokens)
            for tokens in texts:
                streamed = _prefilled(context, model, prefix, arm, tokens, embed, row)
                row.losses += _half_losses(context, prefix, streamed)
            for document in documents:
                streamed = _prefilled(context, model, prefix, arm, document.tokens, embed, row)
                _answer(context, model, prefix, streamed, document, row)
            yield row


def _prefilled(
    context: ScoredContext,
    model: ScoredKVModel,
    prefix: Prefix,
    arm: Arm,
    tokens: Sequence[int],
    embed: Embed | None,
    row: Row,
) -> Streamed:
    streamed = Streamed(arm, tuple(tokens), lambda some: text_of(model, some), embed)
    started = time.perf_counter()
    streamed.prefill(context, prefix.tokens)
    row.seconds += time.perf_counter() - started
    row.n_tokens += len(tokens)
    return streamed


def _half_losses(context: ScoredContext, prefix: Prefix, streamed: Streamed) -> list[float]:
    """Of the tokens of the second half, chunk by chunk."""
    tokens, found = streamed.tokens, list[float]()
    half = len(tokens) // 2 // RECALL_CHUNK_TOKENS * RECALL_CHUNK_TOKENS
    for start in range(half, len(tokens), RECALL_CHUNK_TOKENS):
        chunk = tokens[start : start + RECALL_CHUNK_TOKENS]
        logits = rows_behind(context, prefix, streamed, streamed.attended(start, chunk), (), chunk)
        found += loss_of(logits, np.asarray(chunk)).tolist()
    return found


def _answer(
    context: ScoredContext,
    model: ScoredKVModel,
    prefix: Prefix,
    streamed: Streamed,
    document: Homes,
    row: Row,
) -> None:
    """All questions of a document: at its end, and those of two hops behind the passage alone."""
    cities = [model.tokenize(f" {city}", False) for city in CITIES]
    n_same = next(n for n in range(len(cities[0])) if len({city[n] for city in cities}) > 1)
    first_tokens = [city[n_same] for city in cities]
    for asked in document.asked:
        question = [*model.tokenize(asked.question, False), *cities[0][:n_same]]
        ways: dict[str, list[int]] = {asked.kind: streamed.attended(len(streamed.tokens), question)}
        if asked.kind == "two hops":
            first, end = asked.span
            ways["passage alone"] = list(range(first // RUN_TOKENS, (end - 1) // RUN_TOKENS + 1))
        for kind, runs in ways.items():
            logits = rows_behind(context, prefix, streamed, runs, question, first_tokens[:1])
            losses = np.array([loss_of(logits, np.array([one]))[0] for one in first_tokens])
            others = np.delete(losses, asked.right)
            row.right.setdefault(kind, []).append(bool(losses[asked.right] < others.min()))
            row.margins.setdefault(kind, []).append(float(others.mean() - losses[asked.right]))


def render(rows: Sequence[Row]) -> str:
    """A table in Markdown; perplexities as ratios to the first arm's, over the same tokens."""
    kinds = list(rows[0].right)
    titles = ["arm", "attended", "perplexity", "to the first", *kinds, *(f"margin, {kind}" for kind in kinds)]
    lines = [f"| {' | '.join([*titles, 'tokens/s'])} |", "|" + "---|" * (len(titles) + 1)]
    for row in rows:
        rise = np.array(row.losses) - np.array(rows[0].losses)
        ratio = math.exp(float(rise.mean())) if len(rise) else math.nan
        error = ratio * float(rise.std()) / math.sqrt(max(1, len(rise)))
        right = [f"{sum(row.right[kind])} of {len(row.right[kind])}" for kind in kinds]
        margins = [f"{np.mean(row.margins[kind]):.2f}" for kind in kinds]
        cells = [row.arm, f"{row.working_set:,}", f"{row.perplexity:.2f}", f"{ratio:.3f} ± {error:.3f}"]
        lines.append(f"| {' | '.join([*cells, *right, *margins, f'{row.n_tokens / row.seconds:.0f}'])} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.routed")
    parser.add_argument("texts", nargs="*", help="default: Python's documentation")
    parser.add_argument("--documents", type=int, default=4)
    parser.add_argument("--tokens", type=int, default=4096, help="of each text and document, in whole chunks")
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--routed", type=int, default=4)
    parser.add_argument("--stride", type=int, default=512)
    parser.add_argument("--arms", default=",".join(ARM.replace(", ", "+") for ARM in ARMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model")
    parser.add_argument("--embedder")
    parser.add_argument("--json", action="store_true", help="a line an arm, as it is done")
    asked = parser.parse_args(arguments)
    names = [name.replace("+", ", ") for name in asked.arms.split(",")]
    if unknown := set(names) - set(ARMS):
        raise UsageError(f"--arms: unknown {', '.join(sorted(unknown))}", f"of {', '.join(ARMS)}")
    settings, chosen = choose_model({"model": asked.model, "embedder": asked.embedder, "store": "off"})
    n_tokens = asked.tokens // RECALL_CHUNK_TOKENS * RECALL_CHUNK_TOKENS
    with ExitStack() as stack:
        model = stack.enter_context(closing(open_model_for(settings, chosen)))
        if not isinstance(model, ScoredKVModel):
            raise UsageError("this backend shows no logits", "a GGUF model")
        embedder = stack.enter_context(opened_embedder(settings)) if "by vectors" in names else None
        embed = embedder.open().vectors if embedder is not None and not isinstance(embedder, str) else None
        texts = [tokens_of(text, settings, model, n_tokens) for text in asked.texts or [None]]
        seeds = range(asked.seed, asked.seed + asked.documents)
        documents = [homes(model.tokenize, n_tokens, seed) for seed in seeds]
        arms = arms_of(names, asked.window, asked.routed, asked.stride)
        rows = told(measure(model, texts, documents, arms, embed), as_json=asked.json)
    if not asked.json:
        sys.stdout.write(render(rows) + "\n")


if __name__ == "__main__":
    run_as_program(main)
