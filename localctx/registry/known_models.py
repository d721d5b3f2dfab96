"""The models that localctx knows: every manifest that is shipped, found by name or by a GGUF header.

Knows nothing of where model files lie.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fnmatch import fnmatchcase
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from localctx.errors import ModelError
from localctx.registry.manifest import Manifest, Pattern
from localctx.registry.manifest_toml import parse_manifests

__all__ = ["find_manifest", "manifests", "match"]


@functools.cache
def manifests() -> tuple[Manifest, ...]:
    """Every manifest that is shipped, families before their sizes, in the order of file and entry.

    Raises ModelError when a manifest is damaged.
    """
    found: list[Manifest] = []
    for entry in sorted(_folder().iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".toml"):
            found += parse_manifests(entry.read_text("utf-8"), entry.name)
    names = [name for manifest in found for name in (manifest.name, *manifest.aliases)]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"models/: two manifests are called {name!r}")
    return tuple(found)


def find_manifest(name: str) -> Manifest | None:
    """The manifest of that name or alias, in any case."""
    wanted = name.lower()
    for manifest in manifests():
        if wanted == manifest.name or wanted in manifest.aliases:
            return manifest
    return None


def match(metadata: Mapping[str, object]) -> Manifest | None:
    """The manifest of a GGUF file with this header metadata: a size when it is known, else the family."""
    fitting = [
        (not item.is_family, length, item) for item in manifests() if (length := _fit(item.match, metadata))
    ]
    return max(fitting, key=lambda entry: entry[:2])[2] if fitting else None


def _folder() -> Traversable:
    """The folder of the manifests: package data, or models/ of a source tree."""
    try:
        folder = files("localctx.models")
    except ModuleNotFoundError:
        folder = Path(__file__).parents[2] / "models"
    if not folder.is_dir():
        raise ModelError("the model manifests (localctx/models) are missing", "install localctx again")
    return folder


def _fit(pattern: Pattern, metadata: Mapping[str, object]) -> int:
    """Length of the longest name pattern that fits, 0 when the header is another model's."""

    def general(key: str) -> str:
        return str(metadata.get(f"general.{key}", "")).strip().lower().replace(" ", "-")

    if general("architecture") not in pattern.architecture:
        return 0
    parts = [general(key) for key in ("basename", "size_label", "finetune", "version")]
    spellings = {general("name"), "-".join(part for part in parts if part)}
    fitting = [item for item in pattern.names if any(fnmatchcase(spelling, item) for spelling in spellings)]
    return max(map(len, fitting), default=0)
