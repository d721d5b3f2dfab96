"""Real questions and answers → how high each selector ranks the right passage. A leaf.

The pairs are read from a folder of HTML pages whose innermost sections have a question as their heading, as
in Python's own FAQ. The document searched is the answers alone, one after the other; half of the questions
calibrates, half judges, by a fixed seed. Run it with

    python -m localctx.eval.faq FOLDER [--model NAME] [--embedder NAME]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from localctx.bench.program import run_as_program
from localctx.document import open_document
from localctx.errors import LocalctxError, UsageError
from localctx.from_settings import choose_model, open_model_for
from localctx.index import LexicalIndex
from localctx.registry.selectors import opened_embedder
from localctx.selection.dense import dense_scores, hybrid, max_sim_weight, reranked, with_max_sims
from localctx.selection.leads import led
from localctx.session.events import ignore_progress
from localctx.session.leads import leads_of
from localctx.session.opening import index_all
from localctx.session.ranking import N_RERANKED, vectors_of
from localctx.session.run import Run, start
from localctx.session.vectors import RunVectors
from localctx.values import Scores

__all__ = ["Pair", "Row", "measure", "read_pairs", "reciprocal_ranks"]

SEED = 7
SEPARATOR = "\n\n\n"
HELD_SHARE = 0.5
"""A passage is right when so much of it, or of the answer, is in the other."""
RRF_K = 60
DEPTHS = (1, 4, 16)
RIGHT = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Row:
    """One selector on one half: the mean reciprocal rank of the first right passage, and the share of
    questions with one among the first 1, 4, 16.
    """

    selector: str
    half: str
    n_questions: int
    mrr: float
    recall: tuple[float, ...]


def read_pairs(folder: Path) -> list[Pair]:
    """The pairs of all pages, each question once. Raises UsageError where there are none."""
    from selectolax.lexbor import LexborHTMLParser

    found: dict[str, str] = {}
    for path in sorted(folder.glob("*.html")):
        body = LexborHTMLParser(path.read_text("utf-8")).body
        for section in body.css("section") if body is not None else ():
            heading = section.css_first("h2, h3")
            if heading is None or any(inner.mem_id != section.mem_id for inner in section.css("section")):
                continue
            question = heading.text().rstrip("¶ ").strip()
            heading.decompose()
            answer = section.text().strip()
            if question.endswith("?") and answer:
                found.setdefault(question, answer)
    if len(found) < 2:
        raise UsageError(f"{folder} holds no questions with answers", "a folder with the HTML pages of a FAQ")
    return [Pair(question, answer) for question, answer in found.items()]


def measure(pairs: Sequence[Pair], model: str | None = None, embedder: str | None = None) -> list[Row]:
    """Every selector on both halves. Raises what the stages raise."""
    flags: dict[str, object] = {"model": model, "embedder": embedder, "store": "off"}
    settings, chosen = choose_model(flags)
    with tempfile.TemporaryDirectory() as folder, closing(open_model_for(settings, chosen)) as opened:
        path, spans = _written(pairs, Path(folder))
        with (
            open_document(str(path), cache_dir=None) as document,
            opened_embedder(settings) as file,
        ):
            run = start([document], opened, settings, ignore_progress)
            run.embedder = file
            with index_all(run) as index:
                vectors = vectors_of(run)
                if isinstance(vectors, str):
                    raise LocalctxError(vectors)
                vectors.make(range(run.n_blocks))
                right = [_right(run, span) for span in spans]
                ranks = [
                    reciprocal_ranks(_scores(index, vectors, pair.question), one)
                    for pair, one in zip(pairs, right, strict=True)
                ]
    return list(_rows(ranks))


def reciprocal_ranks(scores: Mapping[str, Scores], right: RIGHT) -> dict[str, float]:
    """1 / the place of the first right passage, of each selector; 0 where it has no evidence for one."""
    found = {}
    for name, opinion in scores.items():
        best = max((opinion.values[number] for number in right), default=0.0)
        before = sum(value > best for value in opinion.values)
        found[name] = 1 / (1 + before) if best > 0 else 0.0
    return found


def _written(pairs: Sequence[Pair], folder: Path) -> tuple[Path, list[tuple[int, int]]]:
    """The answers in one file, and where each stands."""
    path, spans, at = folder / "answers.txt", [], 0
    for pair in pairs:
        spans.append((at, at + len(pair.answer)))
        at += len(pair.answer) + len(SEPARATOR)
    path.write_text(SEPARATOR.join(pair.answer for pair in pairs), "utf-8", newline="")
    return path, spans


def _right(run: Run, span: tuple[int, int]) -> RIGHT:
    """The passages of an answer."""
    found = []
    for number in range(run.n_blocks):
        start, end = run.readings[0].span(number, number)
        shared = min(end, span[1]) - max(start, span[0])
        if shared > 0 and shared >= HELD_SHARE * min(end - start, span[1] - span[0]):
            found.append(number)
    return tuple(found)


def _scores(index: LexicalIndex, vectors: RunVectors, question: str) -> dict[str, Scores]:
    """Every selector's opinion of one question."""
    words, shares, sims = index.scores(question), index.shares(question), vectors.max_sims(question)
    dense = dense_scores(vectors.similarities(vectors.question(question).vector))
    if sims is None:
        raise LocalctxError("not all token vectors are kept", "a larger --store-limit")
    both = hybrid(words, shares, dense)
    best = sorted(range(len(both.values)), key=lambda number: -both.values[number])[:N_RERANKED]
    looked_at = {number: float(sims[number]) for number in best}
    return {
        "lexical": words,
        "dense": dense,
        "maxsim": dense_scores(sims),
        "reciprocal rank": _reciprocal_rank(words, dense),
        "lexical+dense": both,
        "best 16 again": reranked(both, looked_at, weight=max_sim_weight(shares)),
        "fused": led(with_max_sims(words, shares, sims), leads_of(vectors.run, index, question)),
    }


def _reciprocal_rank(*opinions: Scores) -> Scores:
    """Plain reciprocal rank fusion, the baseline."""
    values = np.zeros(len(opinions[0].values))
    for opinion in opinions:
        order = sorted(range(len(values)), key=lambda number: -opinion.values[number])
        for place, number in enumerate(order):
            if opinion.values[number] > 0:
                values[number] += 1 / (RRF_K + place)
    return Scores("rrf", tuple(map(float, values)))


def _rows(ranks: Sequence[Mapping[str, float]]) -> Iterator[Row]:
    order = list(range(len(ranks)))
    random.Random(SEED).shuffle(order)  # noqa: S311  # a division, no secret
    halves = {"calibrates": order[: len(order) // 2], "judges": order[len(order) // 2 :]}
    for half, numbers in halves.items():
        for name in ranks[0]:
            values = np.array([ranks[number][name] for number in numbers])
            recall = tuple(round(float((values >= 1 / depth).mean()), 3) for depth in DEPTHS)
            yield Row(name, half, len(numbers), round(float(values.mean()), 3), recall)


def main(words: Sequence[str]) -> int:
    """The table of a folder, on standard output."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.faq")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model")
    parser.add_argument("--embedder")
    given = parser.parse_args(words)
    pairs = read_pairs(given.folder)
    lines = [f"{'selector':<18}{'half':<12}{'n':>4}{'MRR':>8}" + "".join(f"{f'at {n}':>8}" for n in DEPTHS)]
    for row in measure(pairs, given.model, given.embedder):
        recall = "".join(f"{value:>8.3f}" for value in row.recall)
        lines.append(f"{row.selector:<18}{row.half:<12}{row.n_questions:>4}{row.mrr:>8.3f}{recall}")
    sys.stdout.write("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    run_as_program(lambda: main(sys.argv[1:]))
