"""Values of summary taps: short texts decoded beside a prefill, each from a span of what streams through.

No I/O, no third-party imports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

from localctx.values import FinishReason, Request

__all__ = ["OnTapped", "Tap", "Tapped", "TappingContext", "Taps"]


@dataclass(frozen=True, slots=True)
class Tap:
    """When tokens [start, end) of the stream are in, a text is decoded behind the prefix and them.

    asked: what stands behind them, with the settings of the answer; called when it is needed, from the thread
    that prefills.
    """

    start: int
    end: int
    asked: Callable[[], Request]


@dataclass(frozen=True, slots=True)
class Tapped:
    """What came of the tap with this number. n_evaluated: tokens of what was asked."""

    number: int
    text: str
    finish_reason: FinishReason
    n_evaluated: int
    n_generated: int


OnTapped: TypeAlias = Callable[[Tapped], None]


@dataclass(frozen=True, slots=True)
class Taps:
    """The taps of one prefill, in the order of their ends. on_tapped: told of each as it ends, while nothing
    else runs; not of those that a stop cut short · n_side: decoded side by side, at most · n_tokens: of what
    is asked and answered at one, at most.
    """

    taps: Sequence[Tap]
    on_tapped: OnTapped
    n_side: int
    n_tokens: int

    @property
    def n_cells(self) -> int:
        """Cells that they take beside those of the prefill: spans that left its window are held on to."""
        longest = max((tap.end - tap.start for tap in self.taps), default=0)
        return self.n_side * (self.n_tokens + longest)


@runtime_checkable
class TappingContext(Protocol):
    """A kv.KVContext that can decode texts beside a prefill."""

    def tapping(self, taps: Taps) -> AbstractContextManager[None]:
        """The stream() in the body, of a policy with left context, decodes them."""
