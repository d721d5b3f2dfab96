"""A model in, a verdict out: which ways of keeping KV answer as exact attention does.

Joins the comparison and the questions; knows no terminal and no store. A verdict is plain values, so that it
can be kept with the model's record.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

from localctx.errors import UsageError
from localctx.kv import RUN_TOKENS, KVContext
from localctx.session.frame import frame_of
from localctx.session.prompts import question_task
from localctx.session.strategy import round_n_ctx
from localctx.verify.compare import Setting, compare, spans_of
from localctx.verify.confusable import KINDS, Shape, make_document, words
from localctx.verify.model import GateModel
from localctx.verify.questions import Asker, Mode, Outcome, store_document

__all__ = ["FULL", "MAX_PERPLEXITY_RISE", "MIN_TOP1", "QUICK", "Gate", "Report", "probe_text", "run_gate"]

MIN_TOP1, MAX_PERPLEXITY_RISE = 0.97, 0.02
"""Top-1 agreement with exact attention, by that of unchanged KV, and the rise of perplexity."""
ROWS = 128
"""Rows of logits asked for at a time."""
CHUNK_TOKENS = 1024
QUESTION_WINDOW = 4096
WINDOW_STEPS = 4
"""A window is prefilled in steps of that share of it, as where answers come from it."""
CODECS_BY_SIZE = ("int4", "int8", "f16")

Tell = Callable[[str, int, int], None]
"""(what, done, total)."""


@dataclass(frozen=True, slots=True)
class Gate:
    """How much is measured: spans of prose, and documents of confusable chapters with some questions each."""

    n_spans: int
    n_context: int
    n_target: int
    codecs: tuple[str, ...]
    window: int
    n_documents: int = 0
    n_questions: int = 8


QUICK = Gate(1, 1024, 384, ("f16", "int4"), 256)
FULL = Gate(6, 2048, 384, ("f16", "int8", "int4"), 512, n_documents=3)

QUESTION_MODES = (
    Mode("re-prefill, no headers", source="text", headers=False),
    Mode("re-prefill", source="text"),
    Mode("stored, refresh 0%", codec="int4"),
    Mode("stored, refresh 10%", codec="int4", refresh=0.1, rule="named"),
    Mode("stored, refresh 33%", codec="int4", refresh=0.33, rule="named"),
    Mode("stored, refresh 100%", codec="int4", refresh=1.0),
)


@dataclass(frozen=True, slots=True)
class Report:
    """What was found. `refusal`: why nothing could be measured."""

    model: str
    fingerprint: str
    refusal: str | None
    settings: tuple[dict[str, Any], ...] = ()
    questions: tuple[dict[str, Any], ...] = ()

    @property
    def verdict(self) -> dict[str, Any]:
        """What is kept with the model: passes, by mode, and the smallest codec that passes."""
        if self.refusal is not None:
            return {"stream": {"passes": False, "why": self.refusal}}
        modes = {row["name"]: row["passes"] for row in self.settings}
        codec = next((name for name in CODECS_BY_SIZE if modes.get(name)), None)
        window = all(row["passes"] for row in self.settings if row["window"] is not None)
        return {"stream": {"passes": codec is not None and window, "codec": codec}, "modes": modes}

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.verify/1`."""
        return {
            "schema": "localctx.verify/1",
            "model": {"name": self.model, "fingerprint": self.fingerprint},
            "refusal": self.refusal,
            "settings": list(self.settings),
            "questions": list(self.questions),
            "verdict": self.verdict,
        }


def probe_text() -> str:
    """Technical prose that every Python brings along: 110,000 tokens or so that no verdict depends on."""
    import pydoc_data.topics

    topics = pydoc_data.topics.topics
    return "\n\n".join(topics[name] for name in sorted(topics))


def run_gate(model: GateModel, gate: Gate, text: str, tell: Tell = lambda what, done, total: None) -> Report:
    """Measure one model. Raises UsageError when the text is too short, and what the engine raises."""
    info, refusal = model.info, model.kv_refusal()
    if refusal is not None:
        return Report(info.name, info.fingerprint, refusal)
    frame = frame_of(model, question_task("a question"))
    if frame is None:
        return Report(info.name, info.fingerprint, "its chat template does not say where documents stand")
    gate = _fitted(gate, info.n_ctx_train, len(frame.prefix))
    settings = _compare(model, gate, frame.prefix, text, tell)
    questions = _ask(model, gate, text, tell) if gate.n_documents else []
    return Report(info.name, info.fingerprint, None, tuple(settings), tuple(questions))


def _fitted(gate: Gate, n_ctx_train: int, n_prefix: int) -> Gate:
    """The gate within the model's trained length."""
    room = (n_ctx_train or gate.n_context * 2) - n_prefix - 16
    if gate.n_context + gate.n_target <= room:
        return gate
    n_target = min(gate.n_target, room // 4)
    n_context = (room - n_target) // 128 * 128
    if n_context < 256:
        raise UsageError(f"the model was trained for {n_ctx_train:,} tokens: too few to verify anything")
    window = max(128, n_context // 2 // 128 * 128)
    return replace(gate, n_context=n_context, n_target=n_target, window=window, n_documents=0)


def _settings(gate: Gate) -> Iterable[Setting]:
    yield from (Setting(codec, codec) for codec in gate.codecs)
    yield Setting(f"window {gate.window}", "f16", gate.window)


def _compare(
    model: GateModel, gate: Gate, prefix: Sequence[int], text: str, tell: Tell
) -> list[dict[str, Any]]:
    tokens = model.tokenize(text)
    spans = list(spans_of(tokens, gate.n_context, gate.n_target, gate.n_spans))
    if len(spans) < gate.n_spans:
        needed = gate.n_spans * (gate.n_context + gate.n_target)
        raise UsageError(f"the text has {len(tokens):,} tokens, {needed:,} are needed", "a longer --text")
    n_ctx = round_n_ctx(len(prefix) + gate.n_context + max(gate.n_target, CHUNK_TOKENS))
    with ExitStack() as opened:

        def narrow(window: int) -> KVContext:
            n_step = max(RUN_TOKENS, window // WINDOW_STEPS)
            context = model.open_kv_context(len(prefix) + window + n_step)
            opened.callback(context.close)
            return context

        context = model.open_kv_context(min(n_ctx, model.usable_n_ctx()), n_outputs=ROWS)
        opened.callback(context.close)
        found = compare(
            context,
            prefix,
            spans,
            list(_settings(gate)),
            lambda done, total: tell("comparing", done, total),
            cache(narrow),
        )
    rows = [figures.as_json() for figures in found]
    unchanged = (row["top1"] for row in rows if row["name"] == "f16")
    floor = next(unchanged, 1.0)
    return [_judged(row, floor) for row in rows]


def _judged(row: dict[str, Any], floor: float) -> dict[str, Any]:
    """`floor`: the agreement of unchanged KV. Below 1, it is what llama.cpp's kernels for batches of another
    size do to quantised weights, and no loss of what is kept.
    """
    passes = row["top1"] >= MIN_TOP1 * floor and row["perplexity_rise"] <= MAX_PERPLEXITY_RISE
    return {**row, "passes": bool(passes)}


def _ask(model: GateModel, gate: Gate, text: str, tell: Tell) -> list[dict[str, Any]]:
    """Right answers and evaluated tokens of each mode, over all questions."""
    haystack = words(text, model.tokenize)
    outcomes: dict[str, list[Outcome]] = {mode.name: [] for mode in QUESTION_MODES}
    context = model.open_kv_context(min(model.usable_n_ctx(), 8192))
    try:
        asker = Asker(model, context)
        room = context.n_ctx - len(asker.prefix) - CHUNK_TOKENS
        window = min(QUESTION_WINDOW, max(128, room // 128 * 128))
        for number in range(gate.n_documents):
            kind = list(KINDS.values())[number % len(KINDS)]
            document = make_document(number, haystack, model.tokenize, kind, Shape())
            stored = store_document(context, asker.prefix, document, window, "int4")
            choose = random.Random(number)  # noqa: S311  # reproducible, not secret
            for place, asked in enumerate(document.chapters[: gate.n_questions]):
                others = choose.sample([c for c in document.chapters if c is not asked], 3)
                attended = sorted([asked, *others], key=lambda chapter: chapter.first)
                for mode in QUESTION_MODES:
                    outcomes[mode.name].append(asker.ask(document, stored, attended, asked, mode))
                tell("asking", number * gate.n_questions + place + 1, gate.n_documents * gate.n_questions)
    finally:
        context.close()
    return [
        {
            "name": name,
            "n_right": sum(outcome.is_right for outcome in found),
            "n": len(found),
            "n_evaluated": sum(outcome.n_evaluated for outcome in found),
        }
        for name, found in outcomes.items()
    ]
