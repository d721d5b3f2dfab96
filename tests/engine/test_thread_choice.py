"""How many threads a step takes: what measures say, by size, and never fewer where more are worth it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from localctx.engine.options import EngineOptions
from localctx.engine.thread_choice import LONGEST_WAIT, ThreadChoice


def run(choice: ThreadChoice, seconds: Callable[[int, int], float], n_tokens: int, n_steps: int) -> list[int]:
    """The threads of each step, when a step of so many tokens takes seconds(threads, step)."""
    taken = []
    for step in range(n_steps):
        taken.append(choice.n_threads(n_tokens))
        choice.took(n_tokens, seconds(taken[-1], step))
    return taken


def test_more_threads_stay_where_they_are_worth_it() -> None:
    taken = run(ThreadChoice(8), lambda n, step: 1 / n, 16, 4000)
    assert set(taken) == {8, 4}
    assert taken.count(4) < 100, "trials become rare"


@pytest.mark.parametrize("most", [2, 3, 8])
def test_threads_that_bring_nothing_are_left_to_others(most: int) -> None:
    taken = run(ThreadChoice(most), lambda n, step: 1.0, 16, 600)
    assert taken[:64] == [most] * 64
    assert taken[-40:].count(1) >= 28


def test_a_choice_follows_what_changes() -> None:
    def seconds(n: int, step: int) -> float:
        return float(n) if step < 1000 else 1 / n

    taken = run(ThreadChoice(2), seconds, 16, 1000 + 3 * LONGEST_WAIT)
    assert taken[900] == 1
    assert taken[-40:].count(2) >= 28


def test_one_slow_step_decides_nothing() -> None:
    taken = run(ThreadChoice(2), lambda n, step: 50.0 if step == 70 else 1 / n, 16, 300)
    assert taken[-1] == 2


def test_sizes_are_chosen_for_by_themselves() -> None:
    choice = ThreadChoice(4)
    run(choice, lambda n, step: 1.0, 8, 400)
    run(choice, lambda n, step: 1 / n, 500, 400)
    assert choice.n_threads(9) < 4 == choice.n_threads(400)


def test_a_step_of_one_token_takes_all() -> None:
    assert set(run(ThreadChoice(4), lambda n, step: 1.0, 1, 400)) == {4}


def test_one_thread_is_no_choice() -> None:
    assert set(run(ThreadChoice(1), lambda n, step: 1.0, 16, 400)) == {1}


def test_nothing_is_chosen_unless_cpus_are_shared() -> None:
    assert ThreadChoice.of(EngineOptions()) is None
    choice = ThreadChoice.of(EngineOptions(shares_cpus=True, n_threads=3))
    assert choice is not None and choice.n_threads(16) == 3


COSTS = {8: 1.0, 4: 1.3, 2: 1.69, 1: 2.19}
"""Each half is worth it by itself, and all of them together are not."""


def test_what_is_given_up_does_not_add_up() -> None:
    taken = run(ThreadChoice(8), lambda n, step: COSTS[n], 16, 4000)
    assert taken[-1] == 4
    assert taken.count(1) == 0


def test_small_gains_are_seen_together_too() -> None:
    taken = run(
        ThreadChoice(8), lambda n, step: 1.0 if step < 1000 else COSTS[n], 16, 1000 + 5 * LONGEST_WAIT
    )
    assert taken[999] == 1
    assert taken[-1] == 4


def test_the_best_in_between_is_what_counts() -> None:
    costs = {8: 4.0, 4: 2.0, 2: 2.5, 1: 3.2}
    taken = run(ThreadChoice(8), lambda n, step: costs[n], 16, 4000)
    assert taken[-1] == 2 and taken.count(1) < 100


def test_another_load_makes_no_number_look_slow() -> None:
    def seconds(n: int, step: int) -> float:
        return COSTS[n] if step < 1000 else 10.0 * n

    taken = run(ThreadChoice(8), seconds, 16, 1000 + 5 * LONGEST_WAIT)
    assert taken[999] == 4
    assert taken[-1] == 1
