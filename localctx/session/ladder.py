"""The ladder of ways to read a document, best answers first, and which rung is taken: pure, from sizes.

`auto` takes the first rung that serves under the settings; a planner shows all, each with its reason.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from localctx.errors import UsageError
from localctx.values import Strategy

__all__ = ["RUNGS", "STRATEGIES_OF", "Facts", "Rung", "RungName", "Step", "chosen", "ladder"]

RungName: TypeAlias = Literal[
    "exact-f16",
    "exact-q8",
    "scaled-rope",
    "streamed-store",
    "lazy-store",
    "retrieve",
    "map-reduce",
    "condense",
]
STRATEGIES_OF: dict[str, tuple[Strategy, ...]] = {
    "ask": ("exact", "retrieve", "stream", "condense"),
    "summarize": ("exact", "map-reduce", "condense", "stream"),
    "index": ("exact", "stream"),
    "extract": ("map-reduce",),
}
"""Of each command; the second one is taken where the first does not fit. Of `index`: what for."""


@dataclass(frozen=True, slots=True)
class Rung:
    """One way. words: what is typed for it."""

    name: RungName
    strategy: Strategy
    words: str


RUNGS = (
    Rung("exact-f16", "exact", "--strategy exact"),
    Rung("exact-q8", "exact", "--kv type_k=q8_0,type_v=q8_0"),
    Rung("scaled-rope", "exact", "--rope-scaling auto"),
    Rung("streamed-store", "stream", "localctx index FILE, --strategy stream"),
    Rung("lazy-store", "stream", "--kv lazy=on"),
    Rung("retrieve", "retrieve", "--strategy retrieve"),
    Rung("map-reduce", "map-reduce", "--strategy map-reduce"),
    Rung("condense", "condense", "--strategy condense"),
)


@dataclass(frozen=True, slots=True)
class Facts:
    """What the choice depends on.

    n_needed: tokens that hold the whole document, the question and the answer · stream: why stored KV may
    answer where that does not fit; None: only where asked for · exact, stored: the rungs that the settings
    make of the strategies `exact` and `stream` · notes: why other rungs are passed over, where more is known
    than their order.
    """

    n_needed: int
    n_ctx_limit: int
    stream: str | None = None
    exact: RungName = "exact-f16"
    stored: RungName = "streamed-store"
    notes: Mapping[RungName, str] = field(default_factory=dict)

    @property
    def fits(self) -> bool:
        """Whether the whole document goes into one context."""
        return self.n_needed <= self.n_ctx_limit

    @property
    def sizes(self) -> str:
        """What is needed and what there is, in words."""
        return f"{self.n_needed:,} tokens needed, context {self.n_ctx_limit:,}"


@dataclass(frozen=True, slots=True)
class Step:
    """A rung, and why it was taken or passed over."""

    rung: Rung
    is_chosen: bool
    why: str


def ladder(command: str, requested: str, facts: Facts) -> tuple[Step, ...]:
    """All rungs in order, one of them chosen. The request is a checked one; UsageError for an exact answer
    that does not fit.
    """
    name, why = _choice(command, requested, facts)
    steps, is_below = [], False
    for rung in RUNGS:
        if rung.name == name:
            steps.append(Step(rung, True, why))
            is_below = True
        else:
            steps.append(Step(rung, False, _passed_over(rung, command, facts, name, is_below=is_below)))
    return tuple(steps)


def chosen(steps: tuple[Step, ...]) -> Step:
    """The rung that is taken."""
    return next(step for step in steps if step.is_chosen)


def _choice(command: str, requested: str, facts: Facts) -> tuple[RungName, str]:
    """Exact when it fits; the requested one; else stored KV where it may answer, or the fallback."""
    fallback = STRATEGIES_OF[command][1]
    if requested == "exact" and not facts.fits:
        raise UsageError(
            f"exact attention does not fit: {facts.sizes}",
            f"raise --ctx where the model allows it, or take --strategy {fallback}",
        )
    if requested != "auto":
        return _rung_of(requested, facts), "as asked"
    if facts.fits:
        return facts.exact, f"fits the context: {facts.sizes}"
    if facts.stream is not None and command != "summarize":
        return facts.stored, f"does not fit: {facts.sizes}; {facts.stream}"
    return _rung_of(fallback, facts), f"does not fit: {facts.sizes}"


def _rung_of(strategy: str, facts: Facts) -> RungName:
    """The rung that a strategy is under these settings."""
    if strategy == "exact":
        return facts.exact
    if strategy == "stream":
        return facts.stored
    return next(rung.name for rung in RUNGS if rung.strategy == strategy)


def _passed_over(rung: Rung, command: str, facts: Facts, taken: RungName, *, is_below: bool) -> str:
    """Why a rung is not the one."""
    if rung.strategy not in STRATEGIES_OF[command]:
        return f"not for {command}"
    if rung.name in facts.notes:
        return facts.notes[rung.name]
    if rung.name == facts.exact and not facts.fits:
        return f"does not fit: {facts.sizes}"
    if is_below:
        return f"not needed: {taken} comes first"
    return f"only where asked for: {rung.words}"
