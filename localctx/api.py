"""The stages joined for a program: settings → model file → engine → documents → answers. No terminal."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, TypeVar, overload

from localctx.errors import InputError, UsageError
from localctx.settings import Settings, load_settings
from localctx.small_text import read_small_text, reason_of

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.document.events import Preview
    from localctx.engine.embedder import EmbedderFile
    from localctx.engine.reranker import RerankerFile
    from localctx.engine.thinking import ThinkingTags
    from localctx.registry import Manifest
    from localctx.session.answer import Answer
    from localctx.session.events import Event
    from localctx.session.indexed import Indexed
    from localctx.session.one_context import Held
    from localctx.values import Model, Progress

__all__ = [
    "ChosenModel",
    "LoadedModel",
    "OpenDocument",
    "choose_model",
    "closing_events",
    "load_model",
    "open",
    "open_document_for",
    "open_model_for",
    "settings_for",
]

Kind = TypeVar("Kind")
ROPE_SETTINGS = {
    **{name: f"rope_{name}" for name in ("scaling", "scale", "freq_base", "freq_scale")},
    **{name: name for name in ("yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor")},
    **{name: name for name in ("yarn_beta_fast", "yarn_beta_slow")},
}
"""Names of RopeOptions, and of the settings that fill them."""


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """The model file of a run, and what is known of its family."""

    name: str
    path: Path
    manifest: Manifest | None


def settings_for(flags: Mapping[str, object], config: str | None = None) -> Settings:
    """The run's settings without a model's own defaults under them."""
    return load_settings(flags, config=Path(config) if config else None)


def choose_model(flags: Mapping[str, object], config: str | None = None) -> tuple[Settings, ChosenModel]:
    """The model that the settings name, and the settings with that model's own defaults under them.

    A file given by path is known by its header. Raises what localctx.errors names for models.
    """
    from localctx.engine.gguf import open_model as read_file
    from localctx.registry import match, resolve

    settings = settings_for(flags, config)
    resolved = resolve(settings.model)
    manifest = resolved.manifest or match(read_file(resolved.path).metadata)
    if manifest is not None:
        settings = load_settings(flags, manifest=manifest.settings, config=Path(config) if config else None)
    return settings, ChosenModel(resolved.name, resolved.path, manifest)


def open_model_for(settings: Settings, chosen: ChosenModel) -> Model:
    """The chosen model under the run's settings: tokenizer now, weights with the first context."""
    from localctx.engine import EngineOptions, RopeOptions, open_model
    from localctx.registry import resolve_adapters

    manifest = chosen.manifest
    options = EngineOptions(
        name=chosen.name,
        gpu_layers=settings.gpu_layers,
        n_threads=settings.threads,
        type_k=settings.cache.type_k,
        type_v=settings.cache.type_v,
        flash_attn=settings.flash_attn != "off",
        rope=RopeOptions(**{name: getattr(settings, setting) for name, setting in ROPE_SETTINGS.items()}),
        overrides=settings.overrides,
        force=settings.force,
        template_variables=dict(manifest.template.options) if manifest else None,
        thinking=_thinking(manifest) if manifest else None,
        retrieval_heads=manifest.kv.retrieval_heads if manifest else (),
        adapters=resolve_adapters(settings.lora),
    )
    return open_model(chosen.path, options)


def _thinking(manifest: Manifest) -> ThinkingTags | None:
    """The manifest's thinking markers; None leaves them to the file's template."""
    from localctx.engine.thinking import ThinkingTags

    markers = manifest.template.thinking
    return ThinkingTags(markers[0], markers[1], tuple(markers[2:])) if markers else None


def open_document_for(
    source: str,
    settings: Settings,
    pages: tuple[int, int] | None = None,
    on_progress: Progress | None = None,
    on_preview: Callable[[Preview], None] | None = None,
) -> Document:
    """The document at `source` (a path, or - for standard input) under the run's settings."""
    from localctx.document import open_document

    return open_document(
        source,
        password=_password(settings),
        encoding=settings.encoding,
        pages=pages,
        cache_dir=settings.store_root,
        on_progress=on_progress,
        on_preview=on_preview,
    )


def _password(settings: Settings) -> str | None:
    """The first line of --password-file."""
    if settings.password_file is None:
        return None
    try:
        lines = read_small_text(Path(settings.password_file)).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the password file {settings.password_file}: {reason_of(error)}",
            "a UTF-8 text file, password on line 1",
        ) from None
    return lines[0] if lines else ""


class _Closed:
    def close(self) -> None:
        """Free what it holds."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class OpenDocument(_Closed):
    """Documents, asked together, with a model beside them. Close it, or use `with`."""

    def __init__(
        self, documents: Sequence[Document], model: Model, settings: Settings, *, owns_model: bool = True
    ) -> None:
        """owns_model: closing this closes the model too."""
        self.documents = tuple(documents)
        self.model = model
        self.settings = settings
        self._owns_model = owns_model
        self._streams: weakref.WeakSet[Generator[str, None, None]] = weakref.WeakSet()
        self._held: Held | None = None
        self._resources = ExitStack()
        self._found: tuple[EmbedderFile | str | None, RerankerFile | None] | None = None

    @property
    def document(self) -> Document:
        """The first document: its text, pages and sections."""
        return self.documents[0]

    def summarize(self, length: str = "medium", focus: str | None = None) -> Answer:
        """The documents' points with their places. Raises what localctx.errors names."""
        from localctx.session.summarize import summarize

        return _last(summarize(self.documents, self.model, self.settings, length=length, focus=focus))

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
            return _last(events)
        texts = _texts(events)
        self._streams.add(texts)
        return texts

    def index(self) -> Indexed:
        """Embed the passages where there is an embedder, and prefill the documents into the store; what was
        done. Raises UsageError without a store.
        """
        from localctx.session.indexed import Indexed
        from localctx.session.indexing import index_documents

        self._end_streams()
        held = self._shared()
        if held is not None:
            held.context.close()  # indexing opens its own
        kept = held.kept if held is not None else None
        embedder, _ = self._selectors()
        steps = index_documents(self.documents, self.model, self.settings, kept=kept, embedder=embedder)
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


class LoadedModel(_Closed):
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
    run_settings, chosen = choose_model({"model": model, **settings})
    return LoadedModel(open_model_for(run_settings, chosen), run_settings)


def open(*paths: str | Path, model: str | None = None, **settings: object) -> OpenDocument:  # noqa: A001  # localctx.open is its name
    """load_model() and its open() at once; closing the documents closes the model."""
    loaded = load_model(model, **settings)
    try:
        return OpenDocument(_documents(paths, loaded.settings), loaded.model, loaded.settings)
    except BaseException:
        loaded.close()
        raise


def _documents(paths: Sequence[str | Path], settings: Settings) -> list[Document]:
    """All of them open, or none."""
    if not paths:
        raise UsageError("no document is named", "localctx.open(PATH, ...)")
    with ExitStack() as opened:
        documents = [opened.enter_context(open_document_for(str(path), settings)) for path in paths]
        opened.pop_all()
    return documents


@contextmanager
def closing_events(events: Iterator[Kind]) -> Iterator[Iterator[Kind]]:
    """The events of a verb, ended on the way out, so that its context is gone before its model."""
    try:
        yield events
    finally:
        if isinstance(events, Generator):
            events.close()


def _last(events: Iterator[Event]) -> Answer:
    """Run to the end and return the answer."""
    from localctx.session.events import Finished

    with closing_events(events):
        return next(event.answer for event in events if isinstance(event, Finished))


def _texts(events: Iterator[Event]) -> Generator[str, None, None]:
    """The pieces of the answer."""
    from localctx.session.events import Replaced, Text

    with closing_events(events):
        for event in events:
            if isinstance(event, Text):
                yield event.text
            elif isinstance(event, Replaced):
                yield f"\n{event.text}"
