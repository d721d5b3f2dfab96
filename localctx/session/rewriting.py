"""The model's part of a summary: key sentences said shorter with their part in the context, points merged.

Every prompt fits the share of the context that a sequence has: what is put in is cut by tokens first. What
the model words is used only where points.accept() finds it whole and faithful.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import dataclass, replace

from localctx.errors import LocalctxError
from localctx.session.condense import condense
from localctx.session.decoding import decode_many
from localctx.session.events import Event, Progress, SectionDone
from localctx.session.opening import tokenizer_of
from localctx.session.parts import Part, join_pages
from localctx.session.points import Point, accept, best_cited, key_point, merge_groups, spread_pages
from localctx.session.prompts import document_messages, merge_task, rewrite_task
from localctx.session.run import Run
from localctx.values import Context, Model, Request, Strategy

__all__ = ["KEY_TOKENS", "MAX_MERGED", "REWRITE_TOKENS", "Rewriter", "clipped", "task_tokens"]

KEY_TOKENS = 160
"""A key sentence's share of its prompt; a longer one is cut there for the model, not in the summary."""
REWRITE_TOKENS = 96
WAVE = 32
"""Parts prepared at a time, so that the first is told soon and a long document's prompts are not all held."""
MAX_MERGED = 4
"""Points merged into one at a time."""


def task_tokens(run: Run, focus: str | None) -> int:
    """What a sequence needs besides its part: scaffold, task, key sentence and rewrite."""
    scaffold = run.model.prompt(document_messages([""], rewrite_task("", focus)))
    return len(scaffold.tokens) + KEY_TOKENS + REWRITE_TOKENS


def clipped(model: Model, text: str, n_tokens: int) -> str:
    """The beginning of a text that has at most n_tokens, cut at white space where there is some."""
    while text and (n := len(model.tokenize(text))) > n_tokens:
        text = text[: max(1, len(text) * n_tokens // n) if len(text) > 1 else 0]
        text = text.rpartition(" ")[0] or text[:-1]
    return text


@dataclass(slots=True)
class Rewriter:
    """Words the points of one summary. context: None where nothing is to be worded any more · n_read: tokens
    read of each document, as far as it got · is_verbatim: of points that are merged the leader is kept, and
    only the last ones are worded.
    """

    run: Run
    context: Context | None
    strategy: Strategy
    focus: str | None
    n_read: list[int]
    is_cancelled: bool = False
    is_verbatim: bool = False

    def map(self, parts: Sequence[Part]) -> Generator[Event, None, list[Point]]:
        """One point a part, in order, told as they finish; fewer when cancelled."""
        run, context = self.run, self._context
        points: list[Point] = []
        whole: list[str] = []
        if self.strategy == "exact":  # elsewhere a text of any size is read part by part
            whole = [r.document.read(0, r.document.text.n_code_points) for r in run.readings]
        for first in range(0, len(parts), WAVE):
            wave = parts[first : first + WAVE]
            keys = [key_point(part, self.focus) for part in wave]
            asked = [self._request(part, key, whole) for part, key in zip(wave, keys, strict=True)]
            requests = [request for request, _ in asked]
            finished: dict[int, Point] = {}
            for done in decode_many(context, requests, run.timings, run.started):
                run.count(done)
                if done.finish_reason == "cancelled":
                    self.is_cancelled = True
                    return points
                part, key = wave[done.index], keys[done.index]
                finished[done.index] = accept(key, done.text, done.finish_reason)
                self.n_read[part.reading.ordinal] += asked[done.index][1]
                while len(points) - first in finished:
                    point = finished[len(points) - first]
                    points.append(point)
                    run.listen(Progress("summarising", len(points), len(parts), "parts"))
                    yield SectionDone(point.title, join_pages([point.pages]), point.text)
        return points

    @property
    def _context(self) -> Context:
        if self.context is None:
            raise LocalctxError("no context to word points in")
        return self.context

    def _request(self, part: Part, key: Point, whole: Sequence[str]) -> tuple[Request, int]:
        """The request for a part's point, and the tokens of the document that it reads."""
        sentence = clipped(self.run.model, key.text, KEY_TOKENS)
        fragments, n_read = whole, part.n_tokens
        if self.strategy != "exact":
            text, n_read = self._text(part, sentence)
            fragments = [text]
        messages = document_messages(fragments, rewrite_task(sentence, self.focus))
        return self.run.request(messages, REWRITE_TOKENS), n_read

    def _text(self, part: Part, sentence: str) -> tuple[str, int]:
        """What stands for a part: all of it, its share of the token budget, or its key sentence alone."""
        run, document = self.run, part.reading.document
        budget = run.settings.cache.budget
        if budget is not None and budget < run.n_tokens:
            share = max(KEY_TOKENS, budget * part.n_tokens // run.n_tokens)
            left = condense(
                document.text,
                tokenizer_of(run.model),
                share,
                question=self.focus,
                language=document.language,
                span=part.span,
            )
            return left.text, min(part.n_tokens, left.n_tokens)
        if self.strategy == "condense":
            return sentence, min(part.n_tokens, KEY_TOKENS, len(run.model.tokenize(sentence)))
        return document.read(*part.span), part.n_tokens

    def reduce(self, points: list[Point], n_wanted: int) -> list[Point]:
        """Merge neighbours, level by level, until the wanted number is left, or one for each section."""
        while len(points) > n_wanted and not self.is_cancelled:
            groups = merge_groups(points, n_wanted, MAX_MERGED, self.focus)
            if len(groups) == len(points):
                break
            led = [_leader(members) for members in groups]
            is_led = self.context is None or (self.is_verbatim and self._can_merge(led, n_wanted))
            points = led if is_led else self._merge(groups)
        return points

    def _can_merge(self, points: Sequence[Point], n_wanted: int) -> bool:
        """Whether there is a level above these points."""
        if len(points) <= n_wanted:
            return False
        return len(merge_groups(points, n_wanted, MAX_MERGED, self.focus)) < len(points)

    def _merge(self, groups: Sequence[Sequence[Point]]) -> list[Point]:
        """One point a group: its leader, or what the model words of all its members."""
        run = self.run
        merged = [members[0] for members in groups]
        requests: list[Request] = []
        places: list[int] = []
        for place, members in enumerate(groups):
            if len(members) > 1:
                texts = [clipped(run.model, point.text, KEY_TOKENS) for point in members]
                merged[place] = replace(members[0], source_text="\n".join(texts), pages=spread_pages(members))
                messages = document_messages(["\n".join(texts)], merge_task(self.focus))
                requests.append(run.request(messages, REWRITE_TOKENS))
                places.append(place)
        for done in decode_many(self._context, requests, run.timings, run.started):
            run.count(done)
            self.is_cancelled |= done.finish_reason == "cancelled"
            place = places[done.index]
            point = accept(merged[place], done.text, done.finish_reason)
            merged[place] = best_cited(point, groups[place])
        return merged


def _leader(members: Sequence[Point]) -> Point:
    """The first of the points, for all of them."""
    return replace(members[0], pages=spread_pages(members)) if len(members) > 1 else members[0]
