"""Pulling `hf:OWNER/REPO[:FILE|:QUANT]`: what is meant, whether it fits the disk, its files one by one.

Files go to hf/OWNER/REPO in the models folder under their own names, each with a record of its origin.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from localctx.byte_sizes import format_bytes
from localctx.errors import ModelError, UsageError
from localctx.names import display_name
from localctx.private_files import read_regular, sync_folder
from localctx.registry.fetch import fetch, part_path
from localctx.registry.hub import RemoteFile, Repository, look_up
from localctx.registry.places import hub_folder, is_file, repo_files
from localctx.registry.repositories import HubName, choose, matching, preferred, shards_of
from localctx.values import Progress

__all__ = ["Record", "pull_from_hub", "read_record", "record_path"]

_SCHEMA = "localctx.pulled/1"
_SPARE_BYTES = 64 << 20
_MAX_NAME = 255
_MAX_RECORD = 1 << 16


@dataclass(frozen=True, slots=True)
class Record:
    """What is known of a pulled file: repository, revision (a commit), name there, bytes, SHA-256 in hex."""

    repo: str
    revision: str
    name: str
    size_bytes: int
    sha256: str


def record_path(path: Path) -> Path:
    """Where the record of a pulled file lies."""
    return path.with_name(f"{path.name}.json")


def read_record(path: Path) -> Record | None:
    """The record of a pulled file; None without one that can be read."""
    try:
        value = json.loads(read_regular(record_path(path))[:_MAX_RECORD])
        if value.pop("schema") != _SCHEMA:
            return None
        record = Record(**value)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    is_typed = all(
        isinstance(item, str) for item in (record.repo, record.revision, record.name, record.sha256)
    )
    return record if is_typed and isinstance(record.size_bytes, int) else None


def pull_from_hub(
    hub_name: HubName,
    folder: Path,
    cache: Path,
    offline: bool = False,
    say: Callable[[str], None] = lambda line: None,
    on_progress: Progress | None = None,
) -> Path:
    """Make the model's files present in the models folder and return the first one's path.

    What lies in the Hugging Face cache already is used from there. on_progress counts bytes. Raises
    UsageError where several models are meant, ModelError when it cannot be fetched, is not what the hub
    names, or does not fit the disk; OSError.
    """
    present = repo_files(hub_name.repo, folder, cache)
    if offline:
        return _offline(hub_name, present)
    repository = look_up(hub_name.repo)
    name = _choose(hub_name, [file.name for file in repository.files], say)
    files = _files_of(repository, name)
    home = hub_folder(hub_name.repo, folder)
    cached = _cached(files, present, home)
    if cached is not None:
        say(f"{hub_name} is in the Hugging Face cache: {display_name(cached)}")
        return cached
    targets = [_target(home, file.name) for file in files]
    _check_space(files, targets, folder)
    _fetch_all(repository, files, targets, say, on_progress)
    say(f"{hub_name} is installed: {display_name(targets[0])}")
    return targets[0]


def _cached(files: list[RemoteFile], present: dict[str, Path], home: Path) -> Path | None:
    """The model's first file where another tool has downloaded all of them: its cache names them by hash."""
    paths = [present.get(file.name) for file in files]
    for path, file in zip(paths, files, strict=True):
        if path is None or home in path.parents or path.resolve().name != file.sha256:
            return None
    return paths[0]


def _offline(hub_name: HubName, present: dict[str, Path]) -> Path:
    """What is here."""
    name = choose(present, hub_name, "here")
    if name is None:
        raise ModelError(f"{hub_name} is not here and --offline is set", "run it once without --offline")
    return present[name]


def _choose(hub_name: HubName, names: list[str], say: Callable[[str], None]) -> str:
    """The model's first file; where only the repository is named, Q4_K_M."""
    models = matching(names)
    if not models and not hub_name.wanted:
        raise ModelError(
            f"{hub_name.repo} has no GGUF file", "most models have a repository whose name ends in -GGUF"
        )
    if not hub_name.wanted and len(models) > 1 and (best := preferred(models)) and "q4_k_m" in best.lower():
        say(f"{hub_name.repo} has {len(models)} models: taking {display_name(best)}")
        return best
    name = choose(names, hub_name, "on the hub")
    if name is None:
        there = ", ".join(map(display_name, models[:8])) or "no GGUF file"
        raise UsageError(f"{hub_name.repo} has no {display_name(hub_name.wanted)}", f"it has {there}")
    return name


def _files_of(repository: Repository, name: str) -> list[RemoteFile]:
    """All files of the model. Raises ModelError for missing shards, for a file without a hash."""
    there = {file.name: file for file in repository.files}
    wanted = shards_of(name)
    missing = [item for item in wanted if item not in there]
    if missing:
        raise ModelError(
            f"{repository.repo} lacks {len(missing)} of the model's {len(wanted)} files: "
            f"{', '.join(map(display_name, missing[:5]))}",
            "choose another file",
        )
    files = [there[item] for item in wanted]
    for file in files:
        if file.sha256 is None or file.size_bytes <= 0:
            raise ModelError(
                f"{repository.repo} has no SHA-256 for {display_name(file.name)}, so it cannot be checked",
                "download it by hand and pass --model PATH",
            )
    return files


def _target(home: Path, name: str) -> Path:
    """Where a file of the repository goes. Raises ModelError for a name that leads elsewhere."""
    parts = name.split("/")
    for part in parts:
        if (
            part in ("", ".", "..")
            or "\\" in part
            or not part.isprintable()
            or len(os.fsencode(part)) > _MAX_NAME - 32
        ):
            raise ModelError(
                f"the hub names a file that cannot be kept: {display_name(name)}", "choose another file"
            )
    return home.joinpath(*parts)


def _check_space(files: list[RemoteFile], targets: list[Path], folder: Path) -> None:
    """Raises ModelError when what is missing does not fit the disk."""
    folder.mkdir(parents=True, exist_ok=True)
    needed = 0
    for file, target in zip(files, targets, strict=True):
        if not is_file(target) or target.stat().st_size != file.size_bytes:
            part = part_path(target, file)
            needed += file.size_bytes - (part.stat().st_size if is_file(part) else 0)
    free = shutil.disk_usage(folder).free
    if needed and needed + _SPARE_BYTES > free:
        raise ModelError(
            f"{format_bytes(needed)} to be fetched, {format_bytes(free)} free in {display_name(folder)}",
            "free some space, or set LOCALCTX_MODELS_DIR to another disk",
        )


def _fetch_all(
    repository: Repository,
    files: list[RemoteFile],
    targets: list[Path],
    say: Callable[[str], None],
    on_progress: Progress | None,
) -> None:
    """The files in turn, each with its record."""
    total, before = sum(file.size_bytes for file in files), 0
    for file, target in zip(files, targets, strict=True):
        target.parent.mkdir(parents=True, exist_ok=True)

        def on_bytes(n_bytes: int, done: int = before) -> None:
            if on_progress is not None:
                on_progress(done + n_bytes, total)

        fetch(repository, file, target, on_bytes, say)
        before += file.size_bytes
        record = Record(repository.repo, repository.revision, file.name, file.size_bytes, file.sha256 or "")
        _write_record(target, record)


def _write_record(path: Path, record: Record) -> None:
    """Put the record beside the file."""
    value = {"schema": _SCHEMA} | {name: getattr(record, name) for name in Record.__slots__}
    part = record_path(path).with_suffix(".json.new")
    part.write_text(json.dumps(value, indent=1) + "\n", "utf-8")
    part.replace(record_path(path))
    sync_folder(path.parent)
