"""What the user typed after --model becomes one file: a manifest's name, a path, or hf:OWNER/REPO[:FILE].

Looks at names and the folders that hold models; opens no model file, so whether it is a GGUF is the engine's
to say. Reads other tools' caches, never writes them.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from localctx.engine.gguf import display
from localctx.engine.lora import parse_adapters
from localctx.engine.options import Adapter
from localctx.errors import ModelError, UsageError
from localctx.names import display_name
from localctx.registry.elsewhere import Places, find_elsewhere, find_named, prefix_of
from localctx.registry.known_models import find_manifest, manifests
from localctx.registry.manifest import Manifest
from localctx.registry.places import expand, first_file, ggufs_in, hub_cache, is_file, models_dir, repo_files
from localctx.registry.repositories import HUB_PREFIX, choose, matching, parse_hub_name, preferred
from localctx.settings import nearest
from localctx.small_text import reason_of

__all__ = ["ResolvedModel", "locate", "resolve", "resolve_adapters"]

_LIST = "`localctx models ls` lists the known models"


@dataclass(frozen=True, slots=True)
class ResolvedModel:
    """A model file that exists; `manifest` is set when it was named, not when a path was given."""

    path: Path
    manifest: Manifest | None
    name: str


def resolve(spec: str, folder: Path | None = None, cache: Path | None = None) -> ResolvedModel:
    """The file behind `spec`: NAME, PATH (a file, or a folder with one model), hf:OWNER/REPO[:FILE|:QUANT],
    or a name of another tool's model as list_models() gives it.

    A known name comes before a path of that spelling; write ./NAME for the path. `folder` and `cache` stand
    in for the models folder and the Hugging Face cache. Raises UsageError for an unknown name or an ambiguous
    choice, ModelError when the file is missing: nothing is downloaded unasked.
    """
    folder = models_dir() if folder is None else folder
    cache = hub_cache() if cache is None else cache
    if not spec or "\0" in spec:
        raise UsageError("no model is named", _LIST)
    if spec.startswith(HUB_PREFIX):
        return _from_hub(spec, folder, cache)
    if prefix_of(spec) is not None:
        return _from_elsewhere(spec, Places.of())
    manifest = find_manifest(spec)
    if manifest is not None:
        return _known(manifest, folder, cache)
    if _looks_like_path(spec):
        return _from_path(expand(spec))
    for path in ggufs_in(folder):
        if spec in (path.name, path.stem):
            return ResolvedModel(first_file(path), None, display_name(path.stem))
    if spec in _names_here():
        return _from_path(Path(spec))
    known = [item.name for item in manifests()] + [path.stem for path in ggufs_in(folder)]
    raise UsageError(
        f"unknown model {display_name(spec)!r}{nearest(spec.lower(), known)}", f"{_LIST}; or give a path"
    )


def resolve_adapters(spec: str, folder: Path | None = None, cache: Path | None = None) -> tuple[Adapter, ...]:
    """The files of FILE[:SCALE],... (paths, or hf:OWNER/REPO:FILE of one that was pulled).

    Raises UsageError for what cannot be read so, ModelError for a repository's file that is not here.
    """
    folder = models_dir() if folder is None else folder
    cache = hub_cache() if cache is None else cache
    adapters = []
    for adapter in parse_adapters(spec):
        name = str(adapter.path)
        is_pulled = name.startswith(HUB_PREFIX)
        path = _from_hub(name, folder, cache).path if is_pulled else expand(name)
        adapters.append(Adapter(path, adapter.scale))
    return tuple(adapters)


def locate(manifest: Manifest, folder: Path, cache: Path) -> Path | None:
    """Where the manifest's file is: the models folder, else what was pulled from its repositories or is in
    the Hugging Face cache; None when nowhere.
    """
    path = folder / manifest.file_name
    if is_file(path):
        return path
    for repo in manifest.hub:
        found = repo_files(repo, folder, cache)
        best = preferred(name for name in matching(found) if name in found)
        if best is not None:
            return found[best]
    return None


def _known(manifest: Manifest, folder: Path, cache: Path) -> ResolvedModel:
    """A manifest's file, or how to get it."""
    if manifest.is_family:
        sizes = [item.name for item in manifests() if item.family == manifest.name]
        raise UsageError(f"{manifest.name} is a family of models", f"choose one: {', '.join(sizes)}")
    path = locate(manifest, folder, cache)
    if path is not None:
        return ResolvedModel(first_file(path), manifest, manifest.name)
    raise ModelError(f"model {manifest.name} is not installed", f"run: localctx models pull {manifest.name}")


def _from_path(path: Path) -> ResolvedModel:
    """A file, or a folder that holds one model."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        mode = stat.S_IFREG  # a missing first shard is for first_file to say
    except OSError as error:
        raise ModelError(f"{display(path)}: {reason_of(error)}", _LIST) from error
    if stat.S_ISDIR(mode):
        path = _only_model(path)
    elif not stat.S_ISREG(mode):
        raise ModelError(f"{display(path)}: not a regular file", "a model is a .gguf file")
    first = first_file(path)
    if not is_file(first):
        raise ModelError(f"{display(path)}: no such model file", f"check the path; {_LIST}")
    return ResolvedModel(first, None, display(Path(path.stem)))


def _only_model(folder: Path) -> Path:
    """The one model of a folder."""
    found = ggufs_in(folder)
    if not found:
        raise ModelError(f"{display(folder)}: no GGUF file in this folder", "name a .gguf file")
    if len(found) > 1:
        names = ", ".join(display(Path(item.name)) for item in found[:5])
        more = ", …" if len(found) > 5 else ""
        raise UsageError(f"{display(folder)}: {len(found)} models here: {names}{more}", "name one of them")
    return found[0]


def _names_here() -> set[str]:
    """Names in the working folder; none where it cannot be read."""
    try:
        return {path.name for path in Path().iterdir()}
    except OSError:
        return set()


def _from_hub(spec: str, folder: Path, cache: Path) -> ResolvedModel:
    """A file of a repository that was pulled, or that some other tool has downloaded."""
    hub_name = parse_hub_name(spec)
    found = repo_files(hub_name.repo, folder, cache)
    name = choose(found, hub_name, "here")
    if name is None:
        raise ModelError(f"{hub_name} is not here", f"run: localctx models pull {hub_name}")
    path = found.get(name) or found[hub_name.wanted]  # a first shard may be missing, which first_file() says
    return ResolvedModel(first_file(path), None, hub_name.repo.split("/")[1])


def _from_elsewhere(spec: str, places: Places) -> ResolvedModel:
    """A model that another tool has downloaded, by the name that `models ls` shows."""
    found = find_named(spec, places)
    if found is None:
        known = [item.name for item in find_elsewhere(places)]
        raise UsageError(f"no model is called {display_name(spec)!r}{nearest(spec, known)}", _LIST)
    if not is_file(found.path):
        raise ModelError(
            f"{found.name}: {found.where} has no file {display(found.path)}", "fetch it there again"
        )
    name = found.name.partition(":")[2].rpartition("/")[2]
    return ResolvedModel(first_file(found.path), None, name)


def _looks_like_path(spec: str) -> bool:
    """Whether the spelling can only be a path."""
    separators = [item for item in (os.sep, os.altsep) if item]
    return spec[0] in ".~" or spec.lower().endswith(".gguf") or any(item in spec for item in separators)
