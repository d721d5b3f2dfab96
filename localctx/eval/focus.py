"""Order and focus: how many passages, in which order, how sharply and how far back they are seen. A leaf.

Chapters that say the same of different things, stored once; the right passage is among 4, 8 or 12 of them, a
third of the tokens being evaluated again, as `ask` does. Every question is asked in all ways before the next
one, so that a run that is ended has compared like with like.

An arm is PASSAGES:ORDER[:FACTOR[:FAR]]. FACTOR is YaRN's attention factor at the time of the question: keys
and queries are that much longer, so weights are sharper above 1. FAR weighs by distance: the restored keys of
the passage farthest from the question are that much longer, those between by powers of it.

    python -m localctx.eval.focus [--documents 4] [--questions 12] [--arms 4:document,8:best-last:1.1]
"""

from __future__ import annotations

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace

import numpy as np

from localctx import _native
from localctx.bench.program import run_as_program
from localctx.errors import NotComposable, UsageError
from localctx.eval.rows_told import told
from localctx.from_settings import ChosenModel, choose_model, open_model_for
from localctx.kv import KVContext
from localctx.session.cache import KVModel
from localctx.settings import Settings
from localctx.verify.confusable import KINDS, Chapter, ConfusableDocument, Shape, make_document, words
from localctx.verify.gate import probe_text
from localctx.verify.questions import Asker, Mode, StoredDocument, store_document

__all__ = ["ORDERS", "Arm", "Tried", "Wanted", "arm_of", "measure", "opened", "ordered", "render", "weighed"]

ORDERS = ("document", "best-last", "best-first")
DEFAULT_ARMS = (
    "4:document,4:best-last,8:document,8:best-last,12:document,12:best-last,"
    "8:document:0.9,8:document:1.1,8:best-last:1:0.8"
)
SHAPE = Shape(n_filler=100, n_passage=64, n_chapters=12)
N_CTX = 8192
WINDOW = 4096
AS_ASKED = Mode("as ask does", codec="f16", refresh=1 / 3)


@dataclass(frozen=True, slots=True)
class Arm:
    """One way to put passages before a question."""

    n_passages: int
    order: str = ORDERS[0]
    factor: float = 1.0
    far: float = 1.0

    @property
    def name(self) -> str:
        """As it is typed, all of it."""
        return f"{self.n_passages}:{self.order}:{self.factor:g}:{self.far:g}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Questions of each document are about its first chapters in random order; shape: of the documents."""

    arms: tuple[Arm, ...]
    n_documents: int = 4
    n_questions: int = 12
    seed: int = 0
    shape: Shape = SHAPE


@dataclass(frozen=True, slots=True)
class Tried:
    """One question asked in one way. n_evaluated: tokens before the answer's first one."""

    document: int
    asked: str
    arm: str
    is_right: bool
    n_evaluated: int


def arm_of(text: str) -> Arm:
    """`8:best-last:1.1` as an arm. Raises UsageError."""
    n, order, *others = (text if ":" in text else f"{text}:{ORDERS[0]}").split(":")
    try:
        n_passages, numbers = int(n), [float(one) for one in others]
    except ValueError:
        n_passages, numbers = 0, []
    if not (1 <= n_passages <= 12 and order in ORDERS and len(numbers) < 3 and all(x > 0 for x in numbers)):
        raise UsageError(
            f"--arms: {text!r} is no way to put passages", f"PASSAGES:{'|'.join(ORDERS)}[:FACTOR[:FAR]]"
        )
    return Arm(n_passages, order, *numbers)


def ordered(asked: Chapter, others: Sequence[Chapter], order: str) -> list[Chapter]:
    """The passages as they are put in: `asked` is the best, the others keep the document's order."""
    rest = sorted(others, key=lambda chapter: chapter.first)
    if order == "best-last":
        return [*rest, asked]
    if order == "best-first":
        return [asked, *rest]
    return sorted([asked, *rest], key=lambda chapter: chapter.first)


def measure(settings: Settings, chosen: ChosenModel, wanted: Wanted) -> Iterator[Tried]:
    """Every answer as soon as it is there. Raises NotComposable for a model whose KV cannot be stored, and
    what the engine raises.
    """
    with ExitStack() as stack:
        model, context = stack.enter_context(opened(settings, chosen))
        asker = Asker(model, context)
        askers = {1.0: asker}
        context.place(asker.prefix, [])
        like = context.export(0, 1)
        for factor in sorted({arm.factor for arm in wanted.arms} - {1.0}):
            sharper = replace(
                settings, rope_scaling="yarn", rope_scale=1.0, yarn_ext_factor=0.0, yarn_attn_factor=factor
            )
            askers[factor] = Asker(*stack.enter_context(opened(sharper, chosen)))
        haystack = words(probe_text(), model.tokenize)
        for number in range(wanted.seed, wanted.seed + wanted.n_documents):
            document = make_document(number, haystack, model.tokenize, KINDS["city"], wanted.shape)
            stored = store_document(context, asker.prefix, document, WINDOW, AS_ASKED.codec)
            for asked, others in _questions(document, number, wanted.n_questions):
                for arm in wanted.arms:
                    attended = ordered(asked, others[: arm.n_passages - 1], arm.order)
                    seen = weighed(like, context.rope_table.head_dim, stored, attended, arm.far)
                    found = askers[arm.factor].ask(document, seen, attended, asked, AS_ASKED)
                    yield Tried(number, asked.name, arm.name, found.is_right, found.n_evaluated)


def _questions(
    document: ConfusableDocument, seed: int, n_questions: int
) -> Iterator[tuple[Chapter, list[Chapter]]]:
    """Chapters that are asked about, and the others in the order in which they are taken along."""
    source = random.Random(seed)  # noqa: S311  # reproducible, not secret
    for asked in source.sample(document.chapters, n_questions):
        others = [chapter for chapter in document.chapters if chapter is not asked]
        yield asked, source.sample(others, len(others))


@contextmanager
def opened(settings: Settings, chosen: ChosenModel) -> Iterator[tuple[KVModel, KVContext]]:
    """The model and a context of it. Raises NotComposable."""
    with closing(open_model_for(settings, chosen)) as model:
        refusal = model.kv_refusal() if isinstance(model, KVModel) else "it has no KV to store"
        if refusal is not None or not isinstance(model, KVModel):
            raise NotComposable(f"{chosen.name}: {refusal}", "take another --model")
        with closing(model.open_kv_context(min(model.usable_n_ctx(), N_CTX))) as context:
            yield model, context


def weighed(
    like: _native.State, head_dim: int, stored: StoredDocument, attended: Sequence[Chapter], far: float
) -> StoredDocument:
    """The document with the keys of the attended passages longer or shorter: the first one's by `far`, the
    last one's not at all. like: any state of the context.
    """
    if far == 1.0:
        return stored
    as_it_is = _native.Rope(np.zeros(head_dim // 2), head_dim, neox=False)
    pieces = {}
    for place, chapter in enumerate(attended):
        weight = far ** (1 - place / max(1, len(attended) - 1))
        longer = _native.Rope(np.zeros(head_dim // 2), head_dim, neox=False, magnitude=weight)
        at = chapter.first
        for run, row, n_tokens in stored.rows(chapter.first, chapter.end):
            blob = _native.compose(like, [(run, row, n_tokens)], np.arange(n_tokens, dtype=np.int32), longer)
            data = _native.encode(_native.State(blob), 0, n_tokens, as_it_is, AS_ASKED.codec)
            pieces[at] = _native.Run(data)
            at += n_tokens
    starts = tuple(sorted(pieces))
    return StoredDocument(starts, tuple(pieces[start] for start in starts))


def render(tried: Sequence[Tried], arms: Sequence[Arm]) -> str:
    """A table in Markdown, of the questions that were asked in every way. Gained and lost: beside as many
    passages in the document's order.
    """
    by_arm = {
        arm.name: {(one.document, one.asked): one for one in tried if one.arm == arm.name} for arm in arms
    }
    complete = set.intersection(*map(set, by_arm.values())) if by_arm else set()
    lines = [
        "| passages | order | attention factor | far | right | gained, lost | evaluated |",
        "|---|---|---|---|---|---|---|",
    ]
    for arm in arms:
        found = {key: by_arm[arm.name][key] for key in complete}
        plain = by_arm.get(Arm(arm.n_passages).name, found)
        gained = sum(one.is_right > plain[key].is_right for key, one in found.items())
        lost = sum(one.is_right < plain[key].is_right for key, one in found.items())
        n_right = sum(one.is_right for one in found.values())
        n_evaluated = sum(one.n_evaluated for one in found.values()) / max(1, len(found))
        cells = (arm.n_passages, arm.order, f"{arm.factor:g}", f"{arm.far:g}", f"{n_right} of {len(found)}")
        lines.append("| " + " | ".join(map(str, cells)) + f" | {gained}, {lost} | {n_evaluated:,.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.focus")
    parser.add_argument("--documents", type=int, default=4)
    parser.add_argument("--questions", type=int, default=12, help="of each document, at most 12")
    parser.add_argument("--seed", type=int, default=0, help="of the first document")
    parser.add_argument("--arms", default=DEFAULT_ARMS, help="PASSAGES:ORDER[:FACTOR[:FAR]], with commas")
    parser.add_argument("--passage", type=int, default=SHAPE.n_passage, help="tokens of a passage")
    parser.add_argument("--filler", type=int, default=SHAPE.n_filler, help="tokens after the name")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--model")
    parser.add_argument("--json", action="store_true", help="a line of JSON an answer, as it is found")
    given = parser.parse_args(arguments)
    settings, chosen = choose_model({"model": given.model, "store": "off", "threads": given.threads})
    arms = tuple(map(arm_of, given.arms.split(",")))
    shape = Shape(given.filler, given.passage, SHAPE.n_chapters)
    wanted = Wanted(arms, given.documents, given.questions, given.seed, shape)
    tried = told(measure(settings, chosen, wanted), as_json=given.json)
    if not given.json:
        sys.stdout.write(render(tried, arms) + "\n")


if __name__ == "__main__":
    run_as_program(main)
