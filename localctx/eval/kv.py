"""`eval kv`: what stored KV costs in quality, what it saves, and how much of the model's attention it keeps.

Joins text, model and measurements; the figures of quality depend on model, text, options and seed alone.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from localctx.bench.inputs import BUILT_IN, all_tokens_of, kv_model
from localctx.bench.machine import machine
from localctx.errors import NotComposable, UsageError
from localctx.eval.kv_arms import Wanted
from localctx.eval.kv_matrix import KVEvalModel, measured
from localctx.eval.kv_report import Matrix
from localctx.eval.kv_spans import spans_in
from localctx.eval.plots import Plot
from localctx.session.frame import frame_of
from localctx.session.prompts import question_task
from localctx.settings import Settings
from localctx.values import Model, ModelInfo

__all__ = ["Report", "measure"]

N_ROWS = 128
"""Rows of logits asked for at a time."""
CHUNK_TOKENS = 1024
"""Room for what is evaluated at a time."""
MAX_CHARACTERS = 1 << 24
"""Of a text, that stretches are drawn from."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, with what it belongs to."""

    command: str
    model: ModelInfo
    machine: dict[str, Any]
    text: str
    seed: int
    matrix: Matrix

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.kv/1` (docs/eval.md)."""
        return {
            "schema": "localctx.eval.kv/1",
            "command": self.command,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "machine": self.machine,
            "text": self.text,
            "seed": self.seed,
            **self.matrix.to_json(),
        }

    @property
    def lines(self) -> list[str]:
        """For a person."""
        return list(self.matrix.lines)

    @property
    def plots(self) -> list[Plot]:
        """Pictures of it."""
        return self.matrix.plots


def measure(
    model: Model, settings: Settings, wanted: Wanted, command: str, tell: Callable[[str], None]
) -> Report:
    """Measure every arm. Raises UsageError for options and texts that do not do, NotComposable for a model
    whose KV cannot be stored, Interrupted, and what the engine raises.
    """
    wanted.check()
    able = able_model(model)
    prefix = prefix_of(able)
    n_ctx = fitted_n_ctx(able, settings, len(prefix) + wanted.n_context + wanted.n_target + 1)
    source = wanted.text or BUILT_IN
    spans = spans_in(all_tokens_of(wanted.text, settings, able, MAX_CHARACTERS), wanted, source)
    with closing(able.open_kv_context(n_ctx, n_outputs=N_ROWS)) as context:
        baseline, found = measured(context, able, prefix, spans, wanted, tell)
    baseline.f16_bytes = able.info.kv_bytes_per_token
    matrix = Matrix(wanted, baseline, tuple(found))
    return Report(command, able.info, machine(settings.threads), source, wanted.seed, matrix)


def able_model(model: Model) -> KVEvalModel:
    """The model, if its KV can be stored and it shows what it asks for. Raises NotComposable."""
    able = kv_model(model)
    if not isinstance(able, KVEvalModel):
        raise NotComposable(f"{model.info.name} shows no logits and no queries", "a GGUF model")
    return able


def prefix_of(model: Model) -> tuple[int, ...]:
    """What stands before every document; nothing where the chat template does not say where they stand."""
    frame = frame_of(model, question_task("a question"))
    return () if frame is None else frame.prefix


def fitted_n_ctx(model: Model, settings: Settings, n_tokens: int) -> int:
    """Cells for n_tokens, and for what is evaluated beside them. Raises UsageError where they do not fit the
    context that the model was trained for, or --ctx.
    """
    limit = model.usable_n_ctx(settings.ctx)
    if n_tokens > limit:
        raise UsageError(
            f"context and target are {n_tokens:,} tokens, {model.info.name} takes {limit:,}",
            "a smaller --context or --target",
        )
    return min(limit, -(-(n_tokens + CHUNK_TOKENS) // 256) * 256)
