"""The Python interface: a model, documents with it, questions and summaries. No terminal."""

from __future__ import annotations

import json
import weakref
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal, overload

from localctx.api_chat import Chat
from localctx.api_events import Closing, closing_events, last_answer, texts_of
from localctx.errors import LocalctxError, UsageError
from localctx.from_settings import choose_model, open_document_for, open_model_for, settings_for
from localctx.settings import Settings

if TYPE_CHECKING:
    from localctx.alignment import Thresholds
    from localctx.document import Document
    from localctx.engine.embedder import EmbedderFile
    from localctx.engine.reranker import RerankerFile
    from localctx.session.answer import Answer
    from localctx.session.compared import Compared
    from localctx.session.extract import Told
    from localctx.session.extraction import Extraction, FoundRecord
    from localctx.session.indexed import Indexed
    from localctx.session.one_context import Held
    from localctx.session.side_by_side import SideBySide
    from localctx.values import Model

__all__ = [
    "Chat",
    "LoadedModel",
    "OpenDocument",
    "closing_events",
    "compare",
    "load_model",
    "open",
]


class OpenDocument(Closing):
    """Documents, asked together, with a model beside them. Close it, or use `with`."""

    def __init__(
        self, documents: Sequence[Document], model: Model, settings: Settings, *, owns_model: bool = True
    ) -> None:
        """owns_model: closing this closes the model too."""
        self.documents = tuple(documents)
        self.model = model
        self.settings = settings
        self._owns_model = owns_model
        self._streams: weakref.WeakSet[Generator[object, None, None]] = weakref.WeakSet()
        self._held: Held | None = None
        self._resources = ExitStack()
        self.extraction: Extraction | None = None
        self._found: tuple[EmbedderFile | str | None, RerankerFile | None] | None = None

    @property
    def document(self) -> Document:
        """The first document: its text, pages and sections."""
        return self.documents[0]

    def summarize(self, length: str = "medium", focus: str | None = None) -> Answer:
        """The documents' points with their places. Raises what localctx.errors names."""
        from localctx.session.summarize import summarize

        return last_answer(summarize(self.documents, self.model, self.settings, length=length, focus=focus))

    @overload
    def ask(self, question: str, *, stream: Literal[False] = False) -> Answer: ...
    @overload
    def ask(self, question: str, *, stream: Literal[True]) -> Iterator[str]: ...
    def ask(self, question: str, *, stream: bool = False) -> Answer | Iterator[str]:
        """Answer a question from the documents; with `stream`, the pieces of the answer as they come."""
        from localctx.session.ask import ask

        embedder, reranker = self._selectors()
        events = ask(
            self.documents,
            self.model,
            question,
            self.settings,
            held=self._shared(),
            embedder=embedder,
            reranker=reranker,
        )
        if not stream:
            return last_answer(events)
        texts = texts_of(events)
        self._streams.add(texts)
        return texts

    def chat(self) -> Chat:
        """A conversation about the documents; close it before them, or use `with`."""
        from localctx.session.conversation import Conversation

        self._end_streams()
        embedder, reranker = self._selectors()
        return Chat(
            Conversation(
                self.documents,
                self.model,
                self.settings,
                held=self._shared(),
                embedder=embedder,
                reranker=reranker,
            )
        )

    def ask_many(
        self, questions: Iterable[str], *, n_parallel: int | None = None
    ) -> Iterator[tuple[int, Answer | LocalctxError]]:
        """Answer questions side by side, n_parallel at a time: each one's number with its answer, or with the
        error that it met, as it is finished.
        """
        from localctx.session.side_by_side import ask_many

        self._end_streams()
        embedder, reranker = self._selectors()
        answers = ask_many(
            self.documents,
            self.model,
            questions,
            self.settings,
            n_parallel=n_parallel,
            held=self._shared(),
            embedder=embedder,
            reranker=reranker,
        )
        self._streams.add(answers)
        return answers

    def side_by_side(self) -> SideBySide:
        """Questions that are submitted one by one, each with settings of its own, and answered side by side.
        Close it before the documents.
        """
        from localctx.session.side_by_side import SideBySide

        self._end_streams()
        embedder, reranker = self._selectors()
        return SideBySide(
            self.model, self.settings, held=self._shared(), embedder=embedder, reranker=reranker
        )

    def extract(self, schema: Mapping[str, object] | str | Path | None = None) -> Iterator[FoundRecord]:
        """Every record that fulfils the JSON schema, each when it is known with its places (docs/extract.md);
        `extraction` says afterwards what was read. schema: an object, or its file; default: the settings'.
        """
        from localctx.session.extract import extract

        self._end_streams()
        given = json.dumps(schema) if isinstance(schema, Mapping) else str(schema or "")
        settings = self.settings if not given else replace(self.settings, schema=given)
        records = self._records(extract(self.documents, self.model, settings))
        self._streams.add(records)
        return records

    def _records(self, events: Iterator[Told]) -> Generator[FoundRecord, None, None]:
        from localctx.session.extraction import Extraction, FoundRecord

        with closing_events(events):
            for event in events:
                if isinstance(event, FoundRecord):
                    yield event
                elif isinstance(event, Extraction):
                    self.extraction = event

    def index(self, *, summaries: bool = False) -> Indexed:
        """Embed the passages where there is an embedder, and prefill the documents into the store; what was
        done. summaries: of each section too, for summarize(). Raises UsageError without a store.
        """
        from localctx.session.indexed import Indexed
        from localctx.session.indexing import index_documents

        self._end_streams()
        held = self._shared()
        if held is not None:
            held.context.close()  # indexing opens its own
        kept = held.kept if held is not None else None
        embedder, _ = self._selectors()
        steps = index_documents(
            self.documents, self.model, self.settings, kept=kept, embedder=embedder, summaries=summaries
        )
        with closing_events(steps) as events:
            return next(event for event in events if isinstance(event, Indexed))

    def _end_streams(self) -> None:
        for texts in list(self._streams):
            texts.close()

    def _shared(self) -> Held | None:
        """What questions share: KV in the store, or in memory with --store off, and a context."""
        from localctx.session.cache import why_no_cache
        from localctx.session.kept import Kept
        from localctx.session.one_context import Held

        if self._held is None and why_no_cache(self.model) is None:
            self._held = Held(Kept.of_settings(self.settings, lambda text: None))
        return self._held

    def _selectors(self) -> tuple[EmbedderFile | str | None, RerankerFile | None]:
        """Embedder and cross-encoder, the same for every question."""
        from localctx.registry.selectors import opened_embedder, opened_reranker

        if self._found is None:
            enter = self._resources.enter_context
            self._found = enter(opened_embedder(self.settings)), enter(opened_reranker(self.settings))
        return self._found

    def close(self) -> None:
        """End streams that were not read to their end, and free what it opened."""
        self._end_streams()
        if self._held is not None:
            self._held.close()
        self._resources.close()
        if self._owns_model:
            self.model.close()
        for document in self.documents:
            document.close()


class LoadedModel(Closing):
    """A model for one document after another: weights stay in memory. Close it, or use `with`."""

    def __init__(self, model: Model, settings: Settings) -> None:
        self.model = model
        self.settings = settings

    def open(self, *paths: str | Path) -> OpenDocument:
        """The documents at `paths` with this model. Raises InputError for one that cannot be used."""
        return OpenDocument(_documents(paths, self.settings), self.model, self.settings, owns_model=False)

    def close(self) -> None:
        """Free the weights; close the documents first."""
        self.model.close()


def load_model(model: str | None = None, **settings: object) -> LoadedModel:
    """A model (default: the embedded one) and any other setting by name; its weights come with the first use.

    Raises ModelError for a model, UsageError for a setting.
    """
    run_settings, chosen = choose_model({"model": model, **settings}, may_be_remote=True)
    return LoadedModel(open_model_for(run_settings, chosen), run_settings)


def open(*paths: str | Path, model: str | None = None, **settings: object) -> OpenDocument:  # noqa: A001  # localctx.open is its name
    """load_model() and its open() at once; closing the documents closes the model."""
    loaded = load_model(model, **settings)
    try:
        return OpenDocument(_documents(paths, loaded.settings), loaded.model, loaded.settings)
    except BaseException:
        loaded.close()
        raise


def compare(
    a: str | Path,
    b: str | Path,
    *,
    thresholds: Thresholds | None = None,
    explain: bool = False,
    model: str | None = None,
    **settings: object,
) -> Compared:
    """Two documents clause by clause. explain: the model says each difference in a sentence; without it no
    model is needed. Raises InputError for a document that cannot be used, UsageError for a setting, and what
    models raise.
    """
    from localctx.session.comparing import compare_documents
    from localctx.session.explaining import explain as explain_differences

    if not explain:
        run_settings = settings_for({"model": model, **settings})
        one, other = _documents((a, b), run_settings)
        with one, other:
            return compare_documents(one, other, thresholds)
    with open(a, b, model=model, **settings) as both:
        compared = compare_documents(both.documents[0], both.documents[1], thresholds)
        return explain_differences(compared, both.documents, both.model, both.settings)


def _documents(paths: Sequence[str | Path], settings: Settings) -> list[Document]:
    """All of them open, or none."""
    if not paths:
        raise UsageError("no document is named", "localctx.open(PATH, ...)")
    with ExitStack() as opened:
        documents = [opened.enter_context(open_document_for(str(path), settings)) for path in paths]
        opened.pop_all()
    return documents
