"""Names to model files: manifests, where files lie, pulling, checking and removing them. Never loads a model.

`manifests()` and `find_manifest()` read models/*.toml; `match()` finds the manifest of a GGUF header;
`resolve()` turns what the user typed into a file; `pull()` fetches, `check_file()` compares with the known
hash, `plan_removal()` and `remove()` remove what is localctx's own.
"""

from __future__ import annotations

from localctx.registry.keeping import Check, Removal, check_file, plan_removal, remove
from localctx.registry.known_models import find_manifest, manifests, match
from localctx.registry.listing import ListedModel, list_models
from localctx.registry.manifest import Kv, Manifest, Pattern, Rope, Template, Wheel
from localctx.registry.places import models_dir
from localctx.registry.pull import pull, verify
from localctx.registry.resolve import ResolvedModel, resolve, resolve_adapters

__all__ = [
    "Check",
    "Kv",
    "ListedModel",
    "Manifest",
    "Pattern",
    "Removal",
    "ResolvedModel",
    "Rope",
    "Template",
    "Wheel",
    "check_file",
    "find_manifest",
    "list_models",
    "manifests",
    "match",
    "models_dir",
    "plan_removal",
    "pull",
    "remove",
    "resolve",
    "resolve_adapters",
    "verify",
]
