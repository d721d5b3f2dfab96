"""Which runs are kept is asked once while nothing changes, and never answered from before a change."""

from __future__ import annotations

from pathlib import Path

import pytest
from store.stored import document_of, ids_of, tokens_of, write

from localctx.store import KVStore
from localctx.store.catalogue import Catalogue

TOKENS = tokens_of(1000)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ids each look into the catalogue was for."""
    numbers: list[int] = []
    find = Catalogue._find_ids

    def finding(self: Catalogue, ids: list[bytes], codec: str | None) -> frozenset[bytes]:
        numbers.append(len(ids))
        return find(self, ids, codec)

    monkeypatch.setattr(Catalogue, "_find_ids", finding)
    return numbers


def test_what_does_not_change_is_asked_once(tmp_path: Path, asked: list[int]) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        for _ in range(3):
            assert store.which(ids) == frozenset(ids)
            assert store.which(ids, "int8") == frozenset()
        store.put_artifacts("kind", {"key": b"of no run"}, document_of(TOKENS).key)
        store.set_model_fact("model", "name", 1)
        assert store.which(ids) == frozenset(ids)
        assert asked == [8, 8]


def test_own_changes_are_seen(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = ids_of(TOKENS)
        assert store.which(ids) == frozenset()
        assert write(store, "a.txt", TOKENS) == ids
        assert store.which(ids) == frozenset(ids)
        other = tokens_of(1000, seed=1)
        write(store, "b.txt", other)
        store.remove(document_of(TOKENS).key)
        assert store.which(ids) == frozenset()
        assert store.which(ids_of(other)) == frozenset(ids_of(other))
        store.clear()
        assert store.which(ids_of(other)) == frozenset()


def test_changes_of_others_are_seen(tmp_path: Path, asked: list[int]) -> None:
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path) as one, KVStore.open(tmp_path) as two:
        assert one.which(ids) == frozenset()
        write(two, "a.txt", TOKENS)
        assert one.which(ids) == frozenset(ids)
        two.clear()
        assert one.which(ids) == frozenset()
    assert asked == [8, 8, 8]


def test_lists_that_begin_alike_are_not_confused(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        absent = [bytes(16), *ids]
        assert store.which(ids[:3]) == frozenset(ids[:3])
        assert store.which(absent) == frozenset(ids)
        assert store.which([]) == frozenset()
