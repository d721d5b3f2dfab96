"""Prefilling that is cancelled, or that the store cannot take: no half answers, no text in memory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from session.test_kept_kv import LONG, Place, chapters

from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.kv_context import LlamaKVContext
from localctx.kv import KVPart
from localctx.session.events import ignore_progress
from localctx.session.indexed import Indexed
from localctx.session.indexing import index_documents
from localctx.store import KVStore, StoreUnusable

WHOLE = chapters(8)  # within the model's context


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


def left_in(place: Place) -> list[float]:
    """Of each document that the store holds, how much of it."""
    with KVStore.open(place.store) as store:
        return [document.share_stored for document in store.documents()]


def cancel(monkeypatch: pytest.MonkeyPatch, n_batches: int) -> None:
    """Every prefill of a document is cancelled after so many batches, as from another thread; with 0 that of
    the prefix is, too.
    """
    stream, run_batch = LlamaKVContext.stream, LlamaKVContext.run_batch
    left: list[int] = []  # batches until then; empty: nothing is cancelled

    def counted(context: LlamaKVContext, prefix: Sequence[int], *given: Any, **more: Any) -> int:
        left[:] = [n_batches] if prefix or not n_batches else []
        n_evaluated = stream(context, prefix, *given, **more)
        left.clear()
        return n_evaluated

    def cancelled(context: LlamaKVContext, batch: Any) -> None:
        if left:
            if not left[0]:
                context.cancel()
            left[0] -= 1
        run_batch(context, batch)

    monkeypatch.setattr(LlamaKVContext, "stream", counted)
    monkeypatch.setattr(LlamaKVContext, "run_batch", cancelled)
    monkeypatch.setattr(LlamaKVContext, "generate", lambda *_: pytest.fail("answered"))


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        (LONG, {"strategy": "stream", "kv": "lazy=off,refresh=0"}),
        (LONG, {"strategy": "stream", "kv": "lazy=auto,rank=lexical+landmarks"}),
        (LONG, {"strategy": "stream", "kv": "lazy=on"}),
        (WHOLE, {"strategy": "exact"}),
    ],
)
@pytest.mark.parametrize("n_batches", [0, 1])
def test_a_cancelled_prefill_is_not_answered_from(
    text: str, settings: dict[str, object], n_batches: int, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel(monkeypatch, n_batches)
    monkeypatch.setattr("localctx.session.supply.EAGER_SECONDS", 1e9)
    monkeypatch.setattr(LlamaKVContext, "place", _probing_only)
    answer = place.ask(place.write(text), **settings)
    assert (answer.finish_reason, answer.text, answer.citations) == ("cancelled", "", ())
    assert (answer.tokens.restored, answer.tokens.generated) == (0, 0)
    assert all(share < 1 for share in left_in(place))


_PLACE = LlamaKVContext.place


def _probing_only(context: LlamaKVContext, tokens: Sequence[int], parts: Sequence[KVPart], *more: Any) -> int:
    """The speed may be tried, nothing else."""
    assert not parts
    assert len(tokens) < 400
    return _PLACE(context, tokens, parts, *more)


def test_the_documents_behind_a_cancelled_one_are_not_indexed(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancel(monkeypatch, 4)
    files = [place.write(LONG, "one.md"), place.write(chapters(20, 2), "two.md")]
    with (
        open_model(place.model, EngineOptions(n_threads=1)) as model,
        open_document(files[0], cache_dir=None) as one,
        open_document(files[1], cache_dir=None) as two,
    ):
        *_, done = index_documents([one, two], model, place.settings(), ignore_progress)
    assert isinstance(done, Indexed)
    assert done.was_cancelled
    first, second = done.documents
    assert 0 < first.tokens_stored < first.tokens_total
    assert (second.tokens_evaluated, second.tokens_stored) == (0, 0)
    assert second.tokens_total > 2048


def test_what_the_store_cannot_take_whole_is_answered_without_it(place: Place) -> None:
    plain = place.ask(place.write(WHOLE), strategy="exact", store="off")
    answer = place.ask(place.write(WHOLE), strategy="exact", store_limit="60000")
    assert (answer.text, answer.tokens) == (plain.text, plain.tokens)
    assert [text for text in answer.warnings if "the store may take" in text]
    assert left_in(place) == []


def test_what_the_store_can_take_evicts_what_it_must(place: Place) -> None:
    answer = place.ask(place.write(WHOLE), strategy="exact", store_limit="50M")
    assert not [text for text in answer.warnings if "the store may take" in text]
    assert left_in(place) == [1.0]


def test_lazy_off_is_refused_before_anything_is_prefilled(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlamaKVContext, "stream", lambda *_, **__: pytest.fail("prefilled"))
    with pytest.raises(StoreUnusable, match="the store may take") as caught:
        place.ask(place.write(LONG), strategy="stream", kv="lazy=off", store_limit="60000")
    assert caught.value.hint is not None
    assert "lazy=on" in caught.value.hint
    assert left_in(place) == []
