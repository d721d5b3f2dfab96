"""What the Python interface makes of a verb's events: its answer, or the texts of it as they come."""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Self, TypeVar

if TYPE_CHECKING:
    from localctx.session.answer import Answer
    from localctx.session.events import Event

__all__ = ["Closing", "closing_events", "last_answer", "texts_of"]

Kind = TypeVar("Kind")


class Closing:
    """Closed at the end of a `with`."""

    def close(self) -> None:
        """Free what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


@contextmanager
def closing_events(events: Iterator[Kind]) -> Iterator[Iterator[Kind]]:
    """The events of a verb, ended on the way out, so that its context is gone before its model."""
    try:
        yield events
    finally:
        if isinstance(events, Generator):
            events.close()


def last_answer(events: Iterator[Event]) -> Answer:
    """Run to the end and return the answer."""
    from localctx.session.events import Finished

    with closing_events(events):
        return next(event.answer for event in events if isinstance(event, Finished))


def texts_of(events: Iterator[Event]) -> Generator[str, None, None]:
    """The pieces of the answer."""
    from localctx.session.events import Replaced, Text

    with closing_events(events):
        for event in events:
            if isinstance(event, Text):
                yield event.text
            elif isinstance(event, Replaced):
                yield f"\n{event.text}"
