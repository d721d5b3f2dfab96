"""`localctx doctor`: what was built, what works, what to do."""

from __future__ import annotations

from dataclasses import asdict

import typer

from ..options import JsonOptions, ModelOptions, with_options

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("doctor")(with_options(doctor))


def doctor(model: ModelOptions, output: JsonOptions) -> None:
    """Examine the installation: builds, devices, memory, disk, folders, and a token from each device."""
    from localctx.doctor import examine
    from localctx.from_settings import settings_for

    from ..tables import print_finding
    from ..terminal import print_json

    settings = settings_for(model.flags(), model.config)
    report = examine(settings.model, store=settings.store_root)
    if output.json:
        findings = [asdict(finding) for finding in report.findings]
        print_json({"schema": "localctx.doctor/1", "status": report.status, "findings": findings})
    else:
        for finding in report.findings:
            print_finding(finding)
    if report.status == "fail":
        raise typer.Exit(1)
