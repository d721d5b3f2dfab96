"""Converters with C tree parsers, run in a child process under time and memory limits. Knows no format."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from dataclasses import asdict, astuple
from itertools import chain
from typing import Any

from localctx.document.events import Event, Facts, Heading, Notice, Options, PageMark, Text
from localctx.document.isolate import ChildFailed, IsolationLimits, isolated
from localctx.document.limits import Limits
from localctx.document.source import Source, open_path
from localctx.errors import InputError, LimitExceeded

__all__ = ["child_events", "isolated_events"]

KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Text, PageMark, Heading, Notice, Facts)}
BATCH_EVENTS = 256
BATCH_CHARACTERS = 1 << 16


def isolated_events(module: str, source: Source, options: Options) -> Iterator[Event]:
    """The events of `localctx.document.<module>.parse`, run elsewhere. Raises LimitExceeded, InputError."""
    limits = options.limits
    with source.named_path() as path:
        job = {
            "module": module,
            "path": path,
            "name": source.name,
            "extension": source.extension,
            "encoding": options.encoding,
            "limits": asdict(limits),
        }
        caps = IsolationLimits(
            limits.child_seconds, limits.child_seconds, int(4 * limits.child_seconds), limits.child_bytes
        )
        try:
            for batch in isolated("localctx.document.sandbox:child_events", {"job": job}, caps):
                for name, *fields in batch:
                    yield KINDS[name](*fields)
        except ChildFailed as failure:
            kind = InputError if failure.reason in ("crash", "error") else LimitExceeded
            raise kind(
                f"{source.name}: its reading {failure.detail}", "the file may be damaged or hostile"
            ) from None


def child_events(job: dict[str, Any]) -> Iterator[list[list[Any]]]:
    """Batches of events as JSON values, made in this (the child) process."""
    source = open_path(job["path"])
    source.name, source.extension = job["name"], job["extension"]
    parse = importlib.import_module(f"localctx.document.{job['module']}").parse
    yield from batches(parse(source, Options(encoding=job["encoding"], limits=Limits(**job["limits"]))))


def short_texts(event: Event) -> Iterator[Event]:
    """The event, a long text in several, so that no message grows large."""
    if not isinstance(event, Text):
        yield event
        return
    for start in range(0, len(event.text), BATCH_CHARACTERS):
        yield Text(event.text[start : start + BATCH_CHARACTERS])


def batches(events: Iterable[Event]) -> Iterator[list[list[Any]]]:
    """Events as lists, many at a time."""
    batch: list[list[Any]] = []
    n_characters = 0
    for event in chain.from_iterable(map(short_texts, events)):
        batch.append([type(event).__name__, *astuple(event)])
        n_characters += len(event.text) if isinstance(event, Text) else 0
        if len(batch) >= BATCH_EVENTS or n_characters > BATCH_CHARACTERS:
            yield batch
            batch, n_characters = [], 0
    yield batch
