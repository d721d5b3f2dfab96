"""Truncation beside its baselines: does the sentence that answers survive, how much of the text is covered?

    python -m localctx.eval.truncation [FILE] [--tokens 50000] [--share 0.1] [--embedder NAME|GGUF] [--json]

Fifty facts are planted in a text at places drawn by a seed; each is asked about in its own words and in words
of which it holds none. Kept means: the whole sentence is in what is left. The baselines keep as many tokens:
the head, the tail, both ends (the middle cut), sentences at even distances. Knows no answering model.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from localctx.bench.inputs import built_in_text
from localctx.bench.program import run_as_program
from localctx.blocks import Embed
from localctx.from_settings import choose_model, open_document_for, open_model_for
from localctx.index.terms import content_words, stem
from localctx.registry.selectors import opened_embedder
from localctx.selection import sentences
from localctx.session.condense import condense
from localctx.values import Tokenizer
from localctx.verify.probes import KINDS, PROBES, Probe

__all__ = ["FACTS", "Report", "Row", "StringText", "baselines", "measure", "plant", "render"]

_MORE = """
The beekeeper paid her taxes in wax candles.
In what did the beekeeper pay her taxes?
How was the treasury satisfied by the woman with the hives?

Smoke signals warned the fort of the cavalry.
What warned the fort of the cavalry?
How did the garrison learn that riders were approaching?
"""
FACTS = (*PROBES, *(Probe(*row.split("\n")) for row in _MORE.strip().split("\n\n")))
"""No question of the second kind shares a content word with its fact; a test proves it."""
CURRENT = "condense, words"
MEANING = "condense, words and meaning"


@dataclass(frozen=True, slots=True)
class StringText:
    """A string as a values.TextSource."""

    text: str

    @property
    def n_code_points(self) -> int:
        """Its length."""
        return len(self.text)

    def read(self, start: int, end: int) -> str:
        """A part of it."""
        return self.text[start:end]

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[str]:
        """That part as the only piece."""
        return iter([self.text[start:end]])


@dataclass(frozen=True, slots=True)
class Row:
    """One way of cutting, and the most tokens that any of its results had.

    asked, paraphrased: facts kept, each when it was asked about in its own words, in others · facts: those
    kept without a question · terms, meaning: what is covered then, in [0, 1]: words by weight, sentences by
    the cosine of the nearest kept one (None without an embedder).
    """

    name: str
    asked: int
    paraphrased: int
    facts: int
    terms: float
    meaning: float | None
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Report:
    """All ways on one text."""

    n_tokens: int
    budget: int
    n_facts: int
    seed: int
    rows: tuple[Row, ...]


def plant(text: str, facts: Sequence[Probe], seed: int) -> str:
    """The text with each fact behind a sentence of it, at places drawn by the seed."""
    ends = [sentence.end for sentence in sentences(text)][:-1]
    places = sorted(random.Random(seed).sample(ends, len(facts)))  # noqa: S311  # a draw that anyone can repeat
    order = list(facts)
    random.Random(seed + 1).shuffle(order)  # noqa: S311  # the same
    edges = [0, *places, len(text)]
    pieces = [text[a:b] for a, b in pairwise(edges)]
    return "".join(
        piece + (f" {order[number].fact}" if number < len(order) else "")
        for number, piece in enumerate(pieces)
    )


def baselines(text: str, tokenize: Tokenizer, budget: int) -> dict[str, str]:
    """What the usual ways of cutting leave, whole sentences of at most `budget` tokens."""
    found = sentences(text)
    costs = [len(tokenize(sentence.text, False)) + 1 for sentence in found]

    def kept(order: Sequence[int], room: int) -> set[int]:
        chosen: set[int] = set()
        for place in order:
            room -= costs[place]
            if room < 0:
                break
            chosen.add(place)
        return chosen

    n = len(found)
    step = sum(costs) / budget
    evenly = [round(number * step) for number in range(int(n / step) + 1) if round(number * step) < n]
    ways = {
        "head": kept(range(n), budget),
        "tail": kept(range(n - 1, -1, -1), budget),
        "middle cut": kept(range(n), budget // 2) | kept(range(n - 1, -1, -1), budget // 2),
        "uniform": kept(evenly, budget),
    }
    return {name: "\n".join(found[place].text for place in sorted(chosen)) for name, chosen in ways.items()}


def measure(
    text: str,
    tokenize: Tokenizer,
    share: float = 0.1,
    embed: Embed | None = None,
    seed: int = 0,
    facts: Sequence[Probe] = FACTS,
) -> Report:
    """Plant, cut in every way, count."""
    planted = plant(text, facts, seed)
    counted = cache(tokenize)
    n_tokens = len(tokenize(planted, True))
    budget = int(share * n_tokens)
    look = _Look(planted, counted, budget, embed, facts)
    rows = []
    for name, left in baselines(planted, counted, budget).items():
        rows.append(look.row(name, left, dict.fromkeys(KINDS, look.n_kept(left)), len(tokenize(left, True))))
    for name, embedder in ((CURRENT, None), (MEANING, embed)):
        if name == CURRENT or embed is not None:
            rows.append(look.condensed(name, embedder))
    return Report(n_tokens, budget, len(facts), seed, tuple(rows))


class _Look:
    """Counts what is left of one planted text."""

    def __init__(
        self, planted: str, tokenize: Tokenizer, budget: int, embed: Embed | None, facts: Sequence[Probe]
    ) -> None:
        self._planted, self._tokenize, self._budget, self._facts = planted, tokenize, budget, facts
        self._embed = None if embed is None else _Memory(embed)
        self._sentences = [sentence.text for sentence in sentences(planted)]
        self._terms = [set(map(stem, content_words(sentence))) for sentence in self._sentences]

    def n_kept(self, left: str) -> int:
        """Facts whose sentence is in what is left."""
        return sum(_holds(left, fact.fact) for fact in self._facts)

    def condensed(self, name: str, embed: Embed | None) -> Row:
        """The product's own way, once for each question and once without."""
        embed = None if embed is None else self._embed
        counts, most = dict.fromkeys(KINDS, 0), 0
        for fact in self._facts:
            for kind in KINDS:
                left = condense(
                    StringText(self._planted), self._tokenize, self._budget,
                    question=fact.question(kind), embed=embed,
                )  # fmt: skip
                counts[kind] += _holds(left.text, fact.fact)
                most = max(most, left.n_tokens)
        unasked = condense(StringText(self._planted), self._tokenize, self._budget, embed=embed)
        return self.row(name, unasked.text, counts, max(most, unasked.n_tokens))

    def row(self, name: str, left: str, counts: dict[str, int], n_tokens: int) -> Row:
        """A way with what it left without a question."""
        kept = [place for place, sentence in enumerate(self._sentences) if _holds(left, sentence)]
        asked, paraphrased = (counts[kind] for kind in KINDS)
        return Row(
            name, asked, paraphrased, self.n_kept(left),
            self._covered_terms(kept), self._covered_meaning(kept), n_tokens,
        )  # fmt: skip

    def _covered_terms(self, kept: Sequence[int]) -> float:
        """Words said in kept sentences; each weighs as often as sentences hold it, by its rarity."""
        counts: dict[str, int] = {}
        for terms in self._terms:
            for term in terms:
                counts[term] = counts.get(term, 0) + 1
        n = len(self._terms)
        weights = {term: count * float(np.log(n / count)) for term, count in counts.items()}
        said = set().union(*(self._terms[place] for place in kept)) if kept else set()
        return sum(weights[term] for term in said) / (sum(weights.values()) or 1.0)

    def _covered_meaning(self, kept: Sequence[int]) -> float | None:
        """The mean over all sentences of the largest cosine with a kept one."""
        if self._embed is None or not kept:
            return None if self._embed is None else 0.0
        vectors = self._embed(self._sentences)
        return float((vectors @ vectors[list(kept)].T).max(axis=1).mean())


class _Memory:
    """An embedder that sees each text once."""

    def __init__(self, embed: Embed) -> None:
        self._embed = embed
        self._known: dict[str, NDArray[np.float32]] = {}

    def __call__(self, texts: Sequence[str]) -> NDArray[np.float32]:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._embed(new), strict=True))
        return np.array([self._known[text] for text in texts], np.float32)


def _holds(left: str, sentence: str) -> bool:
    """Whether the whole sentence is there, line breaks aside."""
    return sentence in left or " ".join(sentence.split()) in " ".join(left.split())


def render(report: Report) -> str:
    """The report as a table in Markdown."""
    n = report.n_facts
    lines = [
        f"{report.n_tokens:,} tokens cut to {report.budget:,}; {n} facts, asked in their words / in others",
        "",
        "| way | asked | paraphrased | no question: facts | words | meaning | tokens |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in report.rows:
        meaning = "" if row.meaning is None else f"{row.meaning:.3f}"
        lines.append(
            f"| {row.name} | {row.asked} of {n} | {row.paraphrased} of {n} | {row.facts} of {n} "
            f"| {row.terms:.3f} | {meaning} | {row.n_tokens:,} |"
        )
    return "\n".join(lines)


def _beginning(text: str, tokenize: Tokenizer, n_tokens: int) -> str:
    """The first sentences of a text that have so many tokens."""
    taken = end = 0
    for sentence in sentences(text):
        taken += len(tokenize(sentence.text, False)) + 1
        if taken > n_tokens:
            break
        end = sentence.end
    return text[:end]


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.truncation")
    parser.add_argument("file", nargs="?", help="any document; default: Python's documentation")
    parser.add_argument("--tokens", type=int, default=50_000, help="of its beginning")
    parser.add_argument("--share", type=float, default=0.1, help="of the tokens that are to be left")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="whose tokenizer counts; default: the embedded one")
    parser.add_argument("--embedder", help="name or GGUF file; off: by words alone")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    with ExitStack() as stack:
        settings, chosen = choose_model({"model": asked.model, "embedder": asked.embedder})
        model = stack.enter_context(closing(open_model_for(settings, chosen)))
        if asked.file:
            document = stack.enter_context(open_document_for(asked.file, settings))
            text = document.read(0, document.text.n_code_points)
        else:
            text = built_in_text()
        beginning = _beginning(text, model.tokenize, asked.tokens)
        file = stack.enter_context(opened_embedder(settings))
        if isinstance(file, str):
            sys.stderr.write(f"by words alone: {file}\n")
        embed = None if file is None or isinstance(file, str) else file.open().vectors
        report = measure(beginning, model.tokenize, asked.share, embed, asked.seed)
    sys.stdout.write((json.dumps(asdict(report)) if asked.json else render(report)) + "\n")


if __name__ == "__main__":
    run_as_program(main)
