"""Questions on documents, each tenant's in its own store. Knows no shares and no HTTP.

Tenants have nothing in common but the weights: each has runs, words, vectors and contexts of its own, so that
neither ids nor counts nor times tell one what another has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING

from localctx.serve.keys import Tenant
from localctx.serve.tickets import End, Outcome, QuestionJob, Ticket
from localctx.session.events import Event, Failed, Finished, Text
from localctx.session.side_by_side import SideBySide
from localctx.settings import Settings
from localctx.values import Model

if TYPE_CHECKING:
    from localctx.engine.embedder import EmbedderFile
    from localctx.engine.reranker import RerankerFile

__all__ = ["Questions"]

MAX_IDLE = 2
"""Tenants without an open question whose contexts stay open."""


class Questions:
    """A Lane for QuestionJob; `settings_of` gives a tenant's own settings, with its store."""

    def __init__(
        self,
        model: Model,
        settings_of: Callable[[Tenant], Settings],
        n_parallel: int,
        embedder: EmbedderFile | str | None = None,
        reranker: RerankerFile | None = None,
    ) -> None:
        """`embedder` and `reranker` are its own: they are used by the worker's thread."""
        self._model, self._settings_of = model, settings_of
        self._embedder, self._reranker = embedder, reranker
        self._n_parallel = n_parallel
        self._askings: OrderedDict[str, SideBySide] = OrderedDict()
        self._open: dict[tuple[str, int], Ticket] = {}

    @property
    def has_room(self) -> bool:
        """See Lane."""
        return len(self._open) < self._n_parallel

    def start(self, ticket: Ticket) -> None:
        """See Lane."""
        job = ticket.job
        if not isinstance(job, QuestionJob):
            raise TypeError("no question")
        name = ticket.tenant.name
        if name not in self._askings:
            settings = self._settings_of(ticket.tenant)
            self._askings[name] = SideBySide(
                self._model,
                settings,
                n_parallel=self._n_parallel,
                embedder=self._embedder,
                reranker=self._reranker,
            )
        self._askings.move_to_end(name)
        number = self._askings[name].submit(job.documents, job.question, settings=job.settings)
        self._open[name, number] = ticket

    def cancel(self, ticket: Ticket) -> None:
        """See Lane."""
        for (name, number), other in list(self._open.items()):
            if other is ticket:
                self._askings[name].cancel(number)
                self._over(name, number)

    def step(self) -> list[tuple[Ticket, Outcome]]:
        """See Lane."""
        outcomes: list[tuple[Ticket, Outcome]] = []
        for name, asking in self._askings.items():
            for number, event in asking.step():
                outcomes += self._taken(name, number, event)
        self._let_go()
        return outcomes

    def _taken(self, name: str, number: int, event: Event | Failed) -> list[tuple[Ticket, Outcome]]:
        ticket = self._open[name, number]
        if isinstance(event, Failed):
            self._over(name, number)
            return [(ticket, End(event.error))]
        if isinstance(event, Text):
            ticket.n_generated += 1
        if not isinstance(event, Finished):
            return [(ticket, event)]
        ticket.answer, tokens = event.answer, event.answer.tokens
        ticket.n_evaluated, ticket.n_cached = tokens.evaluated, tokens.restored
        ticket.n_generated = tokens.generated
        self._over(name, number)
        return [(ticket, event), (ticket, End())]

    def _over(self, name: str, number: int) -> None:
        """Let go of what was read: the documents will be closed."""
        job = self._open.pop((name, number)).job
        if isinstance(job, QuestionJob):
            self._askings[name].forget(job.documents)

    def _let_go(self) -> None:
        """Close what is idle and was not used for longest."""
        idle = [name for name, asking in self._askings.items() if asking.is_idle]
        for name in idle[: max(0, len(idle) - MAX_IDLE)]:
            self._askings.pop(name).close()

    def stop(self) -> None:
        """See Lane."""
        for asking in list(self._askings.values()):
            asking.stop()

    def close(self) -> None:
        """See Lane."""
        for asking in self._askings.values():
            asking.close()
        self._askings.clear()
