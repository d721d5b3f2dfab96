"""A plan or a list of words → a text file and where in it the answers stand. Writes as it goes.

Knows a tokenizer, to meet a length in tokens; no model. Holds what is planted, and of lists two bytes a word.
"""

from __future__ import annotations

import hashlib
import math
import random
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, TypeAlias

from localctx.errors import UsageError
from localctx.eval.language import Language
from localctx.eval.planting import ANSWERABLE_OF, Plan
from localctx.eval.prose import without
from localctx.values import Tokenizer

__all__ = [
    "LIST_TASKS",
    "GeneratedDocument",
    "Question",
    "Sizes",
    "Writer",
    "other_values",
    "questions_of",
    "write_list",
    "write_prose",
]

PARAGRAPH_SENTENCES = 7
LINE_WORDS = 12
BREAK_TOKENS = 2
"""What a sentence takes more where a paragraph begins, at most."""
MAX_PLANTED_SHARE = 0.5
N_COMMON, N_FREQUENT = 10, 3
COMMON_RATIO = 10
"""A common word stands so many times for each time that another one does."""
N_CODED = 300
CODED_SYLLABLES = 3
LIST_TASKS = ("cwe", "fwe")
PROSE = "prose"


@dataclass(frozen=True, slots=True)
class Sizes:
    """length: what a model must hold for a question on the whole text, in tokens · n_tokens: of the text."""

    length: int
    n_tokens: int


@dataclass(frozen=True, slots=True)
class Question:
    """A question about one document. gold: strings of a right answer, none where it has no answer · spans:
    code points [start, end) of the sentences that hold them, none where the whole text does · wrong: strings
    that no right answer holds · language: of the question.
    """

    task: str
    language: str
    text: str
    gold: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]
    wrong: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GeneratedDocument:
    """length: asked for, in tokens, with room for question and answer · n_tokens: of the text, about."""

    path: Path
    kind: str
    language: str
    length: int
    n_tokens: int
    sha256: str
    questions: tuple[Question, ...]

    def to_json(self) -> dict[str, Any]:
        """The document without its folder."""
        return {**asdict(self), "path": self.path.name}


class Writer:
    """Counts code points and tokens of what it writes, in paragraphs."""

    def __init__(self, file: TextIO, tokenize: Tokenizer, space: str) -> None:
        self._file = file
        self._tokenize = tokenize
        self._space = space
        self._hash = hashlib.sha256()
        self._n_sentences = 0
        self.n_characters = 0
        self.n_tokens = 0

    def sentence(self, text: str) -> tuple[str, int]:
        """What stands before a sentence, and the tokens of both."""
        is_first = self._n_sentences % PARAGRAPH_SENTENCES == 0
        before = "" if not self.n_characters else "\n\n" if is_first else self._space
        return before, len(self._tokenize(before + text, not self.n_characters))

    def add(self, text: str) -> tuple[int, int]:
        """Append a sentence; its span."""
        before, n_tokens = self.sentence(text)
        self._n_sentences += 1
        return self.write(before, text, n_tokens)

    def write(self, before: str, text: str, n_tokens: int) -> tuple[int, int]:
        """Append `before` and `text`, n_tokens in all; the span of the latter."""
        self._file.write(before + text)
        self._hash.update((before + text).encode())
        self.n_tokens += n_tokens
        start = self.n_characters + len(before)
        self.n_characters = start + len(text)
        return start, self.n_characters

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def write_prose(
    path: Path, plan: Plan, prose: Iterable[str], language: Language, sizes: Sizes, tokenize: Tokenizer
) -> GeneratedDocument:
    """Write the planted sentences among those of `prose`, up to the tokens wanted.

    Raises UsageError where more than half of it would be planted, or the prose ends too early.
    """
    with path.open("w", encoding="utf-8", newline="\n") as file:
        writer = Writer(file, tokenize, language.space)
        spans = _write_planted(writer, plan, without(plan.values, prose), sizes.n_tokens)
    questions = questions_of(plan, spans)
    n_tokens, digest = writer.n_tokens, writer.sha256
    return GeneratedDocument(path, PROSE, language.code, sizes.length, n_tokens, digest, questions)


def questions_of(plan: Plan, spans: Mapping[int, tuple[int, int]]) -> tuple[Question, ...]:
    """The plan's questions. spans: where its sentences stand, by their numbers."""
    return tuple(
        Question(
            task=one.task,
            language=one.language,
            text=one.text,
            gold=one.gold,
            spans=tuple(spans[number] for number in one.sentences),
            wrong=other_values(plan.values, one.gold, one.text),
        )
        for one in plan.questions
    )


def _write_planted(
    writer: Writer, plan: Plan, prose: Iterable[str], n_tokens: int
) -> dict[int, tuple[int, int]]:
    """The spans of the planted sentences, each group written when the text has reached its depth."""
    costs = [writer.sentence(text)[1] + BREAK_TOKENS for text in plan.sentences]
    n_left = sum(costs)
    if n_left > MAX_PLANTED_SHARE * n_tokens:
        raise UsageError(
            f"{len(costs):,} planted sentences take {n_left:,} of {n_tokens:,} tokens",
            "fewer --questions, fewer --tasks, or a longer length",
        )
    waiting = list(reversed(plan.groups))
    spans: dict[int, tuple[int, int]] = {}

    def plant(n_reached: float) -> int:
        n_planted = 0
        while waiting and waiting[-1][0] * n_tokens <= n_reached:
            for number in waiting.pop()[1]:
                spans[number] = writer.add(plan.sentences[number])
                n_planted += costs[number]
        return n_planted

    for text in prose:
        if writer.n_tokens + writer.sentence(text)[1] > n_tokens - n_left:
            plant(math.inf)
            return spans
        writer.add(text)
        n_left -= plant(writer.n_tokens)
    raise UsageError(f"the haystack ends after {writer.n_tokens:,} of {n_tokens:,} tokens", "a longer text")


def other_values(values: Iterable[str], gold: Sequence[str], question: str) -> tuple[str, ...]:
    """What a right answer does not hold; what the question itself holds may be repeated."""
    return tuple(sorted(value for value in values if value not in gold and value not in question))


# --- lists --------------------------------------------------------------------------------------------------


def write_list(
    path: Path, task: str, language: Language, source: random.Random, sizes: Sizes, tokenize: Tokenizer
) -> GeneratedDocument:
    """Write a list of words of which some occur more often, up to the tokens wanted; the same questions are
    asked of every list, one of them about what no list holds.
    """
    words, counts, n_gold = (_common if task == "cwe" else _frequent)(language, source, sizes, tokenize)
    absent = words.pop()
    order = array("H", (number for number, n in enumerate(counts) for _ in range(n)))
    source.shuffle(order)
    with path.open("w", encoding="utf-8", newline="\n") as file:
        writer = Writer(file, tokenize, language.space)
        costs = [_costs(word, tokenize) for word in words]
        for place, number in enumerate(order):
            is_first = place % LINE_WORDS == 0
            before = "" if not place else "\n" if is_first else " "
            writer.write(before, words[number], costs[number][is_first])
    gold, wording = tuple(words[:n_gold]), language.wording
    asked = wording.asks_common if task == "cwe" else wording.asks_frequent
    questions = tuple(
        Question(
            task=task,
            language=language.code,
            text=text.format(absent=absent),
            gold=gold if place < ANSWERABLE_OF - 1 else (),
            spans=(),
            wrong=tuple(sorted(words[n_gold:])),
        )
        for place, text in enumerate(asked)
    )
    n_tokens, digest = writer.n_tokens, writer.sha256
    return GeneratedDocument(path, task, language.code, sizes.length, n_tokens, digest, questions)


def _costs(word: str, tokenize: Tokenizer) -> tuple[int, int]:
    """Tokens of a word within a line, and at its beginning."""
    return len(tokenize(f" {word}", False)), len(tokenize(f"\n{word}", False))


def _mean_cost(word: str, tokenize: Tokenizer) -> float:
    within, at_start = _costs(word, tokenize)
    return within + (at_start - within) / LINE_WORDS


Words: TypeAlias = tuple[list[str], list[int], int]
"""(words and one that does not occur, how often each of them occurs, how many of the first are asked for)."""


def _common(language: Language, source: random.Random, sizes: Sizes, tokenize: Tokenizer) -> Words:
    """Ten words stand ten times as often as each of the others. Raises UsageError for a very short list."""
    words = source.sample(language.names.words, len(language.names.words))
    costs = [_mean_cost(word, tokenize) for word in words[:-1]]
    shares = [COMMON_RATIO if place < N_COMMON else 1 for place in range(len(costs))]
    n_rounds = int(sizes.n_tokens / sum(n * cost for n, cost in zip(shares, costs, strict=True)))
    if n_rounds < 1:
        raise UsageError(f"{sizes.n_tokens:,} tokens are too few for a list of words", "a longer length")
    return words, [n * n_rounds for n in shares], N_COMMON


def _frequent(language: Language, source: random.Random, sizes: Sizes, tokenize: Tokenizer) -> Words:
    """Coded words, the r-th of which stands in proportion to 1 / r²."""
    coded: dict[str, None] = {}
    while len(coded) < N_CODED + 1:
        coded["".join(source.choice(language.names.code) for _ in range(CODED_SYLLABLES))] = None
    words = list(coded)
    costs = [_mean_cost(word, tokenize) for word in words[:-1]]
    shares = [1 / (rank + 1) ** 2 for rank in range(N_CODED)]
    scale = sizes.n_tokens / sum(share * cost for share, cost in zip(shares, costs, strict=True))
    return words, [int(share * scale) for share in shares], N_FREQUENT
