"""Counts for Prometheus, each tenant in its own rows. Knows no HTTP."""

from __future__ import annotations

from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest

from localctx.serve.tickets import Ticket

__all__ = ["Metrics"]

BUCKETS_S = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 60)


class Metrics:
    """One server's; made anew for each, so that several can live in a process."""

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        counted = partial(Counter, registry=registry)
        timed = partial(Histogram, labelnames=("tenant",), buckets=BUCKETS_S, registry=registry)
        self._requests = counted("localctx_requests", "By path and status.", ("tenant", "path", "status"))
        kinds = "prompt (evaluated), cached (of the prompt, there already), generated."
        self._tokens = counted("localctx_tokens", f"Tokens by kind: {kinds}", ("tenant", "kind"))
        self._first = timed("localctx_first_token_seconds", "From a request to its answer's first token.")
        self._waited = timed("localctx_queue_seconds", "From a request to its start.")
        target = "within latency_slo_ms"
        self._met = counted("localctx_slo_met", f"First tokens {target}.", ("tenant",))
        self._missed = counted("localctx_slo_missed", f"First tokens not {target}.", ("tenant",))
        self._attainment = Gauge(
            "localctx_slo_attainment", f"Share of first tokens {target}.", ("tenant",), registry=registry
        )
        self._counts: dict[str, tuple[int, int]] = {}
        self.waiting = Gauge("localctx_requests_waiting", "Requests in line.", registry=registry)
        self.running = Gauge("localctx_requests_running", "Requests being answered.", registry=registry)
        ProcessCollector(registry=registry)

    def request(self, tenant: str, path: str, status: int) -> None:
        """A response was begun."""
        self._requests.labels(tenant, path, str(status)).inc()

    def answered(self, ticket: Ticket) -> None:
        """A ticket is over: what it took, when it began, and whether its first token came in time."""
        tenant = ticket.tenant
        taken = {"prompt": ticket.n_evaluated, "cached": ticket.n_cached, "generated": ticket.n_generated}
        for kind, n in taken.items():
            self._tokens.labels(tenant.name, kind).inc(n)
        if ticket.started_at is not None:
            self._waited.labels(tenant.name).observe(ticket.started_at - ticket.asked_at)
        if ticket.first_at is None:
            return
        first_s = ticket.first_at - ticket.asked_at
        self._first.labels(tenant.name).observe(first_s)
        if tenant.latency_slo_ms is None:
            return
        met = first_s * 1000 <= tenant.latency_slo_ms
        (self._met if met else self._missed).labels(tenant.name).inc()
        n_met, n_all = self._counts.get(tenant.name, (0, 0))
        n_met, n_all = n_met + met, n_all + 1
        self._counts[tenant.name] = (n_met, n_all)
        self._attainment.labels(tenant.name).set(n_met / n_all)

    def text(self) -> bytes:
        """Prometheus's text format."""
        text: bytes = generate_latest(self._registry)
        return text
