"""Stretches of a text whose tokens are predicted, each with what stands before it. One seed, one draw."""

from __future__ import annotations

import random
from collections.abc import Sequence

from localctx.bench.inputs import too_short
from localctx.eval.kv_arms import Wanted
from localctx.verify.compare import Span

__all__ = ["spans_in"]


def spans_in(tokens: Sequence[int], wanted: Wanted, source: str) -> list[Span]:
    """Spans whose predicted tokens lie nowhere twice, in the text's order. A target begins with one token
    that is not predicted, so that each predicted one has a row of logits.

    Raises UsageError for a text that is too short; `source` names it.
    """
    n_target = wanted.n_target
    n_places = (len(tokens) - wanted.n_context - 1) // n_target
    if n_places < wanted.n_spans:
        needed = wanted.n_context + wanted.n_spans * n_target + 1
        hint = "a longer --text, fewer --tokens, or a shorter --context"
        raise too_short(source, len(tokens), needed, hint)
    draw = random.Random(f"spans {wanted.seed}")  # noqa: S311  # a draw that anyone can repeat
    spans = []
    for place in sorted(draw.sample(range(n_places), wanted.n_spans)):
        start = place * n_target
        end = start + wanted.n_context
        spans.append(Span(tuple(tokens[start:end]), tuple(tokens[end : end + n_target + 1])))
    return spans
