"""Requests through a context, with progress and timings: one answer streamed, or many side by side."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from localctx.errors import LocalctxError
from localctx.session.answer import Timings
from localctx.session.events import WAITING, Event, Listener, Progress, Text
from localctx.values import Context, FinishReason, Piece, Request

__all__ = ["Decoded", "decode_many", "decode_one", "one_answer"]


@dataclass(frozen=True, slots=True)
class Decoded:
    """One request's outcome. `index` is its place among the requests."""

    index: int
    text: str
    finish_reason: FinishReason
    n_evaluated: int
    n_generated: int


def decode_one(
    context: Context, request: Request, timings: Timings, started: float, listen: Listener
) -> Generator[Event, None, Decoded]:
    """Stream one answer; `started` (time.perf_counter) is when the question was put, for ttft_ms."""
    pieces = context.generate(
        [request], lambda done, total: listen(Progress("prefill", done, total, "tokens"))
    )
    return (yield from one_answer(pieces, timings, started))


def one_answer(
    pieces: Iterator[Piece | None], timings: Timings, started: float
) -> Generator[Event, None, Decoded]:
    """The answer that the pieces make, streamed; None among them: there is none yet."""
    begin = time.perf_counter()
    first: float | None = None
    text: list[str] = []
    for piece in pieces:
        if piece is None:
            yield WAITING
            continue
        if first is None and (piece.text or piece.thinking or piece.finish_reason):
            first = time.perf_counter()
        shown = piece.text if text else piece.text.lstrip()
        if shown:
            text.append(shown)
            yield Text(shown)
        if piece.finish_reason is not None:
            end = time.perf_counter()
            first = first or end
            timings.prefill_ms += (first - begin) * 1000
            timings.ttft_ms = (first - started) * 1000
            timings.decode_ms += (end - first) * 1000
            timings.decode_tokens_per_s = _rate(piece.n_generated - 1, end - first)
            return Decoded(0, "".join(text), piece.finish_reason, piece.n_evaluated, piece.n_generated)
    raise LocalctxError("the engine ended without an answer")


def decode_many(
    context: Context, requests: Sequence[Request], timings: Timings, started: float
) -> Iterator[Decoded]:
    """Decode side by side; outcomes come as they finish, not in order.

    Prompts are read while others are written, so all time counts as decode_ms, and the rate is that of
    tokens written over all of it.
    """
    begin = time.perf_counter()
    texts: dict[int, list[str]] = {}
    n_before = timings.decode_tokens_per_s * timings.decode_ms / 1000
    n_generated = 0
    for piece in context.generate(requests):
        if piece.text:
            if timings.ttft_ms == 0:
                timings.ttft_ms = (time.perf_counter() - started) * 1000
            texts.setdefault(piece.request, []).append(piece.text)
        if piece.finish_reason is not None:
            n_generated += piece.n_generated
            text = "".join(texts.pop(piece.request, []))
            yield Decoded(piece.request, text, piece.finish_reason, piece.n_evaluated, piece.n_generated)
    timings.decode_ms += (time.perf_counter() - begin) * 1000
    timings.decode_tokens_per_s = _rate(n_before + n_generated, timings.decode_ms / 1000)


def _rate(n_tokens: float, seconds: float) -> float:
    return n_tokens / seconds if seconds > 0 and n_tokens > 0 else 0.0
