"""Where model files lie: the models folder of localctx, and the Hugging Face cache, which is only read.

Returns paths; knows nothing of manifests or of what the files hold. Other tools' folders are elsewhere.py's.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from pathlib import Path

import platformdirs

from localctx.engine.gguf import resolve as resolve_shards
from localctx.registry.repositories import is_projector, parse_hub_name

__all__ = [
    "all_files",
    "expand",
    "first_file",
    "ggufs_in",
    "ggufs_under",
    "hub_cache",
    "hub_files",
    "hub_folder",
    "is_file",
    "models_dir",
    "repo_files",
]

_SHARD = re.compile(r"-(\d{5})(?=-of-\d{5}\.gguf\Z)", re.IGNORECASE)
_PULLED = "hf"


def models_dir(environ: Mapping[str, str] | None = None) -> Path:
    """The folder of pulled models: $LOCALCTX_MODELS_DIR, else `models` in the user's data folder."""
    chosen = (os.environ if environ is None else environ).get("LOCALCTX_MODELS_DIR")
    if chosen:
        return expand(chosen)
    return Path(platformdirs.user_data_dir("localctx")) / "models"


def hub_cache(environ: Mapping[str, str] | None = None) -> Path:
    """The Hugging Face cache folder, found as huggingface_hub finds it."""
    environ = os.environ if environ is None else environ
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environ.get(name):
            return expand(environ[name])
    if environ.get("HF_HOME"):
        return expand(environ["HF_HOME"]) / "hub"
    return expand(environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface" / "hub"


def expand(path: str) -> Path:
    """The path with a leading ~ replaced; as it is where that user or their home is not known."""
    try:
        return Path(path).expanduser()
    except RuntimeError:
        return Path(path)


def hub_folder(repo: str, folder: Path) -> Path:
    """Where files pulled from the repository lie in the models folder. Raises UsageError as hub_files()."""
    parse_hub_name(repo)
    return folder / _PULLED / repo


def repo_files(repo: str, folder: Path, cache: Path) -> dict[str, Path]:
    """GGUF files of `OWNER/REPO` that are here, by name inside the repository: pulled ones, then those of the
    Hugging Face cache. Raises UsageError as hub_files().
    """
    return {**hub_files(repo, cache), **ggufs_under(hub_folder(repo, folder))}


def hub_files(repo: str, cache: Path) -> dict[str, Path]:
    """GGUF files of `OWNER/REPO` in the cache, by name inside the repository; the main revision first.

    Raises UsageError when `repo` is no repository name, so that no other folder can be reached.
    """
    parse_hub_name(repo)
    root = cache / f"models--{repo.replace('/', '--')}"
    snapshots = root / "snapshots"
    try:
        main = (root / "refs" / "main").read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        main = ""
    try:
        revisions = sorted(item for item in snapshots.iterdir() if item.is_dir())
    except OSError:
        return {}
    found: dict[str, Path] = {}
    for revision in sorted(revisions, key=lambda item: item.name != main):
        found = {**ggufs_under(revision), **found}
    return found


def ggufs_under(folder: Path) -> dict[str, Path]:
    """GGUF files of a folder and those in it, by name inside it; what cannot be read holds none."""
    paths = [Path(place) / name for place, _, names in os.walk(folder) for name in names]
    found = sorted(path for path in paths if path.name.lower().endswith(".gguf") and is_file(path))
    return {path.relative_to(folder).as_posix(): path for path in found}


def ggufs_in(folder: Path) -> list[Path]:
    """The models of a folder, by name: one path for a set of shards, none for vision projectors.

    A folder that cannot be read holds none.
    """
    try:
        entries = sorted(folder.iterdir())
    except OSError:
        return []
    found = []
    for path in entries:
        if not path.name.lower().endswith(".gguf") or not is_file(path) or is_projector(path.name):
            continue
        shard = _SHARD.search(path.name)
        first = path.with_name(_SHARD.sub("-00001", path.name))
        if shard is None or first == path or not is_file(first):
            found.append(path)
    return found


def is_file(path: Path) -> bool:
    """Whether a regular file is there and may be looked at; a folder without permission holds nothing."""
    try:
        return path.is_file()
    except OSError:
        return False


def first_file(path: Path) -> Path:
    """The file that llama.cpp is given: of a set of shards the first. Raises ModelError as all_files()."""
    return all_files(path)[0]


def all_files(path: Path) -> list[Path]:
    """The files of a model, the first one first. Raises ModelError naming the shards that are missing."""
    return resolve_shards(path)
