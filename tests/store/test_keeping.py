"""What is written is found again: runs, encodings, documents, derived files; and what goes when."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from store.stored import SPACE, document_of, encoded_run, ids_of, segment_files, tokens_of, write

from localctx._native import Run
from localctx.kv import PrefillPolicy
from localctx.store import DocumentIdentity, KVStore, StoreUnusable, artifacts, run_ids, writing
from localctx.store import segments as segment_module
from localctx.store.derived import DerivedFiles

TOKENS = tokens_of(1000)


def test_runs_are_found_again_by_another_process_s_store(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        assert len(segment_files(tmp_path)) == 1
    with KVStore.open(tmp_path) as store:
        assert store.n_leading(ids) == store.n_leading(ids, "int4") == 8
        assert store.n_leading(ids, "int8") == 0
        with store.reading(ids) as runs:
            assert list(runs) == ids or set(runs) == set(ids)
            assert [bytes(runs[run_id]) for run_id in ids[:7]] == [encoded_run(n) for n in range(7)]
            assert Run(runs[ids[7]]).n_tokens == 1000 - 7 * 128
        (document,) = store.documents()
        assert document.identity == document_of(TOKENS)
        assert (document.n_tokens_stored, document.n_runs, document.share_stored) == (1000, 8, 1.0)
        assert document.codecs == ("int4",)
        assert document.size_bytes == sum(run.size_bytes for run in store.lookup(ids).values())
        assert store.verify().is_clean


def test_a_run_may_outlive_the_block_it_was_read_in(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        with store.reading(ids) as runs:
            kept = [Run(runs[run_id]) for run_id in ids]
        store.clear()
    for number, run in enumerate(kept[:7]):
        assert (run.keys(0) == Run(encoded_run(number)).keys(0)).all()


def test_a_view_that_nobody_holds_ends_with_the_block(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        with store.reading(ids) as runs:
            view = runs[ids[0]]
        with pytest.raises(ValueError, match="released"):
            bytes(view)


def test_runs_lie_aligned_in_order_and_segments_are_private(tmp_path: Path) -> None:
    with KVStore.open(tmp_path / "new") as store:
        ids = write(store, "a.txt", TOKENS)
        found = [store.lookup(ids)[run_id] for run_id in ids]
    offsets = [run.offset for run in found]
    assert offsets == sorted(offsets)
    assert all(offset % 64 == 0 for offset in offsets)
    assert all(
        later - run.offset - run.size_bytes < 64 for run, later in zip(found, offsets[1:], strict=False)
    )
    for path in (tmp_path / "new").rglob("*"):
        assert path.stat().st_mode & 0o077 == 0 or path.suffix.startswith(".sqlite3"), path


def test_one_id_may_have_several_encodings(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a.txt", TOKENS)
        with store.writing(document_of(TOKENS), ids) as writer:
            data = encoded_run(0, codec="f16")
            writer.add(0, ids[0], data, n_tokens=128, codec="f16", max_error=(0.0, 0.0))
        assert [store.n_leading(ids, codec) for codec in (None, "int4", "f16")] == [8, 8, 1]
        assert store.lookup(ids)[ids[0]].codec == "f16"  # the least error
        assert store.lookup(ids, "int4")[ids[0]].codec == "int4"
        with store.reading(ids, "f16") as runs:
            assert {run_id: bytes(view) for run_id, view in runs.items()} == {ids[0]: data}
        (document,) = store.documents()
        assert (document.codecs, document.n_tokens_stored) == (("f16", "int4"), 1000)


def test_a_longer_text_finds_the_runs_of_its_beginning(tmp_path: Path) -> None:
    longer = [*TOKENS, *tokens_of(500, seed=1)]
    with KVStore.open(tmp_path) as store:
        write(store, "a.txt", TOKENS)
        ids = ids_of(longer)
        assert store.n_leading(ids) == 7
        with store.writing(document_of(longer, "b.txt"), ids) as writer:
            for ordinal in range(store.n_leading(ids), len(ids)):
                writer.add(ordinal, ids[ordinal], encoded_run(50 + ordinal), n_tokens=128, codec="int4")
        assert store.n_leading(ids) == len(ids)
        store.remove(document_of(TOKENS).key)
        assert store.n_leading(ids) == len(ids)  # shared runs stay with the other document
        assert [document.identity.name for document in store.documents()] == ["b.txt"]
        assert store.verify().is_clean


def test_equal_units_are_stored_once(tmp_path: Path) -> None:
    policy = PrefillPolicy("independent")
    clause = tokens_of(128)
    ids = run_ids(SPACE, policy, clause * 3, [0, 128, 256])
    with KVStore.open(tmp_path) as store:
        with store.writing(document_of(clause * 3, policy=policy), ids) as writer:
            for ordinal, run_id in enumerate(ids):
                writer.add(ordinal, run_id, encoded_run(0), n_tokens=128, codec="int4")
        (document,) = store.documents()
        assert (document.n_tokens_stored, document.n_runs) == (384, 3)
        assert document.size_bytes == len(encoded_run(0))
        assert store.n_leading(ids) == 3


def test_work_is_committed_when_it_is_much_or_old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = len(encoded_run(0))
    monkeypatch.setattr(writing, "FULL_BYTES", 3 * size)
    monkeypatch.setattr(writing, "GROUP_BYTES", 2 * size)
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path) as store, store.writing(document_of(TOKENS), ids) as writer:
        committed = []
        for ordinal in range(5):
            writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
            committed.append(writer.n_committed)
        assert committed == [0, 0, 3, 3, 3]
        monkeypatch.setattr(writing, "OLD_SECONDS", 0.0)
        writer.add(5, ids[5], encoded_run(5), n_tokens=128, codec="int4")
        assert writer.n_committed == 6
        writer.add(6, ids[6], encoded_run(6), n_tokens=128, codec="int4")
        assert writer.n_committed == 6  # old, but too little for a segment of its own
        assert store.n_leading(ids) == 6


def test_an_error_of_the_caller_loses_nothing_that_was_added(tmp_path: Path) -> None:
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path) as store:
        with pytest.raises(KeyboardInterrupt), store.writing(document_of(TOKENS), ids) as writer:
            writer.add(0, ids[0], encoded_run(0), n_tokens=128, codec="int4")
            raise KeyboardInterrupt
        assert store.n_leading(ids) == 1
        (document,) = store.documents()
        assert document.share_stored == pytest.approx(0.128)


def test_a_document_without_any_run_is_not_listed(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        with store.writing(document_of(TOKENS), ids_of(TOKENS)):
            pass
        assert store.documents() == []
        write(store, "a.txt", TOKENS)
        with store.writing(document_of(TOKENS[:256], "b.txt"), ids_of(TOKENS[:256])):
            pass  # all of it is there already, from a.txt
        assert {document.identity.name: document.n_runs for document in store.documents()} == {
            "a.txt": 8,
            "b.txt": 2,
        }


def test_the_least_recently_used_document_goes_first(tmp_path: Path) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        ids = {name: write(store, name, tokens_of(1000, seed), seed=seed) for seed, name in enumerate("abc")}
        store.limit_bytes = store.size_bytes + 1000
        store.touch(document_of(tokens_of(1000, 0), "a").key)
        ids["d"] = write(store, "d", tokens_of(1000, 3), seed=3)
        assert {name: store.n_leading(some) for name, some in ids.items()} == {"a": 8, "b": 0, "c": 8, "d": 8}
        assert warnings == ["the store was full: the KV of b was removed"]
        assert store.size_bytes <= store.limit_bytes
        assert len(segment_files(tmp_path)) == 3
        assert store.verify().is_clean


def test_what_was_derived_of_a_text_counts_and_goes_with_it(tmp_path: Path) -> None:
    names = [letter * 32 for letter in "abc"]
    derived = DerivedFiles(tmp_path)
    with KVStore.open(tmp_path) as store:
        for seed, name in enumerate(names[:2]):
            write(store, name, tokens_of(1000, seed), seed=seed)
        bare = store.size_bytes
        for name in names[:2]:
            derived.write(name, "0" * 32, lambda path: path.write_bytes(b"w" * 5000) and None)
        assert store.size_bytes == bare + derived.size_bytes > bare + 10_000
        store.limit_bytes = bare * 3 // 2 + 6000  # three documents and what was derived of one
        derived.find(names[1], "0" * 32)
        write(store, names[2], tokens_of(1000, 2), seed=2)
        assert {document.identity.name for document in store.documents()} == set(names)
        assert set(derived.sizes()) == {names[1]}  # the other one was not used so lately
        store.limit_bytes *= 2
        other = DocumentIdentity(SPACE, PrefillPolicy("exact", 0), names[1], 1000, "the same text otherwise")
        some = run_ids(SPACE, other.policy, TOKENS)
        with store.writing(other, some) as writer:
            writer.add(0, some[0], encoded_run(0), n_tokens=128, codec="int4")
        store.remove(document_of(tokens_of(1000, 1), names[1]).key)
        assert set(derived.sizes()) == {names[1]}
        store.remove(other.key)
        assert derived.sizes() == {}
        store.remove(document_of(TOKENS, names[0]).key)
        derived.write(names[0], "0" * 32, lambda path: path.write_bytes(b"w" * 5000) and None)
        assert (store.gc().n_leftovers_removed, store.gc({names[0]}).n_leftovers_removed) == (0, 0)
        assert store.gc(()).n_leftovers_removed == 1
        derived.write(names[0], "0" * 32, lambda path: path.write_bytes(b"w" * 5000) and None)
        store.clear()
    assert derived.sizes() == {}


def test_nothing_is_evicted_for_what_cannot_fit_all_the_same(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        for name in "ab":
            write(store, name, tokens_of(1000, ord(name)))
        store.put_artifacts("prefix", {"shared": bytes(50_000)})
        DerivedFiles(tmp_path).write("f" * 32, "0" * 32, lambda path: path.write_bytes(b"w" * 5000) and None)
        before, store.limit_bytes = store.size_bytes, store.size_bytes
        with pytest.raises(StoreUnusable, match=f"limit of {store.size_bytes / 1000:.1f} kB is reached"):
            store.put_artifacts("state", {"large": bytes(before - 49_000)}, document_of(TOKENS, "c"))
        assert store.size_bytes == before
        store.put_artifacts("state", {"small": bytes(4000)}, document_of(TOKENS, "c"))
        assert {one.identity.name for one in store.documents()} == {"a", "b", "c"}
        assert DerivedFiles(tmp_path).sizes() == {}


def test_what_goes_with_no_document_evicts_none(tmp_path: Path) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        ids = write(store, "a", TOKENS)
        store.limit_bytes = store.size_bytes + 1000
        store.put_artifacts("queries", {"large": bytes(2000)})
        store.put_artifacts("queries", {"small": bytes(200)})
        with store.reading_artifacts("queries", ["large", "small"]) as found:
            assert set(found) == {"small"}
        assert (store.n_leading(ids), warnings) == (8, [])


def test_nothing_is_kept_for_a_document_that_is_gone(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        write(store, "a", TOKENS)
        key = document_of(TOKENS, "a").key
        store.remove(key)
        store.put_artifacts("columns", {"one": b"column"}, key)
        with store.reading_artifacts("columns", ["one"]) as found:
            assert not found
        assert (store.size_bytes, segment_files(tmp_path)) == (0, [])


def test_derived_bytes_that_another_process_moved_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path, warn=warnings.append) as store, KVStore.open(tmp_path) as other:
        for number in range(20):
            store.put_artifacts("prefix", {str(number): bytes([number]) * 1000})
        find = artifacts.find

        def found_then_moved(*words: Any) -> Any:
            found = find(*words)
            other.gc()
            return found

        monkeypatch.setattr(artifacts, "find", found_then_moved)
        with store.reading_artifacts("prefix", ["7"]) as found:
            assert bytes(found["7"]) == bytes([7]) * 1000
        assert (len(segment_files(tmp_path)), warnings) == (1, [])


def test_a_token_of_several_lazy_grids_counts_once(tmp_path: Path) -> None:
    policy, tokens = PrefillPolicy("lazy", 256), tokens_of(1000)
    with KVStore.open(tmp_path) as store:
        for offset in (0, 128):
            ids = run_ids(SPACE, policy, tokens, (), offset)
            with store.writing(document_of(tokens, policy=policy), ()) as writer:
                for number in range(4, 8):
                    data = encoded_run(number, min(128, 1000 - 128 * number))
                    ordinal = offset // 128 * len(ids) + number
                    writer.add(
                        ordinal, ids[number], data, n_tokens=min(128, 1000 - 128 * number), codec="int4"
                    )
        (document,) = store.documents()
        assert (document.n_tokens_stored, document.n_runs) == (1000 - 4 * 128, 8)


def test_what_nothing_refers_to_goes_before_any_document(tmp_path: Path) -> None:
    warnings: list[str] = []
    with KVStore.open(tmp_path, warn=warnings.append) as store:
        for _ in range(2):
            ids = write(store, "a", TOKENS)
        store.limit_bytes = store.size_bytes + 1000
        write(store, "b", tokens_of(1000, 1))
        assert (store.n_leading(ids), warnings) == (8, [])


def test_reading_counts_as_use(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        old = write(store, "old", TOKENS)
        write(store, "new", tokens_of(1000, 1))
        with store.reading(old):
            pass
        assert [document.identity.name for document in store.documents()] == ["old", "new"]


def test_what_is_being_prefilled_or_read_is_not_evicted(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store, KVStore.open(tmp_path) as other:
        ids = write(store, "read", TOKENS)
        first = ids_of(tokens_of(1000, 1))
        with (
            other.writing(document_of(tokens_of(1000, 1), "written"), first) as writer,
            other.reading(ids) as runs,
        ):
            writer.add(0, first[0], encoded_run(0), n_tokens=128, codec="int4")
            writer.commit()
            store.touch(document_of(TOKENS, "read").key)  # the other one is now the least recently used
            store.limit_bytes = store.size_bytes + 1000
            write(store, "c", tokens_of(1000, 2))
            assert store.n_leading(first) == 1
            assert store.n_leading(ids) == 0  # its rows went …
            assert bytes(runs[ids[0]]) == encoded_run(0)  # … its bytes stay for who reads them
            assert len(segment_files(tmp_path)) == 3
        store.gc()
        assert len(segment_files(tmp_path)) == 2


def test_a_document_beyond_the_limit_is_refused_and_what_fitted_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "FULL_BYTES", 1)
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path) as store:
        write(store, "other", tokens_of(200, 9))
        store.limit_bytes = store.size_bytes + 3 * len(encoded_run(0))
        with store.writing(document_of(TOKENS), ids) as writer:
            writer.add(0, ids[0], encoded_run(0), n_tokens=128, codec="int4")
            with pytest.raises(StoreUnusable, match=r"limit of .* is reached"):
                for ordinal in range(1, 8):
                    writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
            with pytest.raises(StoreUnusable, match="limit"):
                writer.add(7, ids[7], encoded_run(7), n_tokens=128, codec="int4")
        assert 0 < store.n_leading(ids) < 8
        assert store.size_bytes <= store.limit_bytes
        assert store.verify().is_clean


def test_half_empty_segments_are_written_anew(tmp_path: Path) -> None:
    longer = [*TOKENS[:256], *tokens_of(300, 1)]
    with KVStore.open(tmp_path) as store:
        write(store, "a", TOKENS)
        ids = ids_of(longer)
        with store.writing(document_of(longer, "b"), ids) as writer:
            for ordinal in range(store.n_leading(ids), len(ids)):
                writer.add(ordinal, ids[ordinal], encoded_run(ordinal), n_tokens=128, codec="int4")
        store.put_artifacts("columns", {"x": b"derived"}, document_of(longer, "b").key)
        with store.reading(ids) as runs:
            before = {run_id: bytes(view) for run_id, view in runs.items()}
        store.remove(document_of(TOKENS, "a").key)
        size = store.size_bytes
        report = store.gc()
        assert report.n_segments_rewritten == 1
        assert store.size_bytes < size
        assert store.n_leading(ids) == 5
        with store.reading(ids) as runs:
            assert {run_id: bytes(view) for run_id, view in runs.items()} == before
        with store.reading_artifacts("columns", ["x"]) as found:
            assert bytes(found["x"]) == b"derived"
        assert store.verify().is_clean
        assert store.gc().n_segments_rewritten == 0


def test_damage_is_not_hidden_by_being_moved(tmp_path: Path) -> None:
    longer = [*TOKENS[:256], *tokens_of(100, 1)]
    with KVStore.open(tmp_path) as store:
        write(store, "a", TOKENS)
        ids = ids_of(longer)
        with store.writing(document_of(longer, "b"), ids) as writer:
            writer.add(2, ids[2], encoded_run(2, 100), n_tokens=100, codec="int4")
        place = store.lookup(ids)[ids[0]]
        with (store.folder.segments / f"{place.segment}.seg").open("r+b") as file:
            file.seek(place.offset + 5000)
            file.write(b"damage")
        store.remove(document_of(TOKENS, "a").key)
        assert store.gc().n_segments_rewritten == 1
        with store.reading(ids) as runs:
            assert set(runs) == {ids[1], ids[2]}


def test_many_small_segments_are_put_together(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        for number in range(20):
            store.put_artifacts("prefix", {str(number): bytes([number]) * 1000})
        assert len(segment_files(tmp_path)) == 20
        store.gc()
        assert len(segment_files(tmp_path)) == 1
        with store.reading_artifacts("prefix", ["0", "19"]) as found:
            assert {key: view[0] for key, view in found.items()} == {"0": 0, "19": 19}
        assert store.verify().is_clean


def test_clear_leaves_models_and_nothing_else(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        write(store, "a", TOKENS)
        store.put_artifacts("prefix", {"x": b"derived"})
        store.set_model_fact("fingerprint", "verdict", {"stream": True})
        assert store.clear() > 0
        assert (store.documents(), store.size_bytes, segment_files(tmp_path)) == ([], 0, [])
        assert store.model_facts("fingerprint") == {"verdict": {"stream": True}}
        assert store.verify().is_clean


def test_facts_of_models_are_json(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        store.set_model_fact("m", "heads", [[1, 2]])
        store.set_model_fact("m", "heads", [[3, 4]])
        store.set_model_fact("other", "heads", 1)
    with KVStore.open(tmp_path) as store:
        assert store.model_facts("m") == {"heads": [[3, 4]]}
        assert store.model_facts("nobody") == {}


def test_derived_files_go_with_their_document(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        write(store, "a", TOKENS)
        key = document_of(TOKENS, "a").key
        store.put_artifacts("columns", {"one": b"1" * 1000, "two": b"2" * 1000}, key)
        store.put_artifacts("columns", {"two": b"22"}, key)
        store.put_artifacts("prefix", {"one": b"prefix"})
        with store.reading_artifacts("columns", ["one", "two", "three"]) as found:
            assert {name: bytes(view[:2]) for name, view in found.items()} == {"one": b"11", "two": b"22"}
        assert store.documents()[0].size_bytes > 1000
        store.remove(key)
        with store.reading_artifacts("columns", ["one", "two"]) as found:
            assert dict(found) == {}
        with store.reading_artifacts("prefix", ["one"]) as found:
            assert bytes(found["one"]) == b"prefix"
        assert len(segment_files(tmp_path)) == 1


def test_prefetch_never_fails(tmp_path: Path) -> None:
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a", TOKENS)
        store.prefetch(ids)
        segment_files(tmp_path)[0].unlink()
        store.prefetch([*ids, b"x" * 16])


@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="macOS has none")
def test_the_system_reads_on_only_where_most_of_a_file_is_wanted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[tuple[int, int, int]] = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, *said: told.append(said))
    with KVStore.open(tmp_path) as store:
        ids = write(store, "a", TOKENS)
        size_bytes = sum(run.size_bytes for run in store.lookup(ids).values())
        for wanted in (ids, ids[:2], ids[1:3]):
            told.clear()
            with store.reading(wanted) as found:
                assert set(found) == set(wanted)
            if wanted is ids:
                ((_, n_bytes, advice),) = told
                assert advice == os.POSIX_FADV_WILLNEED
                assert n_bytes >= size_bytes
            else:
                assert told == [(0, 0, os.POSIX_FADV_RANDOM)]


@pytest.mark.parametrize(("run_id", "data"), [(b"short", b"x"), (b"x" * 16, b"")])
def test_what_is_no_run_is_refused(tmp_path: Path, run_id: bytes, data: bytes) -> None:
    with (
        KVStore.open(tmp_path) as store,
        store.writing(document_of(TOKENS), ids_of(TOKENS)) as writer,
        pytest.raises(ValueError, match="run"),
    ):
        writer.add(0, run_id, data, n_tokens=1, codec="int4")


def test_a_segment_is_never_larger_than_it_may_be(tmp_path: Path) -> None:
    assert writing.FULL_BYTES * 2 < segment_module.MAX_SEGMENT_BYTES
