"""One context for what is prefilled for a question and for its answer from stored KV. Knows no strategy.

Opening one costs buffers and time, on a GPU most; two at a time would cost their memory too. A larger one
takes its place where it is too small; the question's queries are read in one of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, fields

from localctx.kv import KVContext
from localctx.session.cache import Cache

__all__ = ["QuestionCache", "sharing_one_context"]


@dataclass(slots=True)
class QuestionCache(Cache):
    """A Cache whose context() goes on with the context that is open, unless it has too few cells."""

    _open: KVContext | None = None
    _stack: ExitStack = field(default_factory=ExitStack)

    @property
    def n_ctx(self) -> int | None:
        """Cells of the context that is open; None before the first."""
        return None if self._open is None else self._open.n_ctx

    @contextmanager
    def context(self, n_ctx: int) -> Iterator[KVContext]:
        """The one context, with n_ctx cells at least. A larger one takes the place of a smaller one, which is
        freed first; what the cache holds is whatever was left there.
        """
        if self._open is None or self._open.n_ctx < n_ctx:
            self.close()
            self._open = self._stack.enter_context(Cache.context(self, n_ctx))
        yield self._open

    def close(self) -> None:
        """Free it; again is harmless."""
        self._open = None
        self._stack.close()


@contextmanager
def sharing_one_context(cache: Cache) -> Iterator[QuestionCache]:
    """The same cache for one question, whose context is freed at the end."""
    shared = QuestionCache(**{part.name: getattr(cache, part.name) for part in fields(Cache)})
    try:
        yield shared
    finally:
        shared.close()
