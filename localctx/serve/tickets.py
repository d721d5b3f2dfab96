"""A request on its way: what is to be done, for whom, and what has come of it. Knows no HTTP, no engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeAlias

from localctx.errors import LocalctxError
from localctx.serve.keys import Tenant
from localctx.settings import Settings
from localctx.values import Piece, Request

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.answer import Answer
    from localctx.session.events import Event

__all__ = ["Busy", "ChatJob", "End", "Lane", "Outcome", "QuestionJob", "Quota", "Stopping", "Ticket"]


class Busy(Exception):
    """Nothing more is taken now; `retry_after_s` says when it is worth trying again."""

    def __init__(self, retry_after_s: float) -> None:
        super().__init__()
        self.retry_after_s = retry_after_s


class Quota(Busy):
    """The tenant has used what it may use."""


class Stopping(Exception):
    """The server is shutting down."""


@dataclass(frozen=True, slots=True)
class ChatJob:
    """Choices to decode side by side, without documents."""

    requests: tuple[Request, ...]

    @property
    def n_tokens(self) -> int:
        """What it may take at most."""
        n_prompt = sum(len(request.prompt.tokens) for request in self.requests)
        return n_prompt + sum(request.sampling.max_tokens for request in self.requests)


@dataclass(frozen=True, slots=True)
class QuestionJob:
    """A question on documents, which stay open until it is over."""

    documents: Sequence[Document]
    question: str
    settings: Settings

    @property
    def n_tokens(self) -> int:
        """About what it takes: passages are not chosen yet."""
        return 512 + len(self.question) // 4 + self.settings.max_tokens


@dataclass(frozen=True, slots=True)
class End:
    """Nothing follows. `error`: why it failed."""

    error: LocalctxError | None = None


Outcome: TypeAlias = "Piece | Event | End"
"""Piece.request is the number of the choice."""


@dataclass(slots=True, eq=False)
class Ticket:
    """Times are seconds of time.monotonic(). `receive` is called with what has come of it, in order, wherever
    the worker's `post` brings it; `over`, once, when the worker has done with a ticket that it took ·
    n_cached: prompt tokens that were there already.
    """

    tenant: Tenant
    job: ChatJob | QuestionJob
    receive: Callable[[Outcome], None]
    asked_at: float
    over: Callable[[], None] = lambda: None
    started_at: float | None = None
    first_at: float | None = None
    n_evaluated: int = 0
    n_cached: int = 0
    n_generated: int = 0
    answer: Answer | None = None

    @property
    def n_used(self) -> int:
        """Tokens that were computed for it."""
        return self.n_evaluated + self.n_generated


class Lane(Protocol):
    """Work of one kind, several at a time; used by the worker's thread alone."""

    @property
    def has_room(self) -> bool:
        """Whether one more may start."""

    def start(self, ticket: Ticket) -> None:
        """Begin it. Raises LocalctxError when it cannot be."""

    def cancel(self, ticket: Ticket) -> None:
        """End it at once; nothing of it comes afterwards. One that is over is no error."""

    def step(self) -> list[tuple[Ticket, Outcome]]:
        """One unit of work and what came of it; nothing open: nothing, at once."""

    def stop(self) -> None:
        """From any thread: have step() return soon."""

    def close(self) -> None:
        """Free what it holds."""
