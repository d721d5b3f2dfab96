"""The stages joined for a program: settings → model file → engine → documents → answers. No terminal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Literal, Self, overload

from localctx.errors import InputError, UsageError
from localctx.settings import Settings, load_settings

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.registry import Manifest
    from localctx.session.answer import Answer
    from localctx.session.events import Event
    from localctx.values import Model

__all__ = ["OpenDocument", "open", "open_document_for", "open_model_for", "settings_for"]


def settings_for(flags: dict[str, object], config: str | None = None) -> tuple[Settings, Manifest | None]:
    """The run's settings with the model's own defaults under them, and its manifest if it is known."""
    from localctx.registry import find_manifest

    config_path = Path(config) if config else None
    settings = load_settings(flags, config=config_path)
    manifest = find_manifest(settings.model)
    if manifest is not None:
        settings = load_settings(flags, manifest=manifest.settings, config=config_path)
    return settings, manifest


def open_model_for(settings: Settings) -> Model:
    """The model of the settings: its tokenizer at once, its weights with the first context."""
    from localctx.engine import EngineOptions, open_model
    from localctx.registry import resolve

    resolved = resolve(settings.model)
    options = EngineOptions(gpu_layers=settings.gpu_layers, n_threads=settings.threads, force=settings.force)
    return open_model(resolved.path, options)


def open_document_for(source: str, settings: Settings, pages: tuple[int, int] | None = None) -> Document:
    """The document at `source` (a path, or - for standard input) under the run's settings."""
    from localctx.document import open_document

    options: dict[str, object] = {}
    if settings.store is not None:
        options["cache_dir"] = None if settings.store == "off" else Path(settings.store)
    return open_document(
        source,
        password=_password(settings),
        encoding=settings.encoding,
        pages=pages,
        **options,  # type: ignore[arg-type]
    )


def _password(settings: Settings) -> str | None:
    """The first line of --password-file."""
    if settings.password_file is None:
        return None
    try:
        lines = Path(settings.password_file).read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"cannot read the password file: {error}", "a UTF-8 text file, password on line 1"
        ) from None
    return lines[0] if lines else ""


class OpenDocument:
    """A document with a model beside it. Close it, or use `with`."""

    def __init__(self, document: Document, model: Model, settings: Settings) -> None:
        self.document = document
        self.model = model
        self.settings = settings

    def summarize(self, length: str = "medium", focus: str | None = None) -> Answer:
        """The document's points with their places. Raises what localctx.errors names."""
        from localctx.session.summarize import summarize

        return _last(summarize([self.document], self.model, self.settings, length=length, focus=focus))

    @overload
    def ask(self, question: str, *, stream: Literal[False] = False) -> Answer: ...
    @overload
    def ask(self, question: str, *, stream: Literal[True]) -> Iterator[str]: ...
    def ask(self, question: str, *, stream: bool = False) -> Answer | Iterator[str]:
        """Answer a question from the document; with `stream`, the pieces of the answer as they come."""
        from localctx.session.ask import ask

        events = ask([self.document], self.model, question, self.settings)
        return _texts(events) if stream else _last(events)

    def close(self) -> None:
        """Free the model and the document."""
        self.model.close()
        self.document.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def open(path: str | Path, *, model: str | None = None, **settings: object) -> OpenDocument:  # noqa: A001
    """Open a document with a model (default: the embedded one) and any other setting by name.

    Raises InputError for a document that cannot be used, ModelError for a model, UsageError for a setting.
    """
    run_settings, _ = settings_for({"model": model, **settings})
    engine = open_model_for(run_settings)
    try:
        return OpenDocument(open_document_for(str(path), run_settings), engine, run_settings)
    except BaseException:
        engine.close()
        raise


def _last(events: Iterator[Event]) -> Answer:
    """Run to the end and return the answer."""
    from localctx.session.events import Finished

    for event in events:
        if isinstance(event, Finished):
            return event.answer
    raise UsageError("the session ended without an answer")


def _texts(events: Iterator[Event]) -> Iterator[str]:
    from localctx.session.events import Text

    return (event.text for event in events if isinstance(event, Text))
