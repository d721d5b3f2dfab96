"""The rows of `localctx models ls`: what is known, what is there and whose it is. Opens no model file."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from localctx.errors import ModelError
from localctx.names import display_name
from localctx.registry.elsewhere import Places, find_elsewhere, problem_of
from localctx.registry.known_models import manifests
from localctx.registry.manifest import Manifest
from localctx.registry.places import all_files, ggufs_in, ggufs_under, is_file, models_dir
from localctx.registry.repositories import HUB_PREFIX, matching
from localctx.registry.resolve import locate

__all__ = ["ListedModel", "list_models"]

_OWN, _GIVEN = "models folder", "--model"


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model: what --model takes, its first file and the bytes of all (None when not installed), its
    manifest if known, whose file it is, and why it cannot be used (None: nothing is known against it).
    """

    name: str
    path: Path | None
    size_bytes: int | None
    manifest: Manifest | None
    where: str = ""
    problem: str | None = None

    @property
    def installed(self) -> bool:
        """Whether the file is there."""
        return self.path is not None


def list_models(
    folder: Path | None = None,
    cache: Path | None = None,
    places: Places | None = None,
    given: Path | None = None,
) -> tuple[ListedModel, ...]:
    """Models with a manifest, in manifest order, then files of the models folder, of the folder or file that
    --model names (`given`), and of other tools; no file twice.
    """
    folder = models_dir() if folder is None else folder
    if places is None:
        places = Places.of() if cache is None else Places(cache)
    rows = []
    for manifest in manifests():
        if not manifest.is_family:
            path = locate(manifest, folder, places.hub)
            where = "" if path is None else _OWN if folder in path.parents else "Hugging Face cache"
            rows.append(_row(manifest.name, path, manifest, where))
    others = [(name, path, _OWN, problem_of(path)) for name, path in _own(folder)]
    others += [(str(path), path, _GIVEN, problem_of(path)) for path in _given(given)]
    others += [(found.name, found.path, found.where, found.problem) for found in find_elsewhere(places)]
    seen = {row.path for row in rows}
    for name, path, where, problem in others:
        if path not in seen:
            rows.append(_row(display_name(name), path, None, where, problem))
        seen.add(path)
    return tuple(rows)


def _own(folder: Path) -> Iterable[tuple[str, Path]]:
    """Files of the models folder, and those that were pulled from the hub."""
    for path in ggufs_in(folder):
        yield path.stem, path
    pulled = ggufs_under(folder / HUB_PREFIX.rstrip(":"))
    for name in matching(pulled):
        owner, repo, file = (*name.split("/", 2), "", "")[:3]
        if name in pulled and file:
            yield f"{HUB_PREFIX}{owner}/{repo}:{file}", pulled[name]


def _given(path: Path | None) -> list[Path]:
    """What --model names, where it is a path."""
    if path is None:
        return []
    return [path] if is_file(path) else ggufs_in(path)


def _row(
    name: str, path: Path | None, manifest: Manifest | None, where: str, problem: str | None = None
) -> ListedModel:
    """A row with the size of the files as they are now."""
    try:
        size = sum(shard.stat().st_size for shard in _shards(path)) if path else None
    except OSError:
        path, size, where = None, None, ""
    return ListedModel(name, path, size, manifest, where, problem)


def _shards(path: Path) -> list[Path]:
    """All files of the model; the one that is there where others are missing."""
    try:
        return all_files(path)
    except ModelError:
        return [path]
