"""The models that choose passages, by the names that settings give: an embedder, a cross-encoder.

They are loaded by whoever uses them first, and freed at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from localctx.engine.embedder import EmbedderFile
from localctx.engine.gguf import open_embedding_model, open_reranking_model
from localctx.engine.options import EngineOptions
from localctx.engine.reranker import RerankerFile
from localctx.errors import ModelError
from localctx.registry.known_models import match
from localctx.registry.resolve import resolve
from localctx.settings import DEFAULT_EMBEDDER, Settings

__all__ = ["chooser_files", "opened_embedder", "opened_reranker"]


@contextmanager
def opened_embedder(settings: Settings) -> Iterator[EmbedderFile | str | None]:
    """The embedder that the settings name, or why there is none; None with `off`. Loaded when it is needed,
    freed at the end.

    That the default one is not installed is no error. Raises what localctx.errors names for models.
    """
    if settings.embedder == "off":
        yield None
        return
    try:
        resolved = resolve(settings.embedder)
        header = open_embedding_model(resolved.path)
        manifest = resolved.manifest or match(header.metadata)
    except ModelError as error:
        if settings.embedder != DEFAULT_EMBEDDER:
            raise
        yield f"{error.message} ({error.hint})" if error.hint else error.message
        return
    facts = manifest.embedder if manifest is not None else None
    with EmbedderFile(
        resolved.path,
        resolved.name,
        manifest.languages if manifest is not None else (),
        facts.query_prefix if facts is not None else "",
        facts.passage_prefix if facts is not None else "",
        EngineOptions(name=resolved.name, n_threads=settings.threads),
    ) as file:
        yield file


def chooser_files(settings: Settings) -> tuple[Path, ...]:
    """The files of the embedder and the cross-encoder that the settings name, those that are there."""
    found = []
    for name in (settings.embedder, settings.reranker):
        with suppress(ModelError):  # whoever opens it tells
            if name not in (None, "off"):
                found.append(resolve(name).path)
    return tuple(found)


@contextmanager
def opened_reranker(settings: Settings) -> Iterator[RerankerFile | None]:
    """The cross-encoder that the settings name, loaded when it is needed, freed at the end; None without,
    and with `off`. Raises what localctx.errors names for models.
    """
    if settings.reranker in (None, "off"):
        yield None
        return
    resolved = resolve(settings.reranker)
    open_reranking_model(resolved.path)
    with RerankerFile(resolved.path, EngineOptions(name=resolved.name, n_threads=settings.threads)) as file:
        yield file
