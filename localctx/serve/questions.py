"""Questions on documents, each tenant's in its own store. Knows no shares and no HTTP.

Tenants have nothing in common but the weights: each has runs, words, vectors and contexts of its own, so that
neither ids nor counts nor times tell one what another has.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING

from localctx.errors import LocalctxError
from localctx.serve.keys import Tenant
from localctx.serve.tickets import End, Outcome, QuestionJob, Ticket
from localctx.session.ask import ask
from localctx.session.events import Event, Finished, Text
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.settings import Settings
from localctx.values import Model

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.engine.embedder import EmbedderFile
    from localctx.engine.reranker import RerankerFile

__all__ = ["Questions"]

MAX_IDLE = 2
"""Tenants without an open question whose contexts stay open."""


class _Asking:
    """One tenant's questions, one after the other."""

    def __init__(
        self,
        model: Model,
        settings: Settings,
        embedder: EmbedderFile | str | None,
        reranker: RerankerFile | None,
    ) -> None:
        self._model, self._settings = model, settings
        self._embedder, self._reranker = embedder, reranker
        self._held = Held(Kept.of_settings(settings, lambda text: None))
        self._open: OrderedDict[int, Generator[Event, None, None]] = OrderedDict()
        self._n_submitted = 0

    @property
    def is_idle(self) -> bool:
        return not self._open

    def submit(self, documents: Sequence[Document], question: str, settings: Settings) -> int:
        number = self._n_submitted
        self._n_submitted += 1
        events = ask(
            documents,
            self._model,
            question,
            settings,
            held=self._held,
            embedder=self._embedder,
            reranker=self._reranker,
        )
        if not isinstance(events, Generator):
            raise TypeError("ask() is no generator")
        self._open[number] = events
        return number

    def cancel(self, number: int) -> None:
        events = self._open.pop(number, None)
        if events is not None:
            events.close()

    def step(self) -> list[tuple[int, Event | LocalctxError]]:
        if not self._open:
            return []
        number, events = next(iter(self._open.items()))
        try:
            event = next(events)
        except LocalctxError as error:
            del self._open[number]
            return [(number, error)]
        if isinstance(event, Finished):
            self.cancel(number)
        return [(number, event)]

    def close(self) -> None:
        for number in list(self._open):
            self.cancel(number)
        self._held.close()


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
        self._askings: OrderedDict[str, _Asking] = OrderedDict()
        self._open: dict[tuple[str, int], Ticket] = {}
        self._stopped = False

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
            self._askings[name] = _Asking(self._model, settings, self._embedder, self._reranker)
        self._askings.move_to_end(name)
        number = self._askings[name].submit(job.documents, job.question, job.settings)
        self._open[name, number] = ticket

    def cancel(self, ticket: Ticket) -> None:
        """See Lane."""
        for (name, number), other in list(self._open.items()):
            if other is ticket:
                self._askings[name].cancel(number)
                del self._open[name, number]

    def step(self) -> list[tuple[Ticket, Outcome]]:
        """See Lane."""
        outcomes: list[tuple[Ticket, Outcome]] = []
        for name, asking in self._askings.items():
            for number, event in asking.step():
                ticket = self._open[name, number]
                if isinstance(event, LocalctxError):
                    outcomes.append((ticket, End(event)))
                    del self._open[name, number]
                    continue
                outcomes.append((ticket, event))
                if isinstance(event, Text):
                    ticket.n_generated += 1
                if isinstance(event, Finished):
                    ticket.answer = event.answer
                    ticket.n_cached = event.answer.tokens.restored
                    ticket.n_evaluated = event.answer.tokens.evaluated
                    ticket.n_generated = event.answer.tokens.generated
                    outcomes.append((ticket, End()))
                    del self._open[name, number]
        self._let_go()
        return outcomes

    def _let_go(self) -> None:
        """Close what is idle and was not used for longest."""
        idle = [name for name, asking in self._askings.items() if asking.is_idle]
        for name in idle[: max(0, len(idle) - MAX_IDLE)]:
            self._askings.pop(name).close()

    def stop(self) -> None:
        """See Lane."""
        self._stopped = True

    def close(self) -> None:
        """See Lane."""
        for asking in self._askings.values():
            asking.close()
        self._askings.clear()
