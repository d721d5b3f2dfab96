"""Which sentences a question points at, with and without token vectors: is the right one among them? A leaf.

The passages are those that `ask` chooses; a share of them is taken, as is evaluated again. No prefill.

    python -m localctx.eval.pointed [--length 16k] [--questions 20] [--seed 0]
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

from localctx.assemble import pick_refresh
from localctx.bench.program import run_as_program
from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.errors import LocalctxError
from localctx.eval.documents import GeneratedDocument
from localctx.eval.generate import Wanted, generate
from localctx.eval.niah import parse_length
from localctx.from_settings import choose_model, open_document_for, open_model_for
from localctx.registry.selectors import opened_embedder
from localctx.session.events import ignore_progress, result_of
from localctx.session.filling import pointed_blocks
from localctx.session.opening import index_all
from localctx.session.pointing import pointed_sentences
from localctx.session.ranking import ranked_blocks
from localctx.session.reading import Passage
from localctx.session.run import Run, start
from localctx.session.vectors import RunVectors
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["SHARES", "TASKS", "measure"]

TASKS = ("single", "paraphrased", "multikey", "qa")
SHARES = (0.1, 0.2, 1 / 3)
ROOM = 1 << 20


def measure(
    model: Model, settings: Settings, wanted: Wanted, embedder: EmbedderFile
) -> dict[tuple[str, str], list[int]]:
    """Of each task, by words and by meaning: right sentences in each share, in the passages, in all."""
    found: dict[tuple[str, str], list[int]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for generated in generate(wanted, Path(folder), model.tokenize):
            with open_document_for(str(generated.path), settings) as document:
                for key, counts in _counted(model, settings, generated, document, embedder):
                    before = found.get(key, [0] * len(counts))
                    found[key] = [a + b for a, b in zip(before, counts, strict=True)]
    return found


def _counted(
    model: Model,
    settings: Settings,
    generated: GeneratedDocument,
    document: Document,
    embedder: EmbedderFile,
) -> Iterator[tuple[tuple[str, str], list[int]]]:
    run = start([document], model, settings, ignore_progress)
    run.embedder = embedder
    with index_all(run) as index:
        RunVectors.of(run, embedder).make(range(run.n_blocks))
        for question in generated.questions:
            if not question.spans:
                continue
            hits = result_of(ranked_blocks(run, index, question.text))
            costs = run.readings[0].block_tokens
            numbers = result_of(pointed_blocks(run, hits, question.text, ROOM, costs.__getitem__))
            passages = [run.passage(number) for number in numbers]
            right = [span for span in (_tokens(run, passages, one) for one in question.spans) if span]
            for name, likeness in (("words", None), ("meaning", run.likeness)):
                candidates = pointed_sentences(
                    passages, question.text, model.tokenize, run.language, likeness
                )
                n_tokens = sum(passage.n_tokens for passage in passages)
                counts = []
                for share in SHARES:
                    picked = pick_refresh(candidates, round(share * n_tokens))
                    taken = {token for one in picked for token in range(one.start, one.end)}
                    counts.append(sum(taken.issuperset(range(*span)) for span in right))
                yield (question.task, name), [*counts, len(right), len(question.spans)]


def _tokens(run: Run, passages: Sequence[Passage], span: tuple[int, int]) -> tuple[int, int] | None:
    """The tokens of a span of text without those at its edges; None where it begins in no passage."""
    tokenize = run.model.tokenize
    for passage in passages:
        if passage.start <= span[0] < passage.end:
            text, at = passage.text, span[0] - passage.start
            first = passage.first_token + len(tokenize(text[:at], passage.start == 0))
            n_tokens = len(tokenize(text[at : span[1] - passage.start], False))
            return first + 1, first + n_tokens - 1
    return None


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure and print. Raises what localctx.errors names."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.pointed")
    parser.add_argument("--length", default="16k")
    parser.add_argument("--questions", type=int, default=20, help="of each task; one in four has no answer")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(arguments)
    wanted = Wanted(given.seed, (parse_length(given.length),), ("en",), TASKS, given.questions)
    with tempfile.TemporaryDirectory() as store:
        settings, chosen = choose_model({"store": store})
        with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as file:
            if not isinstance(file, EmbedderFile):
                raise LocalctxError(file or "an embedder is needed")
            found = measure(model, settings, wanted, file)
    shares = " | ".join(f"{share:.0%}" for share in SHARES)
    lines = [f"| task | by | {shares} | chosen | of |", "|---" * (4 + len(SHARES)) + "|"]
    lines += ["| " + " | ".join(map(str, [*key, *counts])) + " |" for key, counts in found.items()]
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    run_as_program(main)
