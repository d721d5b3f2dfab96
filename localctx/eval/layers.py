"""Perplexity when KV of some layers is made from that of their neighbours, with no training.

    python -m localctx.eval.layers --spans 4 --json

An article keeps even layers and interpolates odd ones. Here a context is evaluated exactly, its KV taken out
of llama.cpp, layers of it replaced by the mean of the kept layer below and the one above (the one below
alone at the end), put back, and the same tokens of prose are predicted behind it in every arm. The mean of
rotated keys at one position is the rotated mean, so nothing has to be turned. Differences are paired.
"""

from __future__ import annotations

import argparse
import json
import math
import struct
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx._native import State
from localctx.bench.inputs import BUILT_IN, tokens_of
from localctx.bench.machine import machine
from localctx.bench.program import run_as_program
from localctx.errors import Interrupted, UsageError
from localctx.from_settings import choose_model, open_model_for
from localctx.session.snapshots import SnapshotContext
from localctx.session.strategy import round_n_ctx
from localctx.verify.compare import ScoringContext, Span, check_done, spans_of
from localctx.verify.model import GateModel
from localctx.verify.predictions import Reference, Rows, log_softmax

__all__ = ["ARMS", "Figures", "layer_rows", "measure", "replaced"]

ROWS = 128
"""Rows of logits asked for at a time."""
CHUNK_TOKENS = 1024
F16 = 1
"""ggml's number of the type."""
HINT = "another --model"
KEYS, VALUES = 0, 1
BOTH = (KEYS, VALUES)

Wanted = Callable[[int], bool]


@dataclass(frozen=True, slots=True)
class Arm:
    """Which layers are made from their neighbours, and of which half: keys, values or both."""

    is_replaced: Wanted
    halves: tuple[int, ...] = BOTH


ARMS: Mapping[str, Arm] = {
    "unchanged": Arm(lambda layer: False),
    "odd layers": Arm(lambda layer: layer % 2 == 1),
    "odd layers, keys only": Arm(lambda layer: layer % 2 == 1, (KEYS,)),
    "odd layers, values only": Arm(lambda layer: layer % 2 == 1, (VALUES,)),
    "every 4th layer": Arm(lambda layer: layer % 4 == 3),
    "every 8th layer": Arm(lambda layer: layer % 8 == 7),
}
NO_CONTEXT = "no context"


@dataclass(frozen=True, slots=True)
class Figures:
    """One arm. losses: of every predicted token, in nats · share: of the KV that need not be kept."""

    name: str
    share: float
    losses: tuple[float, ...]

    def to_json(self, first: Figures) -> dict[str, object]:
        """With the ratio to the first arm's perplexity, and its standard error."""
        rise = np.array(self.losses) - np.array(first.losses)
        ratio = math.exp(float(rise.mean()))
        error = ratio * float(rise.std(ddof=1)) / math.sqrt(len(rise)) if len(rise) > 1 else 0.0
        return {
            "arm": self.name,
            "share_not_kept": round(self.share, 3),
            "perplexity": float(f"{math.exp(float(np.mean(self.losses))):.5g}"),
            "ratio": float(f"{ratio:.5g}"),
            "ratio_error": float(f"{error:.3g}"),
        }


def layer_rows(blob: NDArray[np.uint8]) -> list[list[NDArray[np.float16]]]:
    """[keys, values], each [layer] of f16 [n_cells, row elements]: views of a state of one sequence.

    Raises UsageError for a state that is laid out in another way than f16 with flash attention.
    """
    try:
        halves, end = _halves(blob)
    except (struct.error, ValueError) as error:
        raise UsageError(f"the KV of this model is laid out in another way: {error}", HINT) from None
    if end != len(blob):
        raise UsageError("the KV of this model has more parts than one", HINT)
    return halves


def _halves(blob: NDArray[np.uint8]) -> tuple[list[list[NDArray[np.float16]]], int]:
    """The views, and where the last of them ends. Raises ValueError, struct.error."""
    data, at = blob.data, 8  # magic, sequence
    n_streams, n_cells = struct.unpack_from("<II", data, at)
    at += 8
    for _ in range(n_cells):
        (n_ids,) = struct.unpack_from("<I", data, at + 4)
        at += 8 + 4 * n_ids
    v_trans, n_layers = struct.unpack_from("<II", data, at)
    at += 8
    if n_streams != 1 or v_trans:
        raise ValueError("several streams, or values transposed")
    halves = []
    for _ in BOTH:
        rows = []
        for _ in range(n_layers):
            kind, row_bytes = struct.unpack_from("<iQ", data, at)
            at += 12
            if kind != F16:
                raise ValueError("not f16")
            size = n_cells * row_bytes
            rows.append(blob[at : at + size].view(np.float16).reshape(n_cells, row_bytes // 2))
            at += size
        halves.append(rows)
    return halves, at


def replaced(blob: NDArray[np.uint8], arm: Arm) -> tuple[NDArray[np.uint8], float]:
    """A copy in which the arm's layers are made from their neighbours, and the share of KV that they are."""
    made = blob.copy()
    before, after = layer_rows(blob), layer_rows(made)
    n_layers, n_made = len(before[KEYS]), 0
    for layer in filter(arm.is_replaced, range(n_layers)):
        kept = [one for one in (layer - 1, layer + 1) if one < n_layers]
        for half in arm.halves:
            mean = np.mean([before[half][one].astype(np.float32) for one in kept], axis=0)
            after[half][layer][:] = mean.astype(np.float16)
            n_made += 1
    return made, n_made / (2 * n_layers)


def measure(
    model: GateModel, spans: Sequence[Span], names: Sequence[str] = tuple(ARMS)
) -> Iterator[tuple[int, dict[str, tuple[float, list[float]]]]]:
    """(spans done, by arm its share and losses), span after span. Raises UsageError for KV that cannot be
    taken apart, Interrupted.
    """
    n_ctx = round_n_ctx(len(spans[0].context) + max(len(spans[0].target), CHUNK_TOKENS))
    context = model.open_kv_context(min(n_ctx, model.usable_n_ctx()), n_outputs=ROWS)
    with closing(context):
        if not isinstance(context, SnapshotContext):
            raise UsageError("this backend shows no KV", "a GGUF model")
        for number, span in enumerate(spans, 1):
            blob = _checked(_snapshot(context, span.context))
            found = {}
            for name in names:
                changed, share = replaced(blob, ARMS[name])
                context.restore_snapshot(span.context, changed)
                found[name] = (share, _losses(context, span))
            context.restore_snapshot(span.context[:1], _snapshot(context, span.context[:1]))
            found[NO_CONTEXT] = (1.0, _losses(context, span))
            yield number, found


def _snapshot(context: SnapshotContext, tokens: Sequence[int]) -> NDArray[np.uint8]:
    """A copy of the state after the tokens. Raises Interrupted."""
    blob = context.snapshot(tokens)
    if blob is None:
        raise Interrupted("interrupted")
    return blob.copy()


def _checked(blob: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The state, checked against the reader of the store's own core."""
    rows = layer_rows(blob)
    if State(blob).keys(0).tobytes() != rows[KEYS][0].tobytes():
        raise UsageError("the KV of this model is laid out in another way", HINT)
    return blob


def _losses(context: ScoringContext, span: Span) -> list[float]:
    """Of the target tokens but the first, behind what the context holds. Raises Interrupted."""
    following = span.target[1:]
    losses: list[float] = []

    def take(first: int, logits: Rows) -> None:
        wanted = following[first : first + len(logits)]
        losses.extend(Reference(log_softmax(logits[: len(wanted)]), wanted).nll.tolist())

    check_done(context.score(span.target, take), len(span.target))
    return losses


def report(figures: Sequence[Figures], facts: Mapping[str, object]) -> dict[str, object]:
    """The object of schema `localctx.eval.layers/1`."""
    rows = [one.to_json(figures[0]) for one in figures]
    return {"schema": "localctx.eval.layers/1", **facts, "n_targets": len(figures[0].losses), "arms": rows}


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.layers")
    parser.add_argument("text", nargs="?", help="default: Python's documentation")
    parser.add_argument("--spans", type=int, default=4)
    parser.add_argument("--context", type=int, default=2048, help="tokens kept before what is predicted")
    parser.add_argument("--targets", type=int, default=384, help="tokens predicted in each span")
    parser.add_argument("--model")
    parser.add_argument("--gpu-layers", default="auto")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    if min(asked.spans, asked.context) < 1 or asked.targets < 2:
        raise UsageError("nothing would be predicted", "--spans 4 --context 2048 --targets 384")
    flags = {"model": asked.model, "gpu_layers": asked.gpu_layers, "threads": asked.threads, "store": "off"}
    settings, chosen = choose_model(flags)
    facts = machine(settings.threads)
    with closing(open_model_for(settings, chosen)) as model:
        if not isinstance(model, GateModel):
            raise UsageError("this backend shows no logits", "a GGUF model")
        tokens = tokens_of(asked.text, settings, model, asked.spans * (asked.context + asked.targets))
        spans = list(spans_of(tokens, asked.context, asked.targets, asked.spans))
        sums: dict[str, tuple[float, list[float]]] = {}
        for number, found in measure(model, spans):
            for name, (share, losses) in found.items():
                sums.setdefault(name, (share, []))[1].extend(losses)
            sys.stderr.write(f"{number} of {len(spans)} spans\n")
        name = model.info.name
    figures = [Figures(arm, share, tuple(losses)) for arm, (share, losses) in sums.items()]
    told = {"model": {"name": name}, "text": asked.text or BUILT_IN, "n_context": asked.context}
    if asked.json:
        sys.stdout.write(json.dumps(report(figures, {"machine": facts, **told})) + "\n")
    else:
        for one in figures:
            row = one.to_json(figures[0])
            sys.stdout.write(
                f"{one.name:<26}{one.share:>6.1%} not kept{row['perplexity']:>12}  "
                f"× {row['ratio']} ± {row['ratio_error']}\n"
            )


if __name__ == "__main__":
    run_as_program(main)
