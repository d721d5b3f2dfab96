"""The rows of `localctx models ls`: what is known and what is there. Reads folders, opens no model file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from localctx.registry.manifest import Manifest, manifests
from localctx.registry.places import ggufs_in, hub_cache, models_dir
from localctx.registry.resolve import locate

__all__ = ["ListedModel", "list_models"]


@dataclass(frozen=True, slots=True)
class ListedModel:
    """One model: its name, its file and that file's size (None when not installed), its manifest if known."""

    name: str
    path: Path | None
    size_bytes: int | None
    manifest: Manifest | None

    @property
    def installed(self) -> bool:
        """Whether the file is there."""
        return self.path is not None


def list_models(folder: Path | None = None, cache: Path | None = None) -> tuple[ListedModel, ...]:
    """Models with a manifest, in manifest order, then other GGUF files of the models folder."""
    folder = models_dir() if folder is None else folder
    cache = hub_cache() if cache is None else cache
    rows = []
    for manifest in manifests():
        if not manifest.is_family:
            rows.append(_row(manifest.name, locate(manifest, folder, cache), manifest))
    named = {row.path for row in rows}
    rows += [_row(path.stem, path, None) for path in ggufs_in(folder) if path not in named]
    return tuple(rows)


def _row(name: str, path: Path | None, manifest: Manifest | None) -> ListedModel:
    """A row with the size of the file as it is now."""
    try:
        size = path.stat().st_size if path else None
    except OSError:
        path, size = None, None
    return ListedModel(name, path, size, manifest)
