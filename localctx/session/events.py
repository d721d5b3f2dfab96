"""What a running verb tells its caller, in order: Overview, Planned, SectionDone, Text, Replaced, Finished.

A renderer shows them, a program may ignore all but the last. Progress goes to a listener instead, since it
must be told while a step is still computing.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass
from typing import Final, TypeAlias, TypeVar

from localctx.errors import LocalctxError
from localctx.session.answer import Answer
from localctx.values import Section, Strategy

__all__ = [
    "WAITING",
    "Event",
    "Failed",
    "Finished",
    "Listener",
    "Notice",
    "Overview",
    "Planned",
    "Progress",
    "Replaced",
    "SectionDone",
    "Text",
    "ignore_progress",
    "result_of",
]


Returned = TypeVar("Returned")


@dataclass(frozen=True, slots=True)
class Overview:
    """A document was opened. `n_tokens_estimate` comes from a sample; the exact count follows in Planned."""

    source: str
    format: str
    n_pages: int
    n_tokens_estimate: int
    language: str | None
    outline: tuple[Section, ...]


@dataclass(frozen=True, slots=True)
class Planned:
    """The strategy taken, why, and what it will read. `n_parts` counts the separate readings."""

    strategy: Strategy
    why: str
    n_tokens: int
    n_ctx: int
    n_parts: int = 1


@dataclass(frozen=True, slots=True)
class Progress:
    """`done` of `total` units (tokens, pages, parts: `unit` says which) of the stage `what`.

    rate: units a second so far; None where that means little.
    """

    what: str
    done: int
    total: int
    unit: str
    rate: float | None = None


@dataclass(frozen=True, slots=True)
class SectionDone:
    """One part of a document is summarised."""

    title: str
    pages: str
    text: str


@dataclass(frozen=True, slots=True)
class Notice:
    """Something the user should know; it also stands in the answer's warnings."""

    text: str


@dataclass(frozen=True, slots=True)
class Text:
    """The next piece of the answer's text."""

    text: str


@dataclass(frozen=True, slots=True)
class Replaced:
    """The text told so far does not stand: the document does not support it. `text` is the answer now."""

    text: str


@dataclass(frozen=True, slots=True)
class Finished:
    """The answer, complete. Always the last event."""

    answer: Answer


@dataclass(frozen=True, slots=True)
class Failed:
    """One of many questions cannot be answered; always its last event."""

    error: LocalctxError


Event: TypeAlias = Overview | Planned | SectionDone | Notice | Text | Replaced | Finished
Listener: TypeAlias = Callable[[Progress], None]
WAITING: Final[Event] = Notice("waiting")
"""This very object: a question among others has nothing to tell until the model was at work."""
CHOSEN: Final[Event] = Notice("chosen")
DECODED: Final[Event] = Notice("decoded")
"""These very objects, of a question among others: from here on it needs the model, and no more."""


def ignore_progress(_: Progress) -> None:
    """The listener of callers that show none."""


def result_of(steps: Generator[Event, None, Returned]) -> Returned:
    """What a step returns, its events ignored."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            value: Returned = done.value
            return value
