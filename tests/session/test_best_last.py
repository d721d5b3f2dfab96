"""Which passage stands next to the question."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from session.test_kept_kv import Place

from localctx.assemble import Piece, StoredTokens
from localctx.session import placing

PARTS = 20
ASKED = 3
TEXT = "".join(
    f"# Part {n}\n\nThe warden of gate {n} keeps a lamp. {f'Room {n} of it has {n + 3} chairs. ' * 8}"
    f"{'The warden lights the lamp.' if n == ASKED else ''}\n\n"
    for n in range(PARTS)
)
QUESTION = "Does the warden have a lamp?"


@pytest.mark.parametrize(("n_blocks", "is_last"), [(6, False), (12, True)])
def test_the_best_of_many_passages_does(
    tmp_path: Any, tiny_model_path: Any, monkeypatch: pytest.MonkeyPatch, n_blocks: int, is_last: bool
) -> None:
    place, seen = Place(tmp_path, tiny_model_path), []
    file = place.write(TEXT)
    place.index(file)
    lay_out = placing.lay_out

    def watched(prefix: Sequence[int], pieces: Sequence[Piece], *rest: Any, **more: Any) -> Any:
        seen.append([piece.first for piece in pieces if isinstance(piece, StoredTokens)])
        return lay_out(prefix, pieces, *rest, **more)

    monkeypatch.setattr(placing, "lay_out", watched)
    answer = place.ask(
        file,
        question=QUESTION,
        strategy="stream",
        kv=f"budget={64 * n_blocks},block=64,rank=lexical,refresh=0",
    )
    first = seen[-1]
    assert len(first) > 4
    assert (first != sorted(first)) == is_last
    ahead = [start for start in first[:-1] if start > first[-1]]
    assert bool(ahead) == is_last
    assert sorted(first[:-1]) == first[:-1]
    assert answer.coverage.tokens_attended <= 64 * n_blocks
