"""Damage is a miss that is told: never a crash, never wrong bytes."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from store.stored import encoded_run, ids_of, segment_files, tokens_of, write

from localctx._native import Run
from localctx.store import KVStore, StoreUnusable
from localctx.store.schema import APPLICATION_ID, SCHEMA_VERSION

TOKENS = tokens_of(1000)


def flip(path: Path, offset: int) -> None:
    """Change one byte and keep the file's times, as a failing disk does."""
    status = path.stat()
    with path.open("r+b") as file:
        file.seek(offset)
        (byte,) = file.read(1)
        file.seek(offset)
        file.write(bytes([byte ^ 0x10]))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def link(path: Path) -> None:
    """The file is moved away and a link left in its place."""
    away = path.parent.parent.parent / "moved"
    shutil.move(path, away)
    path.symlink_to(away)


def other(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


def folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def test_a_flipped_byte_costs_one_run(tmp_path: Path) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        place = store.lookup(ids)[ids[3]]
    flip(segment_files(tmp_path)[0], place.offset + place.size_bytes // 2)
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        assert not store.verify().is_clean
        assert store.n_leading(ids) == 8
        with store.reading(ids) as runs:
            assert set(runs) == {*ids} - {ids[3]}
            assert bytes(runs[ids[4]]) == encoded_run(4)
        assert len(warnings) == 1 and "damaged" in warnings[0] and "1 runs" in warnings[0]
        assert store.n_leading(ids) == 3
        assert store.verify().is_clean
        write(store, "a.txt", TOKENS)  # computed again
        assert store.n_leading(ids) == 8
        with store.reading(ids) as runs:
            assert Run(runs[ids[3]]).n_tokens == 128


def test_a_byte_flipped_while_we_run_is_seen_where_the_file_s_time_tells(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        with store.reading(ids) as runs:
            assert len(runs) == 8
        place = store.lookup(ids)[ids[0]]
        path = segment_files(tmp_path)[0]
        flip(path, place.offset)
        os.utime(path)
        with store.reading(ids) as runs:
            assert set(runs) == {*ids[1:]}


@pytest.mark.parametrize("harm", [cut, empty, other, link, folder, pipe, Path.unlink])
def test_what_is_left_of_a_file_is_used_and_no_more(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        ids = write(store, "a.txt", TOKENS)
        whole = write(store, "b.txt", tokens_of(300, 1))
        harm(segment_files_by_row(store)[0])
        report = store.verify()
        assert len(report.problems) >= 1
        with store.reading(ids + whole) as runs:
            n_left = len(set(runs) & set(ids))
            assert n_left == (0 if harm is not cut else n_left) < 8
            assert all(
                bytes(runs[run_id]) == encoded_run(ids.index(run_id)) for run_id in set(runs) & set(ids)
            )
            assert set(whole) <= set(runs)
        assert len(warnings) == 1
        assert store.n_leading(ids) == n_left
        with store.reading(ids) as runs:
            assert len(runs) == n_left
        assert len(warnings) == 1


def segment_files_by_row(store: KVStore) -> list[Path]:
    """The segments in the order they were written."""
    return [store.folder.segments / f"{name}.seg" for name, _, _ in store.catalogue.segments()]


@pytest.mark.parametrize("harm", [cut, empty, other, Path.unlink])
def test_verify_says_what_is_wrong_and_repair_forgets_it(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        store.put_artifacts("prefix", {"x": b"derived"})
        paths = segment_files_by_row(store)
        for path in paths:
            harm(path)
        report = store.verify()
        assert len(report.problems) == 2
        for line, path in zip(report.problems, paths, strict=True):
            assert line.startswith(f"segments/{path.name}: ")
        assert (report.n_dropped, store.n_leading(ids)) == (0, 8)
        assert store.verify(repair=True).n_dropped == report.n_runs + report.n_artifacts == 9
        assert store.n_leading(ids) == 0
        assert store.verify().is_clean
    with KVStore.open(tmp_path) as store:
        assert segment_files(tmp_path) == []
        assert store.documents()[0].share_stored == 0


def test_a_damaged_derived_file_is_a_miss(tmp_path: Path) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        store.put_artifacts("prefix", {"x": b"derived" * 1000, "y": b"other"})
        flip(segment_files(tmp_path)[0], segment_files(tmp_path)[0].stat().st_size // 2)
        with store.reading_artifacts("prefix", ["x", "y"]) as found:
            assert set(found) == {"y"}
        assert "1 prefix" in warnings[0]
        with store.reading_artifacts("prefix", ["x"]) as found:
            assert set(found) == set()


def test_files_of_others_are_told_and_left_alone(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        write(store, "a.txt", TOKENS)
        for name in ("evil.pkl", "notes.txt", "tmp-1"):
            (store.folder.segments / name).write_bytes(b"cos\nsystem\n(S'id'\ntR.")
        assert len(store.verify().problems) == 3
        store.gc()
        assert {path.name for path in store.folder.segments.iterdir()} >= {"evil.pkl", "notes.txt", "tmp-1"}


def catalogue(root: Path) -> Path:
    """The catalogue's file, nothing of it in a log."""
    path = root / "kv" / "catalogue.sqlite3"
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    return path


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    """A store with one document, closed."""
    with KVStore.open(tmp_path) as store:
        write(store, "a.txt", TOKENS)
    return tmp_path


@pytest.mark.parametrize(("version", "said"), [(0, "older"), (SCHEMA_VERSION + 1, "newer")])
def test_another_version_is_refused_by_name_and_not_touched(stored: Path, version: int, said: str) -> None:
    path = catalogue(stored)
    with sqlite3.connect(path) as connection:
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreUnusable, match=rf"made by an? {said} localctx \(version {version}"):
        KVStore.open(stored)
    assert path.read_bytes() == before
    assert len(segment_files(stored)) == 1
    assert KVStore.erase(stored) > 0
    assert segment_files(stored) == []
    with KVStore.open(stored) as store:
        assert store.documents() == []


def sqlite_of_others(path: Path) -> None:
    path.unlink()
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE theirs (x)")
    connection.close()


@pytest.mark.parametrize(
    "harm", [sqlite_of_others, other, folder, pipe, lambda path: path.write_text("no database")]
)
def test_a_foreign_database_is_refused_and_never_removed(stored: Path, harm: Callable[[Path], None]) -> None:
    path = catalogue(stored)
    harm(path)
    for attempt in (KVStore.open, KVStore.erase):
        with pytest.raises(StoreUnusable, match=r"was not made by localctx|not a regular file"):
            attempt(stored)
    assert os.path.lexists(path)


def test_a_linked_catalogue_is_not_followed(stored: Path) -> None:
    path = catalogue(stored)
    shutil.move(path, stored / "elsewhere")
    path.symlink_to(stored / "elsewhere")
    with pytest.raises(StoreUnusable, match="not a regular file"):
        KVStore.open(stored)


def test_a_damaged_catalogue_is_told_with_a_way_out(stored: Path) -> None:
    path = catalogue(stored)
    data = bytearray(path.read_bytes())
    data[100:] = os.urandom(len(data) - 100)
    path.write_bytes(data)
    with (
        pytest.raises(StoreUnusable, match="catalogue cannot be used") as caught,
        KVStore.open(stored) as store,
    ):
        store.documents()
    assert "rm --all" in caught.value.hint
    KVStore.erase(stored)
    with KVStore.open(stored) as store:
        assert store.verify().is_clean


def test_a_catalogue_without_its_tables_is_told_with_a_way_out(stored: Path) -> None:
    with contextlib.closing(sqlite3.connect(catalogue(stored))) as connection:
        connection.execute("DROP TABLE documents")
    with pytest.raises(StoreUnusable, match="no such table") as caught, KVStore.open(stored) as store:
        store.documents()
    assert "rm --all" in caught.value.hint


def test_an_empty_catalogue_is_made_anew(stored: Path) -> None:
    empty(catalogue(stored))
    with KVStore.open(stored) as store:
        assert store.n_leading(ids_of(TOKENS)) == 0
        assert segment_files(stored) == []  # nothing knows them any more


def test_an_older_version_with_a_way_up_is_taken_along(stored: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from localctx.store import schema

    monkeypatch.setattr(schema, "SCHEMA_VERSION", SCHEMA_VERSION + 1)
    monkeypatch.setitem(schema.MIGRATIONS, SCHEMA_VERSION, "ALTER TABLE models ADD COLUMN seen REAL;")
    with KVStore.open(stored) as store:
        assert store.catalogue.query("PRAGMA user_version") == [(SCHEMA_VERSION + 1,)]
        assert store.n_leading(ids_of(TOKENS)) == 8
        assert store.catalogue.query("SELECT seen FROM models") == []


def test_the_catalogue_names_itself(stored: Path) -> None:
    head = catalogue(stored).read_bytes()[:100]
    assert int.from_bytes(head[68:72]) == APPLICATION_ID == int.from_bytes(b"LCTX")
