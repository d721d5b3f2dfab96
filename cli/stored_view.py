"""What the store holds, for a program and as lines for people. Opens nothing."""

from __future__ import annotations

import time
from typing import Any

from localctx.byte_sizes import format_bytes
from localctx.document.cache import KeptText
from localctx.store import StoredDocument

__all__ = ["facts_of_document", "facts_of_text", "line_of_document", "line_of_text", "time_text"]

SHOWN_KEY = 10
"""Characters of a key in a list."""


def facts_of_document(document: StoredDocument) -> dict[str, Any]:
    """A document with KV for a program."""
    identity = document.identity
    is_state = identity.is_state and document.size_bytes > 0
    return {
        "key": document.key,
        "name": identity.name,
        "path": identity.path,
        "model": identity.model,
        "fingerprint": identity.space.model,
        "rope": identity.space.rope,
        "policy": identity.policy.kind,
        "window": identity.policy.window if identity.policy.kind in ("window", "lazy") else None,
        "text_hash": identity.text_hash,
        "tokens_total": identity.n_tokens,
        "tokens_stored": identity.n_tokens if is_state else document.n_tokens_stored,
        "share_stored": 1.0 if is_state else round(document.share_stored, 4),
        "runs": document.n_runs,
        "codecs": ["state"] if is_state else list(document.codecs),
        "size_bytes": document.size_bytes,
        "created": document.created,
        "last_used": document.last_used,
    }


def facts_of_text(text: KeptText) -> dict[str, Any]:
    """A converted text for a program."""
    return {
        "key": text.key,
        "path": text.path,
        "format": text.format,
        "text_hash": text.content_hash,
        "size_bytes": text.size_bytes,
        "last_used": text.last_used,
    }


def line_of_document(document: StoredDocument) -> str:
    """A document with KV in a list."""
    identity = document.identity
    policy = identity.policy.kind + (
        f" {identity.policy.window:,}{identity.policy.beside_window}"
        if identity.policy.kind == "window"
        else ""
    )
    size = format_bytes(document.size_bytes)
    kept = f"{document.share_stored:.0%} stored, {size} {'+'.join(document.codecs)}"
    if identity.is_state:
        kept = f"{size} of state" if document.size_bytes else "nothing stored"
    return (
        f"{document.key[:SHOWN_KEY]}  {place_of(document)}  {identity.n_tokens:,} tokens, {kept}  "
        f"{identity.model or identity.space.model[:SHOWN_KEY]}, {policy}  {time_text(document.last_used)}"
    )


def place_of(document: StoredDocument) -> str:
    """Where its files lie; their names as they were given where that is not known."""
    identity = document.identity
    return " + ".join(identity.paths) if all(identity.paths) else identity.name


def line_of_text(text: KeptText) -> str:
    """A converted text in a list."""
    name = text.path or "(unknown name)"
    what = f"text of {text.format}, {format_bytes(text.size_bytes)}"
    return f"{text.key[:SHOWN_KEY]}  {name}  {what}  {time_text(text.last_used)}"


def time_text(seconds: float) -> str:
    """A time of day for people."""
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(seconds))
