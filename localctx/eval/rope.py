"""Perplexity of the same target tokens behind longer and longer contexts, for every way of scaling RoPE.

The targets follow 1, 2, 4 … times the trained length of text; the baseline predicts them, unscaled, in pieces
that stay inside the trained length. Knows settings and models; a model is opened anew for each method, since
rotation is a setting of the whole model.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx.bench.inputs import tokens_of
from localctx.errors import Interrupted, UsageError
from localctx.eval.rope_report import FITTED, NAMES, SHARPER, At, Method, Report, Row, Wanted
from localctx.from_settings import ChosenModel, open_model_for
from localctx.settings import Settings
from localctx.values import Context, Model, Progress, RopeInfo

__all__ = ["loss_of", "measure", "methods_for"]

N_ROWS = 256
"""Rows of logits asked for at a time."""
Rows = NDArray[np.float32]
Losses = NDArray[np.float64]
"""-log p of each target token, in nats."""


class _Context(Context, Protocol):
    @property
    def rope(self) -> RopeInfo:
        """The rotation in force."""

    def snapshot(
        self,
        tokens: Sequence[int],
        on_progress: Progress | None = None,
        is_wanted: Callable[[int], bool] = lambda n_bytes: True,
    ) -> NDArray[np.uint8] | None:
        """Evaluate tokens in an empty cache, which then holds them; None when cancelled."""

    def score(self, tokens: Sequence[int], on_rows: Callable[[int, Rows], None]) -> int:
        """Evaluate tokens behind what is held; on_rows gets (index of the first row, logits)."""


@runtime_checkable
class ScoredModel(Model, Protocol):
    """A model whose contexts hand out logits."""

    def open_context(
        self, n_ctx: int, n_seq: int = 1, *, n_outputs: int = 0, n_longest: int | None = None
    ) -> _Context:
        """A context for score()."""


def methods_for(names: Sequence[str], factor: float) -> list[Method]:
    """The rows of the table: each method by itself, dynamic NTK also sharper, then with the factor of the
    longest context for all. Raises UsageError for an unknown name.
    """
    for name in names:
        if name not in NAMES:
            raise UsageError(f"--methods {name} is not known", f"of {', '.join(NAMES)}")
    chosen = [name for name in NAMES if not names or name in names]
    fitted = [Method(name) for name in chosen if name != "ntk"]
    fitted += [SHARPER] if SHARPER.name in chosen else []
    return fitted + [Method(name, factor) for name in chosen if name in FITTED.values()]


def measure(settings: Settings, chosen: ChosenModel, wanted: Wanted, tell: Callable[[str], None]) -> Report:
    """Measure every method at every length. Raises UsageError for a text that is too short, Interrupted, and
    what the engine raises.
    """
    _check(wanted)
    unscaled = replace(settings, rope_scaling=None, rope_scale=None, force=True)
    with _opened(unscaled, chosen) as model:
        trained, info = model.info.n_ctx_train, model.info
        if not trained:
            raise UsageError(f"{info.name} does not say how long a context it was trained for")
        lengths = [round(times * trained) for times in wanted.times]
        tokens = tokens_of(wanted.text, settings, model, max(lengths) + wanted.n_targets)
        tell("inside the trained length")
        baseline = _inside(model, tokens, wanted.n_targets)
    longest = (max(lengths) + wanted.n_targets + 1) / trained
    found: dict[tuple[str, int], At] = {}
    rows: list[Row] = []
    for method in methods_for(wanted.methods, longest):
        scaled = replace(unscaled, rope_scaling=method.name, rope_scale=method.factor)
        ats = {
            n: found[method.family, n] for n in lengths if n == max(lengths) and (method.family, n) in found
        }
        if len(ats) < len(lengths):
            with _opened(scaled, chosen) as model:
                left = [n for n in lengths if n not in ats]
                ats |= _at_lengths(model, method, tokens, left, wanted.n_targets, baseline, tell)
        found |= {(method.family, n): at for n, at in ats.items()}
        rows.append(Row(method, tuple(ats[n] for n in lengths)))
    text = wanted.text or "Python's documentation"
    perplexity = math.exp(float(baseline.mean()))
    return Report(info.name, info.fingerprint, trained, text, wanted, perplexity, tuple(rows))


def _check(wanted: Wanted) -> None:
    if not wanted.times or not all(0 < times <= 1024 for times in wanted.times):
        raise UsageError("--times: multiples of the trained length, as 1,2,4", "each above 0, to 1024")
    if not 2 <= wanted.n_targets <= 1 << 20:
        raise UsageError(f"--targets {wanted.n_targets} is out of range", "from 2 to 1048576")


def _opened(settings: Settings, chosen: ChosenModel) -> closing[ScoredModel]:
    model = open_model_for(settings, chosen)
    if not isinstance(model, ScoredModel):
        model.close()
        raise UsageError("this backend shows no logits", "a GGUF model")
    return closing(model)


def _at_lengths(
    model: ScoredModel,
    method: Method,
    tokens: Sequence[int],
    lengths: Sequence[int],
    n_targets: int,
    baseline: Losses,
    tell: Callable[[str], None],
) -> dict[int, At]:
    """The method at each length."""
    found = {}
    for n_context in lengths:
        tell(f"{method.label}: {n_targets:,} tokens after {n_context:,}")
        started = time.perf_counter()
        span = tokens[len(tokens) - n_targets - n_context :]
        losses, rope = _losses(model, span, n_context)
        rise = losses - baseline
        ratio = math.exp(min(700.0, float(rise.mean())))
        found[n_context] = At(
            n_context,
            rope,
            math.exp(min(700.0, float(losses.mean()))),
            ratio,
            ratio * float(rise.std(ddof=1)) / math.sqrt(len(rise)),
            time.perf_counter() - started,
        )
    return found


def _inside(model: ScoredModel, tokens: Sequence[int], n_targets: int) -> Losses:
    """The targets in pieces, each behind half of the trained length."""
    half = model.info.n_ctx_train // 2
    first, parts = len(tokens) - n_targets, []
    while first < len(tokens):
        end = min(len(tokens), first + half)
        start = max(0, first - half + 1)
        parts.append(_losses(model, tokens[start:end], first - start)[0])
        first = end
    return np.concatenate(parts)


def _losses(model: ScoredModel, tokens: Sequence[int], n_context: int) -> tuple[Losses, RopeInfo]:
    """-log p of the tokens behind the first n_context, which are evaluated once; and the rotation in force.

    Raises Interrupted when it was cancelled.
    """
    targets = np.asarray(tokens[n_context:])
    losses = np.empty(len(targets), np.float64)

    def take(first: int, logits: Rows) -> None:
        at = slice(first, first + len(logits))
        losses[at] = loss_of(logits, targets[at])

    with closing(model.open_context(len(tokens) + 1, n_outputs=N_ROWS)) as context:
        held = context.snapshot(tokens[: n_context - 1], is_wanted=lambda n_bytes: False)
        if held is None or context.score(tokens[n_context - 1 : -1], take) < len(targets):
            raise Interrupted("interrupted")
        return losses, context.rope


def loss_of(logits: Rows, targets: NDArray[np.int64]) -> Losses:
    """-log softmax of each row at its target."""
    highest = logits.max(axis=1)
    total = np.log(np.exp(logits - highest[:, None]).sum(axis=1, dtype=np.float64))
    picked = logits[np.arange(len(targets)), targets].astype(np.float64)
    result: Losses = total + highest - picked
    return result
