"""What is prefilled for a question alone: enough left context, few tokens, and it stays."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from session.test_kept_kv import Place, chapters

from localctx.kv import KVSpace, PrefillPolicy
from localctx.session.lazy_spans import lazy_plan
from localctx.session.token_stream import TokenStream
from localctx.store import KVStore

N_TOKENS = 20_000
WINDOW = 1024
POLICY, SPACE = PrefillPolicy("lazy", WINDOW), KVSpace("model", "rope", (1, 2))
TOKENS = array("i", range(N_TOKENS))
STREAMS = [TokenStream(TOKENS, SPACE, POLICY, (), offset) for offset in (0, 256, 512, 768)]


@dataclass
class Kept:
    """Runs that are at hand already."""

    ids: set[bytes] = field(default_factory=set)

    def n_leading(self, ids: list[bytes], codec: str | None = None) -> int:
        return next((place for place, run_id in enumerate(ids) if run_id not in self.ids), len(ids))


def planned(kept: Kept, wanted: list[tuple[int, int]], streams: list[TokenStream] = STREAMS) -> Any:
    cache: Any = SimpleNamespace(kept=kept, codec=None)
    return lazy_plan(cache, streams, wanted)


def n_evaluated(plan: Any) -> int:
    return sum(end - begin_of(stream, first) for stream, spans in plan for first, end in spans)


def begin_of(stream: TokenStream, first: int) -> int:
    """Where what is evaluated for a span begins."""
    return max(0, stream.cell_of(first) - WINDOW)


passages = st.lists(
    st.integers(0, N_TOKENS - 200).flatmap(lambda first: st.tuples(st.just(first), st.integers(1, 190))),
    max_size=6,
).map(lambda found: [(first, first + n) for first, n in found])


@settings(deadline=None, max_examples=150)
@given(wanted=passages)
def test_every_token_gets_its_left_context_and_is_there_afterwards(wanted: list[tuple[int, int]]) -> None:
    kept = Kept()
    plan = planned(kept, wanted)
    for stream, spans in plan:
        for first, end in spans:
            assert stream.cell_of(first) == stream.cell_of(end - 1)
            begin = begin_of(stream, first)
            assert begin == 0 or first - begin >= WINDOW
            numbers = stream.runs_of(first, end)
            assert stream.spans[numbers[0]][0] == first and stream.spans[numbers[-1]][1] == end
            kept.ids.update(stream.ids[number] for number in numbers)
    assert planned(kept, wanted) == []
    for first, end in wanted:
        assert any(all(stream.ids[n] in kept.ids for n in stream.runs_of(first, end)) for stream in STREAMS)


@settings(deadline=None, max_examples=150)
@given(first=st.integers(WINDOW + 768, N_TOKENS - 200), n_tokens=st.integers(100, 128))
def test_a_passage_comes_shortly_behind_its_left_context(first: int, n_tokens: int) -> None:
    wanted = [(first, first + n_tokens)]
    n = n_evaluated(planned(Kept(), wanted))
    assert WINDOW + n_tokens <= n <= WINDOW + 256 + 128 + 128
    assert n <= n_evaluated(planned(Kept(), wanted, STREAMS[:1]))


def test_what_is_there_is_gone_on_with() -> None:
    kept = Kept()
    ((stream, spans),) = planned(kept, [(5000, 5100)])
    kept.ids.update(stream.ids[number] for first, end in spans for number in stream.runs_of(first, end))
    ((again, more),) = planned(kept, [(5050, 5200)])
    assert again is stream
    assert more == [(spans[-1][1], 5248)]


def test_streams_of_several_offsets_differ_in_their_ids_behind_the_first_cells() -> None:
    plain, shifted = STREAMS[0], STREAMS[1]
    n_equal = (256 + WINDOW) // 128
    assert shifted.ids[:n_equal] == plain.ids[:n_equal]
    assert not set(shifted.ids[n_equal:]) & set(plain.ids[n_equal:])
    assert shifted.spans == plain.spans
    later = TokenStream(TOKENS[256:], SPACE, POLICY)  # to the model, the text begins there
    assert shifted.ids[n_equal:] == later.ids[n_equal - 2 :]
    ordinals = [stream.first_ordinal + n for stream in STREAMS for n in range(stream.n_runs)]
    assert len(set(ordinals)) == len(ordinals)


@pytest.mark.parametrize("offset", [1, 100, 1024, -128])
def test_an_offset_is_runs_within_a_cell(offset: int) -> None:
    with pytest.raises(ValueError, match="offset"):
        TokenStream(TOKENS, SPACE, POLICY, (), offset)


def test_passages_of_many_questions_are_kept_side_by_side(tmp_path: Path, tiny_model_path: Path) -> None:
    place = Place(tmp_path, tiny_model_path)
    file = place.write(chapters(40))
    asked = {"strategy": "stream", "kv": "lazy=on,refresh=0,window=512,budget=250"}
    gates = range(8, 40, 6)
    first = [place.ask(file, question=f"code of gate {gate}?", **asked) for gate in gates]
    with KVStore.open(place.store) as store:
        (document,) = store.documents()
        assert 0 < document.share_stored <= 1
        assert store.gc().n_runs_removed == 0
        assert store.verify().is_clean
    again = [place.ask(file, question=f"code of gate {gate}?", **asked) for gate in gates]
    assert [answer.text for answer in again] == [answer.text for answer in first]
    assert max(answer.tokens.evaluated for answer in again) < 200 < min(a.tokens.evaluated for a in first[:2])
