"""Documents and runs for the session tests; the echo engine answers as a test tells it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from localctx.document import Document, open_document
from localctx.session.answer import Answer
from localctx.session.events import Event, Finished

Kind = TypeVar("Kind")

CHAPTERS = """# Rivers

The river Orle rises near Tannau and is 212 kilometres long. It carries timber in spring. Boats are built of
larch wood in the yards of Tannau.

# Mines

The silver mine of Quarz was opened in 1742 by Anna Feld. It was never flooded. The miners were paid every
Friday, and 340 of them lived in the valley.

# Railways

The railway from Tannau to Quarz was finished in 1871. It cost 4.5 million crowns. Eleven bridges cross the
river Orle, and the longest of them is the Falken bridge.
"""


@pytest.fixture
def open_text(tmp_path: Path) -> Iterator[Callable[..., Document]]:
    """Write a text to a file of that name and open it."""
    opened: list[Document] = []

    def call(text: str, name: str = "book.md") -> Document:
        path = tmp_path / name
        path.write_text(text, "utf-8")
        opened.append(open_document(str(path), cache_dir=None))
        return opened[-1]

    yield call
    for document in opened:
        document.close()


@pytest.fixture
def book(open_text: Callable[..., Document]) -> Document:
    """Three short chapters."""
    return open_text(CHAPTERS)


def answer_of(events: list[Event]) -> Answer:
    """The answer of a finished run."""
    assert isinstance(events[-1], Finished)
    return events[-1].answer


def of_kind(events: list[Event], kind: type[Kind]) -> list[Kind]:
    """The events of one kind."""
    return [event for event in events if isinstance(event, kind)]
