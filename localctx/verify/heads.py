"""Which query heads of a model find what a question asks for, from facts planted in prose; and how well
they do.

The facts are split: heads are chosen by one half and judged by the other. Knows no terminal and no store.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.engine.query_capture import QueryModel
from localctx.index import LexicalIndex
from localctx.index.landmarks import HeadSet
from localctx.kv import RUN_TOKENS, KVChunk, PrefillPolicy
from localctx.selection.fuse import fuse
from localctx.selection.landmarks import (
    NEUTRAL_QUESTIONS,
    head_scores,
    positive_mean,
    shared_lead,
)
from localctx.session.frame import frame_of
from localctx.session.prompts import question_task
from localctx.values import Block, Scores, Tokenizer
from localctx.verify.model import GateModel
from localctx.verify.probes import KINDS, PROBES, Probe

__all__ = ["HeadModel", "HeadReport", "Planted", "all_heads", "find_heads", "plant"]

MAX_HEADS = 8
BETWEEN_TOKENS = 250
"""Prose between one fact and the next, about."""
PASSAGE_TOKENS = 128
WINDOW = 4096
CHUNK_TOKENS = 1024
SELECTORS = ("lexical", "landmarks", "lexical+landmarks")
MIN_RECALL = 0.5
"""Of the right passage among the first four, over all questions judged: below it, a model has no such
heads.
"""

Tell = Callable[[str, int, int], None]


@runtime_checkable
class HeadModel(GateModel, QueryModel, Protocol):
    """A model whose KV moves, and that shows its queries."""


@dataclass(frozen=True, slots=True)
class Planted:
    """A document in passages: their texts and first tokens (and the end), and the passages of each probe's
    fact.
    """

    tokens: tuple[int, ...]
    texts: tuple[str, ...]
    starts: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class HeadReport:
    """heads: (layer, query head), the best first; none where they do not do · bytes_per_token: of their
    column · recall: {selector: {kind of question: [share right first, among the first four]}}, of `n`
    facts judged.
    """

    heads: tuple[tuple[int, int], ...] = ()
    bytes_per_token: int = 0
    n: int = 0
    n_passages: int = 0
    recall: dict[str, dict[str, list[float]]] = field(default_factory=dict)

    @property
    def fact(self) -> dict[str, Any]:
        """What is kept with the model."""
        return {"heads": [list(head) for head in self.heads], "recall": self.recall, "n": self.n}

    def to_json(self) -> dict[str, Any]:
        """The same with what its column takes."""
        return {**self.fact, "n_passages": self.n_passages, "bytes_per_token": self.bytes_per_token}


def plant(text: str, probes: Sequence[Probe], tokenize: Tokenizer, seed: int = 5) -> Planted:
    """The probes' facts in random order between sentences of `text`, cut into passages of whole sentences.

    Raises ValueError when the text is too short.
    """
    source = random.Random(seed)  # noqa: S311  # reproducible, not secret
    sentences = iter(re.findall(r"\s+[^.!?]+[.!?]+(?=\s)", text))  # their tokens are those of the text
    order = list(range(len(probes)))
    source.shuffle(order)
    passages = _Passages(tokenize)
    places = [0] * len(probes)
    for number in order:
        passages.add_prose(sentences, source.randrange(BETWEEN_TOKENS * 3 // 4, BETWEEN_TOKENS * 5 // 4))
        places[number] = passages.add(" " + probes[number].fact)
    passages.add_prose(sentences, PASSAGE_TOKENS)
    starts = (*passages.starts, len(passages.tokens))
    return Planted(tuple(passages.tokens), tuple(map("".join, passages.texts)), starts, tuple(places))


class _Passages:
    """The document so far."""

    def __init__(self, tokenize: Tokenizer) -> None:
        self._tokenize = tokenize
        self.tokens: list[int] = []
        self.texts: list[list[str]] = []
        self.starts: list[int] = []

    def add(self, sentence: str) -> int:
        """Append a sentence; the passage that it is in."""
        tokens = self._tokenize(sentence, not self.tokens)
        if not self.starts or len(self.tokens) + len(tokens) > self.starts[-1] + PASSAGE_TOKENS:
            self.starts.append(len(self.tokens))
            self.texts.append([])
        self.tokens += tokens
        self.texts[-1].append(sentence)
        return len(self.starts) - 1

    def add_prose(self, sentences: Any, n_tokens: int) -> None:
        """Append sentences of n_tokens or a few more."""
        end = len(self.tokens) + n_tokens
        while len(self.tokens) < end:
            sentence = next(sentences, None)
            if sentence is None:
                raise ValueError("the text is too short for the facts")
            self.add(sentence)


def find_heads(
    model: HeadModel, text: str, probes: Sequence[Probe] = PROBES, tell: Tell = lambda what, done, total: None
) -> HeadReport:
    """Choose by every other fact, judge by the rest. Raises ValueError for a short text, and what the
    engine does.
    """
    planted = plant(text, probes, model.tokenize)
    every = all_heads(model)
    column = _column(model, planted, every)
    scores = _Asker(model, every, column, planted.starts).ask_all(probes, tell)
    chosen = _chosen(every, scores, planted)
    judged = range(1, len(probes), 2)
    recall = _judge(chosen, scores, planted, probes, judged)
    found = HeadSet(
        tuple(every.heads[head] for head in chosen), tuple(every.kv_heads[head] for head in chosen)
    )
    n_bytes = found.bytes_per_token(column[0].shape[2])
    is_good = float(np.mean([recall["landmarks"][kind][1] for kind in KINDS])) >= MIN_RECALL
    return HeadReport(found.heads if is_good else (), n_bytes, len(judged), len(planted.texts), recall)


def all_heads(model: QueryModel) -> HeadSet:
    """Every query head of a model."""
    heads, kv_heads = [], []
    for layer, (n_query, n_kv) in enumerate(model.queries.heads):
        for head in range(n_query):
            heads.append((layer, head))
            kv_heads.append(head // (n_query // n_kv))
    return HeadSet(tuple(heads), tuple(kv_heads))


def _column(
    model: HeadModel, planted: Planted, heads: HeadSet
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """The document's keys of all KV heads, as they are kept for scanning."""
    frame = frame_of(model, question_task("a question"))
    prefix = frame.prefix if frame is not None else ()
    n_ctx = min(model.usable_n_ctx(), len(prefix) + WINDOW + CHUNK_TOKENS)
    window = min(WINDOW, max(RUN_TOKENS, (n_ctx - len(prefix)) // 2 // RUN_TOKENS * RUN_TOKENS))
    parts: list[tuple[NDArray[np.int8], NDArray[np.float32]]] = []

    def keep(chunk: KVChunk) -> None:
        parts.append(_native.scan_encode(chunk.state, 0, chunk.n_tokens, chunk.rope, heads.pairs))

    context = model.open_kv_context(n_ctx)
    try:
        context.stream(prefix, planted.tokens, PrefillPolicy("window", window), keep)
    finally:
        context.close()
    return np.concatenate([codes for codes, _ in parts]), np.concatenate([scales for _, scales in parts])


class _Asker:
    """Asks questions of all heads."""

    def __init__(
        self,
        model: HeadModel,
        heads: HeadSet,
        column: tuple[NDArray[np.int8], NDArray[np.float32]],
        starts: Sequence[int],
    ) -> None:
        self._model, self._heads, self._column = model, heads, column
        self._starts = np.array(starts, np.int64)

    def ask_all(self, probes: Sequence[Probe], tell: Tell) -> dict[str, list[NDArray[np.float32]]]:
        """Of each kind, each probe's scores [n_heads, n_passages]."""
        frames = [self._tokens(question) for question in NEUTRAL_QUESTIONS]
        lead = shared_lead([suffix for _, suffix in frames])
        neutral = [self._matches(prefix, suffix, lead) for prefix, suffix in frames]
        scores: dict[str, list[NDArray[np.float32]]] = {}
        for place, kind in enumerate(KINDS):
            scores[kind] = []
            for number, probe in enumerate(probes):
                found = self._matches(*self._tokens(probe.question(kind)), lead)
                scores[kind].append(head_scores(found, neutral))
                tell("looking for retrieval heads", place * len(probes) + number + 1, 2 * len(probes))
        return scores

    def _tokens(self, question: str) -> tuple[Sequence[int], Sequence[int]]:
        frame = frame_of(self._model, question_task(question))
        if frame is None:
            raise ValueError("the chat template does not say where documents stand")
        return frame.prefix, frame.suffix

    def _matches(self, prefix: Sequence[int], suffix: Sequence[int], lead: int) -> NDArray[np.float32]:
        queries = self._model.queries.capture([*prefix, *suffix], self._heads.heads)[len(prefix) + lead :]
        return self._heads.per_head(_native.scan(*self._column, self._heads.by_pair(queries), self._starts))


def _rank(values: NDArray[Any], place: int) -> int:
    """How many passages score as well as the right one, or better; all of them where it has no evidence."""
    return int((np.delete(values, place) >= values[place]).sum()) if values[place] > 0 else len(values)


def _chosen(every: HeadSet, scores: dict[str, list[NDArray[np.float32]]], planted: Planted) -> list[int]:
    """The MAX_HEADS query heads that rank the facts of the choosing half best.

    One by one: putting a set together step by step fits the few facts and is judged worse.
    """
    gained = np.zeros(len(every.heads))
    for kind in KINDS:
        for number in range(0, len(planted.places), 2):
            for head, values in enumerate(scores[kind][number]):
                gained[head] += 1 / (1 + _rank(values, planted.places[number]))
    return [int(head) for head in np.argsort(-gained, kind="stable")[:MAX_HEADS]]


def _judge(
    chosen: Sequence[int],
    scores: dict[str, list[NDArray[np.float32]]],
    planted: Planted,
    probes: Sequence[Probe],
    judged: range,
) -> dict[str, dict[str, list[float]]]:
    """Recall of the right passage at 1 and 4, by words, by the chosen heads, and by both."""
    recall: dict[str, dict[str, list[float]]] = {name: {} for name in SELECTORS}
    blocks = (Block(i, 0, len(text), text, (), "limit") for i, text in enumerate(planted.texts))
    with LexicalIndex.build(blocks) as index:
        for kind in KINDS:
            ranks: dict[str, list[int]] = {name: [] for name in SELECTORS}
            for number in judged:
                words = index.scores(probes[number].question(kind))
                heads = Scores("landmarks", positive_mean(scores[kind][number][list(chosen)]))
                for name, opinion in zip(SELECTORS, (words, heads, fuse([words, heads])), strict=True):
                    ranks[name].append(_rank(np.array(opinion.values), planted.places[number]))
            for name, found in ranks.items():
                recall[name][kind] = [float(np.mean(np.array(found) < n)) for n in (1, 4)]
    return recall
