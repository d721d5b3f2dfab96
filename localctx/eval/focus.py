"""Order and focus: how many passages, in which order, at which attention temperature. A leaf.

Chapters that say the same of different cities, stored once; the right passage is among 4, 8 or 12 of them,
a third of the tokens being evaluated again, as `ask` does. The temperature is YaRN's attention factor at the
time of the question: keys and queries are that much longer, so weights are sharper above 1.

    python -m localctx.eval.focus [--documents 1] [--questions 12] [--passages 4,12] [--factors 0.9,1.1]
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace

from localctx.errors import NotComposable
from localctx.from_settings import ChosenModel, choose_model, open_model_for
from localctx.kv import KVContext
from localctx.session.cache import KVModel
from localctx.settings import Settings
from localctx.verify.confusable import KINDS, Chapter, ConfusableDocument, Shape, make_document, words
from localctx.verify.gate import probe_text
from localctx.verify.questions import Asker, Mode, StoredDocument, store_document

__all__ = ["ORDERS", "Row", "Wanted", "measure", "ordered", "render"]

ORDERS = ("document", "best-last", "best-first")
SHAPE = Shape(n_filler=200, n_passage=128, n_chapters=12)
N_CTX = 8192
WINDOW = 4096
AS_ASKED = Mode("as ask does", codec="f16", refresh=1 / 3)


@dataclass(frozen=True, slots=True)
class Row:
    """One way: right answers of n · n_evaluated: tokens before the first one, on average."""

    n_passages: int
    order: str
    factor: float
    n_right: int
    n: int
    n_evaluated: float


@dataclass(frozen=True, slots=True)
class Wanted:
    """Every number of passages is measured in every order, then in the document's order at every factor."""

    n_documents: int = 1
    n_questions: int = 12
    n_passages: tuple[int, ...] = (4, 12)
    orders: tuple[str, ...] = ORDERS
    factors: tuple[float, ...] = (0.9, 1.1)


@dataclass(frozen=True, slots=True)
class _Question:
    """A chapter that is asked about, and the others in the order in which they are taken along."""

    document: ConfusableDocument
    stored: StoredDocument
    asked: Chapter
    others: tuple[Chapter, ...]


def ordered(asked: Chapter, others: Sequence[Chapter], order: str) -> list[Chapter]:
    """The passages as they are put in: `asked` is the best, the others keep the document's order."""
    rest = sorted(others, key=lambda chapter: chapter.first)
    if order == "best-last":
        return [*rest, asked]
    if order == "best-first":
        return [asked, *rest]
    return sorted([asked, *rest], key=lambda chapter: chapter.first)


def measure(settings: Settings, chosen: ChosenModel, wanted: Wanted) -> Iterator[Row]:
    """A row a way, as soon as it is measured. Raises NotComposable for a model whose KV cannot be stored, and
    what the engine raises.
    """
    with _opened(settings, chosen) as (model, context):
        asker = Asker(model, context)
        questions = list(_questions(model, context, asker.prefix, wanted))
        for n_passages in wanted.n_passages:
            for order in wanted.orders:
                yield _row(asker, questions, n_passages, order, 1.0)
    for factor in wanted.factors:
        sharper = replace(
            settings, rope_scaling="yarn", rope_scale=1.0, yarn_ext_factor=0.0, yarn_attn_factor=factor
        )
        with _opened(sharper, chosen) as (model, context):
            asker = Asker(model, context)
            for n_passages in wanted.n_passages:
                yield _row(asker, questions, n_passages, ORDERS[0], factor)


@contextmanager
def _opened(settings: Settings, chosen: ChosenModel) -> Iterator[tuple[KVModel, KVContext]]:
    """The model and a context of it. Raises NotComposable."""
    with closing(open_model_for(settings, chosen)) as model:
        refusal = model.kv_refusal() if isinstance(model, KVModel) else "it has no KV to store"
        if refusal is not None or not isinstance(model, KVModel):
            raise NotComposable(f"{chosen.name}: {refusal}", "take another --model")
        with closing(model.open_kv_context(min(model.usable_n_ctx(), N_CTX))) as context:
            yield model, context


def _questions(
    model: KVModel, context: KVContext, prefix: Sequence[int], wanted: Wanted
) -> Iterator[_Question]:
    """Of each document, which is prefilled here, the first chapters are asked about."""
    haystack = words(probe_text(), model.tokenize)
    for number in range(wanted.n_documents):
        document = make_document(number, haystack, model.tokenize, KINDS["city"], SHAPE)
        stored = store_document(context, prefix, document, WINDOW, AS_ASKED.codec)
        source = random.Random(number)  # noqa: S311  # reproducible, not secret
        for asked in source.sample(document.chapters, wanted.n_questions):
            others = [chapter for chapter in document.chapters if chapter is not asked]
            yield _Question(document, stored, asked, tuple(source.sample(others, len(others))))


def _row(asker: Asker, questions: Sequence[_Question], n_passages: int, order: str, factor: float) -> Row:
    outcomes = [
        asker.ask(
            one.document,
            one.stored,
            ordered(one.asked, one.others[: n_passages - 1], order),
            one.asked,
            AS_ASKED,
        )
        for one in questions
    ]
    n_right = sum(outcome.is_right for outcome in outcomes)
    n_evaluated = sum(outcome.n_evaluated for outcome in outcomes) / len(outcomes)
    return Row(n_passages, order, factor, n_right, len(outcomes), round(n_evaluated, 1))


def render(rows: Sequence[Row]) -> str:
    """A table in Markdown."""
    lines = ["| passages | order | attention factor | right | evaluated |", "|---|---|---|---|---|"]
    for row in rows:
        cells = (row.n_passages, row.order, f"{row.factor:g}", f"{row.n_right} of {row.n}")
        lines.append("| " + " | ".join(map(str, cells)) + f" | {row.n_evaluated:,.0f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.focus")
    parser.add_argument("--documents", type=int, default=1)
    parser.add_argument("--questions", type=int, default=12, help="of each document, at most 12")
    parser.add_argument("--passages", default="4,12", help="how many are attended, one after another")
    parser.add_argument("--orders", default=",".join(ORDERS))
    parser.add_argument("--factors", default="0.9,1.1", help="YaRN's attention factor, one after another")
    parser.add_argument("--model")
    parser.add_argument("--json", action="store_true", help="a line of JSON a row, as it is found")
    given = parser.parse_args(arguments)
    settings, chosen = choose_model({"model": given.model, "store": "off"})
    wanted = Wanted(
        given.documents,
        given.questions,
        tuple(int(n) for n in given.passages.split(",")),
        tuple(given.orders.split(",")),
        tuple(float(factor) for factor in filter(None, given.factors.split(","))),
    )
    rows = []
    for row in measure(settings, chosen, wanted):
        rows.append(row)
        if given.json:
            sys.stdout.write(json.dumps(asdict(row)) + "\n")
            sys.stdout.flush()
    if not given.json:
        sys.stdout.write(render(rows) + "\n")


if __name__ == "__main__":
    main()
