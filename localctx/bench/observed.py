"""A context that tells of its streaming prefill: when chunks came, what held it up."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from localctx.kv import KVChunk, KVContext, KVPart, OnChunk, PrefillPolicy, Route
from localctx.values import Progress

__all__ = ["ObservedContext", "rate_between"]


class ObservedContext:
    """A kv.KVContext that passes everything on. Of its last stream(): marks are (seconds, tokens) since it
    began, one a chunk · waited_s: handing chunks over · streamed_s: in stream() in all.
    """

    def __init__(self, context: KVContext) -> None:
        self._context = context
        self.marks: list[tuple[float, int]] = []
        self.waited_s = 0.0
        self.streamed_s = 0.0

    def stream(
        self,
        prefix: Sequence[int],
        tokens: Sequence[int],
        policy: PrefillPolicy,
        on_chunk: OnChunk,
        *,
        first: int = 0,
        left: Sequence[KVPart] = (),
        units: Sequence[int] = (),
        route: Route | None = None,
        on_progress: Progress | None = None,
    ) -> int:
        """See kv.KVContext."""
        self.marks, self.waited_s = [(0.0, 0)], 0.0
        started = time.perf_counter()

        def observed(chunk: KVChunk) -> None:
            come = time.perf_counter()
            self.marks.append((come - started, self.marks[-1][1] + chunk.n_tokens))
            on_chunk(chunk)
            self.waited_s += time.perf_counter() - come

        try:
            return self._context.stream(
                prefix,
                tokens,
                policy,
                observed,
                first=first,
                left=left,
                units=units,
                route=route,
                on_progress=on_progress,
            )
        finally:
            self.streamed_s = time.perf_counter() - started

    def __getattr__(self, name: str) -> Any:
        return getattr(self._context, name)


def rate_between(marks: Sequence[tuple[float, int]], low: float, high: float) -> float:
    """Tokens a second between two shares of all tokens; marks are (seconds, tokens), both ascending."""
    import numpy as np

    seconds, tokens = np.array(marks).T
    begin, end = np.interp([low * tokens[-1], high * tokens[-1]], tokens, seconds)
    return float((high - low) * tokens[-1] / max(end - begin, 1e-9))
