"""What was decoded → the answer that stands: its support, its citations, what the documents do not hold."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace
from statistics import fmean

from localctx.index import LexicalIndex
from localctx.selection import (
    Judgement,
    Support,
    claims,
    judgement,
    says_not_found,
    sentences,
    supporting_sentences,
    without_evidence,
)
from localctx.selection import Passage as Candidate
from localctx.selection.dense import max_sim
from localctx.session.citing import cite
from localctx.session.decoding import Decoded
from localctx.session.events import Event, Replaced
from localctx.session.filling import Filling
from localctx.session.prompts import NOT_FOUND
from localctx.session.provenance import Citation
from localctx.session.ranking import vectors_of
from localctx.session.reading import Passage
from localctx.session.run import Run
from localctx.session.structured import said, value_claims

__all__ = ["N_CANDIDATES", "judge"]

N_CANDIDATES = 32
"""Blocks searched for citations when the whole document was attended."""
LEAST_LEAD = 0.2
"""By which the MaxSim of a question and a sentence that answers it in other words exceeds that of others, at
least: 69% of the probes' facts have it, and 12% of the likeliest sentences beside them (docs/honesty.md).
"""
N_BESIDE = 16
"""Other sentences that are looked at for that."""


def judge(
    run: Run, index: LexicalIndex, filling: Filling, decoded: Decoded, question: str
) -> Generator[Event, None, tuple[str, Judgement, tuple[Citation, ...]]]:
    """The answer's text, how far it is supported and its citations; flags what the documents do not hold. A
    structured answer is judged by its values and stays as it is.
    """
    text = decoded.text.strip()
    spoken = text if run.schema is None else said(text)
    passages = filling.passages
    if filling.is_whole:
        ranked = [number for number, _ in index.search(f"{question} {spoken}", N_CANDIDATES).ranking]
        first_ones = range(min(N_CANDIDATES, run.n_blocks))
        passages = tuple(run.passage(number) for number in ranked or first_ones)
    stated = claims(text) if run.schema is None else value_claims(text, run.schema.constants)
    for claim in without_evidence(stated, run.text(), question):
        yield run.warn(f"not in the document: {claim.text}")
    if decoded.finish_reason == "length":
        yield run.warn(_cut(run))
    judged = judgement(
        question,
        spoken,
        [passage.text for passage in passages],
        headings=[(passage.source, *passage.heading_path) for passage in passages],
        absent=index.absent(question),
        language=run.language,
        is_meant=lambda: _is_meant(run, question, spoken, passages),
    )
    if run.schema is not None:
        holds = judged.verdict != "none"
        citations = _citations(run, question, judged.without_unheld(spoken), passages) if holds else ()
        return text, replace(judged, statements=()), citations
    if judged.verdict != "none":
        return text, judged, _citations(run, question, judged.without_unheld(text), passages)
    if decoded.finish_reason == "stop" and not (text and says_not_found(text)):
        yield run.warn(
            f"replaced an answer that the document does not support ({judged.reason}): {text}"
            if text
            else "the model was silent"
        )
        text, judged = NOT_FOUND, Judgement("none")
        yield Replaced(text)
    return text, judged, ()


def _cut(run: Run) -> str:
    """What is said of an answer that did not come to its end."""
    whole = "" if run.schema is None else " and is no complete JSON"
    return f"the answer was cut at {run.settings.max_tokens} tokens{whole}; --max-tokens allows more"


def _citations(run: Run, question: str, answer: str, passages: Sequence[Passage]) -> tuple[Citation, ...]:
    """The sentences of the passages that hold the answer, best first."""
    cited = []
    for sentence in _sentences(run, question, answer, passages):
        document = run.readings[passages[sentence.index].document].document
        cited.append(cite(document, sentence.start, sentence.end, sentence.score))
    return tuple(cited)


def _is_meant(run: Run, question: str, answer: str, passages: Sequence[Passage]) -> bool:
    """Whether one of the sentences that hold the answer is so much more like the question than others as an
    answer in other words is; False without an embedder that covers the languages.
    """
    found = [sentence.quote for sentence in _sentences(run, question, answer, passages)]
    others = [one.text for passage in passages for one in sentences(passage.text, run.language)]
    beside = [text for text in others if text not in found]
    vectors = vectors_of(run, question) if found and beside else ""
    if isinstance(vectors, str):
        return False
    asked, prefix = vectors.question(question).tokens, vectors.file.passage_prefix
    texts = [*found, *beside[:: -(-len(beside) // N_BESIDE)]]
    embedded = vectors.embedder.embed([prefix + text for text in texts])
    likeness = {place: max_sim(asked, one.tokens) for place, one in embedded}
    of_found = max(likeness[place] for place in range(len(found)))
    of_others = fmean(likeness[place] for place in range(len(found), len(texts)))
    return of_found - of_others >= LEAST_LEAD


def _sentences(run: Run, question: str, answer: str, passages: Sequence[Passage]) -> tuple[Support, ...]:
    """The sentences of the passages that hold the answer, best first."""
    candidates = [Candidate(n, passage.start, passage.text) for n, passage in enumerate(passages)]
    return supporting_sentences(answer, candidates, question=question, language=run.language)
