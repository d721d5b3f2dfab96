"""What each rung costs, by arithmetic."""

from __future__ import annotations

from dataclasses import replace

import pytest

from localctx.forecast.rates import Rates
from localctx.forecast.work import LAZY_TOKENS, SELECT_S, Task, work_of

RATES = Rates(1e-3, 1e-6, 1e-2, 1e-6)
TASK = Task(
    n_tokens=100_000, n_missing=100_000, n_missing_exact=100_000, n_around=50, max_tokens=256, held=4352,
    prefill_n_ctx=5376, block=128, budget=None, refresh=0.0, latency=1.0, kv_bytes_per_token=10_000,
)  # fmt: skip


def seconds(rung: str, task: Task = TASK) -> tuple[float, float]:
    work = work_of(rung, task, RATES, for_summary=False)  # type: ignore[arg-type]  # names of rungs
    return work.prepare_s, work.answer_s


def test_exact_pays_for_every_pair_of_tokens() -> None:
    prepare, answer = seconds("exact-f16")
    assert prepare == pytest.approx(RATES.prefill(100_050), rel=1e-3)
    assert answer > RATES.decode(64, 100_050)
    again, _ = seconds("exact-f16", replace(TASK, n_missing_exact=0))
    assert again == pytest.approx(50 * (1e-3 + 1e-6 * 100_025), rel=0.01)  # only what stands around it
    work = work_of("exact-f16", TASK, RATES, for_summary=False)
    assert (work.n_ctx, work.n_stored, work.is_kv) == (100_306, 100_000, True)


def test_streamed_pays_for_its_window() -> None:
    prepare, answer = seconds("streamed-store")
    assert prepare == pytest.approx(RATES.streamed(100_000, 4352))
    assert prepare < 0.15 * seconds("exact-f16")[0]
    assert seconds("streamed-store", replace(TASK, n_missing=0)) == (0.0, answer)
    all_again = seconds("streamed-store", replace(TASK, refresh=1.0))[1]
    assert all_again - answer == pytest.approx(768 * 1e-3, rel=1.0) and all_again > answer
    affordable = seconds("streamed-store", replace(TASK, refresh=None, latency=0.5))[1]
    assert answer < affordable < all_again


def test_lazy_prefills_for_each_question() -> None:
    prepare, answer = seconds("lazy-store")
    assert prepare == 0
    assert answer > seconds("streamed-store")[1] + LAZY_TOKENS * 1e-3
    assert answer < seconds("streamed-store")[0]


def test_texts_that_are_read_for_a_question() -> None:
    retrieved, condensed = seconds("retrieve")[1], seconds("condense")[1]
    assert SELECT_S < retrieved < condensed
    less = seconds("condense", replace(TASK, budget=512))[1]
    assert less < condensed
    work = work_of("retrieve", TASK, RATES, for_summary=False)
    assert work.n_ctx < 2000 and not work.is_kv and not work.n_stored


def test_summaries_by_parts() -> None:
    task = replace(TASK, part_tokens=768, n_parts=131, n_seq=4, part_around=300)
    parts, keys, whole = (
        work_of(rung, task, RATES, for_summary=True) for rung in ("map-reduce", "condense", "exact-f16")
    )
    assert keys.answer_s < parts.answer_s
    assert parts.answer_s > 100_000 * 1e-3
    assert parts.n_ctx == 4 * (768 + 300) and parts.n_seq == 4
    assert whole.prepare_s == pytest.approx(RATES.prefill(100_000))
    assert whole.answer_s > 131 * 300 * (1e-3 + 1e-6 * 100_000)
