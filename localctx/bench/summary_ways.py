"""The ways of summarising that `bench summary` compares, each on the same text and at the same length.

taps: sections beside the prefill, merged · map-reduce: parts read by themselves, merged · refine: one summary
rewritten part by part · lead: the text's beginning · centroid: its key sentences.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from localctx.document import Document, open_document
from localctx.errors import LocalctxError
from localctx.selection import key_sentences, sentences
from localctx.session.events import Finished
from localctx.session.indexed import Indexed
from localctx.session.indexing import index_documents
from localctx.session.prompts import document_messages
from localctx.session.summarize import WORDS_PER_POINT, summarize
from localctx.settings import Settings
from localctx.values import Model, Request, Sampling

__all__ = ["INDEX", "WAYS", "Summarised", "index_cost", "summarised"]

INDEX = "index"
WAYS = ("map-reduce", "taps", "refine", "lead", "centroid")
"""map-reduce first: the others are given as many words as it took."""
TOKENS_PER_WORD = 1.6
REFINE_SHARE = 0.5
"""Of the context, for the part that a refinement reads."""


@dataclass(frozen=True, slots=True)
class Summarised:
    """A summary's lines, and what it took: seconds by the clock and of processors, tokens."""

    lines: tuple[str, ...]
    seconds: float
    cpu_seconds: float
    n_evaluated: int = 0
    n_generated: int = 0

    @property
    def n_words(self) -> int:
        """Words of all lines."""
        return sum(len(line.split()) for line in self.lines)


@contextmanager
def _opened(path: Path) -> Iterator[Document]:
    with open_document(str(path), cache_dir=None) as document:
        yield document


def summarised(
    way: str, path: Path, n_words: int, model: Model, settings: Settings, folder: Path
) -> Summarised:
    """The text's summary in about n_words words; `folder` is empty and for what is stored on the way."""
    started, cpu = time.perf_counter(), time.process_time()
    with _opened(path) as document:
        match way:
            case "taps" | "map-reduce":
                strategy = "stream" if way == "taps" else way
                wanted = replace(settings, strategy=strategy, store=str(folder / "store"))
                lines, counts = _verb(document, n_words, model, wanted)
            case "refine":
                lines, counts = _refined(document, n_words, model, settings)
            case "lead":
                lines, counts = _lead(document, n_words), (0, 0)
            case "centroid":
                lines, counts = _centroid(document, n_words), (0, 0)
            case _:
                raise ValueError(f"no such way: {way}")
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    return Summarised(tuple(lines), seconds, cpu_seconds, *counts)


def _verb(
    document: Document, n_words: int, model: Model, settings: Settings
) -> tuple[list[str], tuple[int, int]]:
    """What `localctx summarize` says, without headings and marks."""
    for event in summarize([document], model, settings, length=str(n_words)):
        if isinstance(event, Finished):
            answer = event.answer
            lines = [
                line[2:].rpartition(" [")[0] for line in answer.text.splitlines() if line.startswith("- ")
            ]
            return lines, (answer.tokens.evaluated, answer.tokens.generated)
    raise LocalctxError("no summary came")


def _lead(document: Document, n_words: int) -> list[str]:
    """The first sentences, as many as have n_words words."""
    text = document.read(0, min(document.text.n_code_points, n_words * 40))
    return _within((one.text for one in sentences(text, document.language or "en")), n_words)


def _centroid(document: Document, n_words: int) -> list[str]:
    """The key sentences, as many as have n_words words."""
    text, language = document.read(0, document.text.n_code_points), document.language or "en"
    for n in range(max(1, 2 * n_words // WORDS_PER_POINT), 0, -1):
        lines = [" ".join(one.text.split()) for one in key_sentences(text, n, language=language)]
        if sum(len(line.split()) for line in lines) <= n_words:
            return lines
    return []


def _within(texts: Iterator[str], n_words: int) -> list[str]:
    lines: list[str] = []
    for text in texts:
        line = " ".join(text.split())
        n_words -= len(line.split())
        if n_words < 0 and lines:
            break
        lines.append(line)
    return lines


def _refined(
    document: Document, n_words: int, model: Model, settings: Settings
) -> tuple[list[str], tuple[int, int]]:
    """A summary that the model writes anew with each part of the text, as far as the context goes."""
    n_ctx = model.usable_n_ctx(settings.ctx)
    n_answer = min(round(n_words * TOKENS_PER_WORD), n_ctx // 4)
    text, summary = document.read(0, document.text.n_code_points), ""
    counts = [0, 0]
    context = model.open_context(n_ctx)
    try:
        at, step = 0, 0
        while at < len(text):
            step = _fitting(text, at, round(n_ctx * REFINE_SHARE) - n_answer, model)
            fragments = [
                f"Summary so far:\n{summary}\n\nThe text goes on:\n" if summary else "",
                text[at : at + step],
            ]
            task = f"Rewrite the summary so that it covers the text above too, in {n_words} words."
            request = Request(
                model.prompt(document_messages(fragments, [task])), Sampling(max_tokens=n_answer)
            )
            pieces = list(context.generate([request]))
            summary = "".join(piece.text for piece in pieces).strip()
            counts[0] += pieces[-1].n_evaluated
            counts[1] += pieces[-1].n_generated
            at += step
    finally:
        context.close()
    said = [" ".join(one.text.split()) for one in sentences(summary, document.language or "en")]
    return said, (counts[0], counts[1])


def _fitting(text: str, at: int, n_tokens: int, model: Model) -> int:
    """Code points from `at` on that have no more than n_tokens tokens."""
    size = min(len(text) - at, 8 * n_tokens)
    while size > 1 and (n := len(model.tokenize(text[at : at + size]))) > n_tokens:
        size = max(1, size * n_tokens // n - 1)
    return size


def index_cost(path: Path, model: Model, settings: Settings, folder: Path, *, summaries: bool) -> Summarised:
    """What it takes to index the text into an empty store, with section summaries or without."""
    started, cpu = time.perf_counter(), time.process_time()
    wanted = replace(settings, strategy="stream", store=str(folder / "store"))
    done: Indexed | None = None
    with _opened(path) as document:
        for event in index_documents([document], model, wanted, summaries=summaries):
            done = event if isinstance(event, Indexed) else done
    n_evaluated = sum(row.tokens_evaluated for row in done.documents) if done is not None else 0
    return Summarised((), time.perf_counter() - started, time.process_time() - cpu, n_evaluated)
