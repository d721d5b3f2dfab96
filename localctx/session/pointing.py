"""Which sentences of the chosen passages the question points at, as ranges of their documents' tokens.

By words: first the passage whose header line tells it from the others by the question's words, whole; then
each sentence by the rarity, among all of the passages' sentences, of the question's words it holds. Measured,
the first step answers better than evaluating everything again (docs/measurements.md).
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise

from localctx.assemble import RefreshCandidate
from localctx.index.terms import content_words, stem
from localctx.selection import sentences
from localctx.session.reading import Passage
from localctx.values import Tokenizer

__all__ = ["pointed_sentences"]


def pointed_sentences(
    passages: Sequence[Passage], question: str, tokenize: Tokenizer, language: str = "en"
) -> list[RefreshCandidate]:
    """Every token of the passages in candidates of a sentence each, in order; score 0 shares no word.

    All sentences of a passage that its header names score above those of passages that it names less.
    """
    spans = [(passage, first, last) for passage in passages for first, last in _spans(passage.text, language)]
    asked = set(map(stem, content_words(question)))
    held = [asked & set(map(stem, content_words(p.text[first:last]))) for p, first, last in spans]
    n_holding = Counter(term for terms in held for term in terms)
    weights = {term: math.log(1 + len(spans) / n) for term, n in n_holding.items()}
    scores = [sum(weights[term] for term in terms) for terms in held]
    steps = _header_steps(passages, asked)
    step = 1.0 + max(scores, default=0.0)
    edges = _token_edges(spans, tokenize)
    return [
        RefreshCandidate(passage.document, start, end, score + step * steps[passage.header])
        for (passage, _, _), (start, end), score in zip(spans, edges, scores, strict=True)
        if end > start
    ]


def _header_steps(passages: Sequence[Passage], asked: set[str]) -> dict[str, int]:
    """By header line: 0 for those that say least of the question; words in all headers say nothing."""
    held = {p.header: asked & set(map(stem, content_words(p.header))) for p in passages}
    n_holding = Counter(term for terms in held.values() for term in terms)
    told = {
        header: sum(math.log(len(held) / n_holding[term]) for term in terms) for header, terms in held.items()
    }
    ranks = sorted(set(told.values()) | {0.0})
    return {header: ranks.index(score) for header, score in told.items()}


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
