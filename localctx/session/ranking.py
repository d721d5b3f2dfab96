"""A question's blocks, ranked by the selectors that `--kv rank` names: the one selection that it gets.

Words always can; vectors need an embedder, and one that does not cover the languages has a say only where
words single nothing out; landmarks need a model's stored keys. What cannot is left out, and said.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from functools import partial

import numpy as np

from localctx.engine.embedder import EmbedderFile
from localctx.engine.reranker import RerankerFile
from localctx.errors import ModelError
from localctx.index import Hits, LexicalIndex, n_words
from localctx.index.vector_parts import TokensPart
from localctx.kv_values import FUSED
from localctx.selection.dense import (
    always_in,
    dense_scores,
    diverse,
    hybrid,
    max_sim_weight,
    reranked,
    with_max_sims,
)
from localctx.selection.fuse import fuse
from localctx.selection.leads import led, singles_out
from localctx.session.embedder_languages import why_not_covered
from localctx.session.events import Event
from localctx.session.leads import leads_of
from localctx.session.run import Run
from localctx.session.vectors import RunVectors, embedded_text, missing_first
from localctx.values import Scores

__all__ = ["loaded_vectors", "ranked_blocks", "vectors_of", "why_not_made_for"]

N_EMBEDDED = 48
"""Blocks that get vectors for a question where a document was not indexed, the best by words: some
two seconds on two CPU cores. A number, not a time: an answer must not depend on how busy the machine is.
"""
NEED_VECTORS = {"dense", "maxsim", "mmr"}
N_VARIED = 32
MMR_SHARE = 0.3
SHARPNESS = 2
"""Likeness falls off slowly: squared, `choose` leaves out what is below 0.55 of the best. Measured, of the
right passages among the best six 1% is lost so, and 1.4 of six passages are saved.
"""
N_RERANKED = 16
"""Looked at twice, where the tokens of all are not kept; 30 gain no more."""


def ranked_blocks(
    run: Run,
    index: LexicalIndex,
    question: str,
    landmarks: Callable[[], Scores | str] = lambda: "there is no stored KV",
) -> Generator[Event, None, Hits]:
    """The blocks of all documents, best first. `landmarks`: the model's own scores, or why there are none."""
    wanted, by_words = run.settings.cache.rank, index.search(question)
    shares = index.shares(question) if isinstance(run.embedder, EmbedderFile) else ()
    steps = leads_of(run, index, question) if "lexical" in wanted else {}
    vectors, reason = None, why_not_made_for(run, question)
    if NEED_VECTORS & set(wanted):
        vectors = yield from _with_a_say(run, reason, singles_out(shares, n_words(question), steps))
    keys = landmarks() if "landmarks" in wanted else None
    if isinstance(keys, str):
        yield run.warn(f"--kv rank={'+'.join(wanted)}: {keys}; passages are chosen without")
        keys = None
    if vectors is not None and "dense" in wanted:
        _make_missing(vectors, by_words)
    sims = vectors.max_sims(question) if vectors is not None and set(FUSED) <= set(wanted) else None
    if sims is not None:  # the best there is: every passage is looked at token by token
        scores = _with(with_max_sims(by_words.scores(), shares, sims), keys)
    else:
        dense = vectors if "dense" in wanted else None
        scores = _scores(by_words, shares, question, dense, keys, wanted)
        if vectors is not None and "maxsim" in wanted:
            scores = _reranked(vectors, scores, question, shares)
    if vectors is not None and reason is None and "maxsim" in wanted:
        run.likeness = partial(vectors.likeness, question)
    scores = led(scores, steps)
    if run.reranker is not None:
        scores = _judged(run, run.reranker, scores, question)
    if vectors is not None:
        scores = _varied(vectors, scores) if "mmr" in wanted else scores
        scores = Scores(scores.selector, tuple((np.array(scores.values) ** SHARPNESS).tolist()))
    scores = always_in(scores, _edges(run, wanted))
    run.selection = {
        "selectors": scores.selector.split("+"),
        "embedder": vectors.file.name if vectors is not None else None,
        "passages": run.n_blocks,
        "passages_with_vectors": int(vectors.is_there.sum()) if vectors is not None else 0,
    }
    ranking = _best(scores, len(scores.values))
    return Hits(len(scores.values), tuple((number, scores.values[number]) for number in ranking))


def _scores(
    by_words: Hits,
    shares: Sequence[float],
    question: str,
    vectors: RunVectors | None,
    landmarks: Scores | None,
    wanted: Sequence[str],
) -> Scores:
    """One score a block from the selectors that are wanted and can; words where there is no other."""
    if vectors is not None:
        dense = dense_scores(vectors.similarities(vectors.question(question).vector))
        is_hybrid = "lexical" in wanted
        return _with(hybrid(by_words.scores(), shares, dense) if is_hybrid else dense, landmarks)
    if "lexical" in wanted or landmarks is None:
        return _with(by_words.scores(), landmarks)
    return landmarks


def _with(scores: Scores, landmarks: Scores | None) -> Scores:
    return scores if landmarks is None else fuse([scores, landmarks])


def _with_a_say(
    run: Run, reason: str | None, are_singled_out: bool
) -> Generator[Event, None, RunVectors | None]:
    """The vectors that may choose; None where words do, and why. reason: why the embedder does not cover the
    languages · are_singled_out: whether words single blocks out.
    """
    vectors = reason if reason is not None and are_singled_out else loaded_vectors(run)
    if isinstance(vectors, str):
        if run.embedder is not None or "lexical" not in run.settings.cache.rank:
            yield run.warn(f"passages are chosen by words alone: {vectors}")
        return None
    if reason is not None:
        yield run.warn(f"words single no passage out, so likeness orders them, though {reason}")
    return vectors


def vectors_of(run: Run, question: str | None = None) -> RunVectors | str:
    """The run's vectors; or why there are none, in words: no embedder, or one that does not cover the
    languages.
    """
    return why_not_made_for(run, question) or loaded_vectors(run)


def why_not_made_for(run: Run, question: str | None = None) -> str | None:
    """Why the embedder does not cover the languages of the documents and the question, in words."""
    if not isinstance(run.embedder, EmbedderFile):
        return None
    languages = (reading.document.language for reading in run.readings)
    return why_not_covered(run.embedder, question, languages)


def loaded_vectors(run: Run) -> RunVectors | str:
    """The run's vectors, whatever the languages; or why there are none, in words."""
    file = run.embedder
    if file is None or isinstance(file, str):
        return file or "no embedder was asked for"
    try:
        return RunVectors.of(run, file)
    except ModelError as error:
        return error.message


def _make_missing(vectors: RunVectors, by_words: Hits) -> None:
    """Of documents without vectors, those of some blocks."""
    if not vectors.is_there.all():
        pointed = (number for number, _ in by_words.ranking)
        vectors.make(missing_first(pointed, vectors.run.n_blocks, N_EMBEDDED))


def _reranked(vectors: RunVectors, first: Scores, question: str, shares: Sequence[float]) -> Scores:
    """The best blocks judged token by token as well."""
    asked, found = vectors.question(question).tokens, vectors.tokens(_best(first, N_RERANKED))
    sims = TokensPart.of(found).max_sims(asked) if found else ()
    looked_at = dict(zip(found, map(float, sims), strict=True))
    return reranked(first, looked_at, weight=max_sim_weight(shares))


def _judged(run: Run, file: RerankerFile, first: Scores, question: str) -> Scores:
    """The best blocks judged by the cross-encoder as well. Raises ModelError: it was asked for by name."""
    best = _best(first, N_RERANKED)
    values = file.open().scores(question, [embedded_text(run.passage(number)) for number in best])
    return reranked(first, dict(zip(best, values, strict=True)), "reranker")


def _varied(vectors: RunVectors, scores: Scores) -> Scores:
    """The best blocks' values dealt out anew, so that what says the same comes later."""
    best = _best(scores, N_VARIED)
    order = diverse(scores, best, vectors.rows(best), MMR_SHARE)
    values = list(scores.values)
    for number, before in zip(order, best, strict=True):
        values[number] = scores.values[before]
    return Scores(f"{scores.selector}+mmr", tuple(values))


def _edges(run: Run, wanted: Sequence[str]) -> list[int]:
    """The first and last blocks of each document, as far as they are always in."""
    edges, first = [], 0
    for reading in run.readings:
        if reading.n_blocks:
            edges += [first] * ("head" in wanted) + [first + reading.n_blocks - 1] * ("tail" in wanted)
        first += reading.n_blocks
    return edges


def _best(scores: Scores, n: int) -> list[int]:
    """The blocks with evidence, best first, the earlier one of equals."""
    values = np.array(scores.values)
    numbers = np.flatnonzero(values > 0)
    best: list[int] = numbers[np.argsort(-values[numbers], kind="stable")][:n].tolist()
    return best
