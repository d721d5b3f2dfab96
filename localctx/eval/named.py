"""How many of many passages must be led by header lines, which are evaluated with every question? A leaf.

Chapters that say the same of different things, stored once; the right passage is among many of them, from
stored KV, nothing evaluated again. It is the best one or another place's in the ranking, which is otherwise
random: what is led by a header line are the best passages, and the others stand before them, as
`ask` puts them. Every question is asked in all ways before the next one.

    python -m localctx.eval.named [--documents 2] [--questions 24] [--arms 24:24,24:6] [--places 0]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from localctx.assemble import best_last
from localctx.bench.program import run_as_program
from localctx.errors import UsageError
from localctx.eval.focus import opened
from localctx.eval.rows_told import told
from localctx.from_settings import ChosenModel, choose_model
from localctx.settings import Settings
from localctx.verify.confusable import KINDS, Chapter, Shape, make_document, words
from localctx.verify.gate import probe_text
from localctx.verify.questions import Asker, Mode, store_document

__all__ = ["Arm", "Tried", "Wanted", "arm_of", "arranged", "measure", "render"]

SHAPE = Shape(n_filler=60, n_passage=64, n_chapters=24)
MORE = (
    "Lima Cork Bergen Leeds Kyoto Dakar Sofia Cairo Delhi Porto Minsk Havana Milan Paris Rome Bern "
    "Ghent Lyon Turku Izmir Jakarta Manila Nairobi Lagos Tokyo Seoul Boston Denver Austin Miami "
    "Dallas Reno Tampa Omaha Dublin Belfast Cardiff Bristol York Bath Derby Poole Sligo Bremen Kiel "
    "Essen Mainz Graz Linz Basra Dubai Doha"
)
NAMES = (*KINDS["city"].names, *MORE.split())
WINDOW = 4096


@dataclass(frozen=True, slots=True, order=True)
class Arm:
    """Passages that are attended, and how many of them, the best ones, are led by a header line."""

    n_passages: int
    n_named: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """Of each document n_questions chapters are asked about. places: of the right passage in the ranking,
    from 0 · shares: of the passages' tokens that are evaluated again.
    """

    arms: tuple[Arm, ...]
    places: tuple[int, ...] = (0,)
    shares: tuple[float, ...] = (0.0,)
    n_documents: int = 2
    n_questions: int = 24
    seed: int = 0
    shape: Shape = SHAPE

    def check(self) -> None:
        """Raises UsageError for what cannot be asked."""
        if not 1 <= self.n_questions <= self.shape.n_chapters or self.n_documents < 1:
            raise UsageError(f"--questions: 1 to {self.shape.n_chapters}, of one document at least")
        n_least = min(arm.n_passages for arm in self.arms)
        if not all(0 <= place < n_least for place in self.places):
            raise UsageError(f"--places: 0 to {n_least - 1}, in the passages of every arm")
        if not all(0 <= share <= 1 for share in self.shares):
            raise UsageError("--shares: 0 to 100")


@dataclass(frozen=True, slots=True)
class Tried:
    """One question asked in one way. n_evaluated: tokens before the answer's first one."""

    document: int
    asked: str
    place: int
    share: float
    arm: Arm
    is_right: bool
    n_evaluated: int


def arm_of(text: str) -> Arm:
    """`24:16` as an arm. Raises UsageError."""
    try:
        n_passages, n_named = map(int, text.split(":"))
    except ValueError:
        n_passages = n_named = 0
    if not 1 <= n_named <= n_passages <= len(NAMES):
        raise UsageError(f"--arms: {text!r} is no way to name passages", "PASSAGES:NAMED, as 24:16")
    return Arm(n_passages, n_named)


def _numbers(text: str, option: str) -> list[float]:
    """Numbers with commas between them. Raises UsageError."""
    try:
        return [float(one) for one in text.split(",")]
    except ValueError:
        raise UsageError(f"{option}: {text!r} is no list of numbers") from None


def arranged(ranked: Sequence[Chapter], n_named: int) -> list[Chapter]:
    """The passages, best first, as they are put in: those below n_named without their header line."""
    in_order = sorted(ranked, key=lambda chapter: chapter.first)
    named = set(ranked[:n_named])
    unnamed = {number for number, one in enumerate(in_order) if one not in named}
    found = best_last([[one] for one in in_order], in_order.index(ranked[0]), unnamed)
    return [one if one in named else replace(one, header="") for one in found]


def measure(settings: Settings, chosen: ChosenModel, wanted: Wanted) -> Iterator[Tried]:
    """Every answer as soon as it is there. Raises NotComposable for a model whose KV cannot be stored."""
    with opened(settings, chosen) as (model, context):
        asker, haystack = Asker(model, context), words(probe_text(), model.tokenize)
        for number in range(wanted.seed, wanted.seed + wanted.n_documents):
            kind = replace(KINDS["city"], names=NAMES[: wanted.shape.n_chapters])
            document = make_document(number, haystack, model.tokenize, kind, wanted.shape)
            stored = store_document(context, asker.prefix, document, WINDOW, "f16")
            source = random.Random(number)  # noqa: S311  # reproducible, not secret
            for asked in source.sample(document.chapters, wanted.n_questions):
                others = [chapter for chapter in document.chapters if chapter is not asked]
                others = source.sample(others, len(others))
                for place in wanted.places:
                    ranked = [*others[:place], asked, *others[place:]]
                    for share in wanted.shares:
                        for arm in wanted.arms:
                            attended = arranged(ranked[: arm.n_passages], arm.n_named)
                            mode = Mode("named", refresh=share)
                            found = asker.ask(document, stored, attended, _as_in(attended, asked), mode)
                            yield Tried(
                                number, asked.name, place, share, arm, found.is_right, found.n_evaluated
                            )


def _as_in(attended: Sequence[Chapter], asked: Chapter) -> Chapter:
    """The chapter that is asked about, as it is attended."""
    return next(chapter for chapter in attended if chapter.name == asked.name)


def render(tried: Sequence[Tried]) -> str:
    """A table in Markdown, of the questions that were asked in every way. Gained and lost: beside as many
    passages that are all led by header lines.
    """
    ways = sorted({(one.share, one.place, one.arm) for one in tried})
    by_way = {
        way: {(one.document, one.asked): one for one in tried if (one.share, one.place, one.arm) == way}
        for way in ways
    }
    complete = set.intersection(*map(set, by_way.values())) if by_way else set()
    lines = [
        "| passages | led by header lines | right one's place | evaluated again | right | gained, lost "
        "| tokens evaluated |",
        "|---|---|---|---|---|---|---|",
    ]
    for share, place, arm in ways:
        found = by_way[share, place, arm]
        plain = by_way.get((share, place, Arm(arm.n_passages, arm.n_passages)), found)
        right = [key for key in complete if found[key].is_right]
        gained = sum(not plain[key].is_right for key in right)
        lost = sum(plain[key].is_right for key in complete) - len(right) + gained
        n_evaluated = sum(found[key].n_evaluated for key in complete) / max(1, len(complete))
        cells = (arm.n_passages, arm.n_named, place + 1, f"{share:.0%}", f"{len(right)} of {len(complete)}")
        lines.append("| " + " | ".join(map(str, cells)) + f" | {gained}, {lost} | {n_evaluated:,.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.named")
    parser.add_argument("--documents", type=int, default=2)
    parser.add_argument(
        "--questions", type=int, default=24, help="of each document, at most its 24 or more chapters"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first document")
    parser.add_argument("--arms", default="24:24,24:6", help="PASSAGES:NAMED, with commas")
    parser.add_argument("--places", default="0", help="of the right passage in the ranking, from 0")
    parser.add_argument("--shares", default="0", help="percent of the passages' tokens evaluated again")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--model")
    parser.add_argument("--json", action="store_true", help="a line of JSON an answer, as it is found")
    given = parser.parse_args(arguments)
    arms = tuple(map(arm_of, given.arms.split(",")))
    places = tuple(map(int, _numbers(given.places, "--places")))
    shares = tuple(share / 100 for share in _numbers(given.shares, "--shares"))
    shape = replace(SHAPE, n_chapters=max(SHAPE.n_chapters, *(arm.n_passages for arm in arms)))
    wanted = Wanted(arms, places, shares, given.documents, given.questions, given.seed, shape)
    wanted.check()
    settings, chosen = choose_model({"model": given.model, "store": "off", "threads": given.threads})
    tried = told(measure(settings, chosen, wanted), as_json=given.json)
    if not given.json:
        sys.stdout.write(render(tried) + "\n")


if __name__ == "__main__":
    run_as_program(main)
