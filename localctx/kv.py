"""Values and protocols of KV that cross folders: how it was made, where it may stand, how it is put back.

Keys are kept un-rotated, so that a token's KV can stand at any position. A document is one token stream;
its KV comes in runs of RUN_TOKENS tokens, the last one shorter. No I/O, no third-party imports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias, runtime_checkable

from localctx.values import Context, Piece, Progress, Request

if TYPE_CHECKING:
    from localctx._native import Rope, Run, State

__all__ = [
    "MAX_ANCHORS",
    "RECALL_CHUNK_TOKENS",
    "RUN_TOKENS",
    "Batch",
    "BatchingContext",
    "ComingRun",
    "KVChunk",
    "KVContext",
    "KVPart",
    "KVSource",
    "KVSpace",
    "OnChunk",
    "PrefillPolicy",
    "RestoreTimes",
    "Route",
    "RunLost",
    "Shared",
]

RUN_TOKENS = 128
"""Tokens of one stored run: the group over which a key channel shares its scale."""
RECALL_CHUNK_TOKENS = 256
"""Tokens for which earlier runs are put back together, counted from the stream's start."""
MAX_ANCHORS = 8
"""Runs of `stride` attended at a time: where there would be more, each second one is left out."""

PolicyKind: TypeAlias = Literal["exact", "window", "independent", "lazy"]


class RunLost(LookupError):
    """A run that was being read is not what was written, or cannot be read."""


class ComingRun(Protocol):
    """A run that is being read and checked. `n_tokens`: of it, known before."""

    n_tokens: int

    def get(self) -> Run:
        """Wait for it. Raises RunLost."""


KVSource: TypeAlias = "Run | State | ComingRun"
"""Rows of KV of consecutive tokens: encoded and un-rotated (Run), or as llama.cpp exported them (State)."""


@dataclass(frozen=True, slots=True)
class PrefillPolicy:
    """What a token attends to while its document is prefilled; the prefix always is.

    exact: everything before it · window: the last `window` tokens, evicted in whole runs · independent: its
    own block only · lazy: at least `window` tokens to its left, the stream beginning anew at multiples of
    `window` (so that one passage can be prefilled alone). sinks: of the document's first tokens (title,
    contents, definitions), in whole runs, those that stay attended when they have left the window.
    Runs that have left it are put back before it for each chunk of RECALL_CHUNK_TOKENS: `routed` runs, those
    that `router` (the name of a rule) finds nearest to the chunk, and one at every `stride` tokens. Only
    `window` looks at the last four.
    """

    kind: PolicyKind = "window"
    window: int = 4096
    sinks: int = 0
    routed: int = 0
    stride: int = 0
    router: str = ""

    @property
    def recalled_tokens(self) -> int:
        """Tokens that are put back before the window, at most."""
        if self.kind != "window":
            return 0
        return (self.routed + (MAX_ANCHORS if self.stride else 0)) * RUN_TOKENS

    @property
    def attended_tokens(self) -> int:
        """Tokens of the stream before a chunk that a window attends to, at most."""
        return self.sinks + self.recalled_tokens + self.window if self.kind == "window" else 0

    @property
    def beside_window(self) -> str:
        """What is attended beside the window, in words that follow others."""
        named = {"sinks": self.sinks, "routed": self.routed, "stride": self.stride}
        return "".join(f", {name} {value:,}" for name, value in named.items() if value)


@dataclass(frozen=True, slots=True)
class KVSpace:
    """All that stored KV depends on beside the document's own tokens and the policy.

    model: its fingerprint · rope: the rotary settings in force, in one canonical line · prefix: the tokens
    that stand before every document (the attention sinks).
    """

    model: str
    rope: str
    prefix: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class KVChunk:
    """KV just computed: tokens [first, first + n_tokens) of the stream are the rows of `state`, in order."""

    first: int
    n_tokens: int
    state: State
    rope: Rope


OnChunk: TypeAlias = Callable[[KVChunk], None]


@dataclass(frozen=True, slots=True, eq=False)
class KVPart:
    """Rows [first, first + n_tokens) of `source`, to stand at `position` and the positions after it."""

    source: KVSource
    first: int
    n_tokens: int
    position: int


Route: TypeAlias = Callable[[int, int, int, int], Sequence[KVPart]]
"""(first, keep_from, start, end) → the KV, in order, of whole runs of tokens [first, keep_from), which have
left the window, to be put before it when [start, end) is evaluated; positions are ignored. May be called from
another thread, while the chunk before is evaluated.
"""


@dataclass(slots=True)
class RestoreTimes:
    """Seconds spent to put KV back: waiting for runs that are being read, decoding, turning and laying them
    out, and copying them to the device. The last goes on beside the others.
    """

    wait_s: float = 0.0
    compose_s: float = 0.0
    upload_s: float = 0.0


@runtime_checkable
class KVContext(Context, Protocol):
    """A Context whose KV can be taken out, moved and put back."""

    @property
    def rope_table(self) -> Rope:
        """The rotation of this context's keys."""

    @property
    def n_rebased(self) -> int:
        """How often the last stream() brought prefix and window together again."""
        ...

    @property
    def restore_times(self) -> RestoreTimes:
        """Of the last place()."""

    @property
    def held_tokens(self) -> tuple[int, ...]:
        """The tokens that place() or generate() left in the cache, at positions 0, 1 …"""

    def stream(
        self,
        prefix: Sequence[int],
        tokens: Sequence[int],
        policy: PrefillPolicy,
        on_chunk: OnChunk,
        *,
        first: int = 0,
        left: Sequence[KVPart] = (),
        units: Sequence[int] = (),
        route: Route | None = None,
        on_progress: Progress | None = None,
    ) -> int:
        """Prefill tokens[first:] chunk by chunk behind the prefix, with a bounded working set.

        `first` is a multiple of RUN_TOKENS; `left` holds the KV of the tokens before it that the policy wants
        attended, in order (positions are ignored): with sinks first theirs, unless it holds all tokens before
        `first`, then that of those just before it. `units` are the first tokens of independent units; without
        them every run is one. `route` answers, chunk by chunk, which earlier runs a policy with `routed` or
        `stride` puts back. Each chunk goes to `on_chunk` (in order; whole runs, except at the end) while
        nothing else runs. Returns the number of tokens evaluated.
        Cancelling ends it after the last complete chunk; the context is empty afterwards. Raises ModelError
        when a step fails.
        """

    def place(
        self,
        tokens: Sequence[int],
        parts: Sequence[KVPart],
        on_progress: Progress | None = None,
        *,
        n_sweeps: int = 0,
    ) -> int:
        """Make the cache hold `tokens` at positions 0, 1 …: the parts' cells are put back first, all
        others are evaluated in place, in order, seeing everything before them.

        n_sweeps: where can_sweep(), all of them at once instead, so many times: each sees the parts, and what
        the time before made of those before it.

        A generate() whose prompt begins with `tokens` then evaluates only the rest. on_progress counts the
        tokens that are evaluated. Returns their number. Raises UsageError when they do not fit, ValueError
        for parts that overlap, RunLost (the cache is empty then) for a run that does not come.
        """

    def can_sweep(self, gaps: Sequence[tuple[int, int]], n_tokens: int) -> bool:
        """Whether these ranges of n_tokens may be evaluated at once: on a device where steps take the time,
        when they fit one, and are so short that doing it again costs less than many steps.
        """

    def export(self, first: int, end: int) -> State:
        """The KV of the tokens at positions [first, end), which place() or generate() left in the cache.

        Raises ValueError when it does not hold them all, ModelError when they cannot be taken out.
        """


@dataclass(frozen=True, slots=True)
class Shared:
    """What requests of a batch may have in common: the first n_tokens tokens of prompts that are made of the
    same (made_of) have the same KV.
    """

    made_of: bytes
    n_tokens: int


class Batch(Protocol):
    """Requests that come and go while others are decoded, side by side in one context. Close it."""

    @property
    def n_ctx(self) -> int:
        """Cells that all of them share."""

    @property
    def n_seq(self) -> int:
        """Requests that are decoded side by side."""

    @property
    def is_idle(self) -> bool:
        """No request is open."""

    @property
    def n_waiting(self) -> int:
        """Requests without a place: their parts are still wanted."""

    @property
    def is_hungry(self) -> bool:
        """Whether the next steps have room for one more request, or one may be made ready for later."""

    @property
    def is_stopped(self) -> bool:
        """Whether it was stopped: nothing is done any more."""

    def submit(self, request: Request, parts: Sequence[KVPart] = (), shared: Shared | None = None) -> int:
        """One more request; its number, counted from 0. The prompt's tokens that `parts` hold are put back
        where they stand, all others are evaluated, in order, when there is a place for it.

        Without `shared` prompts made of no parts share equal beginnings. Raises UsageError for what can never
        fit, ValueError for parts that overlap or leave nothing to evaluate.
        """

    def step(self) -> list[Piece]:
        """Evaluate one batch; what became ready, by the requests' numbers. A stop ends all with "cancelled".

        Raises ModelError when it fails.
        """

    def cancel(self, number: int) -> None:
        """Forget a request, if it is open, and free its place: no piece of it comes any more."""

    def stop(self) -> None:
        """End every request soon; from any thread."""

    def export(self, number: int, first: int, end: int) -> State:
        """The KV at positions [first, end) of a request that runs, or ended with the last step."""

    def close(self) -> None:
        """Give the context back; again is harmless."""


@runtime_checkable
class BatchingContext(Context, Protocol):
    """A Context that decodes requests as they come."""

    def open_batch(self) -> Batch:
        """Have the context for a batch, and forget what it held. Raises LocalctxError while it is at work."""
