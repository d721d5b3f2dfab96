"""`eval leader`: answers and their places as evidence moves away and documents change, in every mode.

Joins generation, asking and the report. The measures are those of docs/eval.md.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import ExitStack, closing
from dataclasses import dataclass, replace
from typing import TextIO

from localctx.bench.inputs import kv_model, temporary_store
from localctx.bench.machine import machine
from localctx.engine.embedder import EmbedderFile
from localctx.eval.asking import Examiner
from localctx.eval.generate import check_known
from localctx.eval.leader_asking import LeaderExaminer, Variant
from localctx.eval.leader_documents import Copies, write_copies
from localctx.eval.leader_report import Examined, LeaderReport, outcome_json
from localctx.eval.modes import BOUND, EXACT, MODES, RETRIEVE, SELECT
from localctx.eval.niah import ANSWERS, Options, folder_for, haystack_of, told
from localctx.eval.perturbations import PERTURBATIONS
from localctx.eval.plans import PROSE_TASKS
from localctx.from_settings import open_document_for
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["DEFAULT_LEADER_MODES", "DEFAULT_LEADER_TASKS", "LeaderOptions", "measure"]

DEFAULT_LEADER_TASKS = ("single", "multikey")
DEFAULT_LEADER_MODES = (EXACT, BOUND, "stream-lexical", "stream-fused")
NOT_COMPARED = (RETRIEVE, SELECT)


@dataclass(frozen=True, slots=True)
class LeaderOptions:
    """asked: as for `eval niah` · perturb: names of perturbations."""

    asked: Options
    perturb: tuple[str, ...] = tuple(PERTURBATIONS)

    def check(self) -> None:
        """Raises UsageError for what is not known or makes no sense."""
        self.asked.check()
        check_known("--tasks", self.asked.wanted.tasks, PROSE_TASKS)
        check_known("--modes", self.asked.modes, [mode for mode in MODES if mode not in NOT_COMPARED])
        if self.perturb:
            check_known("--perturb", self.perturb, PERTURBATIONS)


def measure(
    model: Model,
    settings: Settings,
    options: LeaderOptions,
    say: Callable[[str], None],
    embedder: EmbedderFile | str | None = None,
) -> LeaderReport:
    """Generate, change, ask, compare. `say` is told what is being done.

    Raises UsageError for what does not fit, NotComposable for a model whose KV cannot be stored, and what
    documents and sessions raise.
    """
    options.check()
    able, asked = kv_model(model), options.asked
    settings = replace(settings, temp=0.0, max_tokens=asked.wanted.n_answer)
    facts, examined = machine(settings.threads), []
    with temporary_store(settings) as (own, temporary), ExitStack() as stack:
        held = stack.enter_context(closing(Held(Kept.of_settings(own, say))))
        folder = folder_for(asked.data, temporary)
        examiner = LeaderExaminer(Examiner(able, own, asked.modes, held, say, lambda *_: None, embedder))
        haystack = stack.enter_context(haystack_of(asked, own))
        file = stack.enter_context((folder / ANSWERS).open("w", encoding="utf-8", newline="\n"))
        for one in write_copies(asked.wanted, options.perturb, folder, model.tokenize, haystack):
            examined.append(_examined(examiner, one, asked.wanted.n_answer, file))
    return LeaderReport(
        model=model.info,
        machine=facts,
        options={**told(asked), "perturb": list(options.perturb)},
        kv=settings.kv,
        examined=tuple(examined),
    )


def _examined(examiner: LeaderExaminer, one: Copies, n_answer: int, file: TextIO) -> Examined:
    """Everything asked of a document and its copies; each outcome is a line of the file as it comes."""
    settings, tokenize = examiner.examiner.settings, examiner.examiner.model.tokenize
    references, outcomes = one.references(tokenize, n_answer), []
    with ExitStack() as opened:
        variants = [
            Variant(
                copy.name,
                copy.written,
                opened.enter_context(open_document_for(str(copy.written.document.path), settings)),
                copy.distances,
            )
            for copy in one.copies
        ]
        for outcome in examiner.examine(variants, references):
            outcomes.append(outcome)
            file.write(json.dumps(outcome_json(one, outcome), ensure_ascii=False) + "\n")
            file.flush()
    return Examined(one, tuple(outcomes), dict(examiner.skipped))
