"""What the benchmarks of a model work on: a text of so many tokens, and a store that is gone afterwards.

Without a file the text is the documentation that every Python brings along: real prose, about 110,000 tokens,
in sections with headings.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from localctx.document import Document
from localctx.errors import NotComposable, UsageError
from localctx.from_settings import open_document_for
from localctx.session.cache import KVModel, why_no_cache
from localctx.session.reading import Reading
from localctx.settings import Settings
from localctx.small_text import reason_of
from localctx.values import Model

__all__ = [
    "BUILT_IN",
    "all_tokens_of",
    "built_in_text",
    "check_length",
    "document_of",
    "kv_model",
    "temporary_store",
    "tokens_of",
    "too_short",
]

BUILT_IN = "Python's documentation"
LEAST_TOKENS = 256
DEFAULT_TOKENS = 4096
"""Of the built-in text."""


def built_in_text() -> str:
    """The topics of pydoc in Markdown."""
    import pydoc_data.topics

    topics = pydoc_data.topics.topics
    return "\n\n".join(f"# About {name}\n\n{topics[name].strip()}" for name in sorted(topics))


def kv_model(model: Model) -> KVModel:
    """The model, if its KV can be stored. Raises NotComposable with the reason."""
    problem = why_no_cache(model)
    if problem is not None or not isinstance(model, KVModel):
        raise NotComposable(problem or model.info.name, "take another --model")
    return model


@contextmanager
def temporary_store(settings: Settings) -> Iterator[tuple[Settings, Path]]:
    """The settings with a new, empty store, and a folder beside it; both go at the end.

    They lie in --store DIR where that is given, so that its disk is measured, else where the system keeps
    temporary files. Raises UsageError for --store off and for a folder that cannot be used.
    """
    if settings.store == "off":
        raise UsageError("a benchmark of stored KV needs a store", "leave --store off out")
    parent = Path(settings.store) if settings.store else None
    try:
        if parent is not None:
            parent.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(prefix="localctx-bench-", dir=parent, ignore_cleanup_errors=True)
    except OSError as error:
        raise UsageError(
            f"no store can be made in {parent or tempfile.gettempdir()}: {reason_of(error)}",
            "--store DIR names another folder",
        ) from None
    with folder as name:
        yield replace(settings, store=str(Path(name) / "store")), Path(name)


@contextmanager
def document_of(
    source: str | None, settings: Settings, model: Model, n_tokens: int | None, folder: Path
) -> Iterator[Document]:
    """The document of the file, or of the built-in text: its first n_tokens, to the end of a block; without
    n_tokens a file whole, of the built-in text DEFAULT_TOKENS.

    What has to be written is written into `folder`. Raises UsageError when there are fewer tokens.
    """
    if n_tokens is not None and n_tokens < LEAST_TOKENS:
        raise UsageError(f"--tokens {n_tokens} is out of range", f"{LEAST_TOKENS} or more")
    if source is None:
        n_tokens = n_tokens or DEFAULT_TOKENS
        whole = folder / "documentation.md"
        whole.write_text(built_in_text(), "utf-8")
    with open_document_for(source or str(whole), settings) as document:
        if n_tokens is None:
            yield document
            return
        path = folder / "beginning.md"
        path.write_text(_beginning(document, settings, model, n_tokens, source), "utf-8")
    with open_document_for(str(path), settings) as document:
        yield document


def tokens_of(source: str | None, settings: Settings, model: Model, n_tokens: int) -> list[int]:
    """The first n_tokens of a file or of the built-in text. Raises UsageError when there are fewer."""
    tokens = all_tokens_of(source, settings, model)
    if len(tokens) < n_tokens:
        raise too_short(source, len(tokens), n_tokens)
    return tokens[:n_tokens]


def all_tokens_of(
    source: str | None, settings: Settings, model: Model, n_characters: int | None = None
) -> list[int]:
    """The tokens of a file, or of its first n_characters, or of the built-in text."""
    if source is None:
        text = built_in_text()
    else:
        with open_document_for(source, settings) as document:
            end = document.text.n_code_points
            text = document.read(0, end if n_characters is None else min(end, n_characters))
    return model.tokenize(text, True)


def check_length(source: str | None, n_tokens: int) -> None:
    """Raises UsageError for a text of which nothing can be measured."""
    if n_tokens < LEAST_TOKENS:
        raise too_short(source, n_tokens, LEAST_TOKENS)


def too_short(
    source: str | None, n_tokens: int, n_wanted: int, hint: str = "a longer file, or fewer --tokens"
) -> UsageError:
    """The error for a text of n_tokens where n_wanted are needed."""
    return UsageError(f"{source or BUILT_IN} has {n_tokens:,} tokens, {n_wanted:,} are needed", hint)


def _beginning(
    document: Document, settings: Settings, model: Model, n_tokens: int, source: str | None
) -> str:
    """The text up to the last block that ends within n_tokens, one block at least."""
    n, end = 0, 0
    for block in Reading(document, 0, settings.cache.block).read(model.tokenize):
        if n and n + block.n_tokens > n_tokens:
            return document.read(0, end)
        n, end = n + block.n_tokens, block.end
    if n < n_tokens:
        raise too_short(source, n, n_tokens)
    return document.read(0, end)
