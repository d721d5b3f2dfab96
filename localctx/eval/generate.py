"""Documents and questions of every language and length, as files; the seed and the tokenizer decide all."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from localctx.errors import UsageError
from localctx.eval.chinese import CHINESE
from localctx.eval.documents import LIST_TASKS, GeneratedDocument, Sizes, write_list, write_prose
from localctx.eval.english import ENGLISH
from localctx.eval.german import GERMAN
from localctx.eval.language import Language
from localctx.eval.plans import PROSE_TASKS, make_plan
from localctx.eval.planting import ANSWERABLE_OF, source_of
from localctx.eval.prose import made_sentences
from localctx.settings import nearest
from localctx.values import Tokenizer

__all__ = ["LANGUAGES", "N_ANSWER", "TASKS", "TRANSLATED", "Wanted", "check_known", "generate"]

LANGUAGES: dict[str, Language] = {one.code: one for one in (ENGLISH, CHINESE, GERMAN)}
TRANSLATED = {"en": "zh", "zh": "en", "de": "zh"}
"""The language of translated questions, by that of the document."""
TASKS = (*PROSE_TASKS, *LIST_TASKS)
LEAST_LENGTH = 1024
MOST_LENGTH = 1 << 27
N_ANSWER = 96
PROMPT_TOKENS = 288
"""Of a length, what is left for what stands round the document, with the question."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is generated: n_questions of each task and document of prose · n_answer: tokens that a length
    leaves for an answer.
    """

    seed: int = 0
    lengths: tuple[int, ...] = (8192,)
    languages: tuple[str, ...] = ("en",)
    tasks: tuple[str, ...] = TASKS
    n_questions: int = 8
    n_answer: int = N_ANSWER

    def check(self) -> None:
        """Raises UsageError for what is not known or makes no sense."""
        check_known("--languages", self.languages, LANGUAGES)
        check_known("--tasks", self.tasks, (*PROSE_TASKS, *LIST_TASKS))
        if self.n_questions < ANSWERABLE_OF or self.n_questions % ANSWERABLE_OF:
            raise UsageError(
                f"--questions {self.n_questions} is not a multiple of {ANSWERABLE_OF}",
                f"one in {ANSWERABLE_OF} has no answer in the document",
            )
        for length in self.lengths:
            least = max(LEAST_LENGTH, 2 * (PROMPT_TOKENS + self.n_answer))
            if not least <= length <= MOST_LENGTH:
                raise UsageError(
                    f"--lengths {length:,} is out of range", f"from {least:,} to {MOST_LENGTH:,} tokens"
                )


def check_known(option: str, names: Sequence[str], known: Iterable[str]) -> None:
    """Raises UsageError for an option without names, or with one that is not known."""
    if not names:
        raise UsageError(f"{option} names nothing", f"some of {','.join(known)}")
    for name in names:
        if name not in known:
            raise UsageError(
                f"{option}: unknown {name!r}{nearest(name, known)}", f"some of {','.join(known)}"
            )


def generate(
    wanted: Wanted,
    folder: Path,
    tokenize: Tokenizer,
    haystack: Callable[[], Iterable[str]] | None = None,
) -> Iterator[GeneratedDocument]:
    """Write the documents one by one, and at the end `questions.jsonl`, into the folder.

    haystack: sentences of a text to hide facts in; default: made prose. Raises UsageError where they do not
    fit or the haystack is too short.
    """
    wanted.check()
    documents = []
    for length in wanted.lengths:
        sizes = Sizes(length, length - PROMPT_TOKENS - wanted.n_answer)
        for code in wanted.languages:
            for document in _documents(wanted, folder, tokenize, haystack, LANGUAGES[code], sizes):
                documents.append(document)
                yield document
    with (folder / "questions.jsonl").open("w", encoding="utf-8", newline="\n") as file:
        for document in documents:
            file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in _question_rows(document))


def _documents(
    wanted: Wanted,
    folder: Path,
    tokenize: Tokenizer,
    haystack: Callable[[], Iterable[str]] | None,
    language: Language,
    sizes: Sizes,
) -> Iterator[GeneratedDocument]:
    """The prose that holds all planted tasks, and the lists."""
    name = f"{language.code}-{sizes.length}"
    planted = [task for task in wanted.tasks if task in PROSE_TASKS]
    if planted:
        other = LANGUAGES[TRANSLATED[language.code]]
        plan = make_plan(language, other, wanted.seed, sizes.length, planted, wanted.n_questions)
        made = made_sentences(language, source_of(wanted.seed, language.code, sizes.length, "prose"))
        prose = made if haystack is None else haystack()
        yield write_prose(folder / f"{name}-prose.txt", plan, prose, language, sizes, tokenize)
    for task in wanted.tasks:
        if task in LIST_TASKS:
            source = source_of(wanted.seed, language.code, sizes.length, task)
            yield write_list(folder / f"{name}-{task}.txt", task, language, source, sizes, tokenize)


def _question_rows(document: GeneratedDocument) -> Iterator[dict[str, object]]:
    shared = {"document": document.path.name, "length": document.length}
    for question in document.to_json()["questions"]:
        yield {**shared, **{key: value for key, value in question.items() if key != "wrong"}}
