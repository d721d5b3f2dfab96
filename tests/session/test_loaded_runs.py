"""Runs are used while others are still being read; what does not come is found out then, and evaluated."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from session.test_kept_kv import LONG, Place
from store.stored import encoded_run, ids_of, tokens_of, write

from localctx._native import Run, State
from localctx.engine.restoring import KVWriter
from localctx.kv import RunLost
from localctx.session import loaded_runs
from localctx.session.loaded_runs import LoadedRuns
from localctx.store import KVStore, StoreUnusable

TOKENS = tokens_of(1000)
N_PREFIX = 45
"""Tokens before the document, which the store has beside it."""


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Place:
    place = Place(tmp_path_factory.mktemp("indexed"), tiny_model_path)
    place.index(place.write(LONG))
    return place


def copy_of(indexed: Place, folder: Path, name: str) -> Place:
    shutil.copytree(indexed.folder, folder / name)
    return Place(folder / name, indexed.model)


def damage(place: Place) -> None:
    """One of the runs that the question's passages need, not all of them."""
    segment = max(place.store.rglob("*.seg"), key=lambda path: path.stat().st_size)
    data = bytearray(segment.read_bytes())
    data[len(data) * 7 // 20 + 1000] ^= 0xFF
    segment.write_bytes(bytes(data))


def hold_back(monkeypatch: pytest.MonkeyPatch, before: Any = None) -> list[int]:
    """Nothing is read before KV is composed; how many runs each load that was held back has."""
    is_composing, read, composed = threading.Event(), LoadedRuns._read, KVWriter._composed
    held: list[int] = []

    def reading(runs: LoadedRuns, store: KVStore, ids: Sequence[bytes], codec: str | None) -> None:
        held.append(len(ids))
        assert is_composing.wait(60)
        if before is not None:
            before()
        read(runs, store, ids, codec)

    def composing(writer: KVWriter, one: Any) -> Any:
        if any(not isinstance(part.source, (Run, State)) for part in one.parts):
            is_composing.set()
        return composed(writer, one)

    monkeypatch.setattr(LoadedRuns, "_read", reading)
    monkeypatch.setattr(KVWriter, "_composed", composing)
    return held


def test_damage_that_composing_finds_costs_time_not_the_answer(
    indexed_once: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    early, late = copy_of(indexed_once, tmp_path, "early"), copy_of(indexed_once, tmp_path, "late")
    for place in (early, late):
        damage(place)
    expected = early.ask(str(early.folder / "book.md"), strategy="stream", kv="refresh=0")
    whole = copy_of(indexed_once, tmp_path, "whole").ask(
        str(tmp_path / "whole" / "book.md"), strategy="stream", kv="refresh=0"
    )
    assert N_PREFIX < expected.tokens.restored < whole.tokens.restored
    held = hold_back(monkeypatch)
    found = late.ask(str(late.folder / "book.md"), strategy="stream", kv="refresh=0")
    assert sum(held) > 1
    assert any("damaged" in warning for warning in found.warnings)
    assert (found.text, found.tokens.restored) == (expected.text, expected.tokens.restored)


def test_a_store_that_fails_meanwhile_costs_time_not_the_answer(
    indexed_once: Place, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = copy_of(indexed_once, tmp_path, "copy")

    def fail() -> None:
        raise StoreUnusable("the disk is gone", "look for it")

    assert hold_back(monkeypatch, fail) == []
    answer = place.ask(str(place.folder / "book.md"), strategy="stream", kv="refresh=0")
    assert any("the disk is gone" in warning for warning in answer.warnings)
    assert answer.tokens.restored == N_PREFIX
    assert answer.coverage.tokens_attended > 100


def test_what_is_waited_for_is_what_was_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_runs, "BATCH_BYTES", 2 * len(encoded_run(0)))
    runs = LoadedRuns()
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        gone = ids_of(tokens_of(128, seed=9))[0]
        runs.begin(store, [*ids, gone], None)
        sources = [runs.source(run_id) for run_id in ids]
        assert runs.source(gone) is None
        for run_id, source in zip(ids, sources, strict=True):
            assert source is not None
            assert source.n_tokens == (found := runs.get(run_id)).n_tokens  # type: ignore[union-attr]  # fails
            assert found is runs.source(run_id) or not isinstance(source, type(found))
        runs.wait()
        assert [runs.source(run_id) for run_id in ids] == [runs.get(run_id) for run_id in ids]
        assert len({runs.name_of(run_id) for run_id in ids}) == len(ids)
        runs.close()
        assert runs.get(ids[0]) is None


def test_closing_does_not_wait_for_what_was_not_begun(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loaded_runs, "BATCH_BYTES", 1)
    is_closing, read = threading.Event(), LoadedRuns._read
    n_read: list[int] = []

    def reading(runs: LoadedRuns, store: KVStore, ids: Sequence[bytes], codec: str | None) -> None:
        n_read.append(len(ids))
        assert is_closing.wait(60)
        read(runs, store, ids, codec)

    monkeypatch.setattr(LoadedRuns, "_read", reading)
    runs = LoadedRuns()
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        runs.begin(store, ids, None)
        last = runs.source(ids[-1])
        threading.Timer(0.2, is_closing.set).start()
        runs.close()
    assert len(n_read) <= loaded_runs.N_READERS < len(ids)
    assert last is not None and not hasattr(last, "codec")
    with pytest.raises(RunLost):
        last.get()  # type: ignore[union-attr]  # it is not here


def test_loads_of_many_files_are_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = LoadedRuns()
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        for run_id in ids[:4]:
            runs.begin(store, [run_id], None)
            runs.wait()
        monkeypatch.setattr(loaded_runs, "MAX_FILES", 2)
        runs.let_go_of_old()
        assert [runs.get(run_id) is not None for run_id in ids[:4]] == [False, False, True, True]
        runs.close()
