"""Which passage stands next to the question."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
from session.test_kept_kv import Place

from localctx.assemble import BEST_LAST_FROM, Piece, StoredTokens
from localctx.session import placing

PARTS = 20
ASKED = 3
QUESTION = "Where is the lamp of the warden?"
FILLING = "Ships bring salt and rope to the harbour in the evening, as they did before. " * 3


def parts(n_of_warden: int) -> str:
    """A text whose first parts are, each between two others, about what is asked; one says it most."""
    return "".join(
        f"# Harbour {n}\n\n{FILLING}\n\n"
        f"# Part {n}\n\nThe warden of gate {n} keeps a lamp. Room {n} of it has {n + 3} chairs. "
        f"{'The warden has a lamp, a lamp.' if n == ASKED else ''}\n\n"
        for n in range(n_of_warden)
    )


@pytest.fixture
def placed(monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, int]]]:
    """The passages of each context, (first token, end), as they are laid out."""
    seen, lay_out = [], placing.lay_out

    def watched(prefix: Sequence[int], pieces: Sequence[Piece], *rest: Any, **more: Any) -> Any:
        found = [piece for piece in pieces if isinstance(piece, StoredTokens)]
        seen.append([(piece.first, piece.first + len(piece.tokens)) for piece in found])
        return lay_out(prefix, pieces, *rest, **more)

    monkeypatch.setattr(placing, "lay_out", watched)
    return seen


@pytest.mark.parametrize(("n_passages", "is_last"), [(BEST_LAST_FROM - 1, False), (BEST_LAST_FROM, True)])
def test_the_best_of_many_passages_does(
    tmp_path: Any, tiny_model_path: Any, placed: Any, n_passages: int, is_last: bool
) -> None:
    place = Place(tmp_path, tiny_model_path)
    file = place.write(parts(n_passages))
    place.index(file)
    answer = place.ask(
        file, question=QUESTION, strategy="stream", kv="budget=1024,block=64,rank=lexical,refresh=0"
    )
    first = [start for start, _ in placed[-1]]
    assert len(first) == n_passages
    assert sorted(first[:-1]) == first[:-1]
    assert (first[-1] == sorted(first)[ASKED]) == is_last
    assert (first == sorted(first)) == (not is_last)
    assert answer.coverage.tokens_attended <= 1024


BESIDE = "beside the chairs that nobody has moved since the stones of the wall fell. " * 3
FAQ = "".join(
    f"## Which ship brings the rope of gate {n}?\n\nThe one that comes from harbour {n}, {BESIDE}\n\n"
    f"## Where does the warden keep the {'lamp, the lamp' if n == ASKED else 'lamp'} of gate {n}?\n\n"
    f"The lamp hangs behind the door of room {n + 3}, {BESIDE}\n\n"
    for n in range(12)
)


def test_a_heading_stays_before_what_it_heads(tmp_path: Any, tiny_model_path: Any, placed: Any) -> None:
    place = Place(tmp_path, tiny_model_path)
    file = place.write(FAQ)
    place.index(file)
    place.ask(
        file,
        question="Where does the warden keep the lamp?",
        strategy="stream",
        kv="budget=1024,block=64,rank=lexical,refresh=0",
    )
    laid = placed[-1]
    assert len(laid) >= BEST_LAST_FROM
    assert laid != sorted(laid)
    together = [(one, two) for one, two in pairwise(sorted(laid)) if one[1] == two[0]]
    assert len(together) > 1
    assert set(together) <= set(pairwise(laid))
