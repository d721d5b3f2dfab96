"""One verb on its way through the steps: what every step needs, and what it leaves for the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from localctx.document import Document
from localctx.session.answer import Timings
from localctx.session.decoding import Decoded
from localctx.session.events import Listener, Notice
from localctx.session.reading import Passage, Reading
from localctx.settings import Settings
from localctx.values import Context, Message, Model, Request, Sampling

__all__ = ["Run", "start"]


@dataclass(slots=True)
class Run:
    """`started`: time.perf_counter() when the verb was called · limit: the largest context it may use."""

    readings: list[Reading]
    model: Model
    settings: Settings
    listen: Listener
    limit: int
    started: float
    timings: Timings = field(default_factory=Timings)
    warnings: list[str] = field(default_factory=list)
    n_evaluated: int = 0
    n_generated: int = 0

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents, as far as read."""
        return sum(reading.n_tokens for reading in self.readings)

    @property
    def n_blocks(self) -> int:
        """Blocks of all documents; they are numbered through."""
        return sum(reading.n_blocks for reading in self.readings)

    @property
    def language(self) -> str:
        """The first document's language; English where it has none."""
        return self.readings[0].document.language or "en"

    def passage(self, index: int) -> Passage:
        """The block with running number `index`."""
        for reading in self.readings:
            if index < reading.n_blocks:
                return reading.passage(index)
            index -= reading.n_blocks
        raise IndexError(index)

    def text(self) -> Iterator[str]:
        """All documents' text, in pieces."""
        for reading in self.readings:
            yield from reading.document.text.stream()

    def warn(self, text: str) -> Notice:
        """Keep a warning for the answer and tell it now."""
        self.warnings.append(text)
        return Notice(text)

    def request(self, messages: Sequence[Message], max_tokens: int) -> Request:
        """A request under the run's sampling settings; what its template notices becomes a warning."""
        settings = self.settings
        prompt = self.model.prompt(messages)
        self.warnings.extend(prompt.notices)
        return Request(
            prompt,
            Sampling(
                temperature=settings.temp,
                top_p=settings.top_p,
                top_k=settings.top_k,
                min_p=settings.min_p,
                seed=settings.seed,
                max_tokens=min(max_tokens, settings.max_tokens),
            ),
        )

    def count(self, done: Decoded) -> None:
        """Add one request's tokens."""
        self.n_evaluated += done.n_evaluated
        self.n_generated += done.n_generated

    def context(self, n_ctx: int, n_seq: int = 1) -> Context:
        """A context within the limit; its notices become warnings."""
        context = self.model.open_context(min(n_ctx, self.limit), n_seq)
        self.warnings.extend(context.notices)
        return context


def start(
    documents: Sequence[Document], model: Model, settings: Settings, listen: Listener, n_seq: int = 1
) -> Run:
    """A run over the documents. Raises UsageError or OutOfMemory for a context that cannot be."""
    readings = [Reading(document, ordinal) for ordinal, document in enumerate(documents)]
    limit = model.usable_n_ctx(settings.ctx, n_seq)
    return Run(
        readings, model, settings, listen, limit, time.perf_counter(), warnings=list(model.info.notices)
    )
