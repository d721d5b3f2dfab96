"""Adaptive blocks beside fixed ones of the same mean size: where they cut, and whether they are found.

    python -m localctx.eval.boundaries [FILE] [--language en] [--tokens 128] [--seed 0] [--json]

Without a file: stretches of two to five paragraphs from Python's documentation, each on another topic than
the one before, without headings. FILE.jsonl has a "question" and an "answer" a line: the answers one after
the other are the text, and each question is searched for in its blocks by words. Any other FILE has its
topics between lines of a "%" alone, as files of fortunes have.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

from localctx.bench.inputs import built_in_text
from localctx.bench.program import run_as_program
from localctx.blocks import BlockPolicy, split
from localctx.eval.truncation import StringText
from localctx.from_settings import choose_model, open_model_for
from localctx.index import LexicalIndex
from localctx.values import Block, Tokenizer

__all__ = ["Row", "measure", "render", "topics_of"]

N_TOPICS = 300
LEAST_CHARACTERS = 120
MATCHING_ROUNDS = 4
CLOSE_ENOUGH = 0.01


@dataclass(frozen=True, slots=True)
class Row:
    """One policy. cut: share of the topic changes at which a block ends · purity: share of the text that
    stands in a block mainly about its topic · first, among_four, reciprocal_rank: how soon a block of the
    answer comes (None without questions).
    """

    policy: str
    n_blocks: int
    mean_tokens: float
    cut: float
    purity: float
    first: float | None = None
    among_four: float | None = None
    reciprocal_rank: float | None = None


def topics_of(text: str, seed: int, n: int = N_TOPICS) -> list[str]:
    """Stretches of the sections of a Markdown text, no two neighbours from the same one."""
    sections = [
        [part for part in re.split(r"\n\n+", section) if len(part) > LEAST_CHARACTERS]
        for section in re.split(r"(?m)^# .*$", text)
    ]
    sections = [parts for parts in sections if len(parts) >= 3]
    draw = random.Random(seed)  # noqa: S311  # a draw that anyone can repeat
    topics: list[str] = []
    last = -1
    while len(topics) < n:
        place = draw.randrange(len(sections))
        if place != last:
            size = draw.randint(2, 5)
            first = draw.randrange(max(1, len(sections[place]) - size))
            topics.append("\n\n".join(sections[place][first : first + size]))
            last = place
    return topics


def measure(
    topics: Sequence[str],
    questions: Sequence[str],
    tokenize: Tokenizer,
    target_tokens: int,
    language: str = "en",
) -> tuple[Row, ...]:
    """Fixed, then adaptive blocks whose target is set so that they are as large on average."""
    topics = [topic.strip() for topic in topics]
    starts = [0]
    for topic in topics:
        starts.append(starts[-1] + len(topic) + 2)
    text, counted = "\n\n".join(topics), cache(tokenize)

    def blocks_of(policy: BlockPolicy, target: int) -> list[Block]:
        return list(split(StringText(text), counted, target_tokens=target, policy=policy))

    fixed = blocks_of(BlockPolicy(), target_tokens)
    target, adaptive = target_tokens, list[Block]()
    for _ in range(MATCHING_ROUNDS):
        adaptive = blocks_of(BlockPolicy("adaptive", language), target)
        if abs(len(adaptive) / len(fixed) - 1) < CLOSE_ENOUGH:
            break
        target = max(16, round(target * len(adaptive) / len(fixed)))
    ways = {"fixed": fixed, "adaptive": adaptive}
    return tuple(_row(name, blocks, text, starts, questions) for name, blocks in ways.items())


def _row(name: str, blocks: list[Block], text: str, starts: list[int], questions: Sequence[str]) -> Row:
    shares = [_shares(block, starts) for block in blocks]
    ends = {len(text[: block.end].rstrip()) for block in blocks}
    changes = [len(text[:start].rstrip()) for start in starts[1:-1]]
    found = _found(blocks, shares, questions) if questions else (None, None, None)
    return Row(
        name,
        len(blocks),
        sum(block.n_tokens for block in blocks) / len(blocks),
        sum(change in ends for change in changes) / max(1, len(changes)),
        sum(max(share.values()) for share in shares) / len(text),
        *found,
    )


def _shares(block: Block, starts: list[int]) -> dict[int, int]:
    """Code points of the block in each topic."""
    first, last = bisect_right(starts, block.start) - 1, bisect_right(starts, block.end - 1) - 1
    edges = [block.start, *starts[first + 1 : last + 1], block.end]
    return {first + place: b - a for place, (a, b) in enumerate(pairwise(edges))}


def _found(
    blocks: list[Block], shares: list[dict[int, int]], questions: Sequence[str]
) -> tuple[float, float, float]:
    """How soon a block that is mainly the answer comes, else the one that holds most of it."""
    first = four = reciprocal = 0.0
    with LexicalIndex.build(blocks) as index:
        for number, question in enumerate(questions):
            right = {n for n, share in enumerate(shares) if 2 * share.get(number, 0) >= sum(share.values())}
            right = right or {max(range(len(shares)), key=lambda n: shares[n].get(number, 0))}
            ranks = [rank for rank, (block, _) in enumerate(index.search(question).ranking) if block in right]
            if ranks:
                first += ranks[0] == 0
                four += ranks[0] < 4
                reciprocal += 1 / (1 + ranks[0])
    n = len(questions)
    return first / n, four / n, reciprocal / n


def render(rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    lines = [
        "| blocks | number | tokens on average | topic changes cut at | purity | first | among four | MRR |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        found = (row.first, row.among_four, row.reciprocal_rank)
        cells = " | ".join("" if value is None else f"{value:.3f}" for value in found)
        lines.append(
            f"| {row.policy} | {row.n_blocks} | {row.mean_tokens:.1f} | {row.cut:.3f} | {row.purity:.3f} "
            f"| {cells} |"
        )
    return "\n".join(lines)


def _read(path: Path) -> tuple[list[str], list[str]]:
    """A file's topics, and the questions about them where it has some."""
    text = path.read_text("utf-8")
    if path.suffix == ".jsonl":
        pairs = [json.loads(line) for line in text.splitlines() if line.strip()]
        return [pair["answer"] for pair in pairs], [pair["question"] for pair in pairs]
    return [topic.strip() for topic in re.split(r"(?m)^%$", text) if topic.strip()], []


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.boundaries")
    parser.add_argument("file", nargs="?", type=Path, help="pairs (.jsonl), or topics between lines of %%")
    parser.add_argument("--language", default="en", help="of the text")
    parser.add_argument("--tokens", type=int, default=128, help="target of a block")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--model", help="whose tokenizer counts; default: the embedded one")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    topics, questions = _read(asked.file) if asked.file else (topics_of(built_in_text(), asked.seed), [])
    with closing(open_model_for(*choose_model({"model": asked.model}))) as model:
        rows = measure(topics, questions, model.tokenize, asked.tokens, asked.language)
    sys.stdout.write((json.dumps([asdict(row) for row in rows]) if asked.json else render(rows)) + "\n")


if __name__ == "__main__":
    run_as_program(main)
