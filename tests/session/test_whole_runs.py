"""Passages widened to the runs that they lie in: the same tokens, their text, nothing twice."""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import regex
from session.test_kept_kv import LONG, Place

from localctx.assemble import Piece, StoredTokens
from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.kv import RUN_TOKENS, KVSpace, PrefillPolicy
from localctx.session import ask as asking
from localctx.session import placing
from localctx.session.reading import Passage, Reading
from localctx.session.token_stream import TokenStream
from localctx.session.whole_runs import (
    MANY_PASSAGES,
    have_room,
    in_whole_sentences,
    runs_of_blocks,
    start_of,
    widened,
)

SPACE = KVSpace("model", "rope", ())
TABLE = "| Gate | Code |\n|---|---|\n" + "".join(f"| gate {n} | {1000 + n} |\n" for n in range(60))


def tokenize(text: str, first: bool) -> list[int]:
    return list(text.encode())


def spell(tokens: Sequence[int]) -> str:
    return bytes(list(tokens)).decode("utf-8", "ignore")


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Any]:
    """Two documents, bytes as tokens, blocks of about 70."""
    texts = ["".join(f"# Part {n}\n\n{'Grüße aus 北京 und Ærø. ' * 12}\n\n" for n in range(5)), TABLE]
    readings = []
    for number, text in enumerate(texts):
        path = tmp_path / f"{number}.md"
        path.write_text(text, "utf-8")
        readings.append(Reading(open_document(str(path), cache_dir=None), number, 70))
        for _ in readings[-1].read(tokenize):
            pass

    def tokens_of(number: int) -> tuple[int, int, int]:
        document = int(number >= readings[0].n_blocks)
        number -= document * readings[0].n_blocks
        first = readings[document].first_tokens[number]
        return document, first, first + readings[document].block_tokens[number]

    yield SimpleNamespace(readings=readings, tokens_of=tokens_of)
    for reading in readings:
        reading.document.close()


def streams_of(run: Any, policy: PrefillPolicy) -> list[TokenStream]:
    return [
        TokenStream(array("i", reading.stream), SPACE, policy, reading.first_tokens)
        for reading in run.readings
    ]


def spelled(run: Any, passage: Passage) -> str:
    stream = run.readings[passage.document].stream
    first, end = passage.first_token, passage.first_token + passage.n_tokens
    return spell(stream[:end])[len(spell(stream[:first])) :]


def test_widened_passages_are_their_runs_and_nothing_twice(run: Any) -> None:
    streams = streams_of(run, PrefillPolicy("window", 256))
    units, n_first = runs_of_blocks(run, streams), run.readings[0].n_blocks
    numbers = [1, 2, 9, n_first + 3]
    passages = widened(run, streams, numbers, spell)
    wanted = {unit for number in numbers for unit in units(number)}
    tokens = [(p.document, at) for p in passages for at in range(p.first_token, p.first_token + p.n_tokens)]
    assert tokens == sorted(set(tokens))
    assert {(document, at // RUN_TOKENS) for document, at in tokens} == wanted
    assert len(tokens) == sum(n for number in numbers for n in units(number).values()) - RUN_TOKENS
    for passage in passages:
        assert passage.text == spelled(run, passage)
        reading = run.readings[passage.document]
        assert passage.text == reading.document.read(passage.start, passage.end)
    for one, two in pairwise(passages):
        goes_on = one.document == two.document and one.first_token + one.n_tokens == two.first_token
        assert not goes_on or one.end == two.start


def test_what_stands_before_the_first_run_is_known_beforehand(run: Any) -> None:
    """The header of a table whose middle a run begins in takes tokens too."""
    streams, n_first = streams_of(run, PrefillPolicy("window", 256)), run.readings[0].n_blocks
    for number in range(n_first + run.readings[1].n_blocks):
        begun, (first, *_) = start_of(run, streams, number, spell), widened(run, streams, [number], spell)
        assert (begun.first_token, begun.table_header) == (first.first_token, first.table_header)
    headers = [start_of(run, streams, n_first + n, spell).table_header for n in (0, 3, 6, 9)]
    assert "" in headers and "| Gate | Code |" in headers


PROSE = "".join(f"The warden of gate {n} keeps {7000 + n} brass lamps. " for n in range(40))
UNSPACED = "看守人保管着一盏黄铜灯" * 60
SENTENCE = "and ".join(f"the warden keeps {7000 + n} lamps " for n in range(60))


@pytest.fixture(params=[PROSE, TABLE, SENTENCE, UNSPACED], ids=["prose", "table", "sentence", "unspaced"])
def cut(request: Any, tmp_path: Path) -> Iterator[Any]:
    """A reading, and parts of its blocks that begin or end at any of their tokens."""
    path = tmp_path / "cut.md"
    path.write_text(request.param, "utf-8")
    reading = Reading(open_document(str(path), cache_dir=None), 0, 70)
    for _ in reading.read(tokenize):
        pass
    first, end = reading.first_tokens[2], reading.first_tokens[4]
    parts = [reading.part(n, first, at, spell) for n in (2, 3) for at in range(first + 1, end)]
    parts += [reading.part(n, at, end, spell) for n in (2, 3) for at in range(first, end)]
    yield SimpleNamespace(readings=[reading], language="en"), [one for one in parts if one.n_tokens > 0]
    reading.document.close()


def test_what_a_run_cuts_is_no_evidence(cut: Any) -> None:
    run, parts = cut
    reading, text = run.readings[0], run.readings[0].document.read(0, 100_000)
    judged = in_whole_sentences(run, parts)
    for part, one in zip(parts, judged, strict=True):
        assert (one.first_token, one.n_tokens) == (part.first_token, part.n_tokens)
        assert one.text == text[one.start : one.end] and one.text in part.text
        number = reading.block_at(part.start)
        start, end = reading.span(number, number)
        if one.text and part.start > start:
            assert text[one.start - 1].isspace() and not one.text[0].isspace()
        if one.text and part.end < end:
            assert text[one.end : one.end + 1].isspace() and not one.text[-1].isspace()
        assert set(regex.findall(r"\d+", one.text)) <= set(regex.findall(r"\d+", text))
    pairs = zip(parts, judged, strict=True)
    trimmed = [one.text for part, one in pairs if one.text and one.text != part.text]
    assert bool(trimmed) == (text[:9] != UNSPACED[:9])
    if text.startswith(PROSE[:9]):
        assert any(one.startswith("The") and one.endswith(".") for one in trimmed)


def test_blocks_that_are_units_of_their_own_stay_as_they_are(run: Any) -> None:
    streams = streams_of(run, PrefillPolicy("independent"))
    numbers = [1, 5, 6]
    passages = widened(run, streams, numbers, spell)
    assert passages == tuple(run.readings[0].passage(number) for number in numbers)


def test_a_models_tokens_spell_the_text(tiny_model_path: Path) -> None:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        text = "Grüße aus 北京: the clerk of gate 7.\n\n"
        tokens = model.tokenize(text, False)
        assert model.text(tokens) == text
        assert all(text.startswith(model.text(tokens[:n])) for n in range(len(tokens)))


def test_all_that_contends_must_have_room() -> None:
    def units(block: int) -> dict[int, int]:
        return {2 * block: 128, 2 * block + 1: 128}

    ranking = [(7, 10.0), (2, 6.0), (3, 5.0), (9, 4.9), (4, 0.1)]
    assert have_room(ranking, units, 3 * 276, 20)
    assert not have_room(ranking, units, 3 * 276 - 1, 20)
    assert not have_room(ranking, units, 3 * 276, 20, share=0.25)
    assert have_room(ranking[:1] * 3, units, 256 + 3 * 20, 20)  # what is there already takes no more
    assert have_room([], units, 0, 20)


# --- asked ---------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Place:
    place = Place(tmp_path_factory.mktemp("whole"), tiny_model_path)
    place.index(place.write(LONG))
    return place


@pytest.fixture
def indexed(indexed_once: Place, tmp_path: Path) -> Place:
    shutil.copytree(indexed_once.folder, tmp_path / "copy")
    return Place(tmp_path / "copy", indexed_once.model)


@pytest.mark.parametrize(("n_passages", "is_widened"), [(MANY_PASSAGES, False), (MANY_PASSAGES + 8, True)])
def test_a_budget_for_many_passages_widens_them(indexed: Place, n_passages: int, is_widened: bool) -> None:
    block, budget = 64, 64 * n_passages
    answer = indexed.ask(
        str(indexed.folder / "book.md"),
        question="What is the code of gate 3, gate 9, gate 12 and gate 15?",
        strategy="stream",
        kv=f"budget={budget},block={block},refresh=0",
    )
    n_attended = answer.coverage.tokens_attended
    assert 0 < n_attended <= budget
    assert (n_attended % RUN_TOKENS == 0) == is_widened
    assert answer.tokens.restored >= n_attended
    assert answer.coverage.tokens_read == answer.coverage.tokens_total


def test_answers_are_judged_by_what_is_whole(indexed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, judge = [], asking.judge

    def watched(run: Any, index: Any, filling: Any, *rest: Any) -> Any:
        seen.extend(filling.passages)
        return judge(run, index, filling, *rest)

    monkeypatch.setattr(asking, "judge", watched)
    answer = indexed.ask(
        str(indexed.folder / "book.md"),
        question="What is the code of gate 3, gate 9, gate 12 and gate 15?",
        strategy="stream",
        kv=f"budget={64 * (MANY_PASSAGES + 8)},block=64,refresh=0",
    )
    assert sum(one.n_tokens for one in seen) == answer.coverage.tokens_attended
    padded = f" {LONG} "
    for one in seen:
        assert one.text == LONG[one.start : one.end]
        around = padded[one.start : one.start + 2], padded[one.end : one.end + 2]
        assert not one.text or all(" " in border or "\n" in border for border in around), one.text


def test_refreshed_whole_it_is_all_evaluated(indexed: Place) -> None:
    kv = f"budget={64 * (MANY_PASSAGES + 8)},block=64"
    none, whole = (
        indexed.ask(str(indexed.folder / "book.md"), strategy="stream", kv=f"{kv},refresh={share}")
        for share in (0, 100)
    )
    assert none.coverage == whole.coverage
    assert whole.tokens.evaluated - none.tokens.evaluated == none.coverage.tokens_attended


def test_stretches_stay_whole_where_the_best_is_put_last(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, lay_out = [], placing.lay_out

    def watched(prefix: Sequence[int], pieces: Sequence[Piece], *rest: Any, **more: Any) -> Any:
        seen.append([piece for piece in pieces if isinstance(piece, StoredTokens)])
        return lay_out(prefix, pieces, *rest, **more)

    monkeypatch.setattr(placing, "lay_out", watched)
    indexed.ask(
        str(indexed.folder / "book.md"),
        question="What is the code of gate 3, gate 9, gate 12 and gate 15?",
        strategy="stream",
        kv=f"budget={64 * (MANY_PASSAGES + 8)},block=64,refresh=0",
    )
    pieces = seen[-1]
    breaks = [two for one, two in pairwise(pieces) if one.first + len(one.tokens) != two.first]
    assert len(pieces) > 8 and breaks
    assert all(piece.first % RUN_TOKENS == 0 for piece in (pieces[0], *breaks))
