"""Folders that cannot be written, can only be read, belong to others, or are not what they seem."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from store.stored import document_of, encoded_run, ids_of, segment_files, tokens_of, write

from localctx.store import KVStore, StoreUnusable
from localctx.store.errors import StoreBusy
from localctx.store.folder import MAX_DEFAULT_BYTES, StoreFolder, default_limit
from localctx.store.schema import connect, wal_or_delete

TOKENS = tokens_of(1000)
NOBODY = 65534

AS_NOBODY = """
import json, os, sys
from pathlib import Path
from localctx.store import DocumentIdentity, KVStore, StoreUnusable
from localctx.kv import KVSpace, PrefillPolicy
import localctx._native, xxhash, sqlite3, mmap, fcntl, platformdirs  # found before the user is given up
import localctx.store.store
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
ids = [bytes.fromhex(line) for line in sys.stdin.read().split()]
said, result = [], {}
try:
    with KVStore.open(Path(sys.argv[1]), warn=said.append) as store:
        result = {"read_only": store.is_read_only, "leading": store.n_leading(ids),
                  "documents": len(store.documents()), "clean": store.verify().is_clean}
        with store.reading(ids) as runs:
            result["read"] = sum(len(view) for view in runs.values())
        document = DocumentIdentity(KVSpace("m", "r", ()), PrefillPolicy(), "0" * 32, 128, "x")
        for name, call in {"writing": lambda: store.writing(document).__enter__(), "clear": store.clear,
                           "artifacts": lambda: store.put_artifacts("k", {"a": b"b"}),
                           "gc": store.gc}.items():
            try:
                call()
                result[name] = "done"
            except StoreUnusable as error:
                result[name] = error.message
except StoreUnusable as error:
    result["error"] = error.message
print(json.dumps(result))
"""


def as_nobody(root: Path, ids: list[bytes]) -> dict[str, Any]:
    """Use the store as a user whom file modes bind; root ignores them."""
    lines = "\n".join(run_id.hex() for run_id in ids)
    done = subprocess.run(
        [sys.executable, "-c", AS_NOBODY, str(root)], input=lines, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.fixture
def theirs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store that belongs to the user of as_nobody(), in a folder that every user can reach."""
    place = tmp_path_factory.mktemp("theirs")
    for folder in (place, *place.parents):
        if folder.stat().st_uid == os.geteuid() and folder != Path(folder.anchor):
            folder.chmod(folder.stat().st_mode | 0o011)
    root = place / "store"
    with KVStore.open(root) as store:
        write(store, "a.txt", TOKENS)
    if os.geteuid() == 0:
        for path in (root, *root.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
    return root


def set_modes(root: Path, folders: int, files: int) -> None:
    for path in root.rglob("*"):
        path.chmod(folders if path.is_dir() else files)
    root.chmod(folders)


def test_a_store_that_can_only_be_read_is_read(theirs: Path) -> None:
    set_modes(theirs, 0o555, 0o444)
    result = as_nobody(theirs, ids_of(TOKENS))
    set_modes(theirs, 0o755, 0o644)
    assert (result["read_only"], result["leading"], result["documents"], result["clean"]) == (
        True,
        8,
        1,
        True,
    )
    assert result["read"] > 1000
    for call in ("writing", "clear", "artifacts", "gc"):
        assert "can only be read" in result[call]


def test_a_store_whose_owner_may_write_is_written(theirs: Path) -> None:
    result = as_nobody(theirs, ids_of(TOKENS))
    assert (result["read_only"], result["writing"], result["clear"]) == (False, "done", "done")


@pytest.mark.parametrize("mode", [0o555, 0o000])
def test_a_folder_that_cannot_be_written_is_told(theirs: Path, mode: int) -> None:
    shutil.rmtree(theirs / "kv")
    theirs.chmod(mode)
    result = as_nobody(theirs, [])
    theirs.chmod(0o755)
    assert "permission denied" in result["error"]


def test_a_store_of_someone_else_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    KVStore.open(tmp_path).close()
    monkeypatch.setattr(os, "geteuid", lambda: NOBODY)
    with pytest.raises(StoreUnusable, match="is not a folder of this user"):
        KVStore.open(tmp_path)


@pytest.mark.parametrize("path", ["/proc/x", "/dev/null", "/dev/null/x"])
def test_places_where_nothing_can_be_made(path: str) -> None:
    with pytest.raises(StoreUnusable, match="cannot be used"):
        KVStore.open(Path(path))


def test_the_default_is_the_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with KVStore.open() as store:
        assert store.root == tmp_path / "localctx"
        assert store.path == tmp_path / "localctx" / "kv"
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/x")
    with pytest.raises(StoreUnusable, match="no such file"):
        KVStore.open()


def test_looking_makes_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreUnusable, match="there is no store"):
        KVStore.open(tmp_path / "new", create=False)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("part", ["kv", "kv/segments", "locks"])
def test_links_are_not_followed(tmp_path: Path, part: str) -> None:
    with KVStore.open(tmp_path / "store") as store:
        write(store, "a.txt", TOKENS)
    shutil.move(tmp_path / "store" / part, tmp_path / "elsewhere")
    (tmp_path / "store" / part).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StoreUnusable, match="is not a folder of this user"):
        KVStore.open(tmp_path / "store")


def test_without_its_segments_a_store_has_only_misses(tmp_path: Path) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
    shutil.rmtree(tmp_path / "kv" / "segments")
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        with store.reading(ids) as runs:
            assert dict(runs) == {}
        assert len(warnings) == 1
        assert write(store, "a.txt", TOKENS) == ids
        assert store.n_leading(ids) == 8


def test_the_root_may_lie_behind_a_link(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    (tmp_path / "cache").symlink_to(tmp_path / "disk")
    with KVStore.open(tmp_path / "cache") as store:
        write(store, "a.txt", TOKENS)
    assert len(segment_files(tmp_path / "disk")) == 1


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("part", ["", "kv", "kv/segments", "locks"])
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int, part: str) -> None:
    KVStore.open(tmp_path / "store").close()
    (tmp_path / "store" / part).chmod(mode)
    with pytest.raises(StoreUnusable, match=r"others may write to .*; chmod go-w"):
        KVStore.open(tmp_path / "store")
    (tmp_path / "store" / part).chmod(0o700)
    KVStore.open(tmp_path / "store").close()


def test_a_lock_file_that_is_a_link_is_not_followed(tmp_path: Path) -> None:
    document = document_of(TOKENS)
    with KVStore.open(tmp_path) as store:
        target = tmp_path / "precious"
        (tmp_path / "locks" / f"{document.key}.lock").symlink_to(target)
        with pytest.raises(StoreUnusable, match="cannot be locked"), store.writing(document):
            pass
        assert not target.exists()


def test_odd_names_of_folders(tmp_path: Path) -> None:
    for name in ("with space", "q?a#b%20", "ünï", os.fsdecode(b"bad\xff")):
        with KVStore.open(tmp_path / name) as store:
            ids = write(store, "a.txt", TOKENS)
        with KVStore.open(tmp_path / name) as store:
            assert store.n_leading(ids) == 8


def test_without_shared_memory_a_rollback_journal_is_used(tmp_path: Path) -> None:
    """SQLite's dotfile locking has none, as network file systems have none."""
    connection = sqlite3.connect(f"file:{tmp_path / 'x.sqlite3'}?vfs=unix-dotfile", uri=True)
    assert wal_or_delete(connection) == "delete"
    connection.close()
    KVStore.open(tmp_path).close()
    with KVStore.open(tmp_path) as store:
        assert store.catalogue.query("PRAGMA journal_mode") == [("wal",)]


def test_the_timeout_stands_before_the_first_statement(tmp_path: Path) -> None:
    KVStore.open(tmp_path).close()
    connection = connect(tmp_path / "kv" / "catalogue.sqlite3", is_read_only=False)
    assert connection.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    assert connection.execute("PRAGMA synchronous").fetchone() == (2,)
    connection.close()


def test_the_default_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = StoreFolder(tmp_path)
    usage = type(shutil.disk_usage("/"))
    for free, used, wanted in ((10**9, 0, 10**8), (10**9, 10**9, 2 * 10**8), (10**13, 0, MAX_DEFAULT_BYTES)):
        monkeypatch.setattr(shutil, "disk_usage", lambda _, free=free: usage(10**14, 0, free))
        assert default_limit(folder, used) == wanted


FULL_DISK = """
import resource, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from store.stored import *
from localctx.store import StoreUnusable, writing
from localctx._native import Run
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), int(sys.argv[3])))
tokens = tokens_of(4000)
ids = ids_of(tokens)
writing.FULL_BYTES = 1
try:
    with KVStore.open(Path(sys.argv[1])) as store:
        with store.writing(document_of(tokens), ids) as writer:
            for ordinal in range(5):
                writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
            writing.FULL_BYTES = 1 << 40
            for ordinal in range(5, 31):
                writer.add(ordinal, ids[ordinal], encoded_run(ordinal) * 40, n_tokens=128, codec="int4")
            writer.commit()
except StoreUnusable as error:
    print("unusable:", error.message)
"""


def test_a_full_disk_keeps_what_was_committed_and_leaves_no_half_file(tmp_path: Path) -> None:
    """A size limit on files plays the full disk."""
    words = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(Path(__file__).parents[1]), "1048576"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("unusable: KV cannot be kept: file too large"), done.stderr
    ids = ids_of(tokens_of(4000))
    with KVStore.open(tmp_path) as store:
        assert store.n_leading(ids) == 5
        report = store.verify()
        assert (report.is_clean, report.n_leftovers) == (True, 0)
        assert {path.suffix for path in store.folder.segments.iterdir()} == {".seg"}
        with store.writing(document_of(tokens_of(4000)), ids) as writer:  # with space again
            for ordinal in range(5, 32):
                writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
        assert store.n_leading(ids) == 32


def test_a_disk_too_full_for_the_catalogue_is_told(tmp_path: Path) -> None:
    words = [sys.executable, "-c", FULL_DISK, str(tmp_path), str(Path(__file__).parents[1]), "8192"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.stdout.startswith("unusable: "), done.stderr
    with KVStore.open(tmp_path) as store:
        assert store.verify().is_clean
        assert write(store, "a.txt", TOKENS)


def out_of_space(*_: object, **__: object) -> None:
    """What SQLite says where it cannot even make its log."""
    error = sqlite3.OperationalError("disk I/O error")
    error.sqlite_errorcode = sqlite3.SQLITE_IOERR
    raise error


def test_on_a_full_disk_what_is_there_is_read_and_can_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
    monkeypatch.setattr("localctx.store.catalogue.wal_or_delete", out_of_space)
    with KVStore.open(tmp_path) as store:
        assert (store.is_read_only, store.n_leading(ids)) == (True, 8)
        with store.reading(ids) as runs:
            assert len(runs) == 8
        with pytest.raises(StoreUnusable, match="can only be read"):
            store.clear()
    assert KVStore.erase(tmp_path) > 0
    assert segment_files(tmp_path) == []


def test_a_catalogue_that_stays_locked_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.store.schema.BUSY_SECONDS", 0.05)
    with KVStore.open(tmp_path) as store, KVStore.open(tmp_path) as other, other.catalogue.transaction():
        with pytest.raises(StoreBusy, match="database is locked"):
            store.set_model_fact("m", "n", 1)
        assert store.documents() == []  # reading goes on


def test_a_failing_catalogue_takes_its_segment_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with KVStore.open(tmp_path) as store:
        write(store, "a.txt", TOKENS)
        monkeypatch.setattr("localctx.store.writing.insert_runs", _disk_full)
        with pytest.raises(StoreUnusable, match="disk is full"):
            write(store, "b.txt", tokens_of(500, 1))
        assert len(segment_files(tmp_path)) == 1
        assert [document.identity.name for document in store.documents()] == ["a.txt"]


def _disk_full(*_: object) -> None:
    raise sqlite3.OperationalError("database or disk is full")
