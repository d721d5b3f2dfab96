"""What goes into the context for a question: every document whole, or the few passages that it points at.

A stronger strategy adds a function here that returns a Filling.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar, overload

from localctx.errors import UsageError
from localctx.index import Hits, LexicalIndex
from localctx.selection import choose, question_traits, text_key
from localctx.selection.choose import Units
from localctx.session.events import Event
from localctx.session.ranking import ranked_blocks
from localctx.session.reading import Passage
from localctx.session.referenced import Room, pull_referenced
from localctx.session.run import Run

__all__ = ["MAX_BLOCKS", "Filling", "pointed_blocks", "retrieved", "whole"]

MAX_BLOCKS = 6
"""Blocks retrieved at most: measured, a small model answers 20 of 20 from 4 blocks and 12 of 20 from 12."""
N_RANKED = 16 * MAX_BLOCKS
"""Blocks whose text and header line are looked at before the choice."""
HEADER_TOKENS = 48
"""Allowed for the header line of any other block."""
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Filling:
    """The text's fragments, and the passages they are made of; `is_whole`: of every document, all of it."""

    fragments: tuple[str, ...]
    passages: tuple[Passage, ...] = ()
    is_whole: bool = False


def whole(run: Run) -> Filling:
    """Every document whole; each led by its name where there are several."""
    fragments: list[str] = []
    for reading in run.readings:
        if len(run.readings) > 1:
            fragments.append(f"[{reading.document.source}]\n")
        fragments.append(reading.document.read(0, reading.document.text.n_code_points))
        fragments.append("\n\n")
    return Filling(tuple(fragments[:-1]), is_whole=True)


def retrieved(run: Run, index: LexicalIndex, question: str, budget: int) -> Generator[Event, None, Filling]:
    """The blocks that the question points at, each led by its header line, in document order.

    Raises UsageError when not even one fits the budget, in tokens.
    """
    hits = yield from ranked_blocks(run, index, question)
    chosen = yield from pointed_blocks(run, hits, question, budget, lambda number: _cost(run, number))
    passages = tuple(run.passage(number) for number in chosen)
    return Filling(_fragments(passages), passages)


def pointed_blocks(
    run: Run,
    hits: Hits,
    question: str,
    budget: int,
    cost: Callable[[int], int],
    is_there: Callable[[int], bool] | None = None,
    max_blocks: int = MAX_BLOCKS,
    units: Units | None = None,
) -> Generator[Event, None, list[int]]:
    """Running numbers of the blocks that the question points at, one to max_blocks, and of a few that these
    refer to, in document order.

    hits: the blocks as they are ranked · cost(number): tokens a block takes in the context; with units
    (selection.choose) only what stands before them · is_there(number): whether it may be chosen; None: all
    may. Raises UsageError when not even one fits the budget (tokens).
    """
    may_choose = is_there or _anyone
    if run.blocks is not None:
        return _given(run.blocks, budget, cost, may_choose)
    traits = question_traits(question)
    if traits.needs_whole_document:
        yield run.warn(
            f"a {traits.kind} question needs the whole document, and only the best passages are read: "
            "the answer may be incomplete; localctx extract reads every block"
        )
    if is_there is not None:
        hits = replace(hits, ranking=tuple(hit for hit in hits.ranking if is_there(hit[0])))
    costs, keys = _costs_and_keys(run, {number for number, _ in hits.ranking[:N_RANKED]}, cost)
    selection = choose(
        hits.scores(), costs, budget_tokens=budget, max_blocks=max_blocks,
        text_keys=keys, units=units, short_tokens=HEADER_TOKENS + 24,
    )  # fmt: skip
    chosen = list(filter(may_choose, selection.indices))

    def alone(number: int) -> int:
        return cost(number) + (sum(units(number).values()) if units is not None else 0)

    if chosen:
        left = budget - selection.n_tokens
        chosen = pull_referenced(run, chosen, dict(hits.ranking), question, Room(left, alone, may_choose))
        yield from run.unheard()
    if not chosen and selection.outcome != "nothing fits":
        yield run.warn(
            "no passage shares a word with the question: the beginning of the document is read instead"
        )
        first = filter(may_choose, range(min(MAX_BLOCKS, run.n_blocks)))
        chosen = _first_fitting(first, budget, alone)[:max_blocks]
    return _some(chosen)


def _given(
    blocks: Sequence[int], budget: int, cost: Callable[[int], int], is_there: Callable[[int], bool]
) -> list[int]:
    """Of the blocks that the caller named, the first ones that fit, in document order."""
    return sorted(_some(_first_fitting(filter(is_there, blocks), budget, cost)))


def _costs_and_keys(
    run: Run, looked_at: Collection[int], cost: Callable[[int], int]
) -> tuple[Sequence[int], Sequence[Hashable]]:
    """What each block takes in the context, and what tells equal ones; exact for those that may be looked at,
    and found when they are.
    """

    def cost_of(number: int) -> int:
        if number in looked_at:
            return cost(number)
        _, first, end = run.tokens_of(number)
        return end - first + HEADER_TOKENS

    def key_of(number: int) -> Hashable:
        return text_key(run.passage(number).text) if number in looked_at else (number,)

    return _OnDemand(run.n_blocks, cost_of), _OnDemand(run.n_blocks, key_of)


class _OnDemand(Sequence[T]):
    """n values, each made when it is first asked for."""

    def __init__(self, n: int, of: Callable[[int], T]) -> None:
        self._n, self._of = n, cache(of)

    def __len__(self) -> int:
        return self._n

    @overload
    def __getitem__(self, index: int) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[T]: ...

    def __getitem__(self, index: int | slice) -> T | Sequence[T]:
        if isinstance(index, slice):
            return [self._of(number) for number in range(*index.indices(self._n))]
        return self._of(range(self._n)[index])


def _anyone(_: int) -> bool:
    return True


def _some(chosen: list[int]) -> list[int]:
    """The same. Raises UsageError where there are none."""
    if not chosen:
        raise UsageError("the context is too small for a single passage", "raise --ctx or lower --max-tokens")
    return chosen


def _fragments(passages: Sequence[Passage]) -> tuple[str, ...]:
    fragments: list[str] = []
    for passage in passages:
        fragments += [passage.header + "\n", passage.text.strip(), "\n\n"]
    return tuple(fragments[:-1])


def _cost(run: Run, number: int) -> int:
    """What a block and its header line take in the context."""
    return sum(len(run.model.tokenize(text, False)) for text in _fragments([run.passage(number)])) + 2


def _first_fitting(numbers: Iterable[int], budget: int, cost: Callable[[int], int]) -> list[int]:
    """The first of the blocks, as many as fit the budget one after the other."""
    chosen: list[int] = []
    for number in numbers:
        budget -= cost(number)
        if budget < 0:
            break
        chosen.append(number)
    return chosen
