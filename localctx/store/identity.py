"""Names of KV: a run's id is a hash of all that its numbers depend on. Pure; knows no files.

Base id = blake2b-128(format version, KVSpace, policy). Run id = blake2b-128(id before it, its token ids as
little-endian int32), where the chain of one document begins at the base id. Where the chain begins anew
depends on the policy: never (exact, window), at each unit (independent), at the cell before the run's own
(lazy). Where earlier runs are put back for a chunk, all of its tokens come into the chain before its runs.
"""

from __future__ import annotations

import json
import sys
from array import array
from collections.abc import Sequence
from hashlib import blake2b
from itertools import pairwise

from localctx.kv import MAX_ANCHORS, RECALL_CHUNK_TOKENS, RUN_TOKENS, KVSpace, PrefillPolicy

__all__ = ["FORMAT_VERSION", "ID_BYTES", "TokenChain", "document_key", "run_ids", "run_spans"]

FORMAT_VERSION = 1
"""Part of every id: raise it when equal ids would no longer mean equal KV."""
ID_BYTES = 16
TOKEN_BYTES = 4
_RESTORED, _SPAN = -1, -2
"""What begins an entry of a TokenChain that is no token: token ids are not negative."""


def run_ids(
    space: KVSpace, policy: PrefillPolicy, tokens: Sequence[int], units: Sequence[int] = (), offset: int = 0
) -> list[bytes]:
    """The ids of a document's runs, 16 bytes each, in the order of run_spans().

    units: where blocks start, in tokens, ascending; only `independent` looks at them: runs begin anew there.
    offset: where the second cell but one of the lazy grid begins: runs before it and in it are those of the
    grid that begins at 0. Raises ValueError for units, an offset or a lazy window that make no sense.
    """
    data = token_bytes(tokens)
    base = base_id(space, policy)
    spans = run_spans(len(data) // TOKEN_BYTES, policy, units)
    if policy.kind == "lazy":
        return _lazy_ids(data, base, lazy_cell_runs(policy), len(spans), offset)
    starts = set(units) if policy.kind == "independent" else set()
    ids: list[bytes] = []
    before = base
    for first, end in spans:
        if policy.recalled_tokens and first % RECALL_CHUNK_TOKENS == 0:
            before = _next_id(before, data, first, first + RECALL_CHUNK_TOKENS)
        before = _next_id(base if first in starts else before, data, first, end)
        ids.append(before)
    return ids


def run_spans(n_tokens: int, policy: PrefillPolicy, units: Sequence[int] = ()) -> list[tuple[int, int]]:
    """Tokens [first, end) of each run: RUN_TOKENS each, fewer at the end (independent: of each unit)."""
    starts = [0]
    if policy.kind == "independent":
        starts = sorted({0, *units})
        if list(units) != sorted(set(units)) or starts[0] < 0 or (units and starts[-1] >= max(1, n_tokens)):
            raise ValueError("units are not ascending token offsets within the document")
    return [
        (first, min(first + RUN_TOKENS, end))
        for start, end in pairwise([*starts, n_tokens])
        for first in range(start, end, RUN_TOKENS)
    ]


class TokenChain:
    """What stands in a context, one place after the other, and the ids of the spans evaluated in it.

    Evaluated tokens count alone, in however many steps they came; restored ones count with what their KV was
    restored from. The prefix is in the space.
    """

    def __init__(self, space: KVSpace, n_sweeps: int = 0) -> None:
        """n_sweeps: how often all that was evaluated was so at once; 0: one after the other."""
        seed = base_id(space, PrefillPolicy("exact", 0))
        self._hasher = blake2b(
            seed, digest_size=ID_BYTES, person=b"span" + bytes([n_sweeps] * (n_sweeps > 0))
        )

    def add_evaluated(self, tokens: Sequence[int]) -> None:
        """The next tokens, evaluated behind everything before them."""
        self._hasher.update(token_bytes(tokens))

    def add_restored(self, tokens: Sequence[int], source: bytes, row: int) -> None:
        """The next tokens, restored from rows `row` and on of what `source` names with all its encoding."""
        self._hasher.update(token_bytes([_RESTORED, row, len(tokens)]))
        self._hasher.update(blake2b(source, digest_size=ID_BYTES).digest())
        self._hasher.update(token_bytes(tokens))

    def span_id(self, n_tokens: int) -> bytes:
        """The id of the KV of the last n_tokens of them, 16 bytes."""
        hasher = self._hasher.copy()
        hasher.update(token_bytes([_SPAN, n_tokens]))
        return hasher.digest()


def document_key(space: KVSpace, policy: PrefillPolicy, text_hash: str) -> str:
    """The name of one text under one space and policy: 32 hex digits."""
    hasher = blake2b(base_id(space, policy), digest_size=ID_BYTES, person=b"document")
    hasher.update(text_hash.encode())
    return hasher.hexdigest()


def base_id(space: KVSpace, policy: PrefillPolicy) -> bytes:
    """Where every chain begins; a policy's numbers count only where they change the KV."""
    window = policy.window if policy.kind in ("window", "lazy") else 0
    facts: list[object] = [FORMAT_VERSION, RUN_TOKENS, space.model, space.rope, list(space.prefix)]
    facts += [policy.kind, window]
    if policy.kind == "window" and policy.sinks:  # ids made before there were any stay as they are
        facts.append(policy.sinks)
    if policy.recalled_tokens:
        recalled = {"routed": policy.routed, "router": policy.router, "stride": policy.stride}
        facts.append({**recalled, "chunk": RECALL_CHUNK_TOKENS, "anchors": MAX_ANCHORS})
    return blake2b(json.dumps(facts).encode(), digest_size=ID_BYTES, person=b"base").digest()


def token_bytes(tokens: Sequence[int]) -> bytes:
    """Token ids as little-endian int32."""
    numbers = array("i", tokens)
    if numbers.itemsize != TOKEN_BYTES:
        raise TypeError("this platform's C int is not 32 bits wide")
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers.tobytes()


def lazy_cell_runs(policy: PrefillPolicy) -> int:
    """Runs of a lazy cell. Raises ValueError for a window that is no multiple of RUN_TOKENS."""
    if policy.window < RUN_TOKENS or policy.window % RUN_TOKENS:
        raise ValueError(f"a lazy window of {policy.window} tokens is no multiple of {RUN_TOKENS}")
    return policy.window // RUN_TOKENS


def _lazy_ids(data: bytes, base: bytes, cell_runs: int, n_runs: int, offset: int) -> list[bytes]:
    """Run r of cell g is chained from the start of cell g - 1 (of cell 0 for the first two)."""
    if offset % RUN_TOKENS or not 0 <= offset < cell_runs * RUN_TOKENS:
        raise ValueError(f"an offset of {offset} tokens is no number of runs within a cell")
    if offset:
        first = min(n_runs, offset // RUN_TOKENS + cell_runs)
        shifted = _lazy_ids(data[offset * TOKEN_BYTES :], base, cell_runs, n_runs - offset // RUN_TOKENS, 0)
        return _lazy_ids(data, base, cell_runs, first, 0) + shifted[cell_runs:]
    ids: list[bytes] = []
    for start in range(0, n_runs, cell_runs):
        before = base
        for run in range(max(0, start - cell_runs), min(start + cell_runs, n_runs)):
            before = _next_id(before, data, run * RUN_TOKENS, (run + 1) * RUN_TOKENS)
            if run >= start:
                ids.append(before)
    return ids


def _next_id(before: bytes, data: bytes, first: int, end: int) -> bytes:
    return blake2b(before + data[first * TOKEN_BYTES : end * TOKEN_BYTES], digest_size=ID_BYTES).digest()
