"""Runs every check and never fails itself: a check that raises becomes a finding. Imports no llama_cpp."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from localctx.doctor.disk import check_disk
from localctx.doctor.machine import check_cpu, check_folders, check_memory, check_platform
from localctx.doctor.models import check_embedded_model, check_embedder
from localctx.doctor.report import Finding, Report
from localctx.doctor.trial import TRIAL_MODULE, check_engine, check_package
from localctx.errors import LocalctxError
from localctx.registry import models_dir, resolve
from localctx.settings import DEFAULT_EMBEDDER, DEFAULT_MODEL

__all__ = ["examine"]


def examine(
    model: str = DEFAULT_MODEL,
    folder: Path | None = None,
    store: Path | None = None,
    trial_module: str = TRIAL_MODULE,
    timeout_s: float = 120.0,
) -> Report:
    """Look at Python, CPU, memory, folders, the disk, the models that ship, and try llama.cpp on each device.

    `model`: what --model says · `folder`: stands in for the models folder · `store`: the store's folder, None
    for none · `trial_module`: the module that a child process runs, given the model's path · `timeout_s`: how
    long that child may take. Raises nothing.
    """
    folder = models_dir() if folder is None else folder

    def engine() -> Iterator[Finding]:
        try:
            path = resolve(model, folder).path
        except LocalctxError as error:
            yield Finding("trial", "fail", f"not run: {error.message}", error.hint)
        else:
            yield from check_engine(path, trial_module, timeout_s)

    checks: list[tuple[str, Callable[[], Iterator[Finding]]]] = [
        ("python", check_platform),
        ("cpu", check_cpu),
        ("memory", check_memory),
        ("folders", lambda: check_folders(folder)),
        ("store disk", lambda: check_disk(store)),
        ("model", lambda: check_embedded_model(DEFAULT_MODEL, folder)),
        ("embedder", lambda: check_embedder(DEFAULT_EMBEDDER, folder)),
        ("llama.cpp", check_package),
        ("trial", engine),
    ]
    return Report(tuple(finding for name, check in checks for finding in _guarded(name, check)))


def _guarded(name: str, check: Callable[[], Iterator[Finding]]) -> list[Finding]:
    """The findings of one check; what it raises is one more."""
    findings: list[Finding] = []
    try:
        findings.extend(check())
    except Exception as error:  # noqa: BLE001  # a broken machine is what doctor is for
        detail = f"this check stopped: {type(error).__name__}: {error}".splitlines()[0]
        findings.append(Finding(name, "fail", detail, "please report it, with all that doctor says"))
    return findings
