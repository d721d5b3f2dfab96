"""A comparison for a person at a terminal: a line a difference, old words under "-", new ones under "+"."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localctx.session.compared import Compared, ComparedDifference
    from localctx.session.provenance import Citation

__all__ = ["CHANGED", "LABELS", "place", "summary_lines", "text_lines"]

CHANGED = ("reworded", "number", "date", "party", "moved", "added", "removed")
LABELS = {"number": "number changed", "date": "date changed", "party": "party changed"}
"""What a class is called; the others are called as they are."""


def text_lines(compared: Compared, *, with_kept: bool = False) -> Iterator[str]:
    """The lines of the report."""
    yield from summary_lines(compared)
    for difference in compared.differences:
        yield ""
        yield from _difference(difference)
    if with_kept:
        yield ""
        for clause in compared.clauses:
            if clause.kinds == ("kept",):
                other = f" → {clause.b}" if clause.b != clause.a and clause.b is not None else ""
                yield f"kept  {clause.a or clause.b or '(no heading)'}{other if clause.a else ''}"


def summary_lines(compared: Compared) -> Iterator[str]:
    """What the two are and how much of each kind there is."""
    yield f"{compared.a.source} → {compared.b.source}"
    counts = compared.counts
    if compared.is_same:
        yield f"no difference in {counts['kept']:,} clause{'s' * (counts['kept'] != 1)}"
    else:
        told = [f"{counts['kept']:,} of {compared.a.n_clauses:,} clauses kept"]
        told += [f"{counts[kind]:,} {LABELS.get(kind, kind)}" for kind in CHANGED if counts[kind]]
        yield f"{', '.join(told)}; {compared.similarity:.1%} of the words in common"
    if compared.n_renumbered:
        yield (
            f"{compared.n_renumbered:,} clause{'s' * (compared.n_renumbered != 1)} renumbered, "
            f"{compared.references:,} cross-reference{'s' * (compared.references != 1)} adapted to it"
        )


def place(citation: Citation | None) -> str:
    """The clause and page of one side."""
    if citation is None:
        return ""
    name = " › ".join(citation.heading_path) or "before the first clause"
    return f"{name} (p. {citation.page_label or citation.page})" if citation.page is not None else name


def _difference(difference: ComparedDifference) -> Iterator[str]:
    here, there = place(difference.a), place(difference.b)
    where = here or there
    if here and there and here != there:
        where = f"{here} → {there}"
    yield f"{LABELS.get(difference.kind, difference.kind)}: {where}"
    if difference.kind in ("number", "date", "party"):
        for before, after in difference.changes:
            yield f"    {before or '(nothing)'} → {after or '(nothing)'}"
    elif difference.kind != "moved" or difference.level != "clause":
        for mark, side in (("-", difference.a), ("+", difference.b)):
            if side is not None and not (difference.kind == "moved" and mark == "-"):
                yield f"  {mark if difference.kind != 'moved' else ' '} {_flat(side.quote)}"
    if difference.explanation is not None:
        yield f"    {difference.explanation}"


def _flat(text: str) -> str:
    return " ".join(text.split())
