"""Models that other tools have downloaded: Ollama, LM Studio, llama.cpp, the Hugging Face cache. Only read.

Each has a name that --model takes. Reads folders, small manifests and a file's first bytes; opens no model.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from localctx.engine.lookalikes import describe
from localctx.errors import ModelError
from localctx.names import display_name
from localctx.private_files import folder_items
from localctx.registry.places import expand, first_file, ggufs_in, ggufs_under, hub_cache, hub_files
from localctx.registry.repositories import HUB_PREFIX, matching
from localctx.small_text import read_small_text, reason_of

__all__ = ["FoundModel", "Places", "find_elsewhere", "find_named", "prefix_of", "problem_of"]

OLLAMA, LM_STUDIO, LLAMA_CPP = "ollama:", "lmstudio:", "llama.cpp:"
_REGISTRY, _LIBRARY = "registry.ollama.ai", "library"
_MODEL_LAYER = "application/vnd.ollama.image.model"
_DIGEST = re.compile(r"sha256:([0-9a-f]{64})")
_MAX_MANIFESTS = 10_000


@dataclass(frozen=True, slots=True)
class FoundModel:
    """A model of another tool: what --model takes, its first file, whose it is, why it cannot be used."""

    name: str
    path: Path
    where: str
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Places:
    """The folders of other tools' models."""

    hub: Path
    ollama: tuple[Path, ...] = ()
    lm_studio: tuple[Path, ...] = ()
    llama_cpp: tuple[Path, ...] = ()

    @staticmethod
    def of(environ: Mapping[str, str] | None = None) -> Places:
        """As the tools themselves find them."""
        environ = os.environ if environ is None else environ
        home = expand("~")
        cache = Path(environ.get("XDG_CACHE_HOME") or home / ".cache")
        if sys.platform == "darwin":
            cache = home / "Library" / "Caches"
        ollama = [environ.get("OLLAMA_MODELS") or home / ".ollama" / "models"]
        ollama += ["/usr/share/ollama/.ollama/models", "/var/lib/ollama/models"]  # where it runs as a service
        llama = environ.get("LLAMA_CACHE") or cache / "llama.cpp"
        studio = [_studio_home(home) / "models", home / ".cache" / "lm-studio" / "models"]
        return Places(hub_cache(environ), tuple(map(_path, ollama)), tuple(studio), (_path(llama),))


def _path(place: str | Path) -> Path:
    return expand(place) if isinstance(place, str) else place


def _studio_home(home: Path) -> Path:
    """LM Studio's folder: a pointer file names it where it was moved."""
    try:
        named = read_small_text(home / ".lmstudio-home-pointer").strip()
    except (OSError, UnicodeDecodeError):
        named = ""
    return Path(named) if named else home / ".lmstudio"


def prefix_of(spec: str) -> str | None:
    """The tool's prefix of a name such as ollama:llama3.2; None for any other."""
    return next((prefix for prefix in (OLLAMA, LM_STUDIO, LLAMA_CPP) if spec.startswith(prefix)), None)


def find_named(spec: str, places: Places) -> FoundModel | None:
    """The model of that name; of Ollama's the tag `latest` goes without saying."""
    names = {spec, f"{spec}:latest"} if spec.startswith(OLLAMA) else {spec}
    return next((found for found in find_elsewhere(places) if found.name in names), None)


def find_elsewhere(places: Places) -> Iterator[FoundModel]:
    """All models of other tools, tool by tool, by name; a folder that cannot be read holds none."""
    for repo in _cached_repos(places.hub):
        files = hub_files(repo, places.hub)
        for name in matching(files):
            if name in files:
                yield _found(f"{HUB_PREFIX}{repo}:{name}", files[name], "Hugging Face cache")
    for root in dict.fromkeys(places.ollama):
        yield from _ollama(root)
    for root in dict.fromkeys(places.lm_studio):
        files = ggufs_under(root)
        for name in matching(files):
            if name in files:
                yield _found(f"{LM_STUDIO}{name}", files[name], "LM Studio")
    for root in dict.fromkeys(places.llama_cpp):
        for path in ggufs_in(root):
            yield _found(f"{LLAMA_CPP}{path.name}", path, "llama.cpp's cache")


def _found(name: str, path: Path, where: str) -> FoundModel:
    return FoundModel(display_name(name), path, where, problem_of(path))


def problem_of(path: Path) -> str | None:
    """Why the file, by its first bytes and its shards, is no model; None when it begins as one."""
    try:
        first_file(path)
        with path.open("rb") as file:
            looks = describe(file.read(4096))
    except ModelError as error:
        return error.message.removeprefix(f"{display_name(path)}: ")
    except OSError as error:
        return f"cannot be read: {reason_of(error)}"
    return looks.what if looks else None


def _cached_repos(hub: Path) -> list[str]:
    """Repositories of models in the Hugging Face cache."""
    names = sorted(item.name for item in folder_items(hub) if item.name.startswith("models--"))
    parts = [name.removeprefix("models--").split("--") for name in names]
    return ["/".join(pair) for pair in parts if len(pair) == 2 and all(pair)]


def _ollama(root: Path) -> Iterator[FoundModel]:
    """Models of an Ollama folder: manifests/HOST/NAMESPACE/NAME/TAG name blobs by their hash."""
    base = root / "manifests"
    manifests = sorted(Path(place) / name for place, _, names in os.walk(base) for name in names)
    for manifest in manifests[:_MAX_MANIFESTS]:
        parts = manifest.relative_to(base).parts
        if len(parts) != 4:
            continue
        host, namespace, name, tag = parts
        shown = [name] if (host, namespace) == (_REGISTRY, _LIBRARY) else [namespace, name]
        shown = shown if host == _REGISTRY else [host, *shown]
        digest = _model_digest(manifest)
        if digest is not None:
            yield _found(f"{OLLAMA}{'/'.join(shown)}:{tag}", root / "blobs" / f"sha256-{digest}", "Ollama")


def _model_digest(manifest: Path) -> str | None:
    """The hash of the one model file of an Ollama manifest; None when it has none, or several."""
    try:
        layers = json.loads(read_small_text(manifest))["layers"]
        digests = [layer["digest"] for layer in layers if layer["mediaType"] == _MODEL_LAYER]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    match = _DIGEST.fullmatch(digests[0]) if len(digests) == 1 and isinstance(digests[0], str) else None
    return match[1] if match else None
