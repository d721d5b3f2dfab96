"""Questions put to a document and to changed copies of it, in every mode: each answer scored and located, and
what the model expects of a reference answer compared between the copies.

Joins what the sessions offer, as asking.py does; knows no report.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

from localctx.document import Document
from localctx.eval.asking import (
    Examiner,
    block_of,
    finished,
    missing_selectors,
    oracle_blocks,
    why_not_exact,
)
from localctx.eval.documents import Question
from localctx.eval.drafts import Written
from localctx.eval.expected import GivenAnswer, Teacher
from localctx.eval.modes import BOUND, EXACT, ORACLE_STORED, STREAM
from localctx.eval.scoring import Score, score
from localctx.index import LexicalIndex
from localctx.index.terms import content_words, fold
from localctx.selection import claims
from localctx.selection.numbers import numbers
from localctx.session.answer import Answer
from localctx.session.ask import answered
from localctx.session.events import CHOSEN, ignore_progress
from localctx.session.opening import index_all
from localctx.session.provenance import Citation
from localctx.session.ranking import vectors_of
from localctx.session.run import Run, start
from localctx.values import Tokenizer
from localctx.verify.predictions import Reference, Rows, log_softmax

__all__ = ["WITHOUT", "LeaderExaminer", "Outcome", "Told", "Variant", "is_located"]

WITHOUT = "without evidence"
LOCATED_TOKENS = 5
"""LPA@5: so far from the truth an answer's start may be found."""
FAR_CODE_POINTS = 400
"""No five tokens take as many."""
QUESTIONS_PER_REPORT = 8


@dataclass(frozen=True, slots=True)
class Variant:
    """A copy of a document. distances: of each question, how far from the end its needle is meant to stand;
    None where nothing says so; of a perturbation, none at all.
    """

    name: str
    written: Written
    document: Document
    distances: tuple[int | None, ...] = ()

    @property
    def is_perturbed(self) -> bool:
        """Whether it is changed, or needles only stand elsewhere."""
        return not self.distances

    @property
    def questions(self) -> tuple[Question, ...]:
        """In the plan's order, of all copies the same."""
        return self.written.document.questions


@dataclass(frozen=True, slots=True)
class Outcome:
    """One question asked of one copy in one mode. distance: from its needle to the end as meant, n_behind: as
    it is, in tokens · is_located: of a question with one right value · kl, kl_value: from the base's
    distribution to this one, mean over the reference answer and over its value; None where not compared.
    """

    variant: str
    mode: str
    number: int
    distance: int | None
    n_behind: int | None
    text: str
    support: str
    score: Score
    is_located: bool | None
    kl: float | None = None
    kl_value: float | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """An outcome, and the logits of each token of the given answer."""

    outcome: Outcome
    logits: Rows | None

    def beside(self, base: Reference | None, given: GivenAnswer) -> Outcome:
        """The outcome with how far what was expected is from what the base expects."""
        if self.logits is None or base is None:
            return self.outcome
        kl = base.against(0, self.logits.copy()).kl
        first, end = given.value
        of_value = max(0.0, float(kl[first:end].mean())) if first < end else None
        return replace(self.outcome, kl=max(0.0, float(kl.mean())), kl_value=of_value)


@dataclass(slots=True)
class LeaderExaminer:
    """Asks as `examiner` is set up to, in its modes. skipped: of the document that was examined last, why
    there is nothing of a mode, or not of every question.
    """

    examiner: Examiner
    skipped: dict[str, str] = field(default_factory=dict)
    _blocks: dict[tuple[str, int], tuple[int, ...]] = field(default_factory=dict)

    def examine(self, variants: Sequence[Variant], references: Sequence[GivenAnswer]) -> Iterator[Outcome]:
        """Everything asked of a document, the first variant, and of its copies; references: by question."""
        self._blocks.clear()
        self.skipped.clear()
        for variant in variants:
            if reason := self._prepare(variant):
                self.skipped[EXACT] = reason
        for number, reference in enumerate(references):
            without = None
            if reference.tokens:
                without = self._ask(variants[0], number, WITHOUT, reference.tokens)
            for mode in self.examiner.modes:
                if mode != EXACT or mode not in self.skipped:
                    yield from self._ask_all(variants, number, mode, reference, without)
            if (number + 1) % QUESTIONS_PER_REPORT == 0 or number + 1 == len(references):
                self.examiner.say(f"{number + 1} of {len(references)} questions asked")

    def _ask_all(
        self,
        variants: Sequence[Variant],
        number: int,
        mode: str,
        reference: GivenAnswer,
        without: Told | None,
    ) -> Iterator[Outcome]:
        """One question in one mode, of all copies that it is for."""
        base = self._ask(variants[0], number, mode, reference.tokens)
        if base is None:
            return
        yield base.outcome
        expected = None
        if base.logits is not None:
            expected = Reference(log_softmax(base.logits), reference.tokens)
        for variant in variants[1:]:
            asked = variant.written.asked
            if not variant.is_perturbed:
                is_moved = variant.distances[number] is not None
                told = self._ask(variant, number, mode, ()) if is_moved else None
            else:
                is_asked = asked is None or number in asked
                told = self._ask(variant, number, mode, reference.tokens) if is_asked else None
            if told is not None:
                yield told.beside(expected, reference)
        if without is not None:
            yield replace(without.beside(expected, reference), mode=mode)

    def _prepare(self, variant: Variant) -> str | None:
        """Prefill a copy, and find which blocks hold the answers; why not all of it can be attended."""
        examiner, written = self.examiner, variant.written.document
        examiner.say(f"{written.path.name}: prefilling about {written.n_tokens:,} tokens")
        examiner.indexed(variant.document, "stream")
        run = self._run(variant.document, ORACLE_STORED)
        with index_all(run) as index:
            for number, question in enumerate(variant.questions):
                gold = [block_of(run, span) for span in question.spans]
                ranking = [block for block, _ in index.search(question.text).ranking]
                oracle = oracle_blocks(run, gold, ranking)
                self._blocks[variant.name, number] = tuple(oracle)
                others = (block for block in (*ranking, *range(run.n_blocks)) if block not in gold)
                without = tuple(dict.fromkeys(others))[: len(oracle)]
                self._blocks.setdefault((WITHOUT, number), without)  # the first one's
            reason = why_not_exact(run)
        if EXACT in examiner.modes and reason is None:
            examiner.indexed(variant.document, "exact")
        return reason

    def _run(self, document: Document, mode: str) -> Run:
        examiner = self.examiner
        stored = ORACLE_STORED if mode == WITHOUT else mode
        run = start([document], examiner.model, examiner.settings_of(stored), ignore_progress)
        run.embedder = examiner.embedder
        return run

    def _ask(self, variant: Variant, number: int, mode: str, reference: Sequence[int]) -> Told | None:
        """What came of a question; None where a selector of the mode cannot rank for it. WITHOUT: from stored
        KV, without its evidence.
        """
        question, teacher = variant.questions[number], Teacher(reference)
        self.examiner.held.kept.begin_question()
        run = self._run(variant.document, mode)
        if mode in (BOUND, ORACLE_STORED, WITHOUT):
            run.blocks = self._blocks[WITHOUT if mode == WITHOUT else variant.name, number]
        with index_all(run) as index:
            answer = self._answer(run, index, question.text, mode, teacher)
            if answer is None:
                reason = f"{missing_selectors(run)}: {_why_missing(run, question.text)}"
                self.skipped.setdefault(mode, reason)
                return None
        cited, tokenize = next(iter(answer.citations), None), self.examiner.model.tokenize
        outcome = Outcome(
            variant=WITHOUT if mode == WITHOUT else variant.name,
            mode=mode,
            number=number,
            distance=None if variant.is_perturbed else variant.distances[number],
            n_behind=variant.written.n_behind[number],
            text=answer.text,
            support=answer.support,
            score=score(question, answer.text, answer.support),
            is_located=is_located(question, answer.text, cited, variant.document.read, tokenize),
        )
        return Told(outcome, teacher.logits)

    def _answer(
        self, run: Run, index: LexicalIndex, question: str, mode: str, teacher: Teacher
    ) -> Answer | None:
        """The answer; None where passages were chosen without a selector of the mode."""
        events = answered(run, index, question, self.examiner.held, teacher)
        for event in events:
            if event is CHOSEN and mode.startswith(STREAM) and missing_selectors(run):
                return None
            if event is CHOSEN:
                break
        return finished(events)


def is_located(
    question: Question,
    answer: str,
    cited: Citation | None,
    read: Callable[[int, int], str],
    tokenize: Tokenizer,
) -> bool | None:
    """LPA@5 of one answer: whether what it says is found, through its first citation, within five tokens of
    where the right value starts. None for a question without one right value at one place.

    The answer's place is where the first number, name or code of the answer, or else its first content word,
    that the question does not hold stands in the cited words. read: the document's text of a span.
    """
    if len(question.gold) != 1 or len(question.spans) != 1:
        return None
    at = None if cited is None else _said_at(answer, question.text, cited.quote)
    if cited is None or at is None:
        return False
    start, end = question.spans[0]
    truth = start + read(start, end).find(question.gold[0])
    at += cited.start
    first, last = sorted((truth, at))
    if last - first > FAR_CODE_POINTS:
        return False
    return len(tokenize(read(first, last), False)) <= LOCATED_TOKENS


def _said_at(answer: str, question: str, quote: str) -> int | None:
    """Where in a quote what the answer says, and the question does not, begins; None: nowhere."""
    asked, asked_text = set(content_words(question)), fold(question)
    folded, origins = _folded(quote)
    there = [(key, number.start) for number in numbers(quote) for key in (number.key, *number.parts)]
    number_starts = dict(reversed(there))  # the first of each
    for claim in claims(answer):
        text = fold(claim.text)
        if text in asked_text:
            continue
        if claim.kind == "number" and claim.key in number_starts:
            return number_starts[claim.key]
        if text in folded:
            return origins[folded.index(text)]
    said = (word for word in content_words(answer) if word not in asked)
    return next((origins[folded.index(word)] for word in said if word in folded), None)


def _folded(text: str) -> tuple[str, list[int]]:
    """The text folded, and of each of its characters the place in the text that it comes from."""
    parts = [fold(character) for character in text]
    return "".join(parts), [place for place, part in enumerate(parts) for _ in part]


def _why_missing(run: Run, question: str) -> str:
    """Why a ranking was made without a selector: what was told, or why there are no vectors."""
    told = next((text for text in run.warnings if text.startswith("--kv rank=")), None)
    return told or str(vectors_of(run, question))
