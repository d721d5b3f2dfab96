"""Which sentences of the chosen passages the question points at, as ranges of their documents' tokens.

By words: first, whole, the passage that says most of the question in its header line and one sentence; then
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

    All sentences of the passage that the question points at score above those of others.
    """
    spans = [(place, *span) for place, one in enumerate(passages) for span in _spans(one.text, language)]
    asked = set(map(stem, content_words(question)))
    held = [_held(asked, passages[place].text[first:last]) for place, first, last in spans]
    weights = _rarity(held)
    scores = [math.fsum(weights[term] for term in terms) for terms in held]
    best = _best_passage(
        passages, asked, [(place, terms) for (place, _, _), terms in zip(spans, held, strict=True)]
    )
    lead = 1.0 + max(scores, default=0.0)
    edges = _token_edges([(passages[place], first, last) for place, first, last in spans], tokenize)
    return [
        RefreshCandidate(passages[place].document, start, end, score + (lead if place == best else 0.0))
        for (place, _, _), (start, end), score in zip(spans, edges, scores, strict=True)
        if end > start
    ]


def _held(asked: set[str], text: str) -> set[str]:
    """The question's words that the text holds."""
    return asked & set(map(stem, content_words(text)))


def _rarity(held: Sequence[set[str]]) -> dict[str, float]:
    """Each word's weight: the fewer of the sets hold it, the more."""
    n_holding = Counter(term for terms in held for term in terms)
    return {term: math.log(1 + len(held) / n) for term, n in n_holding.items()}


def _best_passage(
    passages: Sequence[Passage], asked: set[str], sentences_held: Sequence[tuple[int, set[str]]]
) -> int | None:
    """The place of the passage that says most of the question: by rarity among the passages, the words of its
    header line and of one of its sentences; None where none says any, or several say as much.
    """
    headers = [_held(asked, passage.header) for passage in passages]
    told = list(headers)
    for place, terms in sentences_held:
        told[place] = told[place] | terms
    weights = _rarity(told)
    scores = [0.0] * len(passages)
    for place, terms in sentences_held:
        scores[place] = max(scores[place], math.fsum(weights[term] for term in headers[place] | terms))
    best = max(scores, default=0.0)
    return scores.index(best) if best > 0 and scores.count(best) == 1 else None


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
