"""Which sentences of the chosen passages the question points at, as ranges of their documents' tokens.

By words: a sentence scores by the rarity, among all of the passages' sentences, of the question's words it
holds. Retrieval heads can take this place later.
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
    """Every token of the passages in candidates of a sentence each, in order; score 0 shares no word."""
    spans = [(passage, first, last) for passage in passages for first, last in _spans(passage.text, language)]
    asked = set(map(stem, content_words(question)))
    held = [asked & set(map(stem, content_words(p.text[first:last]))) for p, first, last in spans]
    n_holding = Counter(term for terms in held for term in terms)
    weights = {term: math.log(1 + len(spans) / n) for term, n in n_holding.items()}
    edges = _token_edges(spans, tokenize)
    return [
        RefreshCandidate(passage.document, start, end, sum(weights[term] for term in terms))
        for (passage, _, _), (start, end), terms in zip(spans, edges, held, strict=True)
        if end > start
    ]


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
