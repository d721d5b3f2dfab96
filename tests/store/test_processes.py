"""Several processes on one store, cold and while it is being cleared: equal results, nothing done twice."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from store import prefilling
from store.stored import document_of, encoded_run, ids_of, tokens_of, write

from localctx.errors import Interrupted
from localctx.store import KVStore, documents, locks, upkeep
from localctx.store.locks import holding, is_free, remove_if_free

N_DOCUMENTS = 3
TOKENS = tokens_of(1000)


def start(root: Path) -> subprocess.Popen[str]:
    """One more process that wants the documents."""
    words = [sys.executable, prefilling.__file__, str(root), str(N_DOCUMENTS)]

    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def results(processes: list[subprocess.Popen[str]]) -> list[list[str]]:
    """What they printed."""
    done = [process.communicate(timeout=120) for process in processes]
    assert [err for _, err in done] == [""] * len(done)
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [out.split() for out, _ in done]


def test_eight_processes_on_a_cold_store_prefill_every_document_once(tmp_path: Path) -> None:
    printed = results([start(tmp_path / "store") for _ in range(8)])
    assert len({text_hash for _, text_hash in printed}) == 1
    assert sum(int(n_written) for n_written, _ in printed) == 8 * N_DOCUMENTS
    with KVStore.open(tmp_path / "store") as store:
        assert store.verify().is_clean
        assert [document.share_stored for document in store.documents()] == [1.0] * N_DOCUMENTS


def test_clearing_and_tidying_meanwhile_changes_no_answer(tmp_path: Path) -> None:
    processes = [start(tmp_path) for _ in range(4)]
    while any(process.poll() is None for process in processes):
        with KVStore.open(tmp_path) as store:
            store.gc()
            for document in store.documents():
                store.remove(document.key)
            store.clear()
        time.sleep(0.02)
    assert len({text_hash for _, text_hash in results(processes)}) == 1
    with KVStore.open(tmp_path) as store:
        assert store.verify().is_clean


def test_a_document_that_is_removed_while_it_is_written_is_whole_or_gone(tmp_path: Path) -> None:
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path) as store, KVStore.open(tmp_path) as other:
        with store.writing(document_of(TOKENS), ids) as writer:
            for ordinal in range(8):
                writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
                writer.commit()
                if ordinal == 3:
                    assert other.remove(document_of(TOKENS).key) > 0
        assert set(store.lookup(ids)) == set(ids[4:])
        (document,) = store.documents()
        assert document.n_runs == 4
        assert documents.document_runs(store.catalogue, document.key) == list(enumerate(ids))
        assert store.verify().is_clean
        assert store.gc().n_runs_removed == 0


def test_a_second_writer_waits_and_may_give_up(tmp_path: Path) -> None:
    waited: list[str] = []
    with KVStore.open(tmp_path) as store, KVStore.open(tmp_path) as other:
        with store.writing(document_of(TOKENS), ids_of(TOKENS)):
            asked = iter([False, False, True])
            with (
                pytest.raises(Interrupted),
                other.writing(
                    document_of(TOKENS),
                    is_cancelled=lambda: next(asked),
                    on_wait=lambda: waited.append("waits"),
                ),
            ):
                raise AssertionError("the lock was given twice")
            with other.writing(document_of(TOKENS, "other.txt"), on_wait=lambda: waited.append("never")):
                pass
        assert waited == ["waits"]
        with other.writing(document_of(TOKENS), on_wait=lambda: waited.append("never")):
            pass
        assert waited == ["waits"]


def test_the_second_writer_finds_what_the_first_one_wrote(tmp_path: Path) -> None:
    ids, found, waits = ids_of(TOKENS), [], threading.Event()

    def second() -> None:
        with (
            KVStore.open(tmp_path) as other,
            other.writing(document_of(TOKENS), ids, on_wait=waits.set),
        ):
            found.append(other.n_leading(ids))

    with KVStore.open(tmp_path) as store:
        thread = threading.Thread(target=second)
        with store.writing(document_of(TOKENS), ids) as writer:
            thread.start()
            assert waits.wait(30)
            for ordinal, run_id in enumerate(ids):
                writer.add(ordinal, run_id, encoded_run(ordinal), n_tokens=128, codec="int4")
        thread.join(30)
    assert found == [8]


def test_threads_may_add_side_by_side(tmp_path: Path) -> None:
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path) as store:
        with store.writing(document_of(TOKENS), ids) as writer:

            def add(ordinals: range) -> None:
                for ordinal in ordinals:
                    writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
                    writer.commit()
                    store.n_leading(ids)

            threads = [threading.Thread(target=add, args=(range(first, 8, 4),)) for first in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        with store.reading(ids) as runs:
            assert [bytes(runs[run_id]) for run_id in ids] == [encoded_run(n) for n in range(8)]


def test_a_segment_that_moved_after_it_was_looked_up_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KVStore.open(tmp_path) as store, KVStore.open(tmp_path) as other:
        ids = write(store, "a.txt", TOKENS)
        stale = store.lookup(ids)
        write(other, "a.txt", TOKENS)  # the same runs, in another file
        other.gc()
        answers = iter([stale])
        lookup = store.lookup
        monkeypatch.setattr(store, "lookup", lambda *args: next(answers, None) or lookup(*args))
        with store.reading(ids) as runs:
            assert set(runs) == set(ids)
        assert store.n_leading(ids) == 8


def test_lock_files_are_removed_only_when_free(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    assert is_free(path)
    with holding(path):
        assert (is_free(path), remove_if_free(path), path.exists()) == (False, False, True)
    assert (is_free(path), remove_if_free(path), path.exists()) == (True, True, False)


def test_who_waited_for_a_removed_lock_file_makes_a_new_one(tmp_path: Path) -> None:
    path = tmp_path / "x.lock"
    with holding(path):
        path.unlink()
        with holding(path):
            assert not is_free(path)


def test_a_lock_file_that_was_removed_while_it_was_being_locked_is_no_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.lock"
    flock, removals = locks.fcntl.flock, iter([path.unlink])

    def flock_after_removal(descriptor: int, kind: int) -> None:
        next(removals, lambda: None)()
        flock(descriptor, kind)

    monkeypatch.setattr(locks.fcntl, "flock", flock_after_removal)
    with holding(path):
        assert path.exists()
        assert not is_free(path)


def test_a_segment_whose_rows_come_just_before_it_is_swept_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        monkeypatch.setattr(store.catalogue, "segments", list)  # the list was made before
        assert upkeep.sweep(store.folder, store.catalogue) == (0, 0)
        with store.reading(ids) as runs:
            assert len(runs) == 8


def test_nobody_waits_for_a_long_tidying(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store, holding(store.folder.tidy_lock):
        ids = write(store, "a.txt", TOKENS)
        with KVStore.open(tmp_path, limit_bytes=store.size_bytes + 1000) as other:
            write(other, "b.txt", tokens_of(1000, 1))
        assert store.n_leading(ids) == 0


def test_gc_keeps_the_lock_files_of_known_documents_only(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        write(store, "a.txt", TOKENS)
        with store.writing(document_of(TOKENS, "never.txt")):
            pass
        store.gc()
        names = {path.name for path in store.folder.locks.iterdir()}
        assert names == {"store.lock", "tidy.lock", f"{document_of(TOKENS).key}.lock"}


def test_a_writer_that_is_alive_is_never_swept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the rename of a segment and its rows, another process opens, collects and verifies."""
    from localctx.store import writing

    enter = writing.RunWriter._enter

    def slow_enter(self: writing.RunWriter, *args: object) -> None:
        with KVStore.open(tmp_path) as other:
            other.gc()
            report = other.verify()
            assert (report.is_clean, report.n_leftovers) == (True, 0)
        enter(self, *args)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(writing.RunWriter, "_enter", slow_enter)
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        with store.reading(ids) as runs:
            assert len(runs) == 8
