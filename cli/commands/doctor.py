"""`localctx doctor`: what was built, what works, what to do."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer

from ..options import OutputOptions, with_options

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("doctor")(with_options(doctor))


def doctor(
    output: OutputOptions,
    model: Annotated[
        str, typer.Option("--model", "-m", help="Model for the one-token trial.")
    ] = "smollm2-135m",
) -> None:
    """Examine the installation: builds, devices, memory, folders, and one token in a child process."""
    from localctx.doctor import examine

    from .. import render

    report = examine(model)
    if output.json:
        findings = [asdict(finding) for finding in report.findings]
        render.print_json({"schema": "localctx.doctor/1", "status": report.status, "findings": findings})
    else:
        for finding in report.findings:
            render.print_finding(finding)
    if report.status == "fail":
        raise typer.Exit(1)
