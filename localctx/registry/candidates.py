"""Known models as what a suggestion is made of: sizes from their files where these are here, else from their
manifests.
"""

from __future__ import annotations

from collections.abc import Sequence

from localctx.forecast.suggest import Candidate
from localctx.registry.listing import ListedModel

__all__ = ["candidates"]

BYTES_PER_WEIGHT = 0.61
"""Of Q4_K_M, some matrices of which are kept larger."""
BILLION = 1e9


def candidates(rows: Sequence[ListedModel]) -> list[Candidate]:
    """One for each row of a known model that generates text."""
    found = []
    for row in rows:
        manifest = row.manifest
        if manifest is None or manifest.embedder is not None or not manifest.parameters_b:
            continue
        n_weights = manifest.parameters_b * BILLION
        known_bytes = row.size_bytes or (manifest.wheel.size_bytes if manifest.wheel else 0)
        found.append(
            Candidate(
                name=manifest.name,
                title=manifest.title,
                languages=manifest.languages,
                n_ctx=manifest.n_ctx,
                n_weights=n_weights,
                n_active=(manifest.active_b or manifest.parameters_b) * BILLION,
                weights_bytes=known_bytes or round(n_weights * BYTES_PER_WEIGHT),
                kv_bytes_per_token=manifest.kv.bytes_per_token,
                store=manifest.kv.store,
                is_here=row.installed,
            )
        )
    return found
