"""Several documents attended whole, from the store: the answer of evaluating all, and little evaluated.

What a new process would do is done with a model and a store opened anew.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from session.conftest import of_kind
from session.test_kept_kv import LONG, Place, chapters

from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.generation import Generation
from localctx.session.events import Event, Notice
from localctx.session.indexed import Indexed
from localctx.session.indexing import index_documents
from localctx.store import KVStore
from localctx.values import Request

ONE, TWO, OTHER = chapters(4), chapters(3, seed=2), chapters(3, seed=3)


class Here(Place):
    """Documents are named as in the current folder: their names are read too, and stay the same so."""

    def write(self, text: str, name: str = "book.md") -> str:
        super().write(text, name)
        return name


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.chdir(tmp_path)
    return Here(tmp_path, tiny_model_path)


def index(place: Place, *files: str, **settings: object) -> tuple[Indexed, list[str]]:
    """Index files together; what was done, and what was told."""
    with ExitStack() as stack:
        model = stack.enter_context(open_model(place.model, EngineOptions(n_threads=1)))
        documents = [stack.enter_context(open_document(file, cache_dir=None)) for file in files]
        events: list[Any] = list(index_documents(documents, model, place.settings(**settings)))
    told: list[Event] = events[:-1]
    return events[-1], [notice.text for notice in of_kind(told, Notice)]


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, ...]]:
    """The tokens of every prompt that is answered."""
    seen: list[tuple[int, ...]] = []
    begin = Generation.__init__

    def watched(self: Generation, decoder: Any, scheduler: Any, requests: list[Request], *more: Any) -> None:
        seen.extend(request.prompt.tokens for request in requests)
        begin(self, decoder, scheduler, requests, *more)

    monkeypatch.setattr(Generation, "__init__", watched)
    return seen


def test_the_answer_is_that_of_evaluating_the_whole_text(
    place: Place, prompts: list[tuple[int, ...]]
) -> None:
    files = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    plain = place.ask(*files, store="off", max_tokens=64)
    first, second = (place.ask(*files, max_tokens=64) for _ in range(2))
    assert {answer.strategy for answer in (plain, first, second)} == {"exact"}
    assert first.text == second.text == plain.text
    assert len(plain.text) > 20
    assert len(set(prompts)) == 1  # names and separators too
    assert plain.tokens.restored == 0
    assert first.tokens.evaluated > plain.coverage.tokens_total
    assert second.tokens.restored > plain.coverage.tokens_total
    assert second.tokens.evaluated < 100
    assert second.tokens.evaluated + second.tokens.restored == plain.tokens.evaluated
    assert second.documents == plain.documents


def test_another_question_finds_them_too(place: Place) -> None:
    files = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    place.ask(*files)
    other = place.ask(*files, question="What stands on the hill?")
    assert other.tokens.evaluated < 100
    assert other.text == place.ask(*files, question="What stands on the hill?", store="off").text


def test_a_changed_second_document_leaves_the_first_ones_part(place: Place) -> None:
    files = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    n_first = place.ask(*files).documents[0].coverage.tokens_total
    place.write(OTHER, "two.md")
    answer = place.ask(*files)
    n_second = answer.documents[1].coverage.tokens_total
    assert answer.tokens.evaluated < n_second + 128 + 150
    assert answer.tokens.evaluated > n_second
    assert answer.text == place.ask(*files, store="off").text
    place.write(TWO, "one.md")  # the first one: nothing serves
    assert place.ask(*files).tokens.evaluated > n_first + n_second - 150


def test_a_third_document_goes_on_behind_the_two(place: Place) -> None:
    files = [place.write(chapters(2, seed=seed), f"{seed}.md") for seed in (1, 2, 3)]
    place.ask(*files[:2])
    answer = place.ask(*files)
    assert answer.tokens.evaluated < answer.documents[2].coverage.tokens_total + 128 + 150
    assert answer.text == place.ask(*files, store="off").text


def test_index_serves_the_question_on_both_and_says_so(place: Place) -> None:
    files = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    done, told = index(place, *files)
    (row,) = done.documents
    assert (row.source, row.policy, row.codec) == (" + ".join(files), "exact", "f16")
    assert row.tokens_stored == row.tokens_total
    assert any("kept together" in text for text in told)
    answer = place.ask(*files)
    assert answer.tokens.evaluated < 100
    assert answer.text == place.ask(*files, store="off").text
    assert index(place, *files)[0].documents[0].tokens_evaluated == 0


def test_index_says_that_it_keeps_them_one_by_one(place: Place) -> None:
    short = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    done, told = index(place, *short, strategy="stream")
    assert [row.source for row in done.documents] == list(short)
    assert any("one by one" in text for text in told)
    long = place.write(LONG, "long.md"), place.write(TWO, "two.md")
    done, told = index(place, *long)
    assert [row.source for row in done.documents] == list(long)
    assert any("one by one" in text for text in told)
    answer = place.ask(*long, strategy="stream", kv="refresh=0")
    assert answer.tokens.evaluated < 300


def test_the_store_knows_both_documents_of_what_is_kept(place: Place) -> None:
    files = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    place.ask(*files)
    with KVStore.open(place.store) as store:
        (document,) = store.documents()
        assert document.identity.paths == tuple(str(place.folder / file) for file in files)
        assert document.identity.name == " + ".join(files)
        with ExitStack() as stack:
            texts = [stack.enter_context(open_document(file, cache_dir=None)) for file in files]
            assert document.identity.text_hashes == tuple(text.content_hash for text in texts)
        assert document.share_stored == 1.0


@pytest.mark.parametrize("n_documents", [1, 2])
def test_a_store_that_can_only_be_read_serves_what_it_has(
    place: Place, n_documents: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [place.write(ONE, "one.md"), place.write(TWO, "two.md")][:n_documents]
    wanted = place.ask(*files)
    monkeypatch.setattr("localctx.store.folder.os.access", lambda path, mode: False)
    answer = place.ask(*files)
    assert (answer.text, answer.strategy) == (wanted.text, "exact")
    assert answer.tokens.evaluated < 100
    place.write(OTHER, "one.md")
    assert place.ask(*files).tokens.restored == 0


def test_damage_costs_time_not_the_answer(place: Place) -> None:
    files = place.write(ONE, "one.md"), place.write(TWO, "two.md")
    wanted = place.ask(*files)
    for segment in place.store.rglob("*.seg"):
        data = bytearray(segment.read_bytes())
        for at in range(len(data) // 2, len(data), 997):
            data[at] ^= 0xFF
        segment.write_bytes(bytes(data))
    answer = place.ask(*files)
    assert any("damaged" in warning for warning in answer.warnings)
    assert answer.text == wanted.text
