"""`summarize`: points with their places, each a key sentence that the model said shorter, checked.

The steps: say what the documents are → cut and count → cut into parts → one key sentence a part, rewritten
by the model with its part in the context (map) → merge neighbours level by level until the wanted number of
points is left (reduce). A rewrite that is cut off, says what its sentence does not, or drops a negation is
never used: the sentence itself is.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace

from localctx.document import Document
from localctx.errors import UsageError
from localctx.selection import unsupported
from localctx.session.answer import Answer, Timings, TokenCounts, join_finish_reasons
from localctx.session.decoding import Decoded, decode_many
from localctx.session.events import (
    Event,
    Finished,
    Listener,
    Notice,
    Planned,
    Progress,
    SectionDone,
    Text,
    ignore_progress,
)
from localctx.session.opening import introduce, read_all, sum_coverage, timed
from localctx.session.parts import Part, cut_parts, join_pages
from localctx.session.points import Point, accept, key_point, merge_groups, render, spread_pages
from localctx.session.prompts import document_messages, merge_task, rewrite_task
from localctx.session.reading import Reading
from localctx.session.strategy import Choice, choose_summarize, round_n_ctx
from localctx.settings import Settings
from localctx.values import Context, FinishReason, Model, Request, Sampling

__all__ = ["LENGTHS", "summarize", "wanted_points"]

LENGTHS = {"short": 5, "medium": 12, "long": 1 << 30}
WORDS_PER_POINT = 24
PART_TOKENS = 768
N_SEQ = 4
"""Parts decoded side by side."""
TASK_TOKENS = 256
"""Room for the task and a key sentence after a part."""
REWRITE_TOKENS = 96
WAVE = 32
"""Parts prepared at a time, so that the first is told soon and a long document's prompts are not all held."""
MAX_MERGED = 4
"""Points merged into one at a time."""


@dataclass(slots=True)
class _Run:
    """One summary on its way through the steps."""

    readings: list[Reading]
    model: Model
    settings: Settings
    listen: Listener
    focus: str | None
    n_points: int
    timings: Timings = field(default_factory=Timings)
    warnings: list[str] = field(default_factory=list)
    reasons: list[FinishReason] = field(default_factory=list)
    n_evaluated: int = 0
    n_generated: int = 0

    @property
    def n_tokens(self) -> int:
        return sum(reading.n_tokens for reading in self.readings)

    def count(self, done: Decoded) -> None:
        """Add one request's tokens and outcome. A rewrite that was cut off is not used: it cuts nothing."""
        self.n_evaluated += done.n_evaluated
        self.n_generated += done.n_generated
        self.reasons.append("cancelled" if done.finish_reason == "cancelled" else "stop")

    def request(self, fragments: Sequence[str], task: Sequence[str]) -> Request:
        """A greedy request; sampling settings of the run apply, except the length."""
        settings = self.settings
        prompt = self.model.prompt(document_messages(fragments, task))
        self.warnings.extend(prompt.notices)
        sampling = Sampling(
            temperature=settings.temp,
            top_p=settings.top_p,
            top_k=settings.top_k,
            min_p=settings.min_p,
            seed=settings.seed,
            max_tokens=min(REWRITE_TOKENS, settings.max_tokens),
        )
        return Request(prompt, sampling)


def wanted_points(length: str) -> int:
    """How many points a --length asks for: short, medium, long, or a number of words."""
    if length in LENGTHS:
        return LENGTHS[length]
    if not length.isdecimal() or int(length) == 0:
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
    readings = [Reading(document, ordinal) for ordinal, document in enumerate(documents)]
    run = _Run(readings, model, settings, listen, focus, wanted_points(length))
    for document in documents:
        run.warnings.extend(document.warnings)
    limit = model.usable_n_ctx(settings.ctx, N_SEQ)
    yield from introduce(readings, model)
    with timed(run.timings, "document_ms"):
        read_all(readings, model, listen)
    n_parts = -(-run.n_tokens // PART_TOKENS)
    tails = min(N_SEQ, n_parts) * (TASK_TOKENS + REWRITE_TOKENS)
    choice = choose_summarize(settings.strategy, run.n_tokens + tails, limit)
    n_seq = 1 if choice.strategy == "exact" else min(N_SEQ, n_parts)
    part_tokens, n_ctx = _sizes(run, choice, limit, n_seq, tails)
    parts = cut_parts(readings, part_tokens)
    yield Planned(choice.strategy, choice.why, run.n_tokens, n_ctx, len(parts))
    with timed(run.timings, "load_ms"):
        context = model.open_context(n_ctx, min(N_SEQ, max(1, len(parts))))
    try:
        yield from _write(run, choice, parts, context)
    finally:
        context.close()


def _sizes(run: _Run, choice: Choice, limit: int, n_seq: int, tails: int) -> tuple[int, int]:
    """(tokens of a part, context size): parts side by side in map-reduce, the whole document in exact."""
    if choice.strategy == "exact":
        return PART_TOKENS, run.settings.ctx or round_n_ctx(run.n_tokens + tails)
    room = limit // n_seq - TASK_TOKENS - REWRITE_TOKENS
    part_tokens = min(PART_TOKENS, room)
    if part_tokens < TASK_TOKENS:
        raise UsageError(
            f"a context of {limit:,} tokens is too small to summarise in parts",
            f"--ctx {n_seq * (2 * TASK_TOKENS + REWRITE_TOKENS)} or more",
        )
    return part_tokens, run.settings.ctx or round_n_ctx(n_seq * (part_tokens + TASK_TOKENS + REWRITE_TOKENS))


def _write(run: _Run, choice: Choice, parts: list[Part], context: Context) -> Iterator[Event]:
    """Map, reduce, and the text of the answer."""
    points, n_read = yield from _map(run, choice, parts, context)
    points = _reduce(run, points, context)
    lines: list[str] = []
    for line in render(points):
        lines.append(line)
        yield Text(line + "\n")
    said = " ".join(point.text for point in points)
    for claim in unsupported(said, _all_text(run), run.focus or ""):
        warning = f"not in the document: {claim.text}"
        run.warnings.append(warning)
        yield Notice(warning)
    yield Finished(_finished(run, choice, points, "\n".join(lines), n_read, context.n_ctx))


def _all_text(run: _Run) -> Iterator[str]:
    for reading in run.readings:
        yield from reading.document.text.stream()


def _map(
    run: _Run, choice: Choice, parts: Sequence[Part], context: Context
) -> Generator[Event, None, tuple[list[Point], list[int]]]:
    """One point a part, in order, told as they finish; and the tokens read of each document."""
    points: list[Point] = []
    n_read = [0] * len(run.readings)
    whole = _whole(run) if choice.strategy == "exact" else []
    for first in range(0, len(parts), WAVE):
        wave = parts[first : first + WAVE]
        keys = [key_point(part, run.focus) for part in wave]
        fragments = [_fragments(choice, part, key, whole) for part, key in zip(wave, keys, strict=True)]
        tasks = [rewrite_task(key.text, run.focus) for key in keys]
        requests = [run.request(texts, task) for texts, task in zip(fragments, tasks, strict=True)]
        finished: dict[int, Point] = {}
        for done in decode_many(context, requests, run.timings, ignore_progress):
            run.count(done)
            if done.finish_reason == "cancelled":
                return points, n_read
            finished[done.index] = accept(keys[done.index], done.text, done.finish_reason)
            n_read[wave[done.index].reading.ordinal] += _n_read(
                run, choice, wave[done.index], keys[done.index]
            )
            while len(points) - first in finished:
                point = finished[len(points) - first]
                points.append(point)
                run.listen(Progress("summarising", len(points), len(parts), "parts"))
                yield SectionDone(point.title, join_pages([point.pages]), point.text)
    return points, n_read


def _whole(run: _Run) -> list[str]:
    """Every document's text, for the exact strategy."""
    return [r.document.read(0, r.document.text.n_code_points) for r in run.readings]


def _fragments(choice: Choice, part: Part, key: Point, whole: Sequence[str]) -> Sequence[str]:
    """What the model reads for one part's point."""
    if choice.strategy == "exact":
        return whole
    return [key.text if choice.strategy == "condense" else part.reading.document.read(*part.span)]


def _n_read(run: _Run, choice: Choice, part: Part, key: Point) -> int:
    """Tokens of the document that the model read for the point."""
    if choice.strategy == "condense":
        return min(part.n_tokens, len(run.model.tokenize(key.text)))
    return part.n_tokens


def _reduce(run: _Run, points: list[Point], context: Context) -> list[Point]:
    """Merge neighbours, level by level, until the wanted number is left, or one for each section."""
    while len(points) > run.n_points and "cancelled" not in run.reasons:
        groups = merge_groups(points, run.n_points, MAX_MERGED, run.focus)
        if len(groups) == len(points):
            break
        requests, merged = [], {}
        for place, members in enumerate(groups):
            first = members[0]
            if len(members) > 1:
                texts = [point.text for point in members]
                requests.append((place, run.request(["\n".join(texts)], merge_task(texts))))
                first = replace(first, source_text="\n".join(texts), pages=spread_pages(members))
            merged[place] = first
        for done in decode_many(context, [request for _, request in requests], run.timings, run.listen):
            run.count(done)
            place = requests[done.index][0]
            merged[place] = accept(merged[place], done.text, done.finish_reason)
        points = [merged[place] for place in range(len(groups))]
    return points


def _finished(
    run: _Run, choice: Choice, points: Sequence[Point], text: str, n_read: Sequence[int], n_ctx: int
) -> Answer:
    coverages = [reading.coverage(n, n) for reading, n in zip(run.readings, n_read, strict=True)]
    coverage, documents = sum_coverage([r.document for r in run.readings], coverages)
    return Answer(
        command="summarize",
        text=text,
        strategy=choice.strategy,
        support="supported" if points else "none",
        finish_reason=join_finish_reasons(run.reasons),
        model=run.model.info,
        n_ctx=n_ctx,
        coverage=coverage,
        question=run.focus,
        citations=tuple(point.citation for point in points),
        documents=documents,
        tokens=TokenCounts(evaluated=run.n_evaluated, generated=run.n_generated),
        timings=run.timings,
        warnings=tuple(dict.fromkeys(run.warnings)),
    )
