"""`eval kv`: what stored KV costs in quality, what it saves, and how much of the model's attention it keeps.

Joins text, model and measurements; the figures of quality depend on model, text, options and seed alone.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from localctx.bench.inputs import BUILT_IN, all_tokens_of, kv_model, temporary_store, too_short
from localctx.bench.machine import machine
from localctx.errors import NotComposable, UsageError
from localctx.eval.kv_arms import Wanted
from localctx.eval.kv_long import LongText, LongWanted
from localctx.eval.kv_long_report import Long
from localctx.eval.kv_matrix import KVEvalModel, measured
from localctx.eval.kv_report import Matrix
from localctx.eval.kv_spans import spans_in
from localctx.eval.panels import plot_json
from localctx.eval.plots import Plot
from localctx.session.frame import frame_of
from localctx.session.prompts import question_task
from localctx.settings import Settings
from localctx.values import Model, ModelInfo

__all__ = ["Report", "measure", "measure_long"]

N_ROWS = 256
"""Rows of logits asked for at a time."""
CHUNK_TOKENS = 1024
"""Room for what is evaluated at a time."""
MAX_CHARACTERS = 1 << 24
"""Of a text, that stretches are drawn from."""
CHARACTERS_A_TOKEN = 16
"""Of a text that is read for a number of tokens, at most: prose has 2 to 5."""


@dataclass(frozen=True, slots=True)
class Report:
    """What was found, with what it belongs to."""

    command: str
    model: ModelInfo
    machine: dict[str, Any]
    text: str
    seed: int
    matrix: Matrix | None = None
    long: Long | None = None

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.kv/1` (docs/eval.md)."""
        return {
            "schema": "localctx.eval.kv/1",
            "command": self.command,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "machine": self.machine,
            "text": self.text,
            "seed": self.seed,
            "matrix": None if self.matrix is None else self.matrix.to_json(),
            "long": None if self.long is None else self.long.to_json(),
            "plots": [plot_json(plot) for plot in self.plots],
        }

    @property
    def lines(self) -> list[str]:
        """For a person."""
        return [line for part in self._parts for line in part.lines]

    @property
    def plots(self) -> list[Plot]:
        """Pictures of it."""
        return [plot for part in self._parts for plot in part.plots]

    @property
    def _parts(self) -> list[Matrix | Long]:
        return [part for part in (self.matrix, self.long) if part is not None]


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


def measure_long(
    model: Model, settings: Settings, wanted: LongWanted, command: str, tell: Callable[[str], None]
) -> Report:
    """Measure along one text. Raises as measure() does."""
    wanted.check()
    able, facts = able_model(model), machine(settings.threads)
    prefix, source = prefix_of(able), wanted.text or BUILT_IN
    n_ctx = fitted_n_ctx(able, settings, len(prefix) + wanted.n_held)
    n_needed = max(wanted.lengths) + wanted.n_target + 1
    found = all_tokens_of(wanted.text, settings, able, n_needed * CHARACTERS_A_TOKEN)
    if len(found) < n_needed:
        raise too_short(source, len(found), n_needed, "a longer --text, or shorter --lengths")
    tokens = array("i", found[:n_needed])
    del found
    with (
        temporary_store(settings) as (_, folder),
        closing(able.open_kv_context(n_ctx, n_outputs=N_ROWS)) as context,
    ):
        text = LongText(context, able, prefix, tokens, wanted, folder)
        at = tuple(text.looked_at(tell))
        long = Long(wanted, text.bytes_per_token, text.chunk_tokens, at)
    return Report(command, able.info, facts, source, wanted.seed, long=long)


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
