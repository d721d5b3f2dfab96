"""Which sentences of the chosen passages the question points at, as ranges of their documents' tokens.

First, whole, the passage that says most of the question in its header line and one sentence; then each
sentence by the rarity, among all of the passages' sentences, of the question's words it holds. Where the
passages' tokens have vectors, their likeness to the question's counts too, so that other words than the
question's are pointed at. Measured, the first step answers better than evaluating everything again
(docs/measurements.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from localctx.assemble import RefreshCandidate
from localctx.index.terms import content_words, stem
from localctx.selection import sentences
from localctx.selection.dense import dense_scores, hybrid
from localctx.session.reading import Passage
from localctx.values import Scores, Tokenizer

__all__ = ["Likeness", "pointed_sentences"]


Likeness: TypeAlias = Callable[[Passage, "Sequence[tuple[int, int]]"], "Sequence[float]"]
"""(passage, spans that cover its text) → how like the question each span is."""


def pointed_sentences(
    passages: Sequence[Passage],
    question: str,
    tokenize: Tokenizer,
    language: str = "en",
    likeness: Likeness | None = None,
) -> list[RefreshCandidate]:
    """Every token of the passages in candidates of a sentence each, in order; without `likeness`, score 0
    shares no word.

    All sentences of the passage that the question points at score above those of others.
    """
    spans = [(place, *span) for place, one in enumerate(passages) for span in _spans(one.text, language)]
    asked = set(map(stem, content_words(question)))
    held = [_held(asked, passages[place].text[first:last]) for place, first, last in spans]
    meant = _meant(passages, spans, likeness)
    scores = _scores(asked, held, held, meant)
    places = [place for place, _, _ in spans]
    headers = [_held(asked, passage.header) for passage in passages]
    with_header = [headers[place] | terms for place, terms in zip(places, held, strict=True)]
    told = list(headers)
    for place, terms in zip(places, held, strict=True):
        told[place] = told[place] | terms
    best = _best_passage(places, _scores(asked, with_header, told, meant))
    lead = 1.0 + max(scores, default=0.0)
    edges = _token_edges([(passages[place], first, last) for place, first, last in spans], tokenize)
    return [
        RefreshCandidate(passages[place].document, start, end, score + (lead if place == best else 0.0))
        for (place, _, _), (start, end), score in zip(spans, edges, scores, strict=True)
        if end > start
    ]


def _meant(
    passages: Sequence[Passage], spans: Sequence[tuple[int, int, int]], likeness: Likeness | None
) -> Scores | None:
    """How far each sentence stands out by its meaning."""
    if likeness is None:
        return None
    values: list[float] = []
    for place, passage in enumerate(passages):
        values += likeness(passage, [(first, last) for at, first, last in spans if at == place])
    return dense_scores(np.array(values, np.float32))


def _scores(
    asked: set[str], held: Sequence[set[str]], counted: Sequence[set[str]], meant: Scores | None
) -> list[float]:
    """Of each sentence, by the words it holds, whose rarity is that among `counted`, and by its meaning."""
    weights = _rarity(counted)
    by_words = [math.fsum(weights[term] for term in terms) for terms in held]
    if meant is None:
        return by_words
    total = math.fsum(weights.get(term, math.log(1 + len(counted))) for term in asked)
    shares = [value / total if total else 0.0 for value in by_words]
    return list(hybrid(Scores("lexical", tuple(by_words)), shares, meant).values)


def _held(asked: set[str], text: str) -> set[str]:
    """The question's words that the text holds."""
    return asked & set(map(stem, content_words(text)))


def _rarity(held: Sequence[set[str]]) -> dict[str, float]:
    """Each word's weight: the fewer of the sets hold it, the more."""
    n_holding = Counter(term for terms in held for term in terms)
    return {term: math.log(1 + len(held) / n) for term, n in n_holding.items()}


def _best_passage(places: Sequence[int], scores: Sequence[float]) -> int | None:
    """The place of the passage whose best sentence, with the passage's header line, says most of the
    question; None where none says any, or several say as much.
    """
    best = max(scores, default=0.0)
    leading = {place for place, score in zip(places, scores, strict=True) if score == best}
    return leading.pop() if best > 0 and len(leading) == 1 else None


def _spans(text: str, language: str) -> Iterator[tuple[int, int]]:
    """The text's sentences, the white space before each belonging to it, so that they cover the text."""
    starts = [sentence.start for sentence in sentences(text, language)]
    cuts = [len(text[:start].rstrip()) for start in starts[1:]]
    edges = [0, *cuts, len(text)]
    for first, last in pairwise(edges):
        if last > first:
            yield first, last


def _token_edges(spans: Sequence[tuple[Passage, int, int]], tokenize: Tokenizer) -> Iterator[tuple[int, int]]:
    """The tokens of each span: text is cut before white space, so its parts' tokens add up (or nearly)."""
    at = 0
    for passage, first, last in spans:
        if first == 0:
            at = passage.first_token
        stop = passage.first_token + passage.n_tokens
        n_tokens = len(tokenize(passage.text[first:last], passage.start == 0 and first == 0))
        end = stop if last == len(passage.text) else min(stop, at + n_tokens)
        yield at, end
        at = end
