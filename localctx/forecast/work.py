"""What each rung of the ladder does: tokens evaluated and decoded, cells, KV kept; and its seconds. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from localctx.forecast.rates import Rates
from localctx.session.cache import CHUNK_TOKENS
from localctx.session.condense_filling import CONDENSED_TOKENS
from localctx.session.filling import HEADER_TOKENS, MAX_BLOCKS
from localctx.session.ladder import RungName
from localctx.session.rewriting import KEY_TOKENS, MAX_MERGED, REWRITE_TOKENS
from localctx.session.streaming import ALL_FROM, LEAST_REFRESH
from localctx.session.supply import LAZY_TOKENS

__all__ = ["Task", "Work", "work_of"]

ANSWER_TOKENS = 64
"""Of an answer, where --max-tokens allows more."""
QUESTION_TOKENS = 24
POINT_TOKENS = 40
"""Of a key sentence that was said shorter."""
SELECT_S = 0.3
"""Finding passages, judging and citing."""
READ_BYTES_PER_S = 1e9
"""Stored KV read, decoded and put into place."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is to be read, as far as it decides the work. Sizes in tokens.

    n_missing: not yet in the store as `stream` needs them, n_missing_exact: as `exact` does · n_around:
    prefix, task and question · held: attended to behind a chunk of a streamed prefill at most ·
    prefill_n_ctx: the context of one · block: of a passage · refresh: share of restored passages that is
    evaluated again, None: by `latency` seconds · part_tokens, n_parts, n_seq: of a summary's parts.
    """

    n_tokens: int
    n_missing: int
    n_missing_exact: int
    n_around: int
    max_tokens: int
    held: int
    prefill_n_ctx: int
    block: int
    budget: int | None
    refresh: float | None
    latency: float
    kv_bytes_per_token: int
    part_tokens: int = 0
    n_parts: int = 0
    n_seq: int = 1
    part_around: int = 0

    @property
    def n_answer(self) -> int:
        """Tokens generated for an answer, about."""
        return min(self.max_tokens, ANSWER_TOKENS)

    @property
    def n_selected(self) -> int:
        """Tokens of the passages that a question selects."""
        most = self.budget or MAX_BLOCKS * self.block
        return min(self.n_tokens, most)

    @property
    def n_headers(self) -> int:
        """Tokens of their header lines, about."""
        return max(1, self.n_selected // self.block) * HEADER_TOKENS // 2


@dataclass(frozen=True, slots=True)
class Work:
    """One rung. prepare_s: before the first answer, once · answer_s: an answer, each · n_stored: tokens whose
    KV is written to the store · is_kv: the context is one for stored KV · n_loaded: tokens whose KV is read
    from it for an answer.
    """

    prepare_s: float
    answer_s: float
    n_ctx: int
    n_seq: int = 1
    is_kv: bool = False
    n_stored: int = 0
    n_loaded: int = 0


def work_of(rung: RungName, task: Task, rates: Rates, *, for_summary: bool) -> Work:
    """The work of a rung at these speeds."""
    if for_summary:
        if rung in ("map-reduce", "condense"):
            return _in_parts(task, rates, reads_all=rung == "map-reduce")
        if rung == "streamed-store":
            return _in_sections(task, rates)
        return _whole_in_parts(task, rates)
    match rung:
        case "streamed-store":
            prepare = rates.streamed(task.n_missing, task.held)
            n_ctx = max(task.prefill_n_ctx, _answer_n_ctx(task))
            answer = _restored_s(task, rates)
            return Work(prepare, answer, n_ctx, 1, True, task.n_missing, task.n_selected)
        case "lazy-store":
            n_lazy = min(LAZY_TOKENS, task.n_missing)
            answer = rates.streamed(n_lazy, LAZY_TOKENS // 4) + _restored_s(task, rates)
            n_ctx = max(2 * CHUNK_TOKENS + task.n_around, _answer_n_ctx(task))
            return Work(0.0, answer, n_ctx, 1, True, n_lazy, task.n_selected)
        case "retrieve" | "condense" | "map-reduce":
            n_read = min(task.n_tokens, task.budget or CONDENSED_TOKENS)
            if rung == "retrieve":
                n_read = task.n_selected + task.n_headers
            n_prompt = n_read + task.n_around
            answer = SELECT_S + rates.prefill(n_prompt) + rates.decode(task.n_answer, n_prompt)
            return Work(0.0, answer, n_prompt + task.max_tokens)
        case _:
            return _whole(task, rates)


def _whole(task: Task, rates: Rates) -> Work:
    """Everything in one context."""
    n_prompt = task.n_tokens + task.n_around
    n_stored = n_prompt - task.n_around - task.n_missing_exact
    prepare = rates.prefill(n_prompt - n_stored, n_stored)
    answer = SELECT_S + rates.prefill(QUESTION_TOKENS, n_prompt) + rates.decode(task.n_answer, n_prompt)
    answer += n_stored * task.kv_bytes_per_token / READ_BYTES_PER_S
    n_ctx = n_prompt + task.max_tokens
    return Work(prepare, answer, n_ctx, 1, True, task.n_missing_exact, task.n_tokens)


def _whole_in_parts(task: Task, rates: Rates) -> Work:
    """A summary whose points are all written behind the whole text, which is evaluated once."""
    points = task.n_parts * task.part_around * (rates.prefill_s + rates.prefill_depth_s * task.n_tokens)
    points += task.n_parts * rates.decode(POINT_TOKENS, task.n_tokens)
    n_ctx = task.n_tokens + task.n_seq * task.part_around
    return Work(rates.prefill(task.n_tokens), points + SELECT_S, n_ctx, task.n_seq)


def _restored_s(task: Task, rates: Rates) -> float:
    """An answer from passages whose KV is at hand."""
    n_new = task.n_headers + QUESTION_TOKENS
    share = task.refresh
    if share is None:
        affordable = task.latency / max(rates.prefill_s, 1e-9) - n_new
        share = affordable / max(1, task.n_selected)
        share = 1.0 if share >= ALL_FROM else max(LEAST_REFRESH, share)
    n_again = round(share * task.n_selected) + n_new
    n_attended = task.n_selected + task.n_headers + task.n_around
    seconds = SELECT_S + n_again * (rates.prefill_s + rates.prefill_depth_s * n_attended)
    return seconds + rates.decode(task.n_answer, n_attended)


def _answer_n_ctx(task: Task) -> int:
    return task.n_around + task.n_selected + task.n_headers + task.max_tokens


def _in_parts(task: Task, rates: Rates, *, reads_all: bool) -> Work:
    """A summary: every part, or its key sentence, said shorter; then neighbours merged level by level."""
    n_part = task.part_tokens if reads_all else min(task.part_tokens, KEY_TOKENS)
    n_prompt = n_part + task.part_around - REWRITE_TOKENS
    n_merges = task.n_parts // max(1, MAX_MERGED - 1)
    seconds = (task.n_parts + n_merges) * rates.decode(POINT_TOKENS, n_prompt)
    seconds += task.n_parts * rates.prefill(n_prompt)
    seconds += n_merges * rates.prefill(MAX_MERGED * POINT_TOKENS + task.part_around)
    n_ctx = task.n_seq * (task.part_tokens + task.part_around)
    return Work(0.0, seconds + SELECT_S, n_ctx, task.n_seq)


def _in_sections(task: Task, rates: Rates) -> Work:
    """A summary of sections, each read beside the prefill or from stored KV, and merged."""
    prepare = rates.streamed(task.n_missing, task.held)
    n_merges = task.n_parts // max(1, MAX_MERGED - 1)
    n_prompt = MAX_MERGED * POINT_TOKENS + task.part_around
    seconds = task.n_parts * task.part_around * rates.prefill_s
    seconds += (task.n_parts + n_merges) * rates.decode(POINT_TOKENS, n_prompt)
    seconds += n_merges * rates.prefill(n_prompt)
    n_ctx = task.prefill_n_ctx + task.n_seq * (task.part_tokens + task.part_around)
    return Work(prepare, seconds + SELECT_S, n_ctx, task.n_seq, True, task.n_missing, task.n_tokens)
