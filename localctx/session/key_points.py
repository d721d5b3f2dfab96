"""Sections told in their key sentences: chosen from the text, beside a prefill or alone. Runs no model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import TYPE_CHECKING

from localctx.session.points import Point, key_point
from localctx.session.token_stream import TokenStream

if TYPE_CHECKING:
    from localctx.session.outlines import Outline

__all__ = ["chosen", "key_points"]


@contextmanager
def chosen(outline: Outline, stream: TokenStream) -> Iterator[None]:
    """While the body prefills the stream, the missing points of its sections are made; those of what is
    stored at its end are taken.
    """
    with ThreadPoolExecutor(1, thread_name_prefix="sections") as pool:
        made = {
            number: pool.submit(key_point, outline.sections[number].part, outline.focus)
            for number in outline.missing
        }
        try:
            yield
        finally:
            pool.shutdown(wait=True, cancel_futures=True)
    cache = outline.cache
    n_tokens = stream.n_tokens_of(range(cache.kept.n_leading(stream.ids, cache.codec)))
    outline.put(key_points(outline, made, n_tokens))


def key_points(
    outline: Outline, made: Mapping[int, Future[Point]] | None = None, n_tokens: int | None = None
) -> dict[int, Point]:
    """The missing points of the sections that end within n_tokens, None: of all. made: some, beforehand."""
    points = {}
    for number in outline.missing:
        section = outline.sections[number]
        if n_tokens is not None and section.end > n_tokens:
            break
        ready = made.get(number) if made is not None else None
        if ready is None or ready.cancelled():
            points[number] = key_point(section.part, outline.focus)
        else:
            points[number] = ready.result()
    return points
