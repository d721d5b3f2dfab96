"""Encoded runs and documents for these tests; the runs are real, made by the C++ core from random rows."""

from __future__ import annotations

import functools
from pathlib import Path

import numpy as np
from native.twin import Blob, write_blob

from localctx._native import Rope, State, encode
from localctx.kv import RUN_TOKENS, KVSpace, PrefillPolicy
from localctx.store import DocumentIdentity, KVStore, run_ids

SPACE = KVSpace("fingerprint", "neox base 10000", (1, 2, 3))
WINDOW = PrefillPolicy("window", 4096)
HEAD_DIM, N_LAYER = 32, 2


@functools.cache
def encoded_run(seed: int, n_tokens: int = RUN_TOKENS, codec: str = "int4") -> bytes:
    """A run of random rows; equal arguments give equal bytes."""
    random = np.random.default_rng(seed)
    rows = [random.normal(size=(n_tokens, HEAD_DIM)).astype(np.float16) for _ in range(2 * N_LAYER)]
    blob = Blob(np.arange(n_tokens, dtype=np.int32), rows[:N_LAYER], rows[N_LAYER:])
    rope = Rope(1e4 ** -(np.arange(HEAD_DIM // 2) / (HEAD_DIM // 2)), HEAD_DIM, neox=True)
    return encode(State(write_blob(blob)), 0, n_tokens, rope, codec)


def tokens_of(n_tokens: int, seed: int = 0) -> list[int]:
    """Token ids of a document."""
    return [int(token) for token in np.random.default_rng(seed).integers(0, 49_000, n_tokens)]


def document_of(tokens: list[int], name: str = "a.txt", policy: PrefillPolicy = WINDOW) -> DocumentIdentity:
    """A document whose text is known by its name."""
    return DocumentIdentity(SPACE, policy, name.ljust(32, "-"), len(tokens), name, model="tiny")


def ids_of(tokens: list[int], policy: PrefillPolicy = WINDOW) -> list[bytes]:
    """The ids of a document's runs."""
    return run_ids(SPACE, policy, tokens)


def write(store: KVStore, name: str, tokens: list[int], *, codec: str = "int4", seed: int = 0) -> list[bytes]:
    """Write all runs of a document in one commit; their ids."""
    ids = ids_of(tokens)
    with store.writing(document_of(tokens, name), ids) as writer:
        for ordinal, run_id in enumerate(ids):
            n_tokens = min(RUN_TOKENS, len(tokens) - ordinal * RUN_TOKENS)
            data = encoded_run(seed + ordinal, n_tokens, codec)
            writer.add(ordinal, run_id, data, n_tokens=n_tokens, codec=codec, max_error=(0.5, 0.25))
    return ids


def segment_files(root: Path) -> list[Path]:
    """The segments on disk."""
    return sorted((root / "kv" / "segments").glob("*.seg"))
