"""Chats without documents, decoded side by side in one context. Knows no tenants' shares and no HTTP."""

from __future__ import annotations

from contextlib import ExitStack, closing
from dataclasses import dataclass

from localctx.errors import LocalctxError
from localctx.kv import Batch, BatchingContext, Shared
from localctx.serve.tickets import ChatJob, End, Outcome, Ticket
from localctx.values import Model, Piece

__all__ = ["Chats"]


@dataclass(slots=True)
class _Choice:
    """One of a ticket's answers, and what it took so far."""

    ticket: Ticket
    number: int
    n_prompt: int
    n_evaluated: int = 0
    n_generated: int = 0


class Chats:
    """A Lane for ChatJob. No cells are shared between tenants: what one asked, no other can time."""

    def __init__(self, model: Model, n_ctx: int, n_seq: int) -> None:
        """Opens the context, and with it loads the weights. Raises OutOfMemory, UsageError, ModelError."""
        self._model = model
        self._n_ctx, self._n_seq = n_ctx, n_seq
        self._open: dict[int, _Choice] = {}
        self._numbers: dict[Ticket, set[int]] = {}
        self._begin()

    def _begin(self) -> None:
        self._stack = ExitStack()
        context = self._stack.enter_context(closing(self._model.open_context(self._n_ctx, self._n_seq)))
        if not isinstance(context, BatchingContext):
            self._stack.close()
            raise LocalctxError(f"{self._model.info.name} cannot be served", "a model file")
        self._context = context
        self._batch: Batch | None = None

    @property
    def n_ctx(self) -> int:
        """Cells that all chats share."""
        return self._context.n_ctx

    @property
    def has_room(self) -> bool:
        """See Lane. A ticket with several choices may wait for places inside the engine."""
        return len(self._open) < self._n_seq

    def start(self, ticket: Ticket) -> None:
        """See Lane."""
        if not isinstance(ticket.job, ChatJob):
            raise TypeError("no chat")
        batch = self._ready()
        shared = Shared(ticket.tenant.name.encode(), self._context.n_ctx)
        self._numbers[ticket] = set()
        for choice, request in enumerate(ticket.job.requests):
            try:
                number = batch.submit(request, shared=shared)
            except LocalctxError:
                self.cancel(ticket)
                raise
            self._open[number] = _Choice(ticket, choice, len(request.prompt.tokens))
            self._numbers[ticket].add(number)

    def cancel(self, ticket: Ticket) -> None:
        """See Lane."""
        for number in self._numbers.pop(ticket, set()):
            self._ready().cancel(number)
            del self._open[number]

    def step(self) -> list[tuple[Ticket, Outcome]]:
        """See Lane. When the engine fails, all that is open fails, and the next begins in a fresh context."""
        if not self._open:
            return []
        try:
            pieces = self._ready().step()
        except LocalctxError as error:
            failed = list(self._numbers)
            self._open.clear()
            self._numbers.clear()
            self._stack.close()
            self._begin()
            return [(ticket, End(error)) for ticket in failed]
        outcomes: list[tuple[Ticket, Outcome]] = []
        for piece in pieces:
            outcomes += self._taken(piece)
        return outcomes

    def _taken(self, piece: Piece) -> list[tuple[Ticket, Outcome]]:
        """A piece under the number of its choice, and the ticket's end after the last one."""
        one = self._open[piece.request]
        ticket = one.ticket
        ticket.n_evaluated += piece.n_evaluated - one.n_evaluated
        ticket.n_generated += piece.n_generated - one.n_generated
        one.n_evaluated, one.n_generated = piece.n_evaluated, piece.n_generated
        numbered = Piece(
            one.number, piece.text, piece.thinking, piece.finish_reason, piece.n_evaluated, piece.n_generated
        )
        outcomes: list[tuple[Ticket, Outcome]] = [(ticket, numbered)]
        if piece.finish_reason is not None:
            ticket.n_cached += one.n_prompt - piece.n_evaluated
            del self._open[piece.request]
            self._numbers[ticket].discard(piece.request)
            if not self._numbers[ticket]:
                del self._numbers[ticket]
                outcomes.append((ticket, End()))
        return outcomes

    def stop(self) -> None:
        """See Lane."""
        self._context.cancel()

    def close(self) -> None:
        """See Lane."""
        self._stack.close()

    def _ready(self) -> Batch:
        """Taken by the thread that works with it."""
        if self._batch is None:
            self._batch = self._stack.enter_context(closing(self._context.open_batch()))
        return self._batch
