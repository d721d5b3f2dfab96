"""Questions on confusable chapters, answered from stored KV in several ways and by reading the text again.

Knows a context and a document's tokens; counts right answers against tokens evaluated. Passages are given,
not selected: what is measured is the KV that they are attended from.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from localctx import _native
from localctx.assemble import (
    Budget,
    Layout,
    NewTokens,
    Piece,
    RefreshCandidate,
    StoredTokens,
    apply,
    lay_out,
    pick_refresh,
)
from localctx.kv import KVChunk, KVContext, PrefillPolicy
from localctx.session.cache import PREFIX_CODEC
from localctx.session.frame import Frame, frame_of
from localctx.session.pointing import pointed_sentences
from localctx.session.prompts import question_task
from localctx.session.reading import Passage
from localctx.values import Model, Request, Sampling
from localctx.verify.confusable import Chapter, ConfusableDocument

__all__ = ["RULES", "Asker", "Mode", "Outcome", "StoredDocument", "store_document"]

MAX_ANSWER_TOKENS = 24
DOCUMENT = 0

Rule: TypeAlias = Callable[["Sequence[Chapter]", "Chapter", Model], list[RefreshCandidate]]
"""(attended chapters, the one asked about, model) → what may be evaluated again, scored."""


@dataclass(frozen=True, slots=True)
class Mode:
    """How the passages come into the context.

    source: "text" evaluates all of them · headers: each is led by its header line, always evaluated · window:
    local tokens during prefill, 0 for passages that saw nothing else · refresh: share of the passages' tokens
    evaluated again · rule: which of them.
    """

    name: str
    source: Literal["text", "stored"] = "stored"
    headers: bool = True
    window: int = 4096
    codec: str = "f16"
    refresh: float = 0.0
    rule: str = "named"


@dataclass(frozen=True, slots=True)
class Outcome:
    """is_right: the right number is in the answer, no other is · n_evaluated: tokens before its start."""

    is_right: bool
    n_evaluated: int
    n_tokens: int
    answer: str


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """Runs of one document under one policy and codec; `starts` are their first tokens."""

    starts: tuple[int, ...]
    runs: tuple[_native.Run, ...]

    def run_of(self, token: int) -> tuple[_native.Run, int]:
        """The run that holds the token, and its row."""
        place = bisect_right(self.starts, token) - 1
        return self.runs[place], token - self.starts[place]

    def rows(self, first: int, end: int) -> Iterator[tuple[_native.Run, int, int]]:
        """(run, its first row, rows) of the tokens [first, end), run by run."""
        while first < end:
            run, row = self.run_of(first)
            n_tokens = min(end - first, run.n_tokens - row)
            yield run, row, n_tokens
            first += n_tokens


def store_document(
    context: KVContext, prefix: Sequence[int], document: ConfusableDocument, window: int, codec: str
) -> StoredDocument:
    """Prefill the document; each passage is a unit of its own where the window is 0."""
    policy = PrefillPolicy("window", window) if window else PrefillPolicy("independent")
    edges = {0, *(edge for chapter in document.chapters for edge in (chapter.first, chapter.end))}
    units = sorted(edge for edge in edges if edge < len(document.tokens)) if not window else ()
    return _store(context, prefix, document.tokens, policy, codec, units)


def _store(
    context: KVContext,
    prefix: Sequence[int],
    tokens: Sequence[int],
    policy: PrefillPolicy,
    codec: str,
    units: Sequence[int] = (),
) -> StoredDocument:
    """Prefill tokens behind the prefix; each chunk becomes a run."""
    starts: list[int] = []
    runs: list[_native.Run] = []

    def keep(chunk: KVChunk) -> None:
        starts.append(chunk.first)
        runs.append(_native.Run(_native.encode(chunk.state, 0, chunk.n_tokens, chunk.rope, codec)))

    context.stream(prefix, tokens, policy, keep, units=units)
    return StoredDocument(tuple(starts), tuple(runs))


class Asker:
    """Asks in one context. `prefix`: the tokens before every document."""

    def __init__(self, model: Model, context: KVContext) -> None:
        self._model = model
        self._context = context
        self.prefix = self._frame("a question").prefix
        self._prefix_runs = _store(context, (), self.prefix, PrefillPolicy("exact"), PREFIX_CODEC)

    def _frame(self, question: str) -> Frame:
        frame = frame_of(self._model, question_task(question))
        if frame is None:
            raise ValueError("the chat template does not say where documents stand")
        return frame

    def ask(
        self,
        document: ConfusableDocument,
        stored: StoredDocument | None,
        attended: Sequence[Chapter],
        asked: Chapter,
        mode: Mode,
        candidates: Sequence[RefreshCandidate] | None = None,
    ) -> Outcome:
        """The answer to the question about `asked`, from the attended chapters' passages. `candidates`: what
        may be evaluated again, scored; default: by the mode's rule.
        """
        frame = self._frame(asked.question)
        if candidates is None and mode.refresh:
            candidates = RULES[mode.rule](attended, asked, self._model)
        layout = self._layout(document, attended, candidates or (), mode, frame)
        n_placed = 0
        if mode.source == "stored" and stored is not None:
            n_placed = apply(
                self._context,
                layout,
                lambda which, token: (self._prefix_runs if which is None else stored).run_of(token),
            )
        prompt = frame.prompt(layout.tokens[len(frame.prefix) :])
        request = Request(prompt, Sampling(max_tokens=MAX_ANSWER_TOKENS))
        pieces = list(self._context.generate([request]))
        answer = "".join(piece.text for piece in pieces)
        others = (chapter.answer for chapter in attended if chapter is not asked)
        is_right = asked.answer in answer and not any(other in answer for other in others)
        n_evaluated = n_placed + pieces[-1].n_evaluated
        return Outcome(is_right, n_evaluated, len(prompt.tokens), answer)

    def _layout(
        self,
        document: ConfusableDocument,
        attended: Sequence[Chapter],
        candidates: Sequence[RefreshCandidate],
        mode: Mode,
        frame: Frame,
    ) -> Layout:
        n_passages = sum(chapter.end - chapter.first for chapter in attended)
        picked = pick_refresh(candidates, round(mode.refresh * n_passages))
        spans = tuple((candidate.start, candidate.end) for candidate in picked)
        pieces: list[Piece] = []
        for chapter in attended:
            if mode.headers:
                pieces.append(NewTokens(tuple(self._model.tokenize(chapter.header, False))))
            tokens = document.tokens[chapter.first : chapter.end]
            pieces.append(
                NewTokens(tokens)
                if mode.source == "text"
                else StoredTokens(DOCUMENT, chapter.first, tokens, spans)
            )
        budget = Budget(self._context.n_ctx, len(frame.prefix), len(frame.suffix), MAX_ANSWER_TOKENS)
        return lay_out(frame.prefix, pieces, budget)


# --- which tokens are evaluated again -----------------------------------------------------------------------


def _passages(attended: Sequence[Chapter], *, with_header: bool) -> list[Passage]:
    """The chapters' passages as a session sees them."""
    return [
        Passage(
            document=DOCUMENT,
            start=1,
            end=1 + len(chapter.text),
            text=chapter.text,
            n_tokens=chapter.end - chapter.first,
            source=chapter.header.strip("[]\n") if with_header else "",
            page=None,
            page_label=None,
            heading_path=(),
            first_token=chapter.first,
        )
        for chapter in attended
    ]


def _named(attended: Sequence[Chapter], asked: Chapter, model: Model) -> list[RefreshCandidate]:
    """What the product does."""
    return pointed_sentences(_passages(attended, with_header=True), asked.question, model.tokenize)


def _sentences(attended: Sequence[Chapter], asked: Chapter, model: Model) -> list[RefreshCandidate]:
    """Sentences by the question's words, whatever stands in the header lines."""
    return pointed_sentences(_passages(attended, with_header=False), asked.question, model.tokenize)


def _first_tokens(attended: Sequence[Chapter], _: Chapter, __: Model) -> list[RefreshCandidate]:
    """The beginning of each passage: what is done to hide seams."""
    return [
        RefreshCandidate(DOCUMENT, start, min(start + 8, chapter.end), float(chapter.first - start))
        for chapter in attended
        for start in range(chapter.first, chapter.end, 8)
    ]


RULES: dict[str, Rule] = {"first": _first_tokens, "named": _named, "sentences": _sentences}
