"""`eval niah`: generated questions on long documents, every mode of answering beside its bound.

Joins generation, asking and the report.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TextIO

from localctx.bench.inputs import kv_model, temporary_store
from localctx.bench.machine import machine
from localctx.engine.embedder import EmbedderFile
from localctx.errors import UsageError
from localctx.eval.asking import Examiner
from localctx.eval.generate import Wanted, generate
from localctx.eval.modes import DEFAULT_MODES, MODES
from localctx.eval.prose import sentences_of
from localctx.eval.report import Report, asked_json
from localctx.from_settings import open_document_for
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.settings import Settings, nearest
from localctx.values import Model

__all__ = ["ANSWERS", "BUILT_IN", "Exam", "Options", "measure", "opened_exam", "parse_length", "told"]

BUILT_IN = "made prose"
ANSWERS = "answers.jsonl"
"""Written as the questions are asked, so that a run that is ended leaves what it found."""
UNITS = {"k": 1 << 10, "m": 1 << 20}


@dataclass(frozen=True, slots=True)
class Options:
    """haystack: a file whose sentences the facts are hidden among; None: made prose · data: a folder where
    the documents and questions are left; None: nowhere · command: as it was typed.
    """

    wanted: Wanted
    modes: tuple[str, ...] = DEFAULT_MODES
    haystack: str | None = None
    data: str | None = None
    command: str = ""

    def check(self) -> None:
        """Raises UsageError for what is not known or makes no sense."""
        self.wanted.check()
        if not self.modes:
            raise UsageError("--modes names nothing", f"some of {','.join(MODES)}")
        for mode in self.modes:
            if mode not in MODES:
                raise UsageError(
                    f"--modes: unknown {mode!r}{nearest(mode, MODES)}", f"some of {','.join(MODES)}"
                )
        if self.haystack is not None and len(self.wanted.languages) > 1:
            raise UsageError("--haystack is a text of one language", "name it alone with --languages")


def parse_length(text: str) -> int:
    """`8k` as 8,192, `1m` as 1,048,576, a number as it is. Raises UsageError."""
    digits, unit = (text[:-1], text[-1:].lower()) if text[-1:].isalpha() else (text, "")
    if not (digits.isascii() and digits.isdecimal() and len(digits) < 12 and unit in ("", *UNITS)):
        raise UsageError(f"--lengths {text!r} is not understood", "numbers of tokens, as 8k,131072,1m")
    return int(digits) * UNITS.get(unit, 1)


def measure(
    model: Model,
    settings: Settings,
    options: Options,
    say: Callable[[str], None],
    embedder: EmbedderFile | str | None = None,
) -> Report:
    """Generate, ask, score. `say` is told what is being done.

    Raises UsageError for what does not fit, and what opened_exam(), documents and sessions raise.
    """
    options.check()
    examined = []
    with opened_exam(model, settings, options, say, embedder) as exam:
        exam.examiner.keep = lambda generated, asked: exam.keep(asked_json(generated, asked))
        for generated in generate(options.wanted, exam.folder, model.tokenize, exam.haystack):
            with open_document_for(str(generated.path), exam.examiner.settings) as document:
                examined.append(exam.examiner.examine(generated, document))
    return Report(
        model=model.info,
        machine=exam.machine,
        options=told(options),
        kv=settings.kv,
        examined=tuple(examined),
    )


@dataclass(frozen=True, slots=True)
class Exam:
    """All that is open while questions are asked. folder: where documents are written."""

    examiner: Examiner
    folder: Path
    haystack: Callable[[], Iterable[str]] | None
    machine: dict[str, Any]
    answers: TextIO

    def keep(self, answer: dict[str, Any]) -> None:
        """A line of the file of answers, there at once."""
        self.answers.write(json.dumps(answer, ensure_ascii=False) + "\n")
        self.answers.flush()


@contextmanager
def opened_exam(
    model: Model,
    settings: Settings,
    options: Options,
    say: Callable[[str], None],
    embedder: EmbedderFile | str | None = None,
) -> Iterator[Exam]:
    """A store of its own, greedy answers, one context for all questions; all closed afterwards.

    Raises NotComposable for a model whose KV cannot be stored, UsageError for a folder that cannot be used.
    """
    able, facts = kv_model(model), machine(settings.threads)
    settings = replace(settings, temp=0.0, max_tokens=options.wanted.n_answer)
    with temporary_store(settings) as (own, temporary), ExitStack() as stack:
        held = stack.enter_context(closing(Held(Kept.of_settings(own, say))))
        folder = folder_for(options.data, temporary)
        haystack = stack.enter_context(haystack_of(options, own))
        answers = stack.enter_context((folder / ANSWERS).open("w", encoding="utf-8", newline="\n"))
        examiner = Examiner(able, own, options.modes, held, say, embedder=embedder)
        yield Exam(examiner, folder, haystack, facts, answers)


def told(options: Options) -> dict[str, object]:
    """What was asked for, as JSON values."""
    wanted = options.wanted
    return {
        "command": options.command,
        "seed": wanted.seed,
        "lengths": list(wanted.lengths),
        "languages": list(wanted.languages),
        "tasks": list(wanted.tasks),
        "n_questions": wanted.n_questions,
        "modes": list(options.modes),
        "haystack": options.haystack or BUILT_IN,
    }


def folder_for(data: str | None, temporary: Path) -> Path:
    """Where documents are written: `data`, or a folder in `temporary`. Raises UsageError."""
    if data is None:
        folder = temporary / "documents"
        folder.mkdir()
        return folder
    folder = Path(data)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"no folder can be made at {data}: {error.strerror}", "--data DIR") from None
    return folder


@contextmanager
def haystack_of(options: Options, settings: Settings) -> Iterator[Callable[[], Iterable[str]] | None]:
    """The sentences of the user's text, from its beginning each time they are asked for."""
    if options.haystack is None:
        yield None
        return
    (language,) = options.wanted.languages
    with open_document_for(options.haystack, settings) as document:
        yield lambda: sentences_of(document.text.stream(), language)
