"""KV runs at rest: identity, segments, catalogue. Knows no llama.cpp, no text and no engine.

What it keeps are bytes made by localctx._native.encode, under ids made of token ids (identity). On disk,
below the root that converted texts share (`KVStore.root`):

    kv/catalogue.sqlite3        what is kept and where (WAL)
    kv/segments/<name>.seg      immutable files of runs and derived data, at most 256 MB each
    kv/segments/tmp-<name>      one being written; swept when its writer is gone
    locks/<key>.lock            one a document being prefilled; store.lock for opening, tidy.lock for tidying
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from localctx.lazy import lazy_names

if TYPE_CHECKING:
    from localctx.store.errors import StoreUnusable
    from localctx.store.identity import TokenChain, document_key, run_ids, run_spans
    from localctx.store.records import (
        WHOLE_STATE,
        DocumentIdentity,
        GcReport,
        StoredDocument,
        StoredRun,
        VerifyReport,
        joined,
    )
    from localctx.store.store import KVStore
    from localctx.store.writing import RunWriter

__all__ = [
    "WHOLE_STATE",
    "DocumentIdentity",
    "GcReport",
    "KVStore",
    "RunWriter",
    "StoreUnusable",
    "StoredDocument",
    "StoredRun",
    "TokenChain",
    "VerifyReport",
    "document_key",
    "joined",
    "run_ids",
    "run_spans",
]

__getattr__ = lazy_names(
    __name__,
    {
        "DocumentIdentity": "records",
        "GcReport": "records",
        "KVStore": "store",
        "RunWriter": "writing",
        "StoreUnusable": "errors",
        "StoredDocument": "records",
        "StoredRun": "records",
        "TokenChain": "identity",
        "VerifyReport": "records",
        "WHOLE_STATE": "records",
        "document_key": "identity",
        "joined": "records",
        "run_ids": "identity",
        "run_spans": "identity",
    },
)
