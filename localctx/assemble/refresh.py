"""Which restored tokens are evaluated again in place, within a number of tokens. Pure arithmetic.

Blocks that were prefilled apart never saw each other; evaluating again the sentences that the question points
at, in order, repairs much of that (docs/measurements.md). Does not know how a sentence's score came about.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["RefreshCandidate", "pick_refresh"]


@dataclass(frozen=True, slots=True)
class RefreshCandidate:
    """Tokens [start, end) of a document's stream, and how much the question points at them."""

    document: int
    start: int
    end: int
    score: float

    @property
    def n_tokens(self) -> int:
        """Tokens of the candidate."""
        return self.end - self.start


def pick_refresh(candidates: Sequence[RefreshCandidate], n_tokens: int) -> list[RefreshCandidate]:
    """The best candidates of at most n_tokens together; equal scores in the order given.

    One that is too long for what is left is passed over. The result keeps the order of `candidates`.
    """
    taken: set[int] = set()
    for place in sorted(range(len(candidates)), key=lambda at: (-candidates[at].score, at)):
        if candidates[place].n_tokens <= n_tokens:
            taken.add(place)
            n_tokens -= candidates[place].n_tokens
    return [candidate for place, candidate in enumerate(candidates) if place in taken]
