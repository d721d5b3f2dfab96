"""Which spans of the lazy grids must be prefilled so that passages are at hand. Evaluates nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeAlias

from localctx.session.cache import Cache
from localctx.session.token_stream import TokenStream

__all__ = ["Span", "lazy_plan"]

Span: TypeAlias = tuple[int, int]
"""Tokens [first, end)."""


def lazy_plan(
    cache: Cache, streams: Sequence[TokenStream], wanted: Sequence[Span]
) -> list[tuple[TokenStream, list[Span]]]:
    """What must be prefilled so that the `wanted` spans are at hand, each in one of the lazy streams of a
    document: where the fewest tokens have to be evaluated, given those before it.

    The first stream has offset 0. The others begin their cells elsewhere: one of them has a cell that begins
    shortly before the span, and the cell before that is all the left context it gets.
    """
    runs: dict[int, set[int]] = {place: set() for place in range(len(streams))}
    spans: dict[int, list[Span]] = {place: [] for place in runs}
    for first, end in wanted:
        best: tuple[int, int, list[Span]] | None = None
        for place, stream in enumerate(streams):
            if place and stream.spans[stream.run_at(first)][0] < stream.offset + stream.policy.window:
                continue
            found = _missing_spans(cache, stream, runs[place].union(stream.runs_of(first, end)))
            n_more = _n_evaluated(stream, found) - _n_evaluated(stream, spans[place])
            if best is None or n_more < best[0]:
                best = n_more, place, found
        if best is not None:
            place = best[1]
            runs[place].update(streams[place].runs_of(first, end))
            spans[place] = best[2]
    return [(streams[place], found) for place, found in spans.items() if found]


def _n_evaluated(stream: TokenStream, spans: Sequence[Span]) -> int:
    """Tokens that prefilling the spans evaluates, left context included."""
    window = stream.policy.window
    return sum(end - first + min(window, stream.cell_of(first)) for first, end in spans)


def _missing_spans(cache: Cache, stream: TokenStream, wanted: Iterable[int]) -> list[Span]:
    """What must be prefilled so that the runs with the `wanted` numbers are at hand.

    One span a cell of the lazy grid: from the cell's first missing run to the last one wanted in it.
    """
    by_cell: dict[int, list[int]] = {}
    for number in wanted:
        by_cell.setdefault(stream.cell_of(stream.spans[number][0]), []).append(number)
    spans: list[Span] = []
    for cell, numbers in sorted(by_cell.items()):
        cell_runs = stream.runs_of(cell, stream.spans[max(numbers)][1])
        n_leading = cache.kept.n_leading([stream.ids[number] for number in cell_runs], cache.codec)
        if n_leading < len(cell_runs):
            spans.append((stream.spans[cell_runs[n_leading]][0], stream.spans[cell_runs[-1]][1]))
    return spans
