"""One context for what is prefilled for a question and for its answer from stored KV. Knows no strategy.

Opening one costs buffers and time, on a GPU most; two at a time would cost their memory too. A larger one
takes its place where it is too small; the question's queries are read in one of their own. Questions that
follow each other may share it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields

from localctx.kv import KVContext
from localctx.session.cache import Cache, KVModel
from localctx.session.dialogue import Dialogue
from localctx.session.kept import Kept
from localctx.session.supply import largest_answer_n_ctx

__all__ = ["Held", "OpenContext", "QuestionCache", "sharing_one_context"]


class OpenContext:
    """The context that is open, if any. Close it before its model, or let the model close it."""

    def __init__(self, settle: Callable[[], None] = lambda: None) -> None:
        """settle: waits until nothing else evaluates the model, before one is used."""
        self._settle = settle
        self._context: KVContext | None = None
        self._model: KVModel | None = None
        self._stack = ExitStack()

    @property
    def n_ctx(self) -> int | None:
        """Its cells; None where none is open."""
        return None if self._context is None else self._context.n_ctx

    def get(self, cache: Cache, n_ctx: int) -> KVContext:
        """The open one, if it is the model's and has n_ctx cells; else it is freed, and a new one opened."""
        self._settle()
        if self._context is None or self._model is not cache.model or self._context.n_ctx < n_ctx:
            self.close()
            self._context = self._stack.enter_context(Cache.context(cache, n_ctx))
            self._model = cache.model
        return self._context

    def cancel(self) -> None:
        """Stop what it is at soon; from any thread."""
        if (context := self._context) is not None:
            context.cancel()

    def close(self) -> None:
        """Free it; again is harmless."""
        self._context = self._model = None
        self._stack.close()


@dataclass(slots=True)
class Held:
    """What questions that follow each other share: the runs at hand, one context, and in a conversation what
    was said before.
    """

    kept: Kept
    context: OpenContext = field(default_factory=OpenContext)
    dialogue: Dialogue | None = None

    def close(self) -> None:
        """Free the context, and let go of the runs."""
        self.context.close()
        self.kept.close()


@dataclass(slots=True)
class QuestionCache(Cache):
    """A Cache whose context() goes on with the context that is open, unless it has too few cells."""

    open: OpenContext = field(default_factory=OpenContext)
    least_n_ctx: int = 0
    _is_used: bool = False

    @property
    def n_ctx(self) -> int | None:
        """Cells of the context that is open; None before the first."""
        return self.open.n_ctx if self._is_used else None

    @contextmanager
    def context(self, n_ctx: int) -> Iterator[KVContext]:
        """The one context, with n_ctx cells at least, and no fewer than least_n_ctx. A larger one takes the
        place of a smaller one, which is freed first; what the cache holds is whatever was left there.
        """
        context = self.open.get(self, max(n_ctx, self.least_n_ctx))
        self._is_used = True
        yield context


@contextmanager
def sharing_one_context(cache: Cache, held: Held | None = None) -> Iterator[QuestionCache]:
    """The same cache for one question, whose context is freed at the end, or is the held one: large enough
    for other questions too.
    """
    open_one = OpenContext() if held is None else held.context
    least_n_ctx = 0
    if held is not None:
        least_n_ctx = largest_answer_n_ctx(cache)
    same = {part.name: getattr(cache, part.name) for part in fields(Cache)}
    shared = QuestionCache(**same, open=open_one, least_n_ctx=least_n_ctx)
    try:
        yield shared
    finally:
        if held is None:
            open_one.close()
