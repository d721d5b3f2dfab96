"""What a scheduler says: requests as it sees them, and what is done for them, step by step. Values only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx.engine.places import ALL

__all__ = ["Attach", "Copy", "Drop", "Slice", "Start", "Work"]


@dataclass(frozen=True, slots=True, eq=False)
class Work:
    """One request's tokens: the prompt, and how many it may generate at most (both at least 1).

    restored: half-open ranges of the prompt, in order, whose KV is put back; its last token is not in one ·
    made_of: what they are put back from; a request shares the cells of another only where it is the same, and
    the first n_shareable tokens at most.
    """

    tokens: NDArray[np.int32]
    max_tokens: int
    restored: tuple[tuple[int, int], ...] = ()
    made_of: bytes = b""
    n_shareable: int = ALL

    @property
    def n_evaluated(self) -> int:
        """Tokens of the prompt that are evaluated if nothing is shared."""
        return len(self.tokens) - sum(end - start for start, end in self.restored)


@dataclass(frozen=True, slots=True, eq=False)
class Slice:
    """Tokens of one sequence at positions start, start + 1 …; `sample` asks for logits at the last one."""

    sequence: int
    start: int
    tokens: NDArray[np.int32]
    sample: bool


@dataclass(frozen=True, slots=True)
class Drop:
    """Free the sequence's cells from position `start` on."""

    sequence: int
    start: int


@dataclass(frozen=True, slots=True)
class Copy:
    """Let the first `n_tokens` cells of `source` belong to `sequence` (empty before) too."""

    source: int
    sequence: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Attach:
    """Let what lies beside the sequence at positions [start, end) belong to it."""

    sequence: int
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Start:
    """Request `request` begins in `sequence`, with n_reused tokens in place once `edits` are applied; what is
    restored of the others is put beside it then.
    """

    request: int
    sequence: int
    n_reused: int
    edits: tuple[Drop | Copy, ...]
