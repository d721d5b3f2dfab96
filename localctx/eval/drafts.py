"""A document of planted sentences among prose, held as a list of sentences, so that it can be changed and
written. Knows a tokenizer, no model; what is changed is perturbations.py's.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from localctx.errors import UsageError
from localctx.eval.documents import BREAK_TOKENS, GeneratedDocument, Writer, questions_of
from localctx.eval.language import Language
from localctx.eval.planting import Plan
from localctx.eval.prose import without
from localctx.values import Tokenizer

__all__ = [
    "Draft",
    "Place",
    "Sentence",
    "Written",
    "anchored",
    "distances_of",
    "draft_of",
    "places_of",
    "write_draft",
]

NEAREST, STEP = 1024, 4
"""Tokens from the end to the nearest place of a needle, and how many times farther each next one is."""
LEAST_STEP = 4 / 3
"""By which the farthest place, the document's beginning, is farther than the one before it, at least."""
MAX_PLANTED_SHARE = 0.5
PARAGRAPH_TOKENS = 0.3
"""Of a sentence, for paragraphs' breaks, which take more than a space."""
BETWEEN_TOKENS = 64
"""Between needles of one place, about."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """n_tokens: with what stands before it, about · planted: its number in the plan; None: prose."""

    text: str
    n_tokens: int
    planted: int | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """Sentences in the document's order, in which each planted one stands once · asked: numbers of the plan's
    questions that are put to it; None: all.
    """

    plan: Plan
    language: Language
    tokenize: Tokenizer
    sentences: tuple[Sentence, ...]
    asked: frozenset[int] | None = None

    @property
    def n_tokens(self) -> int:
        """Of the text, about."""
        return sum(one.n_tokens for one in self.sentences)

    def sentence(self, text: str, planted: int | None = None) -> Sentence:
        """A sentence of this document, its tokens counted."""
        return Sentence(text, len(self.tokenize(self.language.space + text, False)), planted)


@dataclass(frozen=True, slots=True)
class Written:
    """A draft as a file · n_behind: of each question that one planted sentence answers, the tokens from its
    start to the document's end, about · asked: as in the draft.
    """

    document: GeneratedDocument
    n_behind: tuple[int | None, ...]
    asked: frozenset[int] | None = None


def anchored(plan: Plan) -> tuple[int, ...]:
    """Groups, by number, that hold all that a question with one right string is answered from."""
    group_of = {number: place for place, (_, numbers) in enumerate(plan.groups) for number in numbers}
    single = (one for one in plan.questions if len(one.gold) == len(one.sentences) == 1)
    return tuple(dict.fromkeys(group_of[one.sentences[0]] for one in single))


def distances_of(n_tokens: int) -> tuple[int, ...]:
    """Tokens from a needle to the end of a document of n_tokens: 1K, 4K, 16K …, and all of it."""
    found, distance = [], NEAREST
    while distance * LEAST_STEP <= n_tokens:
        found.append(distance)
        distance *= STEP
    return (*found, n_tokens)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a group stands: so many tokens before the end, as near to `distance` as others there let it."""

    distance: int
    n_behind: int


def places_of(plan: Plan, distances: Sequence[int], turn: int) -> dict[int, Place]:
    """Group → its place, so that over len(distances) turns each group stands at each distance once."""
    groups = anchored(plan)
    places: dict[int, Place] = {}
    for slot, distance in enumerate(distances):
        here = [one for n, one in enumerate(groups) if (n + turn) % len(distances) == slot]
        between = min(BETWEEN_TOKENS, distance // (8 * max(1, len(here))))
        places |= {group: Place(distance, distance - n * between) for n, group in enumerate(here)}
    return places


def draft_of(
    plan: Plan,
    language: Language,
    prose: Iterable[str],
    n_tokens: int,
    tokenize: Tokenizer,
    places: Mapping[int, Place],
) -> Draft:
    """Prose of n_tokens with the planted sentences in it: groups in `places` so many tokens before the end,
    others at their depth. Raises UsageError where more than half would be planted, or the prose is too short.
    """
    empty = Draft(plan, language, tokenize, ())
    planted = [empty.sentence(text, number) for number, text in enumerate(plan.sentences)]
    n_planted = sum(one.n_tokens + BREAK_TOKENS for one in planted)
    if n_planted > MAX_PLANTED_SHARE * n_tokens:
        raise UsageError(
            f"{len(planted):,} planted sentences take {n_planted:,} of {n_tokens:,} tokens",
            "fewer --questions, fewer --tasks, or a longer length",
        )
    around = _prose(empty, without(plan.values, prose), n_tokens - n_planted)
    total = sum(one.n_tokens for one in (*around, *planted))
    starts = [
        (max(0, total - places[group].n_behind) if group in places else depth * total, numbers)
        for group, (depth, numbers) in enumerate(plan.groups)
    ]
    waiting = sorted(starts, reverse=True)
    sentences: list[Sentence] = []
    n_reached = 0
    for one in [*around, None]:
        while waiting and (one is None or waiting[-1][0] <= n_reached):
            group = [planted[number] for number in waiting.pop()[1]]
            sentences += group
            n_reached += sum(each.n_tokens for each in group)
        if one is not None:
            sentences.append(one)
            n_reached += one.n_tokens
    return Draft(plan, language, tokenize, tuple(sentences))


def _prose(draft: Draft, prose: Iterable[str], n_tokens: int) -> list[Sentence]:
    """Sentences of n_tokens at most, and hardly less."""
    found: list[Sentence] = []
    n_left = float(n_tokens)
    for text in prose:
        one = draft.sentence(text)
        n_left -= one.n_tokens + PARAGRAPH_TOKENS
        if n_left < 0:
            return found
        found.append(one)
    raise UsageError(f"the haystack ends {n_left:,.0f} of {n_tokens:,} tokens too early", "a longer text")


def write_draft(path: Path, draft: Draft, kind: str, length: int) -> Written:
    """The draft as a file, whose questions stand in the plan's order. Raises UsageError where a planted
    sentence does not stand there once.
    """
    plan, spans, starts = draft.plan, dict[int, tuple[int, int]](), dict[int, int]()
    planted = [one.planted for one in draft.sentences if one.planted is not None]
    if sorted(planted) != list(range(len(plan.sentences))):
        raise UsageError(
            f"{kind}: not every planted sentence stands in the document once",
            "a perturbation moves or rewords planted sentences, it drops and doubles none",
        )
    with path.open("w", encoding="utf-8", newline="\n") as file:
        writer = Writer(file, draft.tokenize, draft.language.space)
        for one in draft.sentences:
            n_before = writer.n_tokens
            span = writer.add(one.text)
            if one.planted is not None:
                spans[one.planted], starts[one.planted] = span, n_before
    questions = questions_of(plan, spans)
    document = GeneratedDocument(
        path, kind, draft.language.code, length, writer.n_tokens, writer.sha256, questions
    )
    n_behind = (
        writer.n_tokens - starts[one.sentences[0]] if len(one.sentences) == 1 else None
        for one in plan.questions
    )
    return Written(document, tuple(n_behind), draft.asked)
