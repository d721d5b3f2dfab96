"""A layout becomes parts of runs: cut where runs end, at the positions of the layout."""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from localctx.assemble import Budget, NewTokens, StoredTokens, apply, lay_out
from localctx.kv import KVContext, KVPart, KVSource

BUDGET = Budget(n_ctx=10_000, n_prefix=3, n_suffix=0, n_answer=0)


class Recorder:
    """A context that keeps what it was given."""

    def __init__(self) -> None:
        self.placed: list[tuple[list[int], list[KVPart]]] = []
        self.n_sweeps: list[int] = []
        self.sweeps = False

    def can_sweep(self, gaps: Sequence[tuple[int, int]], n_tokens: int) -> bool:
        return self.sweeps and len(gaps) > 1 and gaps[-1][1] <= n_tokens

    def place(
        self, tokens: Sequence[int], parts: Sequence[KVPart], on_progress: object = None, n_sweeps: int = 0
    ) -> int:
        self.placed.append((list(tokens), list(parts)))
        self.n_sweeps.append(n_sweeps)
        return len(tokens) - sum(part.n_tokens for part in parts)


class Row(tuple[int | None, int]):
    """A run of 128 tokens that is only its document and number."""

    n_tokens = 128


def run_of(document: int | None, token: int) -> tuple[KVSource, int]:
    return cast(KVSource, Row((document, token // 128))), token % 128


def test_a_range_over_runs_is_cut_at_their_ends() -> None:
    body = StoredTokens(2, 120, tuple(range(120, 300)), refresh=((130, 140), (290, 300)))
    layout = lay_out([1, 2, 3], [NewTokens((9, 9)), body], BUDGET)
    context = Recorder()
    n_evaluated = apply(cast(KVContext, context), layout, run_of)
    tokens, parts = context.placed[0]
    assert [(part.source, part.first, part.n_tokens, part.position) for part in parts] == [
        ((None, 0), 0, 3, 0),
        ((2, 0), 120, 8, 5),
        ((2, 1), 0, 2, 13),
        ((2, 1), 12, 116, 25),
        ((2, 2), 0, 34, 141),
    ]
    assert tokens == list(layout.tokens)  # the question is evaluated behind it, in batches of its own
    assert n_evaluated == 2 + 10 + 10


def test_fresh_kv_stands_beside_what_is_restored() -> None:
    body = StoredTokens(2, 0, tuple(range(100)), refresh=((0, 10), (90, 100)))
    layout = lay_out([1, 2, 3], [body], BUDGET)
    context = Recorder()
    source = cast(KVSource, Row((9, 9)))
    fresh = [KVPart(source, 0, 10, 93)]
    assert apply(cast(KVContext, context), layout, run_of, fresh) == 10
    assert context.placed[0][1][-1] is fresh[0]


def test_nothing_restored_is_evaluated_whole() -> None:
    context = Recorder()
    layout = lay_out([1, 2, 3], [NewTokens((9,))], BUDGET, prefix_is_stored=False)
    assert apply(cast(KVContext, context), layout, run_of) == 4
    assert context.placed == [([1, 2, 3, 9], [])]


def test_several_gaps_are_swept_where_the_context_can_and_the_prefix_is_there() -> None:
    pieces = [
        NewTokens((9, 9)),
        StoredTokens(2, 0, (1,) * 100),
        NewTokens((8,)),
        StoredTokens(2, 300, (2,) * 9),
    ]
    stored, without_prefix = (
        lay_out([1, 2, 3], pieces, BUDGET, prefix_is_stored=kept) for kept in (True, False)
    )
    for sweeps, layout, wanted in ((True, stored, 2), (False, stored, 0), (True, without_prefix, 0)):
        context = Recorder()
        context.sweeps = sweeps
        apply(cast(KVContext, context), layout, run_of)
        assert context.n_sweeps == [wanted]
