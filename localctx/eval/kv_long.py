"""One long text, streamed through a window, looked at on its way: perplexity, hit rate and latency.

What is attended to at every place is known from the tokens, so that only those runs are kept, and memory does
not grow with the text; the keys of all tokens go to a file. Where a token is further away than the model was
trained for, attention is reckoned as if it stood at the trained length: what exact attention would be there,
no such model says.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.errors import UsageError
from localctx.eval.kv_arms import EVALUATED, LEAST_CONTEXT, MODES, Attended, Mode, attended, check_names
from localctx.eval.kv_column import KeyColumn
from localctx.eval.kv_mass import Asked, Hits, Mass, add_keys, asked_of, summed
from localctx.eval.kv_matrix import KVEvalModel, decode_seconds, placed, prefix_runs
from localctx.kv import RUN_TOKENS, KVChunk, KVPart, PrefillPolicy
from localctx.selection.routing import LexicalRouter
from localctx.verify.compare import ScoringContext, check_done
from localctx.verify.heads import all_heads
from localctx.verify.predictions import Reference, Rows, log_softmax

__all__ = ["LONG_MODES", "At", "LongText", "LongWanted", "Used"]

LONG_MODES: tuple[Mode, ...] = tuple(mode for mode in MODES if mode != "all")
N_STEPS = 8
"""Tokens that are decoded one by one to see how long one takes."""
MAX_LENGTH = 1 << 24
NEAR_TOKENS = 1024
"""Whose keys are turned at a time."""
Tokens: TypeAlias = "array[int]"


@dataclass(frozen=True, slots=True)
class LongWanted:
    """Where a text is looked at: behind so many tokens each, n_target of them predicted. window: of prefill ·
    budget: tokens attended to.
    """

    lengths: tuple[int, ...]
    n_target: int = 256
    codec: str = "int4"
    window: int = 4096
    budget: int = 4096
    modes: tuple[Mode, ...] = LONG_MODES
    seed: int = 0
    text: str | None = None

    def check(self) -> None:
        """Raises UsageError for what cannot be measured."""
        check_names("--modes", self.modes, LONG_MODES)
        for length in self.lengths:
            if not LEAST_CONTEXT <= length <= MAX_LENGTH or length % RUN_TOKENS:
                raise UsageError(
                    f"--lengths {length} is out of range",
                    f"multiples of {RUN_TOKENS} from {LEAST_CONTEXT} to {MAX_LENGTH:,}",
                )
        if not 16 <= self.n_target <= 4096:
            raise UsageError(f"--target {self.n_target} is out of range", "from 16 to 4,096")
        if self.window < RUN_TOKENS or self.window % RUN_TOKENS:
            raise UsageError(f"--windows {self.window} is out of range", f"multiples of {RUN_TOKENS}")
        if self.window >= min(self.lengths):
            raise UsageError(
                f"a window of {self.window:,} tokens holds all of a text of {min(self.lengths):,}",
                "a smaller one in --windows, or longer --lengths",
            )
        if not LEAST_CONTEXT <= self.budget < min(self.lengths):
            raise UsageError(
                f"--budget {self.budget} is out of range",
                f"from {LEAST_CONTEXT} to less than {min(self.lengths):,}, the shortest of --lengths",
            )

    @property
    def n_held(self) -> int:
        """Tokens of the text that a context holds at once, at most."""
        return max(self.window, self.budget) + self.n_target + 1


@dataclass(frozen=True, slots=True)
class Used:
    """One mode at one place. losses: -log p of every token, in nats · seconds: to put the cells together, and
    of each token that was decoded.
    """

    mode: Mode
    n_attended: int
    n_evaluated: int
    losses: NDArray[np.float64]
    hits: Hits
    place_s: float
    decode_s: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class At:
    """What was found behind so many tokens, of which n_prefilled were read in `seconds` since the place
    before.
    """

    n_tokens: int
    n_prefilled: int
    seconds: float
    used: tuple[Used, ...]


class LongText:
    """A text on its way through a context."""

    def __init__(
        self,
        context: ScoringContext,
        model: KVEvalModel,
        prefix: Sequence[int],
        tokens: Tokens,
        wanted: LongWanted,
        folder: Path,
    ) -> None:
        """`folder`: empty, for the keys of all tokens."""
        self._context = context
        self._model = model
        self._tokens = tokens
        self._wanted = wanted
        self._before = tuple(prefix), prefix_runs(context, prefix)
        self._column = KeyColumn(all_heads(model), context.rope_table.head_dim, folder)
        self._column.check_room(max(wanted.lengths))
        self._plans = _plans(tokens, wanted)
        self._kept: dict[int, _native.Run] = {}
        self._tail: dict[int, _native.Run] = {}
        self._n_read = 0
        self._n_bytes = self._n_encoded = self.chunk_tokens = 0

    @property
    def bytes_per_token(self) -> float:
        """Of the runs that were encoded."""
        return self._n_bytes / max(1, self._n_encoded)

    def looked_at(self, tell: Callable[[str], None]) -> Iterator[At]:
        """Every place, in order. Raises Interrupted, UsageError where there is no room for the keys."""
        for end, plans in self._plans.items():
            n_before = self._n_read
            tell(f"reading to token {end:,}")
            started = time.perf_counter()
            self._read_to(end)
            seconds = time.perf_counter() - started
            tell(f"looking at {self._wanted.n_target:,} tokens behind it")
            hits = self._hits(end, plans)
            used = tuple(self._used(end, mode, one, hits[one.runs]) for mode, one in plans.items())
            yield At(end, end - n_before, seconds, used)
            wanted = self._runs_behind(end)
            self._kept = {run: data for run, data in self._kept.items() if run in wanted}

    def _runs_behind(self, token: int) -> set[int]:
        """Runs that are put back at places behind a token."""
        return {
            run
            for end, plans in self._plans.items()
            if end > token
            for mode, one in plans.items()
            if mode not in EVALUATED
            for run in one.runs
        }

    def _read_to(self, end: int) -> None:
        """Prefill up to a token; keep what is put back later, and the window with which it goes on."""
        first, left = self._n_read, [self._tail[run] for run in sorted(self._tail)]
        parts = [KVPart(run, 0, run.n_tokens, 0) for run in left]
        wanted, tail_from = self._runs_behind(first), (end - self._wanted.window) // RUN_TOKENS
        self._tail = {run: data for run, data in self._tail.items() if run >= tail_from}

        def take(chunk: KVChunk) -> None:
            self._column.append(chunk)
            self.chunk_tokens = max(self.chunk_tokens, chunk.n_tokens)
            for row in range(0, chunk.n_tokens, RUN_TOKENS):
                number = (chunk.first + row) // RUN_TOKENS
                if number in wanted:
                    data = _native.encode(chunk.state, row, RUN_TOKENS, chunk.rope, self._wanted.codec)
                    self._n_bytes, self._n_encoded = self._n_bytes + len(data), self._n_encoded + RUN_TOKENS
                    self._kept[number] = _native.Run(data)
                if number >= tail_from:
                    data = _native.encode(chunk.state, row, RUN_TOKENS, chunk.rope, "f16")
                    self._tail[number] = _native.Run(data)
            self._n_read = chunk.first + chunk.n_tokens

        policy = PrefillPolicy("window", self._wanted.window)
        self._context.stream(self._before[0], self._tokens[:end], policy, take, first=first, left=parts)
        check_done(self._n_read, end)

    def _used(self, end: int, mode: Mode, chosen: Attended, hits: Hits) -> Used:
        """One mode's predictions of the tokens behind `end`."""
        pieces = [
            (
                self._tokens[run * RUN_TOKENS : (run + 1) * RUN_TOKENS].tolist(),
                None if run in chosen.again else self._kept[run],
            )
            for run in chosen.runs
        ]
        n_evaluated, seconds = placed(self._context, self._before, pieces)
        target = self._tokens[end : end + self._wanted.n_target + 1].tolist()
        rows: list[NDArray[np.float64]] = []
        following = np.array(target[1:])

        def take(first: int, logits: Rows) -> None:
            here = following[first : first + len(logits)]
            rows.append(Reference(log_softmax(logits[: len(here)]), here.tolist()).nll)

        check_done(self._context.score(target, take), len(target))
        steps = tuple(decode_seconds(self._context, target[:N_STEPS]))
        n_attended = len(chosen.runs) * RUN_TOKENS
        return Used(mode, n_attended, n_evaluated, np.concatenate(rows), hits, seconds, steps)

    def _hits(self, end: int, plans: dict[Mode, Attended]) -> dict[tuple[int, ...], Hits]:
        """What the modes' cells have of the attention of some of the tokens behind `end`."""
        asked, reach = self._asked(end), self._reach
        sets = list(dict.fromkeys(one.runs for one in plans.values()))
        members = np.zeros((1 + len(sets), end // RUN_TOKENS), bool)
        members[0] = True
        for number, runs in enumerate(sets, 1):
            members[number, list(runs)] = True
        mass = Mass(len(asked.positions), asked.queries.shape[1], len(members))
        near_from = max(0, end - reach)
        self._add_far(mass, asked, near_from, members)
        self._add_near(mass, asked, near_from, end, members)
        shares = [len(runs) * RUN_TOKENS / end for runs in sets]
        return dict(zip(sets, summed(mass, asked, shares), strict=True))

    @property
    def _reach(self) -> int:
        """Distance, in whole runs, up to which keys are where they stand."""
        trained = self._model.info.n_ctx_train or self._context.n_ctx
        room = trained - len(self._before[0]) - self._wanted.n_target - 1
        return max(RUN_TOKENS, room // RUN_TOKENS * RUN_TOKENS)

    def _asked(self, end: int) -> Asked:
        """Queries of tokens behind `end`, which see as much before them as prefill did."""
        prefix, wanted = self._before[0], self._wanted
        held = self._tokens[end - wanted.window : end + wanted.n_target].tolist()
        asked = asked_of(self._model, [*prefix, *held], wanted.n_target)
        return replace(asked, positions=asked.positions + np.int32(end - wanted.window))

    def _add_near(
        self, mass: Mass, asked: Asked, near_from: int, end: int, members: NDArray[np.bool_]
    ) -> None:
        """Prefix, right before them, and the tokens that are no further away than the trained length."""
        rope, (prefix, runs) = self._context.rope_table, self._before
        at = near_from
        for run in runs:
            positions = np.arange(at, at + run.n_tokens, dtype=np.int32)
            add_keys(mass, asked, rope, (run.keys(layer) for layer in range(run.n_layer)), positions)
            at += run.n_tokens
        for first in range(near_from, end, NEAR_TOKENS):
            tokens = np.arange(first, min(first + NEAR_TOKENS, end), dtype=np.int32)
            keys = self._column.keys(first, first + len(tokens))
            add_keys(mass, asked, rope, keys, len(prefix) + tokens, members[:, tokens // RUN_TOKENS])

    def _add_far(self, mass: Mass, asked: Asked, end: int, members: NDArray[np.bool_]) -> None:
        """The tokens before `end`, as far away as the trained length each."""
        if not end:
            return
        n_queries, n_heads, head_dim = asked.queries.shape
        rope, away = self._context.rope_table, np.full(n_queries, self._reach, np.int32)
        flat = asked.queries.reshape(n_queries, -1).astype(np.float16)
        turned = rope.turn(flat, away).astype(np.float32).reshape(n_queries, n_heads, head_dim)
        factor = rope.turn(np.ones((1, head_dim), np.float16), np.zeros(1, np.int32)).astype(np.float32)
        scaled = replace(asked, scale=asked.scale * float(factor.max()))  # columns are without magnitude
        self._column.add_to(mass, scaled, turned, end, members)


def _plans(tokens: Tokens, wanted: LongWanted) -> dict[int, dict[Mode, Attended]]:
    """What every mode attends to at every place, by the tokens before it."""
    router, plans = LexicalRouter(tokens), {}
    for end in sorted(set(wanted.lengths)):
        seed, n_runs = f"random {wanted.seed} {end}", end // RUN_TOKENS
        plans[end] = {mode: attended(mode, n_runs, wanted.budget, router, seed) for mode in wanted.modes}
    return plans
