"""A stream's earlier runs, found again while it is prefilled: in memory those that were just encoded, the
others where runs are kept.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from threading import Lock

from localctx import _native
from localctx.kv import RUN_TOKENS, KVPart
from localctx.selection import LexicalRouter, recalled_runs
from localctx.session.encoding import Encoder
from localctx.session.kept import Keep, Kept
from localctx.session.token_stream import TokenStream
from localctx.store import StoreUnusable
from localctx.store.writing import FULL_BYTES

__all__ = ["Recalling"]

RECENT_BYTES = 2 * FULL_BYTES
"""More than a store's writer gathers before it can be read again."""


class Recalling:
    """The route of one call of the engine. `router`: its name, as the policy has it."""

    router = LexicalRouter.name

    def __init__(self, kept: Kept, stream: TokenStream, first: int) -> None:
        """`first`: the token with which the call begins; runs before it are at hand."""
        self._kept = kept
        self._stream = stream
        self._first_run = stream.run_at(first)
        self._router = LexicalRouter(stream.tokens) if stream.policy.routed else None
        self._recent: OrderedDict[int, tuple[_native.Run, int]] = OrderedDict()
        self._recent_bytes = 0
        self._lock = Lock()

    def noting(self, keep: Keep) -> Keep:
        """`keep`, of which the last runs stay here too."""

        def noted(number: int, data: bytes) -> None:
            keep(number, data)
            with self._lock:
                self._recent[number] = _native.Run(data), len(data)
                self._recent_bytes += len(data)
                while self._recent_bytes > RECENT_BYTES and self._kept.failure is None:
                    _, (_, n_bytes) = self._recent.popitem(last=False)
                    self._recent_bytes -= n_bytes

        return noted

    def parts(self, encoder: Encoder, first: int, keep_from: int, start: int, end: int) -> Sequence[KVPart]:
        """See kv.Route. Waits for runs that `encoder` has not handed on yet.

        Raises StoreUnusable where a run cannot be read any more, and what the encoder raises.
        """
        policy = self._stream.policy
        numbers = recalled_runs(policy, self._router, first, keep_from, start, end)
        if not numbers:
            return []
        if numbers[-1] >= self._first_run:
            encoder.wait_for(numbers[-1])
        with self._lock:
            recent = {number: self._recent[number][0] for number in numbers if number in self._recent}
        rest = {number: self._stream.ids[number] for number in numbers if number not in recent}
        self._kept.begin_question()  # as many loads stay open as for questions
        if len(self._kept.load(list(rest.values()))) < len(set(rest.values())):
            raise StoreUnusable(
                "KV of earlier text, which later text attends to, cannot be read any more",
                "try again: what is damaged or missing is prefilled anew",
            )
        found = [recent.get(number) or self._kept.run(rest[number]) for number in numbers]
        return [KVPart(run, 0, RUN_TOKENS, 0) for run in found if run is not None]
