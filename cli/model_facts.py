"""What `models show` says: the manifest's facts and, when the file is here, the file's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

__all__ = ["model_facts"]


def model_facts(spec: str) -> dict[str, Any]:
    """Facts of a model by name or path, as JSON values.

    Raises UsageError for an unknown name; a known model whose file is missing is described without it.
    """
    from localctx.engine.gguf import open_embedding_model, open_model
    from localctx.engine.model_facts import kv_shape
    from localctx.engine.model_facts import model_facts as file_facts
    from localctx.errors import ModelError
    from localctx.registry import find_manifest, match, resolve

    manifest = find_manifest(spec)
    facts: dict[str, Any] = {"name": spec}
    path = None
    if manifest is None or not manifest.is_family:
        try:
            path = resolve(spec).path
        except ModelError:
            if manifest is None:
                raise
    if path is not None:
        is_embedder = manifest is not None and manifest.embedder is not None
        header = open_embedding_model(path) if is_embedder else open_model(path)
        manifest = manifest or match(header.metadata)
        info = file_facts(header)
        facts |= {"path": str(path), "file": {**asdict(info), "plain_attention": kv_shape(header).is_plain}}
    if manifest is not None:
        facts |= {"name": manifest.name, "manifest": _plain(asdict(manifest))}
    return facts


def _plain(value: Any) -> Any:
    """Mappings and tuples as dict and list."""
    if hasattr(value, "items"):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [_plain(item) for item in value]
    return value
