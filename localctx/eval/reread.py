"""Which stored tokens are evaluated again, by three rules, at the same number of tokens. A leaf.

Four confusable passages, each led by its header line, from stored KV. A share of their tokens is evaluated
again in place: `words`, as `ask` chooses them (the sentences that share the question's words, first those of
the passage that it singles out); `heads`, the sentences that the model's retrieval heads find; `deviation`,
the tokens whose stored KV differs most from that of the same text evaluated in one go, at an early layer
(CacheBlend, arXiv 2405.16444). That one is given the exact KV; what it would cost to have it is not counted.

    python -m localctx.eval.reread [--documents 6] [--questions 8] [--shares 5,10,15,25] [--layer 1]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.assemble import RefreshCandidate
from localctx.bench.program import run_as_program
from localctx.errors import NotComposable
from localctx.eval.rows_told import told
from localctx.from_settings import ChosenModel, choose_model, open_model_for
from localctx.index.landmarks import HeadSet
from localctx.kv import KVContext
from localctx.selection.landmarks import NEUTRAL_QUESTIONS, landmark_scores, shared_lead
from localctx.session.frame import frame_of
from localctx.session.prompts import question_task
from localctx.settings import Settings
from localctx.verify.confusable import KINDS, Chapter, Shape, make_document, words
from localctx.verify.gate import probe_text
from localctx.verify.heads import HeadModel
from localctx.verify.questions import RULES, Asker, Mode, StoredDocument, store_document

__all__ = ["ARMS", "Tried", "Wanted", "distance", "measure", "render"]

ARMS = ("words", "heads", "deviation")
BOUND, NOTHING = "re-prefill", "nothing"
SHAPE = Shape(n_filler=100, n_passage=128, n_chapters=8)
N_CTX = 8192
WINDOW = 4096
DOCUMENT = 0


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of each document the first n_questions chapters are asked about, among n_passages. layer: whose KV is
    compared, counted from 0.
    """

    n_documents: int = 6
    n_questions: int = 8
    n_passages: int = 4
    shares: tuple[float, ...] = (0.05, 0.10, 0.15, 0.25)
    layer: int = 1
    seed: int = 0
    shape: Shape = SHAPE


@dataclass(frozen=True, slots=True)
class Tried:
    """One question by one rule at one share. n_evaluated: tokens before the answer's first one."""

    document: int
    asked: str
    arm: str
    share: float
    is_right: bool
    n_evaluated: int


def measure(settings: Settings, chosen: ChosenModel, wanted: Wanted) -> Iterator[Tried]:
    """Every answer as soon as it is there; a question by all rules before the next one. Raises NotComposable
    for a model whose KV cannot be stored, or whose retrieval heads are not known.
    """
    with closing(open_model_for(settings, chosen)) as model:
        refusal = model.kv_refusal() if isinstance(model, HeadModel) else "it has no KV to store"
        if refusal is not None or not isinstance(model, HeadModel):
            raise NotComposable(f"{chosen.name}: {refusal}", "take another --model")
        with closing(model.open_kv_context(min(model.usable_n_ctx(), N_CTX))) as context:
            one = _Examiner(model, context, Asker(model, context), _Heads(model), wanted)
            haystack = words(probe_text(), model.tokenize)
            for number in range(wanted.seed, wanted.seed + wanted.n_documents):
                yield from one.examine(number, haystack)


@dataclass(frozen=True, slots=True)
class _Examiner:
    """Asks of one document after the other."""

    model: HeadModel
    context: KVContext
    asker: Asker
    heads: _Heads
    wanted: Wanted

    def examine(self, number: int, haystack: Sequence[tuple[str, tuple[int, ...]]]) -> Iterator[Tried]:
        """All questions about a document, by all rules."""
        wanted = self.wanted
        document = make_document(number, haystack, self.model.tokenize, KINDS["city"], wanted.shape)
        stored = store_document(self.context, self.asker.prefix, document, WINDOW, "f16")
        source = random.Random(number)  # noqa: S311  # reproducible, not secret
        for asked in document.chapters[: wanted.n_questions]:
            others = [chapter for chapter in document.chapters if chapter is not asked]
            chosen = [asked, *source.sample(others, wanted.n_passages - 1)]
            attended = sorted(chosen, key=lambda chapter: chapter.first)

            def tried(
                arm: str,
                mode: Mode,
                found: Sequence[RefreshCandidate] | None = None,
                asked: Chapter = asked,
                attended: Sequence[Chapter] = attended,
            ) -> Tried:
                outcome = self.asker.ask(document, stored, attended, asked, mode, found)
                return Tried(number, asked.name, arm, mode.refresh, outcome.is_right, outcome.n_evaluated)

            yield tried(BOUND, Mode(BOUND, source="text"))
            candidates = {"deviation": self._by_deviation(stored, attended)}
            by_words = RULES["named"](attended, asked, self.model)
            candidates |= {"words": by_words, "heads": self.heads.rescored(by_words, stored, asked.question)}
            yield tried(NOTHING, Mode(NOTHING))
            for share in wanted.shares:
                for arm in ARMS:
                    yield tried(arm, Mode(arm, refresh=share), candidates[arm])

    def _by_deviation(self, stored: StoredDocument, attended: Sequence[Chapter]) -> list[RefreshCandidate]:
        """Each token by how far its stored KV is from that in the context, which holds the text evaluated."""
        found = []
        at, layer = len(self.asker.prefix), self.wanted.layer
        for chapter in attended:
            at += len(self.model.tokenize(chapter.header, False))
            n_tokens = chapter.end - chapter.first
            exact = self.context.export(at, at + n_tokens)
            keys = self.context.rope_table.turn(exact.keys(layer), exact.positions, inverse=True)
            stored_keys, stored_values = _rows(stored, chapter, layer)
            far = distance(keys, stored_keys) + distance(exact.values(layer), stored_values)
            found += [
                RefreshCandidate(DOCUMENT, chapter.first + n, chapter.first + n + 1, float(value))
                for n, value in enumerate(far)
            ]
            at += n_tokens
        return found


def _rows(
    stored: StoredDocument, chapter: Chapter, layer: int
) -> tuple[NDArray[np.float16], NDArray[np.float16]]:
    """The stored keys, un-rotated, and values of a passage's tokens at a layer: [n_tokens, row elements]."""
    rows = list(stored.rows(chapter.first, chapter.end))
    keys = [run.keys(layer)[row : row + n] for run, row, n in rows]
    values = [run.values(layer)[row : row + n] for run, row, n in rows]
    return np.concatenate(keys), np.concatenate(values)


def distance(exact: NDArray[np.float16], kept: NDArray[np.float16]) -> NDArray[np.float32]:
    """Of each token, the squared distance, as a share of the mean squared length."""
    one, other = exact.astype(np.float32), kept.astype(np.float32)
    distance: NDArray[np.float32] = ((one - other) ** 2).sum(axis=1) / (one**2).sum(axis=1).mean()
    return distance


class _Heads:
    """Scores spans of stored tokens by what the model's retrieval heads find there for a question."""

    def __init__(self, model: HeadModel) -> None:
        known = HeadSet.of(model.queries.known_heads, model.queries.heads)
        if known is None:
            raise NotComposable(
                f"{model.info.name}: its retrieval heads are not known", "localctx verify looks for them"
            )
        self._model, self._heads = model, known
        self._neutral = [self._queries(text) for text in NEUTRAL_QUESTIONS]

    def rescored(
        self, spans: Sequence[RefreshCandidate], stored: StoredDocument, question: str
    ) -> list[RefreshCandidate]:
        """The same spans, with the heads' scores."""
        head_dim = self._neutral[0][1].shape[2]
        unturned = _native.Rope(np.empty(0, np.float64), head_dim, neox=False)  # runs are un-rotated already
        parts = [
            _native.scan_encode(run, row, n_tokens, unturned, self._heads.pairs)
            for span in spans
            for run, row, n_tokens in stored.rows(span.start, span.end)
        ]
        starts = np.cumsum([0, *(span.n_tokens for span in spans)])
        codes = np.concatenate([codes for codes, _ in parts])
        scales = np.concatenate([scales for _, scales in parts])
        asked = self._queries(question)
        lead = shared_lead([tokens for tokens, _ in (asked, *self._neutral)])
        found, *neutral = [
            self._heads.per_head(
                _native.scan(codes, scales, self._heads.by_pair(rows[lead:]), starts.astype(np.int64))
            )
            for _, rows in (asked, *self._neutral)
        ]
        scores = landmark_scores(found, neutral).values
        return [replace(span, score=value) for span, value in zip(spans, scores, strict=True)]

    def _queries(self, question: str) -> tuple[Sequence[int], NDArray[np.float32]]:
        frame = frame_of(self._model, question_task(question))
        if frame is None:
            raise ValueError("the chat template does not say where documents stand")
        tokens = [*frame.prefix, *frame.suffix]
        return frame.suffix, self._model.queries.capture(tokens, self._heads.heads)[len(frame.prefix) :]


def render(tried: Sequence[Tried], shares: Sequence[float]) -> str:
    """A table in Markdown, of the questions that were asked in every way."""
    ways = [(BOUND, 0.0), (NOTHING, 0.0), *((arm, share) for arm in ARMS for share in shares)]
    by_way = {way: {(t.document, t.asked): t for t in tried if (t.arm, t.share) == way} for way in ways}
    complete = set.intersection(*map(set, by_way.values()))
    percent = [f"{share:.0%}" for share in shares]
    lines = ["| evaluated again | " + " | ".join(percent) + " |", "|---" * (1 + len(shares)) + "|"]
    for arm in ARMS:
        cells = [_cell([by_way[arm, share][key] for key in complete]) for share in shares]
        lines.append(f"| {arm} | " + " | ".join(cells) + " |")
    beside = (f"{name}: {_cell([by_way[name, 0.0][key] for key in complete])}" for name in (BOUND, NOTHING))
    return "\n".join([*lines, "", "; ".join(beside)])


def _cell(found: Sequence[Tried]) -> str:
    n_evaluated = sum(one.n_evaluated for one in found) / max(1, len(found))
    return f"{sum(one.is_right for one in found)} of {len(found)} ({n_evaluated:,.0f})"


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.reread")
    parser.add_argument("--documents", type=int, default=6)
    parser.add_argument("--questions", type=int, default=8, help="of each document, at most 8")
    parser.add_argument("--passages", type=int, default=4)
    parser.add_argument("--shares", default="5,10,15,25", help="percent of the passages' tokens")
    parser.add_argument("--layer", type=int, default=1, help="whose KV is compared, counted from 0")
    parser.add_argument("--seed", type=int, default=0, help="of the first document")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--model")
    parser.add_argument("--json", action="store_true", help="a line of JSON an answer, as it is found")
    given = parser.parse_args(arguments)
    settings, chosen = choose_model({"model": given.model, "store": "off", "threads": given.threads})
    shares = tuple(float(share) / 100 for share in given.shares.split(","))
    wanted = Wanted(given.documents, given.questions, given.passages, shares, given.layer, given.seed)
    tried = told(measure(settings, chosen, wanted), as_json=given.json)
    if not given.json:
        sys.stdout.write(render(tried, shares) + "\n")


if __name__ == "__main__":
    run_as_program(main)
