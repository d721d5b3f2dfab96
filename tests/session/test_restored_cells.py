"""What is put back is what was computed for just these tokens: the right rows, documents and encodings.

In the first layer a token's un-rotated key depends on the token alone, which tells whose row a row is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from session.test_kept_kv import LONG, Place, chapters

from localctx._native import Run
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.restoring import here
from localctx.kv import KVPart
from localctx.session.kept import Kept
from localctx.session.one_context import Held


@dataclass
class Seen:
    """What contexts were asked for: place() calls with parts; (first, tokens of left context) of streams."""

    placed: list[tuple[list[int], list[KVPart]]] = field(default_factory=list)
    streamed: list[tuple[int, int]] = field(default_factory=list)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Watches every context."""
    record = Seen()
    place, stream = LlamaKVContext.place, LlamaKVContext.stream

    def placing(
        context: LlamaKVContext, tokens: Sequence[int], parts: Sequence[KVPart], *words: Any, **named: Any
    ) -> int:
        n_evaluated = place(context, tokens, parts, *words, **named)
        if parts:  # all of them are read by now
            there = [replace(part, source=here(part.source)) for part in parts]
            record.placed.append((list(tokens), there))
        return n_evaluated

    def streaming(context: LlamaKVContext, *words: Any, **named: Any) -> int:
        record.streamed.append((named.get("first", 0), sum(part.n_tokens for part in named.get("left", ()))))
        return stream(context, *words, **named)

    monkeypatch.setattr(LlamaKVContext, "place", placing)
    monkeypatch.setattr(LlamaKVContext, "stream", streaming)
    return record


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


def check_rows(seen: Seen, n_least: int) -> None:
    """Each restored row is its token's own: equal tokens have equal first-layer keys, others have others."""
    keys: dict[int, np.ndarray] = {}
    n_rows = 0
    for tokens, parts in seen.placed:
        for part in parts:
            assert isinstance(part.source, Run)
            rows = part.source.keys(0)[part.first : part.first + part.n_tokens].astype(np.float32)
            for token, row in zip(tokens[part.position : part.position + part.n_tokens], rows, strict=True):
                known = keys.setdefault(token, row)
                assert np.allclose(known, row, atol=0.02), token
                n_rows += 1
    assert n_rows >= n_least
    some = list(keys.values())
    assert not any(np.allclose(a, b, atol=0.02) for at, a in enumerate(some) for b in some[:at])


@pytest.mark.parametrize("kv", ["lazy=off", "lazy=on", "lazy=off,policy=independent"])
def test_rows_are_those_of_their_tokens(place: Place, seen: Seen, kv: str) -> None:
    file = place.write(LONG)
    for gate in (3, 7, 11, 16):
        place.ask(file, question=f"code of gate {gate}?", strategy="stream", kv=f"{kv},codec=f16,refresh=20")
    assert len(seen.placed) == 4
    check_rows(seen, 500)


def test_rows_of_two_documents_are_not_mixed_up(place: Place, seen: Seen) -> None:
    one, two = place.write(LONG), place.write(chapters(18, seed=5), "other.md")
    question = "code of gate 5? code of gate 6?"
    place.ask(one, two, question=question, strategy="stream", kv="codec=f16,refresh=0")
    check_rows(seen, 200)


def test_an_exact_answer_restores_every_row_where_it_stood(place: Place, seen: Seen) -> None:
    answer = place.ask(place.write(chapters(5)))
    assert answer.strategy == "exact"
    check_rows(seen, answer.coverage.tokens_total)
    ((tokens, parts),) = seen.placed
    assert len(tokens) == sum(part.n_tokens for part in parts)


def test_the_codec_that_is_asked_for_is_the_one_that_is_read(place: Place, seen: Seen) -> None:
    file = place.write(LONG)
    for codec in ("int4", "int8"):
        place.index(file, kv=f"codec={codec}")
    kept = Kept(place.store, lambda text: None)
    for codec in ("int4", "int8"):
        seen.placed.clear()
        place.ask(file, strategy="stream", kv=f"codec={codec},refresh=0", held=Held(kept))
        ((_, parts),) = seen.placed
        codecs = [part.source.codec for part in parts if isinstance(part.source, Run)][1:]  # the prefix first
        assert codecs == [codec] * len(codecs) != []
    kept.close()


def test_what_is_stored_of_a_span_is_left_context_for_its_rest(place: Place, seen: Seen) -> None:
    file = place.write(LONG)
    lazily = {"strategy": "stream", "kv": "lazy=on,refresh=0,window=512"}
    place.ask(file, question="code of gate 15?", **lazily)
    seen.streamed.clear()
    for gate in (16, 17, 18):
        place.ask(file, question=f"code of gate {gate}?", **lazily)
    inside = [(first, n_left) for first, n_left in seen.streamed if first % 512]
    assert inside
    assert all(n_left == first % 512 for first, n_left in inside)
