"""Whether model files are what they should be, and removing them: only those of the models folder, ever.

Knows where a file's hash may be written down; opens no model but to see whether it is whole.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from localctx.engine.gguf_reader import read_raw
from localctx.errors import ModelError
from localctx.names import display_name
from localctx.registry.elsewhere import OLLAMA, prefix_of
from localctx.registry.fetch import hash_of, parts_of
from localctx.registry.hub_pull import read_record, record_path
from localctx.registry.known_models import manifests
from localctx.registry.manifest import Manifest
from localctx.registry.places import all_files, hub_folder, is_file, models_dir
from localctx.registry.pull import verify
from localctx.registry.repositories import HUB_PREFIX, parse_hub_name, shards_of
from localctx.registry.resolve import resolve
from localctx.small_text import reason_of

__all__ = ["Check", "Removal", "Status", "check_file", "plan_removal", "remove"]

Status: TypeAlias = Literal["ok", "damaged", "unknown"]
_BLOB = re.compile(r"(?:sha256-)?([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Check:
    """One file: "ok" (the hash is as published), "damaged", or "unknown" (whole, but no hash is known)."""

    path: Path
    status: Status
    detail: str


def check_file(path: Path, folder: Path | None = None) -> Check:
    """Compare a model file with the hash that is known of it; reads it all. Raises ModelError when it cannot
    be read.
    """
    manifest = _manifest_of(path, models_dir() if folder is None else folder)
    if manifest is not None:
        return _compared(path, verify(manifest, path), "its manifest")
    try:
        expected, origin = _expected(path)
        if expected is not None:
            return _compared(path, hash_of(path) == expected, origin)
    except OSError as error:
        raise ModelError(f"{display_name(path)}: {reason_of(error)}") from error
    return _check_structure(path)


def _compared(path: Path, is_right: bool, origin: str) -> Check:
    if is_right:
        return Check(path, "ok", f"SHA-256 as {origin} says")
    return Check(path, "damaged", f"SHA-256 is not the one that {origin} says")


def _manifest_of(path: Path, folder: Path) -> Manifest | None:
    """The manifest whose own file it is, where that holds a hash."""
    return next((item for item in manifests() if item.wheel and path == folder / item.file_name), None)


def _expected(path: Path) -> tuple[str | None, str]:
    """The hash that the file should have, and who says so. Raises OSError."""
    record = read_record(path)
    if record is not None:
        return record.sha256, f"{display_name(record.repo)} at {display_name(record.revision[:12])}"
    real = path.resolve(strict=True)
    match = _BLOB.fullmatch(real.name)
    named = match is not None and real.parent.name == "blobs"
    return (match[1], "its name in the cache") if match and named else (None, "")


def _check_structure(path: Path) -> Check:
    """Whether the file is whole by its own tensor table."""
    try:
        read_raw(path)
    except ModelError as error:
        return Check(path, "damaged", error.message.removeprefix(f"{display_name(path)}: "))
    return Check(path, "unknown", "whole by its tensor table; no hash is known")


@dataclass(frozen=True, slots=True)
class Removal:
    """What would go: the model's files with all that belongs to them, and their bytes."""

    name: str
    paths: tuple[Path, ...]
    size_bytes: int


def plan_removal(spec: str, folder: Path | None = None, cache: Path | None = None) -> Removal:
    """The files behind a name in the models folder: shards, records, and what unfinished pulls left.

    Raises ModelError for a file that is not in the models folder, and what resolve() raises.
    """
    folder = models_dir() if folder is None else folder
    left = _unfinished(spec, folder)
    if left:
        files: list[Path] = []
    else:
        path = resolve(spec, folder, cache).path
        _check_own(spec, path, folder)
        files = all_files(path)
    records = [record for file in files if is_file(record := record_path(file)) and read_record(file)]
    parts = [part for file in files for part in parts_of(file)]
    paths = (*files, *records, *parts, *left)
    return Removal(spec, paths, sum(path.lstat().st_size for path in paths))


def _unfinished(spec: str, folder: Path) -> list[Path]:
    """What an unfinished pull of hf:OWNER/REPO:FILE left, where there is no file of that name yet."""
    if not spec.startswith(HUB_PREFIX):
        return []
    hub_name = parse_hub_name(spec)
    home = hub_folder(hub_name.repo, folder)
    names = shards_of(hub_name.wanted) if hub_name.wanted and ".." not in hub_name.wanted.split("/") else []
    targets = [home / name for name in names]
    return [] if any(map(is_file, targets)) else [part for target in targets for part in parts_of(target)]


def _check_own(spec: str, path: Path, folder: Path) -> None:
    """Raises ModelError unless the file lies in the models folder."""
    own, place = folder.resolve(), path.parent.resolve()
    if place == own or own in place.parents:
        return
    prefix = prefix_of(spec)
    how = "remove it with the tool that it is of"
    if prefix == OLLAMA:
        how = f"ollama rm {spec.removeprefix(OLLAMA)}"
    raise ModelError(
        f"{display_name(path)} is not in localctx's models folder ({display_name(folder)}): it stays", how
    )


def remove(removal: Removal, folder: Path | None = None) -> None:
    """Remove the files, then folders of the models folder that are empty. Raises ModelError."""
    folder = models_dir() if folder is None else folder
    for path in removal.paths:
        try:
            path.unlink()
        except OSError as error:
            raise ModelError(f"{display_name(path)} cannot be removed: {reason_of(error)}") from error
    for place in {path.parent for path in removal.paths}:
        _remove_empty(place, folder)


def _remove_empty(place: Path, folder: Path) -> None:
    """Remove a folder, and those above it up to the models folder, as far as they hold nothing."""
    while folder in place.parents:
        try:
            place.rmdir()
        except OSError:  # not empty, or gone already
            return
        place = place.parent
