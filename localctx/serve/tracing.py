"""Spans of a request through the steps, for OpenTelemetry where it is installed; nothing elsewhere.

The caller's trace goes on (traceparent; others with OTEL_PROPAGATORS). The steps' spans are laid end to end
from the times that the answer has measured.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from localctx.serve.tickets import Ticket
from localctx.session.answer import Answer

__all__ = ["Tracing"]

STEPS = (
    ("document", ("document_ms",)),
    ("selection", ("select_ms",)),
    ("assemble", ("load_ms", "assemble_ms")),
    ("prefill", ("prefill_ms",)),
    ("decode", ("decode_ms",)),
)
MAX_BLOCKS = 32


class Tracing:
    """Spans under the name `localctx.serve`; exporters are set up as OpenTelemetry says."""

    def __init__(self) -> None:
        try:
            from opentelemetry import propagate, trace
        except ImportError:
            self._trace: Any = None
            return
        self._trace, self._propagate = trace, propagate
        self._tracer = trace.get_tracer("localctx.serve")

    @property
    def is_on(self) -> bool:
        """Whether the library is there."""
        return self._trace is not None

    def request(self, headers: Mapping[str, str], ticket: Ticket, name: str) -> None:
        """The spans of a request that is over."""
        if self._trace is None:
            return
        end_s, now_s = time.time(), time.monotonic()
        asked_ns = _ns(end_s - (now_s - ticket.asked_at))
        context = self._propagate.extract(dict(headers))
        attributes: dict[str, Any] = {
            "localctx.tenant": ticket.tenant.name,
            "gen_ai.usage.output_tokens": ticket.n_generated,
            "localctx.tokens.evaluated": ticket.n_evaluated,
        }
        span = self._tracer.start_span(name, context, attributes=attributes, start_time=asked_ns)
        with self._trace.use_span(span, end_on_exit=False):
            if ticket.started_at is not None:
                started_ns = _ns(end_s - (now_s - ticket.started_at))
                self._step("queue", asked_ns, started_ns)
                if ticket.answer is not None:
                    self._steps(ticket.answer, started_ns)
                elif ticket.first_at is not None:
                    first_ns = _ns(end_s - (now_s - ticket.first_at))
                    self._step("prefill", started_ns, first_ns)
                    self._step("decode", first_ns, _ns(end_s))
        span.end(_ns(end_s))

    def _steps(self, answer: Answer, started_ns: int) -> None:
        blocks = [f"{one.source}#{one.start}-{one.end}" for one in answer.citations[:MAX_BLOCKS]]
        more: dict[str, dict[str, Any]] = {
            "selection": {"localctx.strategy": answer.strategy, "localctx.blocks": blocks},
            "assemble": {"localctx.tokens.restored": answer.tokens.restored},
        }
        for name, parts in STEPS:
            length_ns = int(sum(getattr(answer.timings, part) for part in parts) * 1e6)
            self._step(name, started_ns, started_ns + length_ns, more.get(name))
            started_ns += length_ns

    def _step(self, name: str, start_ns: int, end_ns: int, attributes: dict[str, Any] | None = None) -> None:
        span = self._tracer.start_span(name, attributes=attributes, start_time=start_ns)
        span.end(max(start_ns, end_ns))


def _ns(seconds: float) -> int:
    return int(seconds * 1e9)
