"""Looks for the models that ship, and checks that they are the right files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from localctx.doctor.report import Finding
from localctx.engine.gguf import display
from localctx.registry import find_manifest, verify
from localctx.registry.places import is_file

__all__ = ["check_embedded_model", "check_embedder"]


def check_embedded_model(name: str, folder: Path) -> Iterator[Finding]:
    """Whether the embedded model is there and has the hash that its manifest names."""
    manifest = find_manifest(name)
    if manifest is None or manifest.wheel is None:
        yield Finding("model", "fail", f"no manifest describes {name}", "install localctx again")
        return
    path = folder / manifest.file_name
    pull = f"run: localctx models pull {name}"
    if not is_file(path):
        yield Finding("model", "warn", f"{name} is not in {display(folder)}", pull)
    elif verify(manifest, path):
        yield Finding("model", "ok", f"{display(path)}, hash as published")
    else:
        yield Finding("model", "fail", f"{display(path)} is not the published file", pull)


def check_embedder(name: str, folder: Path) -> Iterator[Finding]:
    """Whether the default embedder is there; without it passages are found by words alone."""
    manifest = find_manifest(name)
    if manifest is None or manifest.wheel is None:
        yield Finding("embedder", "fail", f"no manifest describes {name}", "install localctx again")
        return
    path, pull = folder / manifest.file_name, f"run: localctx models pull {name}"
    if not is_file(path):
        yield Finding("embedder", "warn", f"{name} is not there: passages are found by words alone", pull)
    elif verify(manifest, path):
        covers = ", ".join(manifest.languages)
        yield Finding("embedder", "ok", f"{display(path)}, hash as published, for {covers}")
    else:
        yield Finding("embedder", "fail", f"{display(path)} is not the published file", pull)
