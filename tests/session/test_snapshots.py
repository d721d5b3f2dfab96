"""Models whose KV cannot be cut: their state after the documents is kept whole, and questions go on from it.

What a new process would do is done with a model and a store opened anew.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.tiny_architectures import write_architecture
from session.conftest import of_kind
from session.test_kept_kv import LONG, Place, chapters

from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.llama_context import LlamaContext
from localctx.engine.llama_state import CellStates
from localctx.errors import ModelError, NotComposable
from localctx.session.ask import ask
from localctx.session.events import Finished, Notice, Progress
from localctx.session.snapshots import KIND
from localctx.store import KVStore

ONE, TWO = chapters(3), chapters(2, seed=2)
WHOLE = ("gemma3", "mamba", "lfm2", "deepseek2", "qwen2vl", "smollm3")
BOTH = ("one.md", "two.md")
OTHER_QUESTION = "What stands on the hill?"
MakePlace = Callable[..., Place]


@pytest.fixture
def place_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MakePlace:
    """A folder with the tiny model of an architecture, and the documents in the current folder."""
    monkeypatch.chdir(tmp_path)
    for name, text in (("one.md", ONE), ("two.md", TWO), ("long.md", LONG)):
        (tmp_path / name).write_text(text, "utf-8")

    def make(architecture: str = "gemma3", **more: Any) -> Place:
        return Place(tmp_path, write_architecture(tmp_path / f"{architecture}.gguf", architecture, **more))

    return make


def pieces(place: Place) -> dict[str, int]:
    """Names and sizes of what is kept of states."""
    with KVStore.open(place.store) as store:
        rows = store.catalogue.query("SELECT key, size_bytes FROM artifacts WHERE kind = ?", [KIND])
        return {str(name): int(size) for name, size in rows}


def told(place: Place, *files: str, **settings: object) -> tuple[Any, list[str]]:
    """The answer, and the notices on the way."""
    with ExitStack() as stack:
        model = stack.enter_context(open_model(place.model, EngineOptions(n_threads=1)))
        documents = [stack.enter_context(open_document(file, cache_dir=None)) for file in files]
        events = list(ask(documents, model, "code of gate 7?", place.settings(**settings)))
    assert isinstance(events[-1], Finished)
    return events[-1].answer, [notice.text for notice in of_kind(events, Notice)]


@pytest.mark.parametrize(
    ("architecture", "files"),
    [*((name, ("one.md",)) for name in WHOLE), ("gemma3", BOTH), ("lfm2", BOTH)],
)
def test_a_second_question_evaluates_only_itself(
    architecture: str, files: tuple[str, ...], place_of: MakePlace
) -> None:
    place = place_of(architecture)
    plain = place.ask(*files, store="off", max_tokens=24)
    first, second = place.ask(*files, max_tokens=24), place.ask(*files, max_tokens=24)
    assert {answer.strategy for answer in (plain, first, second)} == {"exact"}
    assert first.text == second.text == plain.text
    assert first.tokens.evaluated == plain.tokens.evaluated > plain.coverage.tokens_total
    assert second.tokens.evaluated < 100
    assert second.tokens.restored > plain.coverage.tokens_total
    assert second.tokens.evaluated + second.tokens.restored == plain.tokens.evaluated
    other = place.ask(*files, question=OTHER_QUESTION, max_tokens=24)
    assert other.text == place.ask(*files, question=OTHER_QUESTION, store="off", max_tokens=24).text
    assert other.tokens.evaluated < 100


def test_the_size_is_told_when_it_is_kept(place_of: MakePlace) -> None:
    place = place_of()
    answer, notices = told(place, "one.md")
    (size_told,) = [text for text in notices if "is kept for further questions" in text]
    assert "kB of state after" in size_told
    assert not any("is kept" in warning for warning in answer.warnings)
    assert not any("is kept" in text for text in told(place, "one.md")[1])


def test_much_is_announced_before(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.session.snapshots.MUCH_BYTES", 1000)
    answer, _ = told(place_of(), "one.md")
    assert any(" of disk; --store off keeps none" in warning for warning in answer.warnings)


def test_index_keeps_it(place_of: MakePlace) -> None:
    place = place_of("lfm2")
    steps: list[Progress] = []
    row, _ = place.index("one.md", steps.append)
    assert (row.policy, row.codec, row.tokens_stored_before) == ("exact", "state", 0)
    assert row.tokens_stored == row.tokens_total == row.tokens_evaluated > 300
    assert row.size_bytes == max(pieces(place).values())
    assert steps[-1].what == "prefill"
    answer = place.ask("one.md")
    assert answer.tokens.evaluated < 100
    again, _ = place.index("one.md")
    assert (again.tokens_evaluated, again.tokens_stored_before) == (0, row.tokens_total)


def test_index_refuses_what_no_context_holds_whole(place_of: MakePlace) -> None:
    place = place_of("mamba")
    with pytest.raises(NotComposable, match=r"is recurrent.* do not fit its context whole"):
        place.index("long.md")
    with pytest.raises(NotComposable, match="is recurrent"):
        place.index("one.md", strategy="stream")
    assert place.ask("long.md").strategy == "retrieve"
    assert not pieces(place)


def test_so_is_a_model_of_which_a_trial_finds_out(
    place_of: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localctx.engine.composable._PARTLY_TURNED", frozenset())
    place = place_of("smollm3")
    answer = place.ask("one.md")
    assert any("changes with its position" in warning for warning in answer.warnings)
    assert place.ask("one.md").tokens.evaluated < 100
    assert place.index("two.md")[0].codec == "state"
    assert place.ask("two.md").tokens.evaluated < 100
    with pytest.raises(NotComposable, match="changes with its position"):
        place.index("two.md", strategy="stream")


def test_removing_a_document_takes_its_states(place_of: MakePlace) -> None:
    place = place_of()
    place.ask("one.md")
    place.ask("one.md", "two.md")
    assert len(pieces(place)) == 4
    with KVStore.open(place.store) as store:
        both = next(document for document in store.documents() if len(document.identity.text_hashes) == 2)
        assert both.identity.paths == tuple(str(place.folder / name) for name in ("one.md", "two.md"))
        assert both.size_bytes > 0
        assert store.remove(both.key) > both.size_bytes
        assert len(pieces(place)) == 2
        assert place.ask("one.md").tokens.evaluated < 100
        (one,) = store.documents()
        store.remove(one.key)
    assert not pieces(place)
    assert place.ask("one.md").tokens.restored == 0


def test_what_differs_is_a_miss(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of()
    place.ask("one.md")
    assert place.ask("two.md").tokens.restored == 0
    (place.folder / "one.md").write_text(ONE + "More.", "utf-8")
    assert place.ask("one.md").tokens.restored == 0
    assert place_of(seed=12).ask("one.md").tokens.restored == 0
    monkeypatch.setattr("localctx.engine.llama_context.library_id", lambda lib: "another build")
    assert place.ask("one.md").tokens.restored == 0
    assert place.ask("one.md").tokens.restored > 300


def test_only_one_state_of_the_same_documents_is_kept(
    place_of: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localctx.session.snapshots.PIECE_BYTES", 100_000)
    place = place_of()
    sizes = []
    for build in ("one build", "another"):
        monkeypatch.setattr("localctx.engine.llama_context.library_id", lambda lib, build=build: build)
        assert place.ask("one.md").tokens.restored == 0
        with KVStore.open(place.store) as store:
            sizes.append(store.size_bytes)
    assert sizes[1] < sizes[0] * 1.2
    assert len([name for name in pieces(place) if "." not in name]) == 1
    assert place.ask("one.md").tokens.evaluated < 100


def test_a_context_of_another_size_takes_it(place_of: MakePlace) -> None:
    place = place_of()
    place.ask("one.md", max_tokens=1)
    assert place.ask("one.md", max_tokens=900).tokens.evaluated < 100


def test_what_llama_cpp_refuses_is_made_again(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of()
    wanted = place.ask("one.md")
    (name,) = (name for name in pieces(place) if "." not in name)
    with KVStore.open(place.store) as store:
        (document,) = store.documents()
        store.put_artifacts(KIND, {f"{name}.0": b"\0" * 1000}, document.key)  # whole, but no state
    answer = place.ask("one.md")
    assert any("is made again" in warning for warning in answer.warnings)
    assert (answer.text, answer.tokens.restored) == (wanted.text, 0)
    assert place.ask("one.md").tokens.evaluated < 100

    def refuse(self: CellStates, sequence: int, blob: np.ndarray) -> None:
        raise ModelError("refused")

    monkeypatch.setattr(CellStates, "restore", refuse)
    monkeypatch.setattr(LlamaContext, "check_snapshots", lambda self: None)
    monkeypatch.setattr(LlamaContext, "snapshot", lambda self, *words: np.empty(0, np.uint8))
    place.ask("one.md")
    assert not pieces(place)  # dropped, with all its pieces


def test_damage_is_a_miss(place_of: MakePlace) -> None:
    place = place_of()
    wanted = place.ask("one.md")
    for segment in place.store.rglob("*.seg"):
        data = bytearray(segment.read_bytes())
        data[len(data) // 2] ^= 0xFF
        segment.write_bytes(bytes(data))
    answer = place.ask("one.md")
    assert any("damaged" in warning for warning in answer.warnings)
    assert (answer.text, answer.tokens.restored) == (wanted.text, 0)
    assert place.ask("one.md").tokens.evaluated < 100


def test_it_is_kept_in_pieces(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.session.snapshots.PIECE_BYTES", 10_000)
    place = place_of()
    wanted = place.ask("one.md")
    assert len(pieces(place)) > 5
    answer = place.ask("one.md")
    assert answer.text == wanted.text
    assert answer.tokens.evaluated < 100
    last = max(name for name in pieces(place) if "." in name)
    with KVStore.open(place.store) as store, store.catalogue.transaction() as connection:
        connection.execute("DELETE FROM artifacts WHERE key = ?", [last])
    assert place.ask("one.md").tokens.restored == 0


@pytest.mark.parametrize("step", ["export", "restore"])
def test_what_llama_cpp_cannot_save_is_named(
    place_of: MakePlace, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    place = place_of("mamba")
    plain = place.ask("one.md", store="off")

    def refuse(*words: Any) -> None:
        raise ModelError("llama.cpp has no such thing")

    monkeypatch.setattr(CellStates, step, refuse)
    answer = place.ask("one.md")
    assert answer.text == plain.text
    assert any("tiny has a state that cannot be kept: llama.cpp" in warning for warning in answer.warnings)
    with pytest.raises(NotComposable, match=r"is recurrent.*tiny has a state that cannot be kept"):
        place.index("one.md")
    assert not pieces(place)


def test_a_state_that_does_not_come_back_is_found_out(
    place_of: MakePlace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = place_of("mamba")
    plain = place.ask("one.md", store="off")
    restore = CellStates.restore

    def other(self: CellStates, sequence: int, blob: np.ndarray) -> None:
        changed = blob.copy()
        changed[-4096:] = 0  # of the second layer's
        restore(self, sequence, changed)

    monkeypatch.setattr(CellStates, "restore", other)
    answer = place.ask("one.md")
    assert answer.text == plain.text
    assert any("answers differently from a state that was put back" in w for w in answer.warnings)
    assert not pieces(place)


def test_stores_that_cannot_take_it(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of()
    wanted = place.ask("one.md", store="off")
    assert not place.store.exists()
    monkeypatch.setattr("localctx.store.store.default_limit", lambda *words: 10_000)
    answer = place.ask("one.md")
    assert answer.text == wanted.text
    assert any("is too large to be kept" in warning for warning in answer.warnings)
    monkeypatch.undo()
    monkeypatch.chdir(place.folder)
    place.ask("one.md")
    monkeypatch.setattr("localctx.store.folder.os.access", lambda path, mode: False)
    assert place.ask("one.md").tokens.evaluated < 100  # can only be read
    assert place.ask("two.md").tokens.restored == 0


def test_a_store_that_cannot_be_used_is_told_once(place_of: MakePlace) -> None:
    place = place_of()
    place.store.write_text("a file where the store's folder would be")
    converted = place.folder / "one.txt"
    converted.write_bytes(ONE.encode("utf-16"))
    with (
        open_model(place.model, EngineOptions(n_threads=1)) as model,
        open_document(converted, cache_dir=place.store) as document,
    ):
        events = list(ask([document], model, "code of gate 7?", place.settings()))
    assert isinstance(events[-1], Finished)
    (told_of,) = [text for text in events[-1].answer.warnings if "not kept" in text]
    assert told_of.startswith("the text is not kept for the next run: ")


def test_the_limit_of_the_store_holds(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of()
    place.ask("one.md")
    (size,) = (size for name, size in pieces(place).items() if "." in name)
    monkeypatch.setattr("localctx.store.store.default_limit", lambda *words: size + 10_000)
    answer = place.ask("two.md")
    assert any("the store was full" in warning for warning in answer.warnings)
    with KVStore.open(place.store) as store:
        assert store.size_bytes <= size + 10_000
        assert [document.identity.name for document in store.documents()] == ["two.md"]


def test_stopping_leaves_nothing_half_done(place_of: MakePlace, monkeypatch: pytest.MonkeyPatch) -> None:
    place = place_of()
    monkeypatch.setattr(LlamaContext, "snapshot", lambda self, *words: None)  # cancelled
    answer = place.ask("one.md")
    assert answer.finish_reason == "cancelled"
    assert answer.tokens.evaluated == 0
    assert not pieces(place)
