"""Options of the commands that generate documents and ask about them. Knows no command."""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from localctx.errors import UsageError

from ..options import RunOptions

if TYPE_CHECKING:
    from localctx.eval.niah import Options
    from localctx.from_settings import ChosenModel
    from localctx.settings import Settings

__all__ = ["GeneratedOptions", "Modes", "names", "what_is_asked"]

Modes: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--modes",
        metavar="NAME,...",
        help="Ways of answering (default: all but retrieve, select).",
        show_default=False,
    ),
]


@dataclass(frozen=True, kw_only=True)
class GeneratedOptions:
    """What is generated."""

    lengths: Annotated[
        str,
        typer.Option("--lengths", metavar="N,...", help="In tokens, question and answer included: 8k,1m."),
    ] = "8k"
    languages: Annotated[
        str, typer.Option("--languages", metavar="NAME,...", help="Of the documents: en, zh, de.")
    ] = "en"
    tasks: Annotated[
        str | None,
        typer.Option("--tasks", metavar="NAME,...", help="Task families (default: all).", show_default=False),
    ] = None
    questions: Annotated[
        int, typer.Option("--questions", metavar="N", help="Of each task and document, a multiple of 4.")
    ] = 8
    haystack: Annotated[
        str | None,
        typer.Option(
            "--haystack",
            metavar="FILE",
            help="A text to hide facts in (default: made prose).",
            show_default=False,
        ),
    ] = None
    data: Annotated[
        str | None,
        typer.Option(
            "--data", metavar="DIR", help="Leave documents and questions there.", show_default=False
        ),
    ] = None


def what_is_asked(
    name: str, run: RunOptions, generated: GeneratedOptions, modes: str | None
) -> tuple[Settings, ChosenModel, Options]:
    """What a run of `eval NAME` measures, checked. Raises UsageError, and what choose_model() raises."""
    from localctx.eval.generate import N_ANSWER, TASKS, Wanted
    from localctx.eval.modes import DEFAULT_MODES
    from localctx.eval.niah import Options, parse_length
    from localctx.from_settings import choose_model

    if run.strategy is not None:
        raise UsageError(f"--strategy is not for eval {name}", "--modes names what is compared")
    if run.reranker not in (None, "off"):
        raise UsageError(f"--reranker is not for eval {name}", "passages are not judged again there")
    settings, chosen = choose_model(run.flags(), run.config)
    wanted = Wanted(
        seed=settings.seed,
        lengths=tuple(map(parse_length, names(generated.lengths))),
        languages=names(generated.languages),
        tasks=TASKS if generated.tasks is None else names(generated.tasks),
        n_questions=generated.questions,
        n_answer=run.max_tokens or N_ANSWER,
    )
    options = Options(
        wanted,
        modes=DEFAULT_MODES if modes is None else names(modes),
        haystack=generated.haystack,
        data=generated.data,
        command=shlex.join(["localctx", *sys.argv[1:]]),
    )
    options.check()
    return settings, chosen, options


def names(text: str) -> tuple[str, ...]:
    """A list as it is typed, between commas, each name once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
