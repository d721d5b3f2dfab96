"""Documents read once for many questions: cut, counted, indexed; each gets a run of its own on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.engine.reranker import RerankerFile
from localctx.index import LexicalIndex
from localctx.session.answer import Timings
from localctx.session.events import Event, Listener
from localctx.session.opening import index_all, introduce, timed
from localctx.session.run import Run, start
from localctx.session.structured import answer_schema
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["SharedReading", "SharedReadings"]


@dataclass(slots=True)
class SharedReading:
    """Documents that were read. `events`: what is told of them to each question."""

    base: Run
    index: LexicalIndex
    events: tuple[Event, ...]
    is_new: bool = True

    def run_of(self, settings: Settings, started: float, blocks: tuple[int, ...] | None) -> Run:
        """A question's own run. The time that reading took is the first one's."""
        base = self.base
        timings = base.timings if self.is_new else Timings()
        self.is_new = False
        return replace(
            base, settings=settings, started=started, blocks=blocks, timings=timings,
            warnings=list(base.warnings), pulled=[], schema=answer_schema(settings), _unheard=[],
        )  # fmt: skip


class SharedReadings:
    """Readings by Document objects and by what of the settings they depend on. Close it."""

    def __init__(
        self,
        model: Model,
        listen: Listener,
        early: list[str],
        embedder: EmbedderFile | str | None,
        reranker: RerankerFile | None,
    ) -> None:
        """`early`: warnings from before the first question, which it is told."""
        self._model, self._listen, self._early = model, listen, early
        self._embedder, self._reranker = embedder, reranker
        self._found: dict[tuple[tuple[int, ...], Settings], SharedReading] = {}

    def get(self, documents: Sequence[Document], settings: Settings) -> SharedReading:
        """The documents' reading. Raises what reading them raises."""
        key = (tuple(map(id, documents)), _without_sampling(settings))
        if key not in self._found:
            run = start(documents, self._model, settings, self._listen)
            run.embedder, run.reranker = self._embedder, self._reranker
            events = list(introduce(run))
            while self._early:
                events.append(run.warn(self._early.pop(0)))
            with timed(run.timings, "document_ms"):
                index = index_all(run)
            self._found[key] = SharedReading(run, index, (*events, *run.unheard()))
        return self._found[key]

    def unread(
        self, documents: Sequence[Document], settings: Settings, blocks: tuple[int, ...] | None
    ) -> Run:
        """A run on documents whose text was not cut into blocks, for what needs none."""
        run = start(documents, self._model, settings, self._listen)
        run.blocks = blocks
        return run

    def forget(self, documents: Sequence[Document]) -> None:
        """Let go of what was read of these."""
        ids = tuple(map(id, documents))
        for key in [key for key in self._found if key[0] == ids]:
            self._found.pop(key).index.close()

    def close(self) -> None:
        """Let go of everything; again is harmless."""
        for reading in self._found.values():
            reading.index.close()
        self._found.clear()


def _without_sampling(settings: Settings) -> Settings:
    """What readings depend on: all but how tokens are chosen, how many, and in what form."""
    plain = Settings()
    return replace(
        settings, temp=plain.temp, top_p=plain.top_p, top_k=plain.top_k, min_p=plain.min_p, seed=plain.seed,
        max_tokens=plain.max_tokens, parallel=plain.parallel, schema=plain.schema,
    )  # fmt: skip
