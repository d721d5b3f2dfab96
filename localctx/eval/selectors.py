"""Every selector alone and fused, on generated questions: is the right passage among the first? A leaf.

Nothing is generated and, without --landmarks, nothing prefilled: passages are embedded, questions ranked.

    python -m localctx.eval.selectors [--lengths 8k,32k] [--languages en,zh,de] [--questions 28]
        [--seed 0,1,2] [--landmarks]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

from localctx.bench.program import run_as_program
from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.errors import LocalctxError
from localctx.eval.asking import block_of
from localctx.eval.documents import GeneratedDocument, Question
from localctx.eval.generate import Wanted, generate
from localctx.eval.niah import parse_length
from localctx.eval.rows_told import told
from localctx.from_settings import choose_model, open_document_for, open_model_for
from localctx.index import LexicalIndex, n_words
from localctx.registry.selectors import opened_embedder
from localctx.selection import choose
from localctx.selection.dense import dense_scores, diverse, hybrid, max_sim_weight, reranked, with_max_sims
from localctx.selection.fuse import fuse
from localctx.selection.leads import led, singles_out
from localctx.session.cache import KVModel, opened_cache
from localctx.session.embedder_languages import why_not_covered
from localctx.session.events import ignore_progress
from localctx.session.filling import MAX_BLOCKS
from localctx.session.indexing import index_documents
from localctx.session.landmarks import landmarks_of
from localctx.session.leads import leads_of
from localctx.session.opening import index_all
from localctx.session.prompts import question_task
from localctx.session.ranking import MMR_SHARE, N_RERANKED, N_VARIED, SHARPNESS
from localctx.session.run import Run, start
from localctx.session.vectors import RunVectors
from localctx.settings import Settings
from localctx.values import Model, Scores

__all__ = ["Row", "measure", "render", "summed"]

TASKS = ("single", "paraphrased", "translated", "multikey", "multivalue", "multiquery", "vt", "qa")
FIRST_N = (1, 4, 16)
KINDS = {
    "single": "words shared",
    "vt": "chains",
    "paraphrased": "paraphrased",
    "translated": "another language",
}
NO_NEIGHBOURS = 9.0
"""A share of the best block's score that no block beside a chosen one has."""


@dataclass(frozen=True, slots=True)
class Row:
    """One way of choosing among one document's passages, on one kind of questions: the shares of right
    passages among the first 1, 4, 16; of the ways that only choose, the share chosen and how many were.
    """

    length: int
    language: str
    kind: str
    selector: str
    n: int
    recall: tuple[float, ...]
    n_chosen: float | None = None


def measure(
    model: Model, settings: Settings, wanted: Wanted, embedder: EmbedderFile, *, landmarks: bool = False
) -> Iterator[Row]:
    """A document's rows as soon as they are found. Raises what the stages raise."""
    with tempfile.TemporaryDirectory() as folder:
        for generated in generate(wanted, Path(folder), model.tokenize):
            with open_document_for(str(generated.path), settings) as document:
                yield from _measured(model, settings, generated, document, embedder, landmarks)


def _measured(
    model: Model,
    settings: Settings,
    generated: GeneratedDocument,
    document: Document,
    embedder: EmbedderFile,
    landmarks: bool,
) -> Iterator[Row]:
    asked = [question for question in generated.questions if question.spans]
    run = start([document], model, settings, ignore_progress)
    if landmarks and isinstance(model, KVModel):
        for _ in index_documents([document], model, settings):
            pass
    with index_all(run) as index:
        vectors = RunVectors.of(run, embedder)
        vectors.make(range(run.n_blocks))
        found: dict[tuple[str, str], list[tuple[Scores, list[int]]]] = {}
        for question in asked:
            opinions = _opinions(index, vectors, question)
            if landmarks:
                keys = _landmarks(run, question.text)
                both = led(fuse([opinions["fused"], keys]), leads_of(run, index, question.text))
                opinions |= {"landmarks": keys, "fused+landmarks": both}
            right = [block_of(run, span) for span in question.spans]
            for name, scores in opinions.items():
                kind = KINDS.get(question.task, KINDS["single"])
                found.setdefault((kind, name), []).append((scores, right))
        for (kind, name), opinions_of in found.items():
            facts = (generated.length, generated.language, kind, name, len(opinions_of))
            yield Row(*facts, _recall(opinions_of))
        for name, kinds in _choosers(run, vectors, found).items():
            for kind, (share, n_chosen) in kinds.items():
                n = len(found[kind, "fused"])
                yield Row(generated.length, generated.language, kind, name, n, (share,), n_chosen)


def _opinions(index: LexicalIndex, vectors: RunVectors, question: Question) -> dict[str, Scores]:
    """Every selector's; `fused` as `ask` has it, its language rule included. Raises LocalctxError where the
    store has no room for the tokens.
    """
    run, words, shares = vectors.run, index.scores(question.text), index.shares(question.text)
    dense = dense_scores(vectors.similarities(vectors.question(question.text).vector))
    both, sims = hybrid(words, shares, dense), vectors.max_sims(question.text)
    if sims is None:
        raise LocalctxError("not all token vectors are kept", "a larger --store-limit")
    best = {number: float(sims[number]) for number in _order(both)[:N_RERANKED]}
    leads = leads_of(run, index, question.text)
    fused = led(with_max_sims(words, shares, sims), leads)
    languages = [reading.document.language for reading in run.readings]
    is_covered = why_not_covered(vectors.file, question.text, languages) is None
    are_singled_out = singles_out(shares, n_words(question.text), leads)
    n = len(words.values)
    edges = [1.0 + n - 2 * min(place, n - 1 - place) - (place > n - 1 - place) for place in range(n)]
    return {
        "head and tail": Scores("edges", tuple(edges)),
        "lexical": words,
        "dense": dense,
        "maxsim": dense_scores(sims),
        "lexical+dense": both,
        "the best 16 again": reranked(both, best, weight=max_sim_weight(shares)),
        "fused": fused if is_covered or not are_singled_out else led(words, leads),
        "fused, any language": fused,
    }


def _landmarks(run: Run, question: str) -> Scores:
    """The retrieval heads' opinion. Raises LocalctxError where there is none."""
    with opened_cache(run, question_task(question), None) as cache:
        if isinstance(cache, str):
            raise LocalctxError(cache)
        scores = landmarks_of(cache, [cache.whole_stream(reading) for reading in run.readings], question)
    if isinstance(scores, str):
        raise LocalctxError(scores)
    return scores


def _order(scores: Scores) -> list[int]:
    """The blocks with evidence, best first, the earlier one of equals."""
    numbers = (number for number, value in enumerate(scores.values) if value > 0)
    return sorted(numbers, key=lambda number: -scores.values[number])


def _recall(found: Sequence[tuple[Scores, list[int]]]) -> tuple[float, ...]:
    ranks = [_rank(scores, number) for scores, right in found for number in right]
    return tuple(round(sum(rank < n for rank in ranks) / len(ranks), 4) for n in FIRST_N)


def _rank(scores: Scores, number: int) -> float:
    """The block's place from 0, the earlier one of equals being better; infinite without evidence."""
    value = scores.values[number]
    better = sum(other > value for other in scores.values) + scores.values[:number].count(value)
    return float(better) if value > 0 else float("inf")


def _choosers(
    run: Run, vectors: RunVectors, found: Mapping[tuple[str, str], Sequence[tuple[Scores, list[int]]]]
) -> dict[str, dict[str, tuple[float, float]]]:
    """Of `choose` after the fused ranking, with neighbours, without, and with variety: by kind of question,
    the share of right passages among the chosen, and how many were chosen.
    """
    costs = list(run.readings[0].block_tokens)

    def chosen(scores: Scores, neighbour_share: float) -> tuple[int, ...]:
        sharp = Scores("fused", tuple(value**SHARPNESS for value in scores.values))
        return choose(
            sharp, costs, budget_tokens=1 << 30, max_blocks=MAX_BLOCKS, neighbour_share=neighbour_share
        ).indices

    def varied(scores: Scores) -> Scores:
        best, values = _order(scores)[:N_VARIED], list(scores.values)
        order = diverse(scores, best, vectors.rows(best), MMR_SHARE)
        for number, before in zip(order, best, strict=True):
            values[number] = scores.values[before]
        return Scores("mmr", tuple(values))

    ways: dict[str, Callable[[Scores], tuple[int, ...]]] = {
        "chosen": lambda scores: chosen(scores, 0.15),
        "chosen without neighbours": lambda scores: chosen(scores, NO_NEIGHBOURS),
        "chosen with variety": lambda scores: chosen(varied(scores), 0.15),
    }
    shares: dict[str, dict[str, tuple[float, float]]] = {}
    for name, way in ways.items():
        for (kind, selector), opinions in found.items():
            if selector == "fused":
                picked = [(way(scores), right) for scores, right in opinions]
                hits = [number in numbers for numbers, right in picked for number in right]
                mean = sum(len(numbers) for numbers, _ in picked) / len(picked)
                shares.setdefault(name, {})[kind] = (round(sum(hits) / len(hits), 4), round(mean, 2))
    return shares


def summed(rows: Sequence[Row]) -> list[Row]:
    """The rows of documents that differ in nothing but their seed as one, in the order of the first."""
    alike: dict[tuple[int, str, str, str], list[Row]] = {}
    for row in rows:
        alike.setdefault((row.length, row.language, row.kind, row.selector), []).append(row)
    return [_sum(of_them) for of_them in alike.values()]


def _sum(rows: Sequence[Row]) -> Row:
    n = sum(row.n for row in rows)
    shares = [sum(row.n * row.recall[place] for row in rows) / n for place in range(len(rows[0].recall))]
    chosen = sum(row.n * (row.n_chosen or 0.0) for row in rows) / n
    n_chosen = None if rows[0].n_chosen is None else chosen
    return replace(rows[0], n=n, recall=tuple(round(share, 4) for share in shares), n_chosen=n_chosen)


def render(rows: Sequence[Row]) -> str:
    """A table in Markdown: a line each document and kind of question, a column each selector."""
    names = list(dict.fromkeys(row.selector for row in rows))
    lines = [
        "| tokens | language | questions | n | " + " | ".join(names) + " |",
        "|---" * (4 + len(names)) + "|",
    ]
    for length, language, kind in dict.fromkeys((row.length, row.language, row.kind) for row in rows):
        of_them = {
            row.selector: row
            for row in rows
            if (row.length, row.language, row.kind) == (length, language, kind)
        }
        cells = [_cell(of_them[name]) if name in of_them else "" for name in names]
        n = next(iter(of_them.values())).n
        lines.append(f"| {length:,} | {language} | {kind} | {n} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: Row) -> str:
    shares = " / ".join(f"{value:.2f}" for value in row.recall)
    return shares if row.n_chosen is None else f"{shares} of {row.n_chosen:.1f}"


def main(words: Sequence[str] | None = None) -> None:
    """Measure and print, a document at a time. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.selectors")
    parser.add_argument("--lengths", default="8k")
    parser.add_argument("--languages", default="en,zh,de")
    parser.add_argument("--tasks", default=",".join(TASKS))
    parser.add_argument("--questions", type=int, default=28, help="of each task; one in four has no answer")
    parser.add_argument("--seed", default="0", help="several, with commas, are summed up")
    parser.add_argument("--landmarks", action="store_true", help="prefill, and ask the retrieval heads too")
    parser.add_argument("--model")
    parser.add_argument("--embedder")
    parser.add_argument("--json", action="store_true", help="a line of JSON a row")
    given = parser.parse_args(words)
    lengths = tuple(map(parse_length, given.lengths.split(",")))
    languages, tasks = tuple(given.languages.split(",")), tuple(given.tasks.split(","))
    wanted = [Wanted(int(seed), lengths, languages, tasks, given.questions) for seed in given.seed.split(",")]
    with tempfile.TemporaryDirectory() as store:
        settings, chosen = choose_model({"model": given.model, "embedder": given.embedder, "store": store})
        with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as file:
            if not isinstance(file, EmbedderFile):
                raise LocalctxError(file or "an embedder is needed")
            streamed = replace(settings, strategy="stream")
            measured = (measure(model, streamed, one, file, landmarks=given.landmarks) for one in wanted)
            rows = told(chain.from_iterable(measured), as_json=given.json)
    if not given.json:
        sys.stdout.write(render(summed(rows)) + "\n")


if __name__ == "__main__":
    run_as_program(main)
