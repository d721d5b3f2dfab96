"""Text and questions of `bench compare`: facts planted by a seed, or a file of questions. Knows no model.

Facts are planted behind sentences of the text as it is, so that its headings stay where they are.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from localctx.errors import UsageError
from localctx.eval.documents import Question
from localctx.eval.generate import LANGUAGES, TRANSLATED
from localctx.eval.plans import make_plan
from localctx.eval.planting import ANSWERABLE_OF, Plan
from localctx.selection import sentences
from localctx.small_text import read_small_text, reason_of

__all__ = ["TASKS", "planted", "questions_in"]

TASKS = ("single", "multikey")
"""A fact that nothing else is like; a number of one thing beside three others like it."""
WINDOW_CHARACTERS = 2_000
"""To either side of the place where a fact is to stand."""
HINT = 'a line a question: {"question": "…", "answers": ["…"]}'


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a group of sentences goes: behind `end`."""

    end: int
    text: str


def planted(text: str, language: str | None, seed: int, n_of_each: int) -> tuple[str, list[Question]]:
    """The text with facts behind some of its sentences, and n_of_each questions of each of TASKS, one in four
    of which has no answer in it.

    Raises UsageError for a number that is no multiple of four, or a text without sentences.
    """
    if n_of_each < ANSWERABLE_OF or n_of_each % ANSWERABLE_OF:
        raise UsageError(f"--facts {n_of_each} is no multiple of {ANSWERABLE_OF}", "4, 8, 12 …")
    code = language if language in LANGUAGES else "en"
    plan = make_plan(LANGUAGES[code], LANGUAGES[TRANSLATED[code]], seed, 0, TASKS, n_of_each)
    _check_absent(plan, text)
    places = [
        _Place(_end_near(text, depth, code), " ".join(plan.sentences[number] for number in numbers))
        for depth, numbers in plan.groups
    ]
    pieces, at = [], 0
    for place in sorted(places, key=lambda one: one.end):
        pieces += [text[at : place.end], LANGUAGES[code].space, place.text]
        at = place.end
    asked = [
        Question(one.task, one.language, one.text, one.gold, (), tuple(sorted(plan.values - set(one.gold))))
        for one in plan.questions
    ]
    return "".join([*pieces, text[at:]]), _mixed(asked)


def _end_near(text: str, depth: float, language: str) -> int:
    """Where the sentence ends that is nearest to a depth in [0, 1). Raises UsageError where none does."""
    middle = int(depth * len(text))
    first = max(0, middle - WINDOW_CHARACTERS)
    window = text[first : middle + WINDOW_CHARACTERS]
    ends = [first + one.end for one in sentences(window, language) if one.end < len(window)]
    if not ends:
        raise UsageError("no sentence of the text ends where a fact is to stand", "a text of sentences")
    return min(ends, key=lambda end: abs(end - middle))


def _check_absent(plan: Plan, text: str) -> None:
    """Raises UsageError where the text holds a planted value itself."""
    held = [value for value in sorted(plan.values) if re.search(rf"(?<!\d){re.escape(value)}(?!\d)", text)]
    if held:
        raise UsageError(f"the text holds {held[0]}, which was to be planted", "another --seed")


def _mixed(questions: Sequence[Question]) -> list[Question]:
    """The tasks by turns, so that the first few questions are of every kind."""
    by_task = [[one for one in questions if one.task == task] for task in TASKS]
    return [one for group in zip(*by_task, strict=True) for one in group]


def questions_in(path: Path) -> list[Question]:
    """The questions of a file: `question`, and `answers`, all of which a right answer holds; none where the
    document has no answer. Raises UsageError for what is something else.
    """
    try:
        lines = read_small_text(path).splitlines()
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {reason_of(error)}", HINT) from error
    found = [_question(f"{path}, line {n}", line) for n, line in enumerate(lines, 1) if line.strip()]
    if not found:
        raise UsageError(f"{path} holds no question", HINT)
    return found


def _question(where: str, line: str) -> Question:
    try:
        given = json.loads(line)
    except (ValueError, RecursionError):
        raise UsageError(f"{where} is no JSON", HINT) from None
    text, answers = (given.get("question"), given.get("answers")) if isinstance(given, dict) else (None, None)
    is_text = isinstance(text, str) and bool(text.strip())
    if not is_text or not isinstance(answers, list):
        raise UsageError(f"{where} has no question with its answers", HINT)
    if not all(isinstance(one, str) and one.strip() for one in answers):
        raise UsageError(f"{where}: an answer is a text", HINT)
    return Question("given", "en", str(text), tuple(answers), (), ())
