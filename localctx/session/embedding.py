"""`index`: the vectors of all passages, made before the prefill: they take a small part of its time."""

from __future__ import annotations

import time
from collections.abc import Iterator

from localctx.session.events import Event, Notice
from localctx.session.ranking import loaded_vectors, why_not_made_for
from localctx.session.run import Run

__all__ = ["embed_all"]

N_TIMED = 64
"""Passages from which the time of all is told."""
TOLD_SECONDS = 10.0


def embed_all(run: Run) -> Iterator[Event]:
    """Make and keep the vectors that are missing; says how long it takes where that is long."""
    if "dense" not in run.settings.cache.rank or run.embedder is None:
        return
    vectors = loaded_vectors(run)
    if isinstance(vectors, str):
        yield run.warn(f"passages will be found by words alone: {vectors}")
        return
    if reason := why_not_made_for(run):
        yield run.warn(f"vectors choose only where words single no passage out: {reason}")
    started = time.perf_counter()
    missing = [number for number, is_there in enumerate(vectors.is_there) if not is_there]
    vectors.make(missing[:N_TIMED])
    seconds_left = (time.perf_counter() - started) * len(missing[N_TIMED:]) / N_TIMED
    if seconds_left > TOLD_SECONDS:
        yield Notice(f"embedding {len(missing):,} passages: about {seconds_left / 60:.1f} min more")
    vectors.make(missing[N_TIMED:])
    run.selection = {
        "embedder": vectors.file.name,
        "passages": run.n_blocks,
        "passages_embedded": vectors.n_new,
        "seconds": round(time.perf_counter() - started, 2),
    }
