"""What a question evaluated in place is there for the next one: the same bits and text, nothing stale."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf
from session.test_kept_kv import LONG, Place, chapters

from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel
from localctx.kv import KVPart
from localctx.session import refreshed
from localctx.session.answer import Answer
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.session.speeds import Speeds
from localctx.store import KVStore


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Place:
    """The long text, indexed; to be copied."""
    place = Place(tmp_path_factory.mktemp("refreshed"), tiny_model_path)
    place.index(place.write(LONG))
    return place


@pytest.fixture
def indexed(indexed_once: Place, tmp_path: Path) -> Place:
    """A place of this test's own where the long text is indexed already."""
    shutil.copytree(indexed_once.folder, tmp_path / "copy")
    return Place(tmp_path / "copy", indexed_once.model)


def put(place: Place, share: int = 100, question: str = "code of gate 7?", **more: object) -> Answer:
    """Ask the book with a share evaluated again."""
    kv = ",".join([f"refresh={share}", str(more.pop("kv", ""))])
    return place.ask(str(place.folder / "book.md"), question=question, strategy="stream", kv=kv, **more)


def kept(place: Place) -> list[tuple[str, str, int]]:
    """(key, segment, bytes) of the refreshed spans that the store holds, in order of their files."""
    with KVStore.open(place.store) as store:
        return store.catalogue.query(
            "SELECT key, name, artifacts.size_bytes FROM artifacts JOIN segments USING (segment)"
            " WHERE kind = ? ORDER BY segment, offset",
            [refreshed.KIND],
        )


@pytest.mark.parametrize("share", [0, 33, 100])
def test_the_same_question_in_a_new_process_evaluates_only_itself(indexed: Place, share: int) -> None:
    first, second = put(indexed, share), put(indexed, share)
    assert second.tokens.evaluated < min(100, first.tokens.evaluated)
    assert second.text == first.text
    assert second.tokens.evaluated + second.tokens.restored == first.tokens.evaluated + first.tokens.restored
    assert second.coverage == first.coverage
    assert len({segment for _, segment, _ in kept(indexed)}) == 1


def test_other_words_about_the_same_passages_restore_them_too(indexed: Place) -> None:
    first = put(indexed, question="code of gate 7?")
    other = put(indexed, question="What is the code of gate 7?")
    assert other.coverage == first.coverage
    assert other.tokens.evaluated < 100 < first.tokens.evaluated


def test_a_common_beginning_is_shared_and_only_the_rest_is_written(indexed: Place) -> None:
    gates = "code of gate 7? code of gate 9? code of gate 11?"
    less = put(indexed, kv="budget=300", question=gates)
    before = kept(indexed)
    more = put(indexed, kv="budget=600", question=gates)
    n_less, n_more = less.coverage.tokens_attended, more.coverage.tokens_attended
    assert n_more > n_less + 200
    assert n_less < more.tokens.restored - less.tokens.restored + 20 < n_less + 40  # with its header line
    assert n_more - n_less < more.tokens.evaluated < n_more - n_less + 150
    assert more.text == put(indexed, kv="budget=600", question=gates, store="off").text
    added = [row for row in kept(indexed) if row not in before]
    assert len({segment for _, segment, _ in added}) == 1


def test_what_is_put_back_is_what_was_taken_out(indexed: Place) -> None:
    """Bit by bit: kept, lost, computed again."""
    put(indexed)
    with KVStore.open(indexed.store) as store:
        keys = [key for key, _, _ in kept(indexed)]
        with store.reading_artifacts(refreshed.KIND, keys) as found:
            before = {key: bytes(view) for key, view in found.items()}
        store.trim_artifacts(refreshed.KIND, 0, 0)
    assert kept(indexed) == []
    put(indexed)
    with KVStore.open(indexed.store) as store, store.reading_artifacts(refreshed.KIND, keys) as found:
        assert before == {key: bytes(view) for key, view in found.items()}


# --- nothing stale ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kv", ["window=256", "codec=int8", "head_group=2,window=384"])
def test_other_stored_kv_before_a_span_is_another_span(indexed: Place, kv: str) -> None:
    put(indexed, 33)
    before = {key for key, _, _ in kept(indexed)}
    indexed.index(str(indexed.folder / "book.md"), kv=kv)
    put(indexed, 33, kv=kv)
    after = {key for key, _, _ in kept(indexed)}
    assert len(before) > 1
    assert len(after - before) >= len(before) - 1  # the first header line saw nothing but the prefix


def test_another_model_shares_nothing(indexed: Place, tmp_path: Path) -> None:
    put(indexed)
    before = {key for key, _, _ in kept(indexed)}
    other = Place(indexed.folder, write_tiny_gguf(tmp_path / "other.gguf", bpe_vocabulary(), seed=8))
    assert put(other).tokens.evaluated > 200
    assert len(kept(indexed)) == 2 * len(before)


def test_another_context_size_changes_nothing(indexed: Place) -> None:
    put(indexed)
    assert put(indexed, ctx=1024).tokens.evaluated < 100


# --- where it goes ------------------------------------------------------------------------------------


def test_it_goes_with_its_document(indexed: Place) -> None:
    put(indexed)
    with KVStore.open(indexed.store) as store:
        (document,) = store.documents()
        n_bytes = sum(size for _, _, size in kept(indexed))
        assert n_bytes > 0
        before = document.size_bytes
        store.trim_artifacts(refreshed.KIND, 0, 0)
        (document,) = store.documents()
        assert document.size_bytes == before - n_bytes
    put(indexed)
    with KVStore.open(indexed.store) as store:
        store.remove(store.documents()[0].key)
    assert kept(indexed) == []
    assert not list(indexed.store.rglob("*.seg")) or len(list(indexed.store.rglob("*.seg"))) == 1  # prefix


def test_of_two_documents_only_what_saw_the_first_one_is_kept(indexed: Place) -> None:
    one = str(indexed.folder / "book.md")
    two = indexed.write(chapters(20, seed=4), "other.md")
    indexed.index(two)
    asked = {"strategy": "stream", "kv": "refresh=100", "question": "code of gate 7?"}
    first, second = indexed.ask(one, two, **asked), indexed.ask(one, two, **asked)
    assert second.text == first.text
    n_of_first = first.documents[0].coverage.tokens_attended
    assert n_of_first <= first.tokens.evaluated - second.tokens.evaluated < first.coverage.tokens_attended


def test_old_ones_are_collected(indexed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshed, "MOST_FILES", 3)
    n_before = len(list(indexed.store.rglob("*.seg")))
    for gate in range(2, 9):
        put(indexed, 33, question=f"code of gate {gate}?")
        assert len({segment for _, segment, _ in kept(indexed)}) <= 3
    assert len(list(indexed.store.rglob("*.seg"))) <= n_before + 3 + 1  # the prefix
    assert put(indexed, 33, question="code of gate 8?").tokens.evaluated < 100
    assert put(indexed, 33, question="code of gate 2?").tokens.evaluated > 100
    with KVStore.open(indexed.store) as store:
        assert store.verify().is_clean


def test_it_never_takes_more_than_its_share(indexed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(refreshed, "SHARE_OF_STORE", 1e-9)
    first, second = put(indexed), put(indexed)
    assert second.tokens.evaluated == first.tokens.evaluated
    assert kept(indexed) == []


def test_of_what_is_too_large_for_one_file_the_beginning_is_kept_first(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(indexed, kv="budget=600", question="code of gate 7? code of gate 9? code of gate 11?")
    sizes = [size for _, _, size in kept(indexed)]
    with KVStore.open(indexed.store) as store:
        store.trim_artifacts(refreshed.KIND, 0, 0)
    monkeypatch.setattr(refreshed, "MOST_BYTES", max(sizes) + 1000)
    counts = [
        put(indexed, kv="budget=600", question="code of gate 7? code of gate 9? code of gate 11?").tokens
        for _ in range(len(sizes) + 1)
    ]
    evaluated = [count.evaluated for count in counts]
    assert len(sizes) > 1
    assert evaluated[0] == first.tokens.evaluated
    assert evaluated == sorted(evaluated, reverse=True)
    assert evaluated[-1] <= evaluated[0] - first.coverage.tokens_attended < evaluated[1]


def test_it_evicts_no_document(indexed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with KVStore.open(indexed.store) as store:
        size = store.size_bytes
    monkeypatch.setattr("localctx.store.store.default_limit", lambda folder, used: size + 1000)
    monkeypatch.setattr(refreshed, "SHARE_OF_STORE", 1.0)
    put(indexed)
    assert kept(indexed) == []
    with KVStore.open(indexed.store) as store:
        assert [document.share_stored for document in store.documents()] == [1.0]


def test_nothing_is_written_without_a_store_or_to_one_that_is_read_only(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(indexed, store="off")
    assert kept(indexed) == []
    put(indexed, 33)
    monkeypatch.setattr("localctx.store.folder.os.access", lambda path, mode: False)
    before = sorted(path.name for path in indexed.store.rglob("*.seg"))
    assert put(indexed, 33).tokens.evaluated < 100  # read it is
    assert put(indexed).tokens.evaluated > 100
    assert sorted(path.name for path in indexed.store.rglob("*.seg")) == before


def test_what_was_cancelled_on_the_way_is_not_kept_and_not_answered(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = LlamaKVContext.place

    def cancelled(
        context: LlamaKVContext, tokens: Sequence[int], parts: Sequence[KVPart], *more: Any, **named: Any
    ) -> int:
        if not parts:
            return place(context, tokens, parts, *more, **named)
        return place(context, tokens, parts, lambda done, total: context.cancel())

    monkeypatch.setattr(LlamaKVContext, "place", cancelled)
    monkeypatch.setattr(LlamaKVContext, "generate", lambda *_: pytest.fail("answered"))
    answer = put(indexed, 33)
    assert (answer.finish_reason, answer.text, answer.support) == ("cancelled", "", "none")
    assert (answer.tokens.restored, answer.tokens.generated) == (0, 0)
    assert kept(indexed) == []


def test_a_damaged_one_is_evaluated_again(indexed: Place) -> None:
    first = put(indexed)
    (segment,) = {segment for _, segment, _ in kept(indexed)}
    path = next(indexed.store.rglob(f"{segment}.seg"))
    data = bytearray(path.read_bytes())
    for at in range(len(data) // 2, len(data), 997):
        data[at] ^= 0xFF
    path.write_bytes(bytes(data))
    again = put(indexed)
    assert any("damaged" in warning for warning in again.warnings)
    assert again.tokens.evaluated > 100
    assert again.text == first.text
    assert put(indexed).tokens.evaluated < 100  # kept anew


def test_bytes_of_another_form_are_a_miss(indexed: Place) -> None:
    first = put(indexed)
    rows = kept(indexed)
    with KVStore.open(indexed.store) as store:
        store.put_artifacts(refreshed.KIND, {key: b"llama.cpp of next year " * 9 for key, _, _ in rows})
    again = put(indexed)
    assert (again.text, again.tokens) == (first.text, first.tokens)


def test_a_lazy_document_keeps_them_too(place: Place) -> None:
    place.write(LONG)
    first, second = put(place, 33, kv="lazy=on"), put(place, 33, kv="lazy=on")
    assert second.tokens.evaluated < 100 < first.tokens.evaluated


def test_a_store_that_stays_open_serves_them(indexed: Place) -> None:
    held = Held(Kept(indexed.store, lambda text: None))
    first, second = put(indexed, 33, held=held), put(indexed, 33, held=held)
    held.close()
    assert second.tokens.evaluated < 100 < first.tokens.evaluated


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


def test_a_gpu_that_evaluates_sooner_than_a_disk_writes_keeps_nothing(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LlamaModel, "is_offloaded", True)
    put(indexed, question="code of gate 7?")
    n_files = len({segment for _, segment, _ in kept(indexed)})
    assert n_files == 1  # no speed is known
    rate = 2.0 * refreshed.KEEPING_BYTES_PER_S
    monkeypatch.setattr(Speeds, "get", lambda *_: rate)
    put(indexed, question="code of gate 9?")
    assert len({segment for _, segment, _ in kept(indexed)}) == n_files
    monkeypatch.setattr(Speeds, "get", lambda *_: 1.0)
    put(indexed, question="code of gate 9?")
    assert len({segment for _, segment, _ in kept(indexed)}) == n_files + 1
