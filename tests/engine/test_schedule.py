"""The scheduler alone, against a cache that is a list of token ids per sequence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.schedule import Copy, Drop, Scheduler, Slice, Work, common_prefix


class Cache:
    """Plays llama.cpp's unified cache: checks positions, counts distinct cells."""

    def __init__(self, n_ctx: int, n_seq: int) -> None:
        self.n_ctx = n_ctx
        self.rows: list[list[tuple[int, int]]] = [[] for _ in range(n_seq)]  # (token, cell)
        self.next_cell = 0
        self.n_evaluated = 0

    def apply(self, edit: Drop | Copy) -> None:
        if isinstance(edit, Drop):
            del self.rows[edit.sequence][edit.start :]
        else:
            assert self.rows[edit.sequence] == []
            assert len(self.rows[edit.source]) >= edit.n_tokens
            self.rows[edit.sequence] = self.rows[edit.source][: edit.n_tokens]

    def evaluate(self, batch: list[Slice]) -> None:
        for part in batch:
            row = self.rows[part.sequence]
            assert part.start == len(row)
            for token in part.tokens:
                row.append((int(token), self.next_cell))
                self.next_cell += 1
                self.n_evaluated += 1
        assert self.n_used <= self.n_ctx

    @property
    def n_used(self) -> int:
        return len({cell for row in self.rows for _, cell in row})

    def tokens(self, sequence: int) -> list[int]:
        return [token for token, _ in self.rows[sequence]]


def work(tokens: list[int], max_tokens: int) -> Work:
    return Work(np.array(tokens, np.int32), max_tokens)


def run_all(scheduler: Scheduler, cache: Cache, works: list[Work], n_batch: int) -> list[int]:
    """Run every request for max_tokens tokens; returns the order in which they started."""
    for number, item in enumerate(works):
        scheduler.submit(number, item)
    order: list[int] = []
    n_generated = dict.fromkeys(range(len(works)), 0)
    place: dict[int, int] = {}
    for _ in range(10_000):
        if scheduler.is_idle:
            break
        for start in scheduler.start():
            for edit in start.edits:
                cache.apply(edit)
            assert cache.tokens(start.sequence) == list(works[start.request].tokens[: start.n_reused])
            order.append(start.request)
            place[start.sequence] = start.request
        batch = scheduler.next_batch(n_batch)
        assert batch, "no progress"
        assert sum(len(part.tokens) for part in batch) <= n_batch
        cache.evaluate(batch)
        scheduler.advance(batch)
        assert cache.n_ctx - cache.n_used == scheduler.n_free_cells
        for part in batch:
            if part.sample:
                request = place[part.sequence]
                assert cache.tokens(part.sequence)[: len(works[request].tokens)] == list(
                    works[request].tokens
                )
                n_generated[request] += 1
                limit = min(works[request].max_tokens, scheduler.n_ctx - len(works[request].tokens))
                if n_generated[request] == limit:
                    scheduler.finish(part.sequence)
                else:
                    scheduler.sampled(part.sequence, 900 + request)
    assert scheduler.is_idle
    assert all(n >= 1 for n in n_generated.values())
    return order


@settings(deadline=None, max_examples=150)
@given(
    data=st.data(),
    n_ctx=st.integers(8, 120),
    n_seq=st.integers(1, 5),
    n_batch=st.integers(5, 40),
    reuse=st.booleans(),
)
def test_every_request_runs_within_the_cells(
    data: st.DataObject, n_ctx: int, n_seq: int, n_batch: int, reuse: bool
) -> None:
    stems = data.draw(st.lists(st.lists(st.integers(0, 3), max_size=n_ctx - 4), min_size=1, max_size=3))
    works = [
        work(
            (data.draw(st.sampled_from(stems)) + data.draw(st.lists(st.integers(0, 3), max_size=3)))[
                : n_ctx - 1
            ]
            or [1],
            n,
        )
        for n in data.draw(st.lists(st.integers(1, 30), min_size=1, max_size=9))
    ]
    scheduler, cache = Scheduler(n_ctx, n_seq, reuse=reuse), Cache(n_ctx, n_seq)
    order = run_all(scheduler, cache, works, n_batch)
    assert sorted(order) == list(range(len(works)))
    run_all(scheduler, cache, works[::-1], n_batch)  # on what is left of the first round


def test_second_question_evaluates_only_its_tail() -> None:
    document = list(range(500))
    scheduler, cache = Scheduler(600, 1), Cache(600, 1)
    run_all(scheduler, cache, [work([*document, 1, 2, 3], 5)], 64)
    before = cache.n_evaluated
    run_all(scheduler, cache, [work([*document, 7, 8], 1)], 64)
    assert cache.n_evaluated - before == 2


def test_requests_of_one_call_share_their_prefix() -> None:
    prefix = list(range(100))
    scheduler, cache = Scheduler(400, 4), Cache(400, 4)
    run_all(scheduler, cache, [work([*prefix, 200 + i], 1) for i in range(4)], 25)
    assert cache.n_evaluated == 104
    assert cache.n_used == 104  # shared cells are counted once


def test_without_reuse_everything_is_evaluated() -> None:
    prefix = list(range(100))
    scheduler, cache = Scheduler(500, 4, reuse=False), Cache(500, 4)
    run_all(scheduler, cache, [work([*prefix, 200 + i], 1) for i in range(4)], 32)
    assert cache.n_evaluated == 404


def test_a_freed_place_is_taken_at_once() -> None:
    scheduler = Scheduler(100, 2)
    for number in range(3):
        scheduler.submit(number, work([number, 50 + number], 2))
    assert [start.request for start in scheduler.start()] == [0, 1]
    batch = scheduler.next_batch(10)
    scheduler.advance(batch)
    scheduler.finish(0)
    assert [(start.request, start.sequence) for start in scheduler.start()] == [(2, 0)]


def test_decoding_goes_on_while_a_prompt_is_read() -> None:
    scheduler = Scheduler(300, 2)
    scheduler.submit(0, work([1, 2], 10))
    scheduler.start()
    scheduler.advance(scheduler.next_batch(16))
    scheduler.sampled(0, 9)
    scheduler.submit(1, work(list(range(100, 200)), 1))
    scheduler.start()
    batch = scheduler.next_batch(16)
    assert [(part.sequence, len(part.tokens), part.sample) for part in batch] == [
        (0, 1, True),
        (1, 15, False),
    ]


def test_apart_a_step_is_one_prompts_or_of_those_that_generate_by_turns() -> None:
    scheduler = Scheduler(300, 4, apart=True)

    def steps(n: int) -> list[list[tuple[int, int]]]:
        seen = []
        for _ in range(n):
            batch = scheduler.next_batch(16)
            seen.append([(part.sequence, len(part.tokens)) for part in batch])
            scheduler.advance(batch)
            for part in batch:
                if part.sample:
                    scheduler.sampled(part.sequence, 9)
        return seen

    for number in range(2):
        scheduler.submit(number, work([number, 2], 40))
    scheduler.start()
    assert steps(3) == [[(0, 2)], [(0, 1)], [(1, 2)]]
    for number in range(2, 4):
        scheduler.submit(number, work(list(range(100 * number, 100 * number + 20)), 40))
    scheduler.start()
    both = [(0, 1), (1, 1)]
    found = steps(10)
    assert found[:4] == [both, [(2, 14)], both, [(2, 6)]]
    assert all(len(one) > 1 or one[0][1] > 1 for one in found)
    assert [sequence for one in found if len(one) == 1 for sequence, _ in one] == [2, 2, 3, 3]
    assert sorted(found[-1]) == [(number, 1) for number in range(4)]


def test_an_emptied_cache_begins_as_a_new_one() -> None:
    scheduler, seen = Scheduler(300, 2, apart=True), []
    for _ in range(2):
        scheduler.submit(0, work([1], 40))
        scheduler.submit(1, work([7, 8, 9], 40))
        scheduler.start()
        seen.append([part.sequence for part in scheduler.next_batch(16)])  # ends the prompts' turn
        scheduler.reset()
    assert seen == [[1], [1]]


def test_a_batch_smaller_than_the_sequences_goes_round() -> None:
    scheduler, n_batch = Scheduler(400, 9), 4
    for number in range(8):
        scheduler.submit(number, work([number], 30))
    scheduler.submit(8, work(list(range(100, 130)), 1))
    scheduler.start()
    n_served = [0] * 9
    for _ in range(24):
        batch = scheduler.next_batch(n_batch)
        assert 1 <= sum(len(part.tokens) for part in batch) <= n_batch
        scheduler.advance(batch)
        for part in batch:
            n_served[part.sequence] += len(part.tokens)
            if part.sequence < 8:
                scheduler.sampled(part.sequence, 7)
        assert max(n_served[:8]) - min(n_served[:8]) <= 1
    assert min(n_served) >= 5  # the prompt was not left behind either


def test_a_large_request_is_not_overtaken_for_ever() -> None:
    scheduler = Scheduler(100, 4)
    scheduler.submit(0, work([1] * 50, 20))
    scheduler.submit(1, work([2] * 60, 20))
    scheduler.submit(2, work([3], 2))
    assert [start.request for start in scheduler.start()] == [0]  # 2 would fit, but waits behind 1
    scheduler.advance(scheduler.next_batch(64))
    scheduler.finish(0)
    assert [start.request for start in scheduler.start()] == [1, 2]


def test_the_least_recently_used_idle_cells_go_first() -> None:
    scheduler, cache = Scheduler(100, 3), Cache(100, 3)
    run_all(scheduler, cache, [work([1] * 30, 1)], 64)
    run_all(scheduler, cache, [work([2] * 30, 1)], 64)
    run_all(scheduler, cache, [work([3] * 60, 5)], 64)
    kept = sorted({row[0][0] for row in cache.rows if row})
    assert kept == [2, 3]


@pytest.mark.parametrize(("tokens", "max_tokens"), [([], 1), ([1] * 10, 1), ([1], 0)])
def test_what_can_never_run_is_refused(tokens: list[int], max_tokens: int) -> None:
    with pytest.raises(ValueError, match="cannot fit"):
        Scheduler(10, 1).submit(0, work(tokens, max_tokens))


def test_common_prefix() -> None:
    a = np.array([1, 2, 3], np.int32)
    assert [common_prefix(a, np.array(b, np.int32)) for b in ([], [1, 2], [1, 9, 3], [1, 2, 3, 4])] == [
        0,
        2,
        1,
        3,
    ]


# --- adopted tokens ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("reuse", [True, False])
def test_adopted_tokens_are_not_evaluated_again(reuse: bool) -> None:
    scheduler = Scheduler(64, 2, reuse=reuse)
    scheduler.submit(0, Work(np.arange(10, dtype=np.int32), 4))
    scheduler.start()
    scheduler.adopt(np.arange(30, dtype=np.int32))
    assert scheduler.is_idle
    assert (scheduler.n_free_cells, list(scheduler.held)) == (34, list(range(30)))
    scheduler.submit(1, Work(np.arange(35, dtype=np.int32), 4))
    (start,) = scheduler.start()
    assert (start.sequence, start.n_reused) == (0, 30)
    assert not [edit for edit in start.edits if isinstance(edit, Drop) and edit.sequence == 0]
    (piece,) = scheduler.next_batch(100)
    assert (piece.start, list(piece.tokens)) == (30, [30, 31, 32, 33, 34])


@pytest.mark.parametrize(("n_same", "n_reused"), [(30, 0), (12, 0)])
def test_without_reuse_only_the_whole_of_them_goes_on_and_once(n_same: int, n_reused: int) -> None:
    scheduler = Scheduler(64, 1, reuse=False)
    prompt = np.array([*range(n_same), *range(90, 99)], np.int32)
    scheduler.adopt(np.arange(30, dtype=np.int32))
    for number, wanted in enumerate([30 if n_same == 30 else 0, n_reused]):
        scheduler.submit(number, Work(prompt, 2))
        (start,) = scheduler.start()
        assert start.n_reused == wanted
        scheduler.advance(scheduler.next_batch(100))
        scheduler.finish(0)


def test_more_tokens_than_cells_cannot_be_adopted() -> None:
    with pytest.raises(ValueError, match="65 cells wanted"):
        Scheduler(64, 1).adopt(np.arange(65, dtype=np.int32))
