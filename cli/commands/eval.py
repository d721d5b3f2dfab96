"""`localctx eval`: quality on long documents, every way of answering beside its bound."""

from __future__ import annotations

import shlex
import sys
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options
from .eval_compare import add_compare
from .eval_honesty import add_honesty
from .eval_kv import add_kv
from .eval_rope import add_rope
from .later import add_later

__all__ = ["register"]

LATER = ("ruler", "leader")


def register(app: typer.Typer) -> None:
    """Add the command group to the app."""
    group = typer.Typer(
        rich_markup_mode=None, no_args_is_help=True, help="Measure answers on long documents."
    )
    group.command("niah")(with_options(niah))
    add_honesty(group)
    add_compare(group)
    add_rope(group)
    add_kv(group)
    for name in LATER:
        add_later(group, name, f"localctx eval {name}")
    app.add_typer(group, name="eval")


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


def niah(
    run: RunOptions,
    generated: GeneratedOptions,
    output: QuietOptions,
    modes: Annotated[
        str | None,
        typer.Option(
            "--modes",
            metavar="NAME,...",
            help="Ways of answering (default: all but retrieve, select).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Needles, chains, lists and questions in generated documents: recall, declining, selection, bounds."""
    from localctx.eval.asking import DEFAULT_MODES
    from localctx.eval.generate import N_ANSWER, TASKS, Wanted
    from localctx.eval.niah import Options, measure, parse_length
    from localctx.from_settings import choose_model, open_model_for
    from localctx.registry.selectors import opened_embedder

    from ..terminal import note, print_json, print_line, silent

    if run.strategy is not None:
        raise UsageError("--strategy is not for eval niah", "--modes names what is compared")
    settings, chosen = choose_model(run.flags(), run.config)
    wanted = Wanted(
        seed=settings.seed,
        lengths=tuple(map(parse_length, _names(generated.lengths))),
        languages=_names(generated.languages),
        tasks=TASKS if generated.tasks is None else _names(generated.tasks),
        n_questions=generated.questions,
        n_answer=run.max_tokens or N_ANSWER,
    )
    options = Options(
        wanted,
        modes=DEFAULT_MODES if modes is None else _names(modes),
        haystack=generated.haystack,
        data=generated.data,
        command=shlex.join(["localctx", *sys.argv[1:]]),
    )
    options.check()
    with closing(open_model_for(settings, chosen)) as model, opened_embedder(settings) as embedder:
        say = silent if output.quiet or output.json else note
        report = measure(model, settings, options, say, embedder)
    if output.json:
        print_json(report.to_json())
    else:
        print_line("\n".join(report.lines))


def _names(text: str) -> tuple[str, ...]:
    """A list as it is typed, between commas, each name once."""
    return tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
