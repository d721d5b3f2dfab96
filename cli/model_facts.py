"""What `models show` says: the manifest's facts and, when the file is here, the file's own."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from localctx.engine.gguf import GGUFHeader
    from localctx.engine.model_facts import KVShape

__all__ = ["model_facts", "shown_facts"]


def model_facts(spec: str) -> dict[str, Any]:
    """Facts of a model by name or path, as JSON values.

    Raises UsageError for an unknown name; a known model whose file is missing is described without it.
    """
    from localctx.engine.gguf import open_embedding_model
    from localctx.engine.gguf import open_model as read_file
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
        header = open_embedding_model(path) if is_embedder else read_file(path)
        manifest = manifest or match(header.metadata)
        facts |= {"path": str(path), "file": _file_facts(header)}
    if manifest is not None:
        facts |= {"name": manifest.name, "manifest": _plain(asdict(manifest))}
    return facts


def shown_facts(facts: dict[str, Any]) -> dict[str, Any]:
    """Of a model's facts what a person decides by, each on one line."""
    manifest = facts.get("manifest", {})
    shown = {"name": facts["name"], "title": manifest.get("title"), "license": manifest.get("license")}
    shown["languages"] = manifest.get("languages")
    if "file" in facts:
        shown |= _shown_file(facts["file"])
    else:
        shown["context"] = f"{manifest['n_ctx']:,} tokens trained" if manifest.get("n_ctx") else None
        shown["block store"] = _served(manifest.get("kv", {}).get("store"), manifest.get("kv", {}).get("why"))
    shown["advised memory"] = f"{manifest['memory_gib']:g} GiB" if manifest.get("memory_gib") else None
    shown["settings"] = [f"{name} {value}" for name, value in manifest.get("settings", {}).items()]
    return {**shown, "note": manifest.get("note"), "more": "--json"}


def _shown_file(file: dict[str, Any]) -> dict[str, Any]:
    from localctx.byte_sizes import format_bytes

    rope, template = file["rope"], file["template"]
    parts = [f"{rope['type']}, base {rope['freq_base']:,.0f}, scaling {rope['scaling']}", *rope["factors"]]
    if rope["original_ctx"]:
        parts.append(f"{rope['original_ctx']:,} tokens before scaling")
    thinking = [f"thinking {' … '.join(template['thinking'])}"] if template["thinking"] else []
    origin = "of the file" if template["source"] == "file" else "none in the file"
    return {
        "file": file["path"],
        "size": f"{format_bytes(file['size_bytes'])}, {file['description']}",
        "architecture": f"{file['architecture']}, {file['n_layer']} layers, {file['n_head']} heads",
        "context": f"{file['n_ctx_train']:,} tokens trained",
        "rope": ", ".join(parts),
        "template": ", ".join([origin, f"system turn {template['system_role']}", *thinking]),
        "template notices": template["notices"],
        "KV bytes a token": _sizes(file["kv_bytes_per_token_by_type"]),
        "stored bytes a token": _sizes(file["stored_bytes_per_token_by_codec"]),
        "block store": _served(file["store"]["serves"], file["store"]["why"]),
    }


def _sizes(sizes: dict[str, int]) -> list[str]:
    return [f"{name} {n_bytes:,}" for name, n_bytes in sizes.items()]


def _served(serves: bool | None, why: str | None) -> str | None:
    if serves is None:
        return None
    return f"{'yes' if serves else 'no'} ({why})" if why else "yes" if serves else "no"


def _file_facts(header: GGUFHeader) -> dict[str, Any]:
    """What the header says, and what follows for context, cache, template and store."""
    from localctx.engine.model_facts import kv_shape, model_facts, n_layer
    from localctx.engine.rope_scaling import own_scaling

    info, shape, key = model_facts(header), kv_shape(header), header.arch_key
    heads = header.per_layer(key("attention.head_count"), n_layer(header))
    return {
        **asdict(info),
        "files": [str(path) for path in header.paths],
        "n_embd": header.integer(key("embedding_length")),
        "n_head": max(heads, default=0),
        "n_expert": header.integer(key("expert_count")),
        "plain_attention": shape.is_plain,
        "own_rope_scaling": own_scaling(header),
        "rope": {**asdict(info.rope), **_rope_facts(header)},
        "kv_bytes_per_token_by_type": _kv_bytes(shape),
        "stored_bytes_per_token_by_codec": _stored_bytes(info.kv_bytes_per_token),
        "template": _template_facts(header),
        "store": _store_facts(header),
    }


def _rope_facts(header: GGUFHeader) -> dict[str, Any]:
    """Beyond RopeInfo: the context before scaling (0: not said), rotated dimensions, factors in the file."""
    key, names = header.arch_key, {tensor.name for tensor in header.tensors}
    factors = [
        name
        for name in ("rope_freqs", "rope_factors_short", "rope_factors_long")
        if f"{name}.weight" in names
    ]
    return {
        "original_ctx": header.integer(key("rope.scaling.original_context_length")),
        "n_rot": header.integer(key("rope.dimension_count")),
        "factors": factors,
    }


def _kv_bytes(shape: KVShape) -> dict[str, int]:
    """Bytes of keys and values of one token in all layers, for each type that llama.cpp's cache takes."""
    from localctx.engine.ggml_types import CACHE_TYPES, row_bytes

    elements = (*shape.k_elements, *shape.v_elements)
    return {name: sum(row_bytes(name, n) for n in elements) for name in CACHE_TYPES}


def _stored_bytes(f16_bytes: int) -> dict[str, int]:
    """About what one token takes on disk in the block store."""
    from localctx.session.announce import SHARE_OF_F16

    return {codec: round(f16_bytes * share) for codec, share in SHARE_OF_F16.items()}


def _template_facts(header: GGUFHeader) -> dict[str, Any]:
    """Where the chat template comes from, and what is noticed when a system and a user turn are rendered."""
    from localctx.engine.gguf import chat_template, missing_template
    from localctx.engine.template import FOLDED, render_chat
    from localctx.engine.thinking import detect
    from localctx.values import Message

    template, tags = chat_template(header), detect(chat_template(header))
    turns = [Message("system", ("a",)), Message("user", ("b",))]
    rendered = render_chat(template, turns, has_token=lambda token: True, missing=missing_template(header))
    return {
        "source": "none" if template is None else "file",
        "system_role": "folded" if FOLDED in rendered.notices else "native",
        "thinking": [tags.open, tags.close] if template and tags.close in template else [],
        "notices": list(rendered.notices),
    }


def _store_facts(header: GGUFHeader) -> dict[str, Any]:
    """Whether the block store can serve the model; a trial on first use has the last word."""
    from localctx.engine.composable import kv_refusal
    from localctx.engine.options import EngineOptions

    refusal = kv_refusal(header, EngineOptions())
    why = f"the model {refusal}" if refusal else "plain full attention; tried on first use, judged by verify"
    return {"serves": refusal is None, "why": why}


def _plain(value: Any) -> Any:
    """Mappings and tuples as dict and list."""
    if hasattr(value, "items"):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (tuple, list, frozenset)):
        return [_plain(item) for item in value]
    return value
