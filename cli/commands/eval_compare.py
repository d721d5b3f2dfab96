"""`localctx eval compare`: how many of the edits made in generated contracts `compare` finds."""

from __future__ import annotations

from typing import Annotated

import typer

from localctx.errors import UsageError

from ..options import JsonOptions, with_options

__all__ = ["add_compare"]


def add_compare(group: typer.Typer) -> None:
    """Add the command to its group."""
    group.command("compare")(with_options(compare))


def compare(
    output: JsonOptions,
    edits: Annotated[
        int, typer.Option("--edits", metavar="N", min=1, max=20_000, help="Edits in all pairs.")
    ] = 500,
    seed: Annotated[int, typer.Option("--seed", "-s", help="Random seed.")] = 0,
    split: Annotated[
        str, typer.Option("--split", metavar="NAME", help="judge, or calibrate (thresholds were set on it).")
    ] = "judge",
    pages: Annotated[
        int | None,
        typer.Option("--pages", metavar="N", min=1, max=5000, help="One English pair of so many pages."),
    ] = None,
    wrong: Annotated[bool, typer.Option("--wrong", help="Name what was missed, misjudged or false.")] = False,
) -> None:
    """Compare generated contracts in English, German and Chinese whose edits are known; no model."""
    from localctx.eval.compare_pairs import measure, measure_pages

    from ..terminal import print_json, print_line

    if split not in ("judge", "calibrate"):
        raise UsageError(f"--split {split} is not known", "judge or calibrate")
    if pages is not None:
        measured = measure_pages(pages, edits, seed)
    else:
        measured = measure(edits, seed, "calibrate" if split == "calibrate" else "judge")
    if output.json:
        print_json({**measured.to_json(), **({"wrong": measured.wrong} if wrong else {})})
        return
    for line in [*measured.lines(), *(measured.wrong if wrong else ())]:
        print_line(line)
    print_line(f"\n{measured.seconds:.2f} s to compare")
