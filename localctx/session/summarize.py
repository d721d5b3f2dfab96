"""`summarize`: points with their places, each a key sentence that the model said shorter, checked.

The steps: say what the documents are → cut and count → choose a strategy → cut into parts → one key sentence
a part, rewritten (map) → merge neighbours level by level (reduce) → the lines, and what was read.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass

from localctx.document import Document
from localctx.errors import NotComposable, UsageError
from localctx.index.terms import words
from localctx.selection import unsupported
from localctx.session.answer import Answer, TokenCounts
from localctx.session.cache import opened_cache
from localctx.session.events import Event, Finished, Listener, Planned, Text, ignore_progress
from localctx.session.opening import introduce, read_all, sum_coverage, timed
from localctx.session.outlines import Outline, fill, may_be_kept
from localctx.session.parts import cut_parts
from localctx.session.points import Point, render
from localctx.session.prompts import question_task
from localctx.session.rewriting import KEY_TOKENS, MAX_MERGED, Rewriter, task_tokens
from localctx.session.run import Run, start
from localctx.session.strategy import Choice, check_strategy, choose_summarize, round_n_ctx
from localctx.session.structured import check_free_text
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["LENGTHS", "N_SEQ", "PartPlan", "plan_parts", "summarize", "wanted_points"]

LENGTHS = {"short": 5, "medium": 12, "long": 1 << 30}
WORDS_PER_POINT = 24
PART_TOKENS = 768
N_SEQ = 4
"""Parts decoded side by side."""


def wanted_points(length: str) -> int:
    """How many points a --length asks for: short, medium, long, or a number of words."""
    if length in LENGTHS:
        return LENGTHS[length]
    if not (length.isascii() and length.isdecimal() and len(length) <= 9) or int(length) == 0:
        raise UsageError(
            f"--length {length!r} is not understood", "short, medium, long, or a number of words"
        )
    return max(1, round(int(length) / WORDS_PER_POINT))


def summarize(
    documents: Sequence[Document],
    model: Model,
    settings: Settings,
    *,
    length: str = "medium",
    focus: str | None = None,
    listen: Listener = ignore_progress,
) -> Iterator[Event]:
    """Summarise the documents, telling each step; the last event is Finished.

    Raises UsageError for a length or strategy that is not understood, OutOfMemory, and what the documents
    raise.
    """
    n_points = wanted_points(length)
    check_strategy(settings.strategy, "summarize")
    check_free_text(settings, "summarize")
    run = start(documents, model, settings, listen, settings.parallel or N_SEQ)
    yield from introduce(run)
    with timed(run.timings, "document_ms"):
        read_all(run)
    if settings.strategy in ("auto", "stream"):
        is_done = yield from _from_sections(run, focus, length)
        if is_done:
            return
    requested = "auto" if settings.strategy == "stream" else settings.strategy
    plan = plan_parts(run, requested, focus, n_points)
    choice, parts = plan.choice, cut_parts(run.readings, plan.part_tokens)
    yield Planned(choice.strategy, choice.why, run.n_tokens, plan.n_ctx, len(parts))
    with timed(run.timings, "load_ms"):
        context = run.context(plan.n_ctx, min(plan.n_seq, max(1, len(parts))))
    try:
        rewriter = Rewriter(run, context, choice.strategy, focus, [0] * len(run.readings))
        points = yield from rewriter.map(parts)
        points = rewriter.reduce(points, n_points)
        yield from _finish(run, choice, points, rewriter, context.n_ctx)
    finally:
        context.close()


@dataclass(frozen=True, slots=True)
class PartPlan:
    """How a text is cut for a summary. n_needed: tokens that hold all of it and the points · part_tokens: of
    a part · n_seq: parts decoded side by side, each with n_around tokens beside its part.
    """

    choice: Choice
    n_needed: int
    part_tokens: int
    n_seq: int
    n_ctx: int
    n_around: int


def plan_parts(run: Run, requested: str, focus: str | None, n_points: int) -> PartPlan:
    """The strategy of a summary in n_points points, and its parts. Raises UsageError for a context that is
    too small.
    """
    tail = task_tokens(run, focus)
    n_seq = min(run.settings.parallel or N_SEQ, -(-run.n_tokens // PART_TOKENS))
    n_whole = run.n_tokens + n_seq * tail
    choice = choose_summarize(requested, n_whole, run.limit)
    if choice.strategy == "exact":
        part_tokens = max(PART_TOKENS, -(-run.n_tokens // n_points))
        return PartPlan(choice, n_whole, part_tokens, n_seq, round_n_ctx(n_whole), tail)
    while n_seq > 1 and run.limit // n_seq - tail < KEY_TOKENS * MAX_MERGED:
        n_seq -= 1
    part_tokens = min(PART_TOKENS, run.limit // n_seq - tail)
    if part_tokens < KEY_TOKENS * MAX_MERGED:
        raise UsageError(
            f"a context of {run.limit:,} tokens is too small to summarise in parts",
            f"--ctx {round_n_ctx(tail + KEY_TOKENS * MAX_MERGED)} or more",
        )
    return PartPlan(choice, n_whole, part_tokens, n_seq, round_n_ctx(n_seq * (part_tokens + tail)), tail)


def _from_sections(run: Run, focus: str | None, length: str) -> Generator[Event, None, bool]:
    """The summary from those of the sections, as far as they are kept or were asked for; False where not."""
    is_asked = run.settings.strategy == "stream"
    if not is_asked and not may_be_kept(run):
        return False
    with opened_cache(run, question_task("")) as cache:
        if isinstance(cache, str):
            if is_asked:
                yield run.warn(f"{cache}; its parts are read by themselves")
            return False
        outlines = [Outline.of(cache, reading, focus) for reading in run.readings]
        n_missing = sum(len(outline.missing) for outline in outlines)
        n_sections = sum(len(outline.sections) for outline in outlines)
        if n_missing and not is_asked:
            return False
        why = f"{n_missing:,} of {n_sections:,} sections to summarise" if n_missing else "all are summarised"
        choice, n_ctx = Choice("stream", why), _merge_n_ctx(run, focus)
        yield Planned("stream", why, run.n_tokens, n_ctx, n_sections)
        if n_missing:
            try:
                yield from fill(cache, outlines)
            except NotComposable as error:  # found out by trying
                yield run.warn(f"{error.message}; its parts are read by themselves")
                return False
        yield from run.unheard()
        was_cancelled = any(outline.was_cancelled for outline in outlines)
        if not was_cancelled and any(outline.missing for outline in outlines):
            yield run.warn("not all sections have a summary; the parts are read by themselves")
            return False
    points = [point for outline in outlines for point in outline.points if point is not None]
    n_read = [outline.n_read for outline in outlines]
    is_verbatim = any(outline.is_verbatim for outline in outlines)
    n_points = wanted_points(length)
    is_worded = len(points) > n_points
    if is_verbatim:
        n_points, is_worded = _key_sentences_wanted(run, points, length, focus)
    with timed(run.timings, "load_ms"):
        context = run.context(n_ctx, N_SEQ) if is_worded else None
    try:
        rewriter = Rewriter(run, context, "stream", focus, n_read, was_cancelled, is_verbatim)
        yield from _finish(run, choice, rewriter.reduce(points, n_points), rewriter, n_ctx)
    finally:
        if context is not None:
            context.close()
    return True


def _key_sentences_wanted(run: Run, points: list[Point], length: str, focus: str | None) -> tuple[int, bool]:
    """How many points are made of key sentences, and whether the model words them: no more than map-reduce
    has parts, or as many as have the words that are asked for.
    """
    n_points = wanted_points(length)
    if length in LENGTHS:
        n_most = max(1, -(-run.n_tokens // PART_TOKENS))
        return min(n_points, n_most), n_points < min(n_most, len(points))
    led = Rewriter(run, None, "stream", focus, []).reduce(points, n_points)
    n_words = sum(len(words(point.text)) for point in led)
    n_points = max(n_points, len(led) * int(length) // max(1, n_words))
    return n_points, n_points < len(points)


def _merge_n_ctx(run: Run, focus: str | None) -> int:
    """Cells in which points are merged."""
    return min(run.limit, round_n_ctx(N_SEQ * (task_tokens(run, focus) + MAX_MERGED * KEY_TOKENS)))


def _finish(
    run: Run, choice: Choice, points: Sequence[Point], rewriter: Rewriter, n_ctx: int
) -> Iterator[Event]:
    """The lines of the summary, what they claim that is not in the documents, and the answer."""
    lines: list[str] = []
    for line in render(points, several=len(run.readings) > 1):
        lines.append(line)
        yield Text(line + "\n")
    said = " ".join(point.text for point in points)
    for claim in unsupported(said, run.text(), rewriter.focus or ""):
        yield run.warn(f"not in the document: {claim.text}")
    coverages = [r.coverage(n, n) for r, n in zip(run.readings, rewriter.n_read, strict=True)]
    coverage, documents = sum_coverage(run.readings, coverages)
    answer = Answer(
        command="summarize",
        text="\n".join(lines),
        strategy=choice.strategy,
        support="supported" if points else "none",
        finish_reason="cancelled" if rewriter.is_cancelled else "stop",
        model=run.model.info,
        n_ctx=n_ctx,
        requested=run.settings.requested,
        coverage=coverage,
        question=rewriter.focus,
        citations=tuple(point.citation for point in points),
        documents=documents,
        tokens=TokenCounts(run.n_evaluated, run.n_restored, run.n_generated),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
    )
    yield Finished(answer)
