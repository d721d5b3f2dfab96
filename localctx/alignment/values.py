"""What a comparison says: pairs of clauses, differences with class and both places. Knows no documents."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localctx.errors import UsageError

__all__ = ["ClausePair", "Comparison", "Difference", "Kind", "Level", "Side", "Thresholds"]

Kind: TypeAlias = Literal["kept", "reworded", "number", "date", "party", "moved", "added", "removed"]
Level: TypeAlias = Literal["clause", "paragraph", "entity"]


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Similarities in (0, 1] from which on two clauses, two passages, two names are the same one, changed.

    Raises UsageError for others.
    """

    clause: float = 0.85
    paragraph: float = 0.72
    entity: float = 0.91

    def __post_init__(self) -> None:
        for name in ("clause", "paragraph", "entity"):
            if not 0 < getattr(self, name) <= 1:
                raise UsageError(
                    f"--{name}-similarity {getattr(self, name)} is no similarity", "above 0, at most 1"
                )


@dataclass(frozen=True, slots=True)
class Side:
    """A place in one of the documents: clauses [clause, last_clause], text [start, end) in code points."""

    clause: int
    last_clause: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Difference:
    """One difference: `a` is None for what was added, `b` for what was removed. changes: the words on either
    side, for a change of figures, names or wording.
    """

    kind: Kind
    level: Level
    a: Side | None
    b: Side | None
    changes: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class ClausePair:
    """A clause of A and the clause of B that it became, by index; one is None where there is no other."""

    a: int | None
    b: int | None
    similarity: float
    kinds: tuple[Kind, ...]
    is_renumbered: bool = False


@dataclass(frozen=True, slots=True)
class Comparison:
    """pairs: in A's order, what was added where it stands in B · similarity: share of all words that are in
    both, in [0, 1] · references: cross-references that follow the new numbers, which are no differences.
    """

    pairs: tuple[ClausePair, ...]
    differences: tuple[Difference, ...]
    similarity: float
    references: int = 0

    @property
    def is_same(self) -> bool:
        """Whether nothing differs."""
        return not self.differences

    @property
    def counts(self) -> dict[str, int]:
        """Differences of each kind; of "kept", the clauses without one."""
        found = Counter(difference.kind for difference in self.differences)
        kept = sum(pair.kinds == ("kept",) for pair in self.pairs)
        order: tuple[Kind, ...] = ("reworded", "number", "date", "party", "moved", "added", "removed")
        return {"kept": kept, **{kind: found[kind] for kind in order}}
