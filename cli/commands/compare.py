"""`localctx compare`: two documents clause by clause, what was kept, changed, moved, added, removed."""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from localctx.errors import UsageError

from ..options import ParallelOptions, QuietOptions, with_options

if TYPE_CHECKING:
    from localctx.alignment import Thresholds
    from localctx.session.compared import Compared

__all__ = ["DIFFERENT", "register"]

DIFFERENT = 10
"""Exit code of --exit-code where the documents differ; the codes of errors are others."""
Form = Literal["text", "json", "html"]
_SUFFIXES: dict[str, Form] = {".json": "json", ".html": "html", ".htm": "html"}


@dataclass(frozen=True, kw_only=True)
class SimilarityOptions:
    """From which similarity on two things are the same one, changed."""

    clause_similarity: Annotated[
        float, typer.Option("--clause-similarity", metavar="S", help="Of clauses, wherever they stand.")
    ] = 0.85
    paragraph_similarity: Annotated[
        float, typer.Option("--paragraph-similarity", metavar="S", help="Of sentences and list items.")
    ] = 0.72
    entity_similarity: Annotated[
        float, typer.Option("--entity-similarity", metavar="S", help="Of two spellings of a name.")
    ] = 0.91

    def thresholds(self) -> Thresholds:
        """Checked. Raises UsageError."""
        from localctx.alignment import Thresholds

        return Thresholds(self.clause_similarity, self.paragraph_similarity, self.entity_similarity)


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What is reported, and where."""

    report: Annotated[
        str | None,
        typer.Option("--report", metavar="text|json|html", help="Form (default: by the output's suffix)."),
    ] = None
    output: Annotated[
        str | None, typer.Option("--output", "-o", metavar="OUT", help="Write the report to a file.")
    ] = None
    explain: Annotated[
        bool, typer.Option("--explain", help="Have the model say each difference in a sentence.")
    ] = False
    kept: Annotated[bool, typer.Option("--kept", help="List the clauses without a difference too.")] = False
    exit_code: Annotated[
        bool, typer.Option("--exit-code", help=f"Exit with {DIFFERENT} where the documents differ.")
    ] = False


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("compare")(with_options(compare))


def compare(
    a: Annotated[str, typer.Argument(metavar="A", help="The document as it was; - is standard input.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The document as it is now.")],
    run: ParallelOptions,
    similarities: SimilarityOptions,
    output: QuietOptions,
    wanted: ReportOptions,
) -> None:
    """Compare two documents clause by clause: kept, changed, moved, added, removed, with both places."""
    from localctx.from_settings import settings_for
    from localctx.session.structured import check_free_text

    from ..answer_lines import counted
    from ..output_file import check_writable, write_whole
    from ..terminal import note, write, write_as_is

    path = Path(wanted.output) if wanted.output not in (None, "-") and wanted.output else None
    form = _form(wanted.report, path, as_json=output.json)
    if a == b == "-":
        raise UsageError("standard input (-) is named twice", "it can be read only once")
    if run.strategy is not None:
        raise UsageError("--strategy is not for compare", "both documents are read whole")
    if path is not None:
        check_writable(path, (a, b))
    check_free_text(settings_for(run.flags(), run.config), "compare")
    compared = _compared(a, b, run, similarities.thresholds(), explain=wanted.explain)
    if not output.quiet and form != "json":
        for warning in compared.warnings:
            note(f"warning: {warning}")
    text = _rendered(compared, form, with_kept=wanted.kept)
    if path is not None:
        write_whole(path, text)
    elif form == "text":
        write(text)
    else:
        write_as_is(text)
    if wanted.explain and not output.quiet and compared.explanations_dropped:
        dropped = counted(compared.explanations_dropped, "explanation")
        note(f"{dropped} dropped: the passages do not hold what was said")
    if wanted.exit_code and not compared.is_same:
        raise typer.Exit(DIFFERENT)


def _form(report: str | None, path: Path | None, *, as_json: bool) -> Form:
    """The form of the report. Raises UsageError."""
    if report is not None and report not in ("text", "json", "html"):
        raise UsageError(f"--report {report} is not known", "text, json or html")
    if as_json:
        if report not in (None, "json"):
            raise UsageError(f"--json and --report {report} exclude each other", "give one of them")
        return "json"
    for form in ("text", "json", "html"):
        if report == form:
            return form
    return "text" if path is None else _SUFFIXES.get(path.suffix.lower(), "text")


def _compared(a: str, b: str, run: ParallelOptions, thresholds: Thresholds, *, explain: bool) -> Compared:
    from localctx.from_settings import choose_model, open_document_for, open_model_for, settings_for
    from localctx.session.comparing import compare_documents

    if not explain:
        settings = settings_for(run.flags(), run.config)
        with open_document_for(a, settings) as one, open_document_for(b, settings) as other:
            return compare_documents(one, other, thresholds)
    from localctx.session.explaining import explain as explain_differences

    settings, chosen = choose_model(run.flags(), run.config, may_be_remote=True)
    with (
        closing(open_model_for(settings, chosen)) as model,
        open_document_for(a, settings) as one,
        open_document_for(b, settings) as other,
    ):
        compared = compare_documents(one, other, thresholds)
        return explain_differences(compared, (one, other), model, settings)


def _rendered(compared: Compared, form: Form, *, with_kept: bool) -> str:
    from ..comparison_html import html_page
    from ..comparison_text import text_lines
    from ..terminal import json_text

    if form == "json":
        return json_text(compared.to_json()) + "\n"
    if form == "html":
        return html_page(compared)
    return "\n".join(text_lines(compared, with_kept=with_kept)) + "\n"
