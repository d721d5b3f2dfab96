"""A document with its needles at other distances, and changed in every way: all copies that are compared.

Knows a tokenizer, no model.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localctx.eval.drafts import (
    Draft,
    Place,
    Written,
    anchored,
    distances_of,
    draft_of,
    places_of,
    write_draft,
)
from localctx.eval.expected import GivenAnswer
from localctx.eval.generate import LANGUAGES, PROMPT_TOKENS, TRANSLATED, Wanted
from localctx.eval.language import Language
from localctx.eval.perturbations import PERTURBATIONS
from localctx.eval.plans import make_plan
from localctx.eval.planting import Plan, Planned, source_of
from localctx.eval.prose import made_sentences
from localctx.values import Tokenizer

__all__ = ["BASE", "Copies", "Copy", "write_copies"]

BASE = "base"
"""The copy that the others are compared with."""
Haystack = Callable[[], Iterable[str]]


@dataclass(frozen=True, slots=True)
class Copy:
    """One copy as a file · distances: as in leader_asking.Variant."""

    name: str
    written: Written
    distances: tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class Copies:
    """A document of `length` tokens with question and answer, and its copies; the first one is the base.

    distances: at which needles stand, one a turn.
    """

    plan: Plan
    language: Language
    length: int
    distances: tuple[int, ...]
    copies: tuple[Copy, ...]

    def references(self, tokenize: Tokenizer, n_answer: int) -> list[GivenAnswer]:
        """Of each question the answer that is taken for granted, n_answer tokens of it at most."""
        return [self._reference(one, tokenize, n_answer) for one in self.plan.questions]

    def _reference(self, question: Planned, tokenize: Tokenizer, n_answer: int) -> GivenAnswer:
        """The sentences that hold the answer; none where there is none."""
        text = self.language.space.join(self.plan.sentences[number] for number in question.sentences)
        tokens = tuple(tokenize(text, False))[:n_answer] if text else ()
        if len(question.gold) != 1 or question.gold[0] not in text:
            return GivenAnswer(tokens)
        at = text.index(question.gold[0])
        first = len(tokenize(text[:at].rstrip(), False)) if text[:at].strip() else 0
        end = len(tokenize(text[: at + len(question.gold[0])], False))
        return GivenAnswer(tokens, (min(first, len(tokens)), min(end, len(tokens))))


def write_copies(
    wanted: Wanted, perturb: Sequence[str], folder: Path, tokenize: Tokenizer, haystack: Haystack | None
) -> Iterator[Copies]:
    """The documents of every length and language, each with its copies, written into the folder.

    haystack: sentences of a text; None: made prose. Raises UsageError where they do not fit.
    """
    for length in wanted.lengths:
        for code in wanted.languages:
            yield _Writing(wanted, LANGUAGES[code], length, folder, tokenize, haystack).copies(perturb)


@dataclass(frozen=True, slots=True)
class _Writing:
    wanted: Wanted
    language: Language
    length: int
    folder: Path
    tokenize: Tokenizer
    haystack: Haystack | None

    def copies(self, perturb: Sequence[str]) -> Copies:
        """The base, its other turns, and what the perturbations make of the base."""
        wanted, language, length = self.wanted, self.language, self.length
        other = LANGUAGES[TRANSLATED[language.code]]
        plan = make_plan(language, other, wanted.seed, length, wanted.tasks, wanted.n_questions)
        n_tokens = length - PROMPT_TOKENS - wanted.n_answer
        distances = distances_of(n_tokens) if anchored(plan) else (n_tokens,)
        turns = [places_of(plan, distances, turn) for turn in range(len(distances))]
        base = self._draft(plan, n_tokens, turns[0])
        copies = [Copy(BASE, self._write(BASE, base), _meant(plan, turns[0]))]
        for turn, places in enumerate(turns[1:], 1):
            draft, name = self._draft(plan, n_tokens, places), f"turn-{turn}"
            copies.append(Copy(name, self._write(name, draft), _meant(plan, places)))
        for name in perturb:
            source = source_of(wanted.seed, language.code, length, name)
            changed = PERTURBATIONS[name](base, source)
            if changed.asked is None or changed.asked:
                copies.append(Copy(name, self._write(name, changed), ()))
        return Copies(plan, language, length, distances, tuple(copies))

    def _draft(self, plan: Plan, n_tokens: int, places: dict[int, Place]) -> Draft:
        source = source_of(self.wanted.seed, self.language.code, self.length, "prose")
        prose = made_sentences(self.language, source) if self.haystack is None else self.haystack()
        return draft_of(plan, self.language, prose, n_tokens, self.tokenize, places)

    def _write(self, name: str, draft: Draft) -> Written:
        path = self.folder / f"{self.language.code}-{self.length}-{name}.txt"
        return write_draft(path, draft, name, self.length)


def _meant(plan: Plan, places: dict[int, Place]) -> tuple[int | None, ...]:
    """Of each question with one right string the distance of its needle."""
    of_sentence = {
        number: place.distance for group, place in places.items() for number in plan.groups[group][1]
    }
    return tuple(
        of_sentence.get(one.sentences[0]) if len(one.gold) == len(one.sentences) == 1 else None
        for one in plan.questions
    )
