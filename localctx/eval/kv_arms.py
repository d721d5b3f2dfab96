"""What `eval kv` compares: codecs, prefill windows, and which cells are attended to. Pure; knows no KV.

An arm predicts the same tokens as every other one. What it attends to is chosen by what stands before those
tokens, never by the tokens themselves.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np

from localctx._native import CODECS
from localctx.errors import UsageError
from localctx.kv import RECALL_CHUNK_TOKENS, RUN_TOKENS
from localctx.selection.routing import Router

__all__ = ["CODECS", "MODES", "Arm", "Attended", "Mode", "Wanted", "arms_of", "attended"]

Mode: TypeAlias = Literal["all", "local", "selected", "random", "refreshed", "text", "local text"]
MODES: tuple[Mode, ...] = get_args(Mode)
"""all: every stored run · local: the nearest of the budget · selected: the nearest half of it, and the runs
that share most with the last tokens · random: the nearest half, and any others · refreshed: as selected, the
best third of the chosen evaluated again in place · text: as selected, everything evaluated again · local
text: as local, everything evaluated again.
"""
EVALUATED: tuple[Mode, ...] = ("text", "local text")
"""They take no stored KV: codec and prefill window do not matter."""
STORED_CODEC = "int4"
REFRESH_SHARE = 1 / 3
LEAST_CONTEXT = 2 * RUN_TOKENS


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is measured. n_tokens: predicted in all · n_context: before each stretch of n_target of them ·
    windows: of prefill, None is exact attention · budgets: tokens attended to by the modes that do not take
    all · is_full: every mode with every codec and window, not with one codec · text: None is Python's
    documentation.
    """

    n_tokens: int = 1024
    n_context: int = 1024
    n_target: int = 256
    codecs: tuple[str, ...] = CODECS
    windows: tuple[int | None, ...] = (None, 256)
    modes: tuple[Mode, ...] = MODES
    budgets: tuple[int, ...] = (512,)
    is_full: bool = False
    seed: int = 0
    text: str | None = None

    @property
    def mode_codec(self) -> str:
        """The codec with which every mode is tried."""
        return STORED_CODEC if STORED_CODEC in self.codecs else self.codecs[0]

    @property
    def n_spans(self) -> int:
        """Stretches of tokens that are predicted."""
        return -(-self.n_tokens // self.n_target)

    def check(self) -> None:
        """Raises UsageError for what cannot be measured."""
        for option, value, least, most in (
            ("--tokens", self.n_tokens, 2, 1 << 24),
            ("--target", self.n_target, 16, 4096),
            ("--context", self.n_context, LEAST_CONTEXT, 1 << 20),
        ):
            if not least <= value <= most:
                raise UsageError(f"{option} {value} is out of range", f"from {least:,} to {most:,}")
        if self.n_context % RUN_TOKENS:
            raise UsageError(f"--context {self.n_context} is no multiple of {RUN_TOKENS}", "as 1024 or 4096")
        check_names("--codecs", self.codecs, CODECS)
        check_names("--modes", self.modes, MODES)
        if not self.windows:
            raise UsageError("--windows: none is named", "exact, or numbers of tokens: exact,256")
        for window in self.windows:
            if window is not None and (window < RUN_TOKENS or window % RUN_TOKENS):
                raise UsageError(f"--windows {window} is out of range", f"multiples of {RUN_TOKENS}")
            if window is not None and window >= self.n_context:
                raise UsageError(
                    f"a window of {window:,} tokens holds all of a context of {self.n_context:,}",
                    "a smaller one in --windows, a longer --context, or exact",
                )
        check_budgets(self.budgets, self.n_context, self.modes)

    def check_plot(self) -> None:
        """Before hours of measuring: raises UsageError where there will be no curve to draw."""
        if "all" not in self.modes or None not in self.windows:
            raise UsageError(
                "--plot draws what codecs cost behind exact prefill", "--modes all --windows exact"
            )


def check_names(option: str, names: Sequence[str], known: Sequence[str]) -> None:
    """Raises UsageError where there are none, or for one that is not known."""
    if not names:
        raise UsageError(f"{option}: none is named", f"of {', '.join(known)}")
    for name in names:
        if name not in known:
            raise UsageError(f"{option} {name} is not known", f"of {', '.join(known)}")


def check_budgets(budgets: Sequence[int], n_context: int, modes: Sequence[Mode]) -> None:
    """Raises UsageError for budgets that modes cannot be told apart by."""
    if all(mode == "all" for mode in modes):
        return
    if not budgets or not all(LEAST_CONTEXT <= budget < n_context for budget in budgets):
        raise UsageError(
            f"--budget {','.join(map(str, budgets))} is out of range",
            f"from {LEAST_CONTEXT:,} to less than the context of {n_context:,} tokens",
        )


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of keeping and using a context. codec None: nothing that was stored is used · budget None: all
    is attended to.
    """

    codec: str | None
    window: int | None
    mode: Mode
    budget: int | None = None


def arms_of(wanted: Wanted) -> list[Arm]:
    """Those that are asked for, the arms of one window together, and in it those of one codec."""
    ways: list[tuple[Mode, int | None]] = []
    for mode in wanted.modes:
        ways += [(mode, None)] if mode == "all" else [(mode, budget) for budget in wanted.budgets]
    arms = [Arm(None, None, mode, budget) for mode, budget in ways if mode in EVALUATED]
    stored = [(mode, budget) for mode, budget in ways if mode not in EVALUATED]
    for window in wanted.windows:
        for codec in wanted.codecs:
            is_named = wanted.is_full or codec == wanted.mode_codec
            arms += [Arm(codec, window, mode, budget) for mode, budget in stored if mode == "all" or is_named]
    return arms


@dataclass(frozen=True, slots=True)
class Attended:
    """Runs that are attended to, in order, and which of them are evaluated again."""

    runs: tuple[int, ...]
    again: frozenset[int] = frozenset()


def attended(
    mode: Mode, n_runs: int, budget: int | None, router: Router, seed: str, first: int = 0
) -> Attended:
    """What a mode attends to behind runs [first, n_runs), all of them whole.

    The router is asked for what is near the last RECALL_CHUNK_TOKENS tokens before the runs' end.
    """
    every = range(first, n_runs)
    if budget is None:
        return Attended(tuple(every))
    n_budget = budget // RUN_TOKENS
    if mode in ("local", "local text"):
        runs = tuple(every[max(0, len(every) - n_budget) :])
        return Attended(runs, frozenset(runs if mode == "local text" else ()))
    near_from = max(first, n_runs - n_budget // 2)
    n_chosen = n_budget - (n_runs - near_from)
    if mode == "random":
        source = random.Random(seed)  # noqa: S311  # a draw that anyone can repeat
        chosen = source.sample(range(first, near_from), min(n_chosen, near_from - first))
    else:
        chosen = list(_nearest(router, n_runs, first, near_from, n_chosen))
    runs = (*sorted(chosen), *range(near_from, n_runs))
    if mode == "text":
        return Attended(runs, frozenset(runs))
    n_again = max(1, round(REFRESH_SHARE * len(chosen))) if mode == "refreshed" else 0
    return Attended(runs, frozenset(chosen[:n_again]))


def _nearest(router: Router, n_runs: int, first: int, near_from: int, n_chosen: int) -> Iterator[int]:
    """The best first; the later one of equals, none without evidence."""
    end = n_runs * RUN_TOKENS
    scores = router.scores(end - RECALL_CHUNK_TOKENS, end, near_from)
    scores[:first] = 0.0
    order: Iterable[int] = np.lexsort((-np.arange(near_from), -scores))[:n_chosen]
    return (int(run) for run in order if scores[run] > 0)
