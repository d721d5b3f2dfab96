"""A question of many documents over two actors, without a cluster: they are called as they are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx.batch.actor import Actor
from localctx.batch.spread import MIN_DOCUMENTS, choose_passages, is_spread, parts_of, with_unread
from localctx.batch.tasks import Task
from localctx.settings import Settings

NEEDLE = "The lighthouse of Skagen was painted violet by a deaf carpenter."


@pytest.fixture
def actors(tmp_path: Path) -> list[Actor]:
    model = write_tiny_gguf(tmp_path / "tiny.gguf", bpe_vocabulary())
    settings = Settings(model=str(model), store=str(tmp_path / "store"), embedder="off", max_tokens=4)
    made = [Actor(asdict(settings), str(tmp_path)) for _ in range(2)]
    assert all("host" in actor.begin() for actor in made)
    return made


def documents(folder: Path, n_sentences: int) -> list[str]:
    """Ten documents of which the eighth holds the needle."""
    names = []
    for n in range(10):
        lines = [
            f"The ship {n} came with salt and rope in {1800 + i}, as the clerk wrote."
            for i in range(n_sentences)
        ]
        if n == 7:
            lines.insert(n_sentences // 2, NEEDLE)
        (folder / f"{n}.txt").write_text(" ".join(lines))
        names.append(f"{n}.txt")
    return names


def calls_of(actors: Sequence[Actor]) -> Any:
    def calls(method: str, arguments: Sequence[tuple[Any, ...]]) -> list[Any]:
        return [getattr(actor, method)(*given) for actor, given in zip(actors, arguments, strict=False)]

    return calls


def test_one_actor_answers_from_the_documents_that_hold_the_best_passages(
    tmp_path: Path, actors: list[Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = documents(tmp_path, 30)
    task = Task(1, "a", "k", "c", "Who painted the lighthouse of Skagen violet?", tuple(names), "p")
    parts = parts_of(names, 2, lambda name: int(name[0]) % 2)
    chosen = choose_passages(task, parts, calls_of(actors))
    assert chosen.part == 1
    assert "7.txt" in chosen.task.documents
    assert chosen.task.blocks is not None
    ((_, row),) = actors[chosen.part].answer([chosen.task.to_json()])
    total = row["coverage"]["tokens_total"]
    whole = with_unread(row, chosen)
    n_unread = sum(n for _, n in chosen.unread)
    assert whole["coverage"]["tokens_total"] == total + n_unread
    assert (
        whole["coverage"]["tokens_total"]
        == whole["coverage"]["tokens_read"] + whole["coverage"]["tokens_dropped"]
    )
    assert len(chosen.task.documents) + len(chosen.unread) == 10
    if chosen.unread:
        assert "were not read" in whole["warnings"][-1]


def test_what_fits_the_context_is_read_whole(
    tmp_path: Path, actors: list[Actor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names = documents(tmp_path, 1)
    task = Task(1, "a", "k", "c", "Who painted the lighthouse?", tuple(names), "p")
    assert choose_passages(task, [names[:5], names[5:]], calls_of(actors)).task == task


def test_a_document_that_is_lost_is_said(tmp_path: Path, actors: list[Actor]) -> None:
    failed = actors[0].count(["lost.txt"], "Who?")["failed"]
    assert "lost.txt: no such file" in failed[0]


def test_parts_follow_the_documents_homes_and_none_is_idle() -> None:
    names = [str(n) for n in range(9)]
    assert parts_of(names, 3, int) == [["0", "3", "6"], ["1", "4", "7"], ["2", "5", "8"]]
    assert sorted(map(len, parts_of(names, 3, lambda name: 0))) == [1, 1, 7]
    assert parts_of(["a"], 3, lambda name: 2) == [["a"]]


def test_few_documents_or_a_single_actor_stay_together() -> None:
    many = Task(1, "a", "k", "c", "?", tuple(map(str, range(MIN_DOCUMENTS))))
    few = Task(1, "a", "k", "c", "?", ("1", "2"))
    assert [is_spread(many, 2), is_spread(many, 1), is_spread(few, 2)] == [True, False, False]
