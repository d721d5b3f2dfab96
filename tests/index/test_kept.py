"""A document's index and tokens on disk: what is found is what was kept, or nothing."""

from __future__ import annotations

import os
import sqlite3
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.index import LexicalIndex, kept
from localctx.store import StoreUnusable
from localctx.store.derived import STALE_SECONDS, DerivedFiles
from localctx.values import Block

TEXT, KEY, OTHER = "a" * 32, "b" * 32, "c" * 32
PARTS = {"tokens": bytes(range(256)) * 8, "facts": b"{}", "empty": b""}
TEXTS = ["The zebra of the plains.", "An otter in the river.", "北京 is a city; the heron was seen in 1742."]


def index_of(texts: list[str]) -> LexicalIndex:
    return LexicalIndex.build([Block(i, 0, len(t), t, (0,), "end") for i, t in enumerate(texts)])


@pytest.fixture
def files(tmp_path: Path) -> DerivedFiles:
    return DerivedFiles(tmp_path / "store")


def path_of(tmp_path: Path, text: str = TEXT, key: str = KEY) -> Path:
    return tmp_path / "store" / "index" / f"{text}-{key}"


@settings(deadline=None, max_examples=25)
@given(texts=st.lists(st.text(max_size=60), max_size=12), question=st.text(max_size=30))
def test_a_kept_index_answers_as_the_one_that_was_built(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str], question: str
) -> None:
    files = DerivedFiles(tmp_path_factory.mktemp("store"))
    questions = [question, *texts[:3], "zebra"]
    with index_of(texts) as built:
        kept.save(files, TEXT, KEY, PARTS, built)
        expected = [(built.search(asked), built.absent(asked), built.n_blocks) for asked in questions]
    found = kept.load(files, TEXT, KEY)
    assert found is not None and found[1] is not None
    with found[1] as index:
        assert found[0] == PARTS
        assert [(index.search(a), index.absent(a), index.n_blocks) for a in questions] == expected


def test_parts_alone_and_long_ones(files: DerivedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept, "PART_BYTES", 100)
    kept.save(files, TEXT, KEY, PARTS, None)
    assert kept.load(files, TEXT, KEY) == (PARTS, None)
    assert kept.load(files, OTHER, KEY) is None
    assert kept.load(files, TEXT, OTHER) is None


def test_files_are_this_user_s_alone_and_named_by_hashes(files: DerivedFiles, tmp_path: Path) -> None:
    assert not (tmp_path / "store").exists()
    kept.save(files, TEXT, KEY, PARTS, None)
    path = path_of(tmp_path)
    assert [one.stat().st_mode & 0o777 for one in (path, path.parent)] == [0o600, 0o700]
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(ValueError, match="hashes"):
        kept.save(files, "../x", KEY, PARTS, None)


@pytest.mark.parametrize("how", ["flipped", "cut", "empty", "grown", "checksum alone"])
def test_damage_is_a_miss_and_goes(files: DerivedFiles, tmp_path: Path, how: str) -> None:
    path = path_of(tmp_path)
    with index_of(TEXTS) as index:
        kept.save(files, TEXT, KEY, PARTS, index)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    whole = path.read_bytes()
    path.write_bytes(
        {"flipped": bytes(data), "cut": whole[:-1], "empty": b"", "grown": whole + b"x"}.get(how, whole[-16:])
    )
    assert [one.name for one in files.damaged()] == [path.name]
    assert kept.load(files, TEXT, KEY) is None
    assert not path.exists()
    kept.save(files, TEXT, KEY, PARTS, None)
    assert kept.load(files, TEXT, KEY) == (PARTS, None)


def test_a_file_under_another_one_s_name_is_a_miss(files: DerivedFiles, tmp_path: Path) -> None:
    kept.save(files, TEXT, KEY, PARTS, None)
    path_of(tmp_path).rename(path_of(tmp_path, OTHER))
    assert kept.load(files, OTHER, KEY) is None
    assert not path_of(tmp_path, OTHER).exists()


def test_one_that_cannot_be_read_is_reported(files: DerivedFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def closed(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    kept.save(files, TEXT, KEY, PARTS, None)
    monkeypatch.setattr("localctx.store.derived.open_regular", closed)
    assert [path.name for path in files.damaged()] == [f"{TEXT}-{KEY}"]


@pytest.mark.parametrize("pragma", ["user_version = 99", "application_id = 1"])
def test_another_version_is_a_miss(files: DerivedFiles, tmp_path: Path, pragma: str) -> None:
    def fill(path: Path) -> None:
        kept.save(DerivedFiles(tmp_path / "scratch"), TEXT, KEY, PARTS, None)
        path.write_bytes((tmp_path / "scratch" / "index" / f"{TEXT}-{KEY}").read_bytes()[:-16])
        with sqlite3.connect(path) as connection:
            connection.execute(f"PRAGMA {pragma}")
        connection.close()

    files.write(TEXT, KEY, fill)
    assert files.damaged() == []
    assert kept.load(files, TEXT, KEY) is None
    files.write(TEXT, KEY, lambda path: path.write_bytes(b"no database" * 100) and None)
    assert kept.load(files, TEXT, KEY) is None


def test_links_are_not_followed(files: DerivedFiles, tmp_path: Path) -> None:
    kept.save(files, TEXT, KEY, PARTS, None)
    elsewhere = tmp_path / "elsewhere"
    path_of(tmp_path).rename(elsewhere)
    path_of(tmp_path).symlink_to(elsewhere)
    assert kept.load(files, TEXT, KEY) is None
    kept.save(files, TEXT, KEY, {"new": b"1"}, None)  # replaces the link, not what it leads to
    assert kept.load(files, TEXT, KEY) == ({"new": b"1"}, None)
    assert elsewhere.stat().st_size > 16
    folder = tmp_path / "store" / "index"
    folder.rename(tmp_path / "moved")
    folder.symlink_to(tmp_path / "moved")
    assert kept.load(files, TEXT, KEY) is None
    with pytest.raises(StoreUnusable, match="not a folder of this user"):
        kept.save(files, TEXT, KEY, PARTS, None)
    assert files.sizes() == {}


def test_a_full_disk_leaves_nothing(
    files: DerivedFiles, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with index_of(TEXTS) as index:
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", full)
            with pytest.raises(StoreUnusable, match="no space left"):
                kept.save(files, TEXT, KEY, PARTS, index)
        assert list(path_of(tmp_path).parent.iterdir()) == []
        assert index.search("zebra").ranking  # the one that was built goes on


def test_two_writers_at_once_leave_a_whole_file(files: DerivedFiles) -> None:
    failures: list[Exception] = []

    def write(value: bytes) -> None:
        try:
            for _ in range(20):
                kept.save(files, TEXT, KEY, {"value": value}, None)
                assert kept.load(files, TEXT, KEY) in (({"value": b"one"}, None), ({"value": b"two"}, None))
        except Exception as error:  # noqa: BLE001  # told by the assertion below
            failures.append(error)

    threads = [threading.Thread(target=write, args=(value,)) for value in (b"one", b"two")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_a_reader_goes_on_with_a_file_that_was_removed(files: DerivedFiles) -> None:
    with index_of(TEXTS) as built:
        kept.save(files, TEXT, KEY, PARTS, built)
        expected = built.search("otter heron")
    found = kept.load(files, TEXT, KEY)
    assert files.remove([TEXT]) > 0
    assert found is not None and found[1] is not None
    with found[1] as index:
        assert index.search("otter heron") == expected


def test_the_least_recently_used_go_beyond_the_limit(tmp_path: Path) -> None:
    kept.save(DerivedFiles(tmp_path / "store"), TEXT, KEY, PARTS, None)
    size = path_of(tmp_path).stat().st_size
    files = DerivedFiles(tmp_path / "store", max_bytes=2 * size)
    kept.save(files, OTHER, KEY, PARTS, None)
    os.utime(path_of(tmp_path), (1, 1))
    os.utime(path_of(tmp_path, OTHER), (2, 2))
    assert kept.load(files, TEXT, KEY) is not None  # used just now
    kept.save(files, "d" * 32, KEY, PARTS, None)
    assert set(files.sizes()) == {TEXT, "d" * 32}
    assert files.size_bytes == 2 * size


def test_what_killed_writers_left_is_swept_when_old(files: DerivedFiles, tmp_path: Path) -> None:
    kept.save(files, TEXT, KEY, PARTS, None)
    left, foreign = (path_of(tmp_path).parent / name for name in (f"tmp-{'0' * 16}", "notes.txt"))
    left.write_bytes(b"half")
    foreign.write_bytes(b"not ours")
    assert files.tidy({TEXT}) == (0, 0)
    old = left.stat().st_mtime - STALE_SECONDS - 1
    os.utime(left, (old, old))
    kept.save(files, TEXT, KEY, PARTS, None)
    assert not left.exists()
    assert files.clear() > 0
    assert list(foreign.parent.iterdir()) == [foreign]
