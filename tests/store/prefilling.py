"""One of several processes that want the same documents at the same time, as `ask` does.

    python prefilling.py ROOT N_DOCUMENTS

For each document: find its runs, prefill what is missing under the document's lock, read all of it. Prints
how many runs it wrote itself, and a hash of what it read.
"""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

from localctx.kv import KVSpace, PrefillPolicy
from localctx.store import DocumentIdentity, KVStore, run_ids

SPACE, POLICY, N_TOKENS = KVSpace("many", "rope", ()), PrefillPolicy(), 1000


def run_of(document: int, ordinal: int) -> bytes:
    """What stands for the run of a document that everybody would compute."""
    return hashlib.shake_128(bytes([document, ordinal])).digest(20_000)


def main(root: str, n_documents: int) -> None:
    """Prefill and read every document."""
    n_written, hasher = 0, hashlib.sha256()
    with KVStore.open(Path(root)) as store:
        for number in range(n_documents):
            ids = run_ids(SPACE, POLICY, range(number, number + N_TOKENS))
            document = DocumentIdentity(SPACE, POLICY, f"{number:032}", N_TOKENS, f"{number}.txt")
            if store.n_leading(ids) < len(ids):
                with store.writing(document, ids) as writer:
                    for ordinal in range(store.n_leading(ids), len(ids)):
                        n_tokens = min(128, N_TOKENS - ordinal * 128)
                        data = run_of(number, ordinal)
                        writer.add(ordinal, ids[ordinal], data, n_tokens=n_tokens, codec="int4")
                        n_written += 1
            with store.reading(ids) as runs:  # what was removed meanwhile is computed again
                for ordinal, run_id in enumerate(ids):
                    hasher.update(runs[run_id] if run_id in runs else run_of(number, ordinal))
    print(n_written, hasher.hexdigest())


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
