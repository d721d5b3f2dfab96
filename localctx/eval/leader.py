"""`eval leader`: answers and their places as evidence moves away and documents change, in every mode.

Joins generation, asking and the report. The measures are those of docs/eval.md.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass

from localctx.engine.embedder import EmbedderFile
from localctx.eval.generate import check_known
from localctx.eval.leader_asking import LeaderExaminer, Variant
from localctx.eval.leader_documents import Copies, write_copies
from localctx.eval.leader_measures import Examined
from localctx.eval.leader_report import LeaderReport, outcome_json
from localctx.eval.modes import BOUND, EXACT, MODES, RETRIEVE, SELECT
from localctx.eval.niah import Exam, Options, opened_exam, told
from localctx.eval.perturbations import PERTURBATIONS
from localctx.eval.plans import PROSE_TASKS
from localctx.from_settings import open_document_for
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

    Raises UsageError for what does not fit, and what opened_exam(), documents and sessions raise.
    """
    options.check()
    asked, examined = options.asked, []
    with opened_exam(model, settings, asked, say, embedder) as exam:
        examiner = LeaderExaminer(exam.examiner)
        copies = write_copies(asked.wanted, options.perturb, exam.folder, model.tokenize, exam.haystack)
        for one in copies:
            examined.append(_examined(examiner, exam, one, asked.wanted.n_answer))
    return LeaderReport(
        model=model.info,
        machine=exam.machine,
        options={**told(asked), "perturb": list(options.perturb)},
        kv=settings.kv,
        examined=tuple(examined),
    )


def _examined(examiner: LeaderExaminer, exam: Exam, one: Copies, n_answer: int) -> Examined:
    """Everything asked of a document and its copies; each outcome is kept as it comes."""
    settings, tokenize = exam.examiner.settings, exam.examiner.model.tokenize
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
            exam.keep(outcome_json(one, outcome))
    return Examined(one, tuple(outcomes), dict(examiner.skipped))
