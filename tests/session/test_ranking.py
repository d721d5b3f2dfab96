"""`--kv rank`: the model's own queries against stored keys choose passages, or words do and that is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from session.test_kept_kv import LONG, QUESTION, SHORT, Place

from localctx import _native
from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.query_capture import QueryReader
from localctx.errors import ModelError, NotComposable, OutOfMemory
from localctx.index import Hits, LexicalIndex
from localctx.selection import landmarks as arithmetic
from localctx.session import landmarks
from localctx.session.cache import Cache, opened_cache
from localctx.session.events import Event, Notice, ignore_progress
from localctx.session.frame import frame_of
from localctx.session.landmarks import HEADS_FACT, landmarks_of
from localctx.session.opening import index_all
from localctx.session.prompts import question_task
from localctx.session.ranking import ranked_blocks
from localctx.session.run import start
from localctx.store import KVStore

HEADS = [[1, 3], [0, 0], [1, 2]]
KV_HEADS = [1, 0, 1]


@pytest.fixture(scope="module")
def indexed(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Place:
    """The long text, indexed with small passages; its model's heads are known."""
    place = Place(tmp_path_factory.mktemp("landmarks"), tiny_model_path)
    place.index(place.write(LONG))
    with open_model(tiny_model_path) as model, KVStore.open(place.store) as store:
        store.set_model_fact(model.info.fingerprint, HEADS_FACT, {"heads": HEADS})
    return place


@contextmanager
def asking(place: Place, text: str = LONG, **settings: object) -> Iterator[tuple[Cache, LexicalIndex]]:
    """All that stands before passages are chosen."""
    with (
        open_model(place.model, EngineOptions(n_threads=1)) as model,
        open_document(place.write(text), cache_dir=None) as document,
    ):
        run = start([document], model, place.settings(**settings), ignore_progress)
        with index_all(run) as index, opened_cache(run, question_task(QUESTION)) as cache:
            assert not isinstance(cache, str)
            yield cache, index


def ranking(cache: Cache, index: LexicalIndex, question: str = QUESTION) -> tuple[Hits, list[str]]:
    """The blocks as ranked, and the warnings."""
    streams = [cache.whole_stream(reading) for reading in cache.run.readings]
    steps = ranked_blocks(cache.run, index, question, lambda: landmarks_of(cache, streams, question))
    events: list[Event] = []
    while True:
        try:
            events.append(next(steps))
        except StopIteration as end:
            return end.value, _texts(events)


def _texts(events: Sequence[Event]) -> list[str]:
    return [event.text for event in events if isinstance(event, Notice)]


def by_numpy(cache: Cache, question: str) -> np.ndarray:
    """Best products of the question's queries, [n_tokens, n_heads, n_blocks], from decoded keys in f32."""
    frame, reading = frame_of(cache.model, question_task(question)), cache.run.readings[0]
    assert frame is not None
    stream = cache.whole_stream(reading)
    queries = cache.model.queries.capture([*frame.prefix, *frame.suffix], [tuple(head) for head in HEADS])
    queries = queries[len(frame.prefix) :]
    cache.kept.load(stream.ids)
    runs = [cache.kept.run(run_id) for run_id in stream.ids]
    found = []
    for place, ((layer, _), kv_head) in enumerate(zip(HEADS, KV_HEADS, strict=True)):
        keys = np.concatenate([run.keys(layer) for run in runs]).astype(np.float32)
        keys = keys.reshape(len(keys), 2, -1)[:, kv_head]
        edges = [*reading.first_tokens, reading.n_tokens]
        products = queries[:, place] @ keys.T
        found.append([products[:, a:b].max(axis=1) for a, b in pairwise(edges)])
    return np.array(found).transpose(2, 0, 1)


def test_the_model_ranks_as_its_keys_and_queries_say(indexed: Place) -> None:
    with asking(indexed, kv="rank=landmarks") as (cache, index):
        hits, told = ranking(cache, index)
        assert told == []
        found = [by_numpy(cache, text) for text in (QUESTION, *arithmetic.NEUTRAL_QUESTIONS)]
        frames = [
            frame_of(cache.model, question_task(text)) for text in (QUESTION, *arithmetic.NEUTRAL_QUESTIONS)
        ]
        lead = arithmetic.shared_lead([frame.suffix for frame in frames if frame is not None])
        assert lead > 5
        wanted = arithmetic.landmark_scores(found[0][lead:], [rows[lead:] for rows in found[1:]])
        got = np.array(hits.scores().values)
        np.testing.assert_allclose(got, wanted.values, atol=0.1)
        assert got.max() > 0.5


def test_the_column_is_built_once_and_neutral_questions_are_asked_once(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured: list[int] = []
    capture = QueryReader.capture

    def counting(self: QueryReader, tokens: Sequence[int], heads: Sequence[tuple[int, int]]) -> np.ndarray:
        captured.append(len(tokens))
        return capture(self, tokens, heads)

    with asking(indexed, kv="rank=landmarks") as (cache, index):
        before, _ = ranking(cache, index)
    monkeypatch.setattr(QueryReader, "capture", counting)
    monkeypatch.setattr(_native, "scan_encode", lambda *_: pytest.fail("built again"))
    with asking(indexed, kv="rank=landmarks") as (cache, index):
        again, _ = ranking(cache, index)
        assert again == before
        assert len(captured) == 1
        assert cache.run.n_evaluated == captured[0]


def test_fused_ranks_are_of_both(indexed: Place) -> None:
    with asking(indexed, kv="rank=lexical+landmarks") as (cache, index):
        both, told = ranking(cache, index)
        assert told == []
        by_words = index.search(QUESTION)
        assert both != by_words
        assert {number for number, _ in by_words.ranking} <= {number for number, _ in both.ranking}
        values = [value for _, value in both.ranking]
        assert values == sorted(values, reverse=True)


def test_an_answer_counts_the_tokens_of_its_own_question(indexed: Place) -> None:
    plain = indexed.ask(indexed.write(LONG), strategy="stream", kv="refresh=0")
    ranked_so = indexed.ask(indexed.write(LONG), strategy="stream", kv="refresh=0,rank=lexical+landmarks")
    assert not [text for text in ranked_so.warnings if "rank" in text]
    assert ranked_so.tokens.evaluated > plain.tokens.evaluated


def test_words_rank_by_default_and_ask_the_model_nothing(
    indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(QueryReader, "capture", lambda *_: pytest.fail("asked"))
    with asking(indexed) as (cache, index):
        assert ranking(cache, index) == (index.search(QUESTION), [])


@pytest.mark.parametrize(
    ("text", "settings", "said"),
    [
        (LONG + " More.", {}, "not all of the text is indexed"),
        (LONG, {"store": "off"}, "there is no store"),
        (LONG, {"kv": "rank=lexical+landmarks,codec=f16"}, "not all of the text is indexed"),
    ],
)
def test_words_rank_where_the_keys_are_not_there(
    text: str, settings: dict[str, object], said: str, indexed: Place
) -> None:
    with asking(indexed, text, **{"kv": "rank=lexical+landmarks", **settings}) as (cache, index):
        cache.kept.facts = lambda _: {HEADS_FACT: {"heads": HEADS}}  # type: ignore[method-assign]  # with no store too
        hits, told = ranking(cache, index)
        assert hits == index.search(QUESTION)
        assert told == [f"--kv rank=lexical+landmarks: {said}; passages are chosen without"]


@pytest.mark.parametrize(
    "error",
    [OutOfMemory("no memory for it", ""), NotComposable("tiny: cannot be asked", ""), ModelError("no")],
)
def test_words_rank_where_the_queries_cannot_be_had(
    error: ModelError, indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: object) -> None:
        raise error

    monkeypatch.setattr(QueryReader, "capture", failing)
    with asking(indexed, kv="rank=lexical+landmarks") as (cache, index):
        hits, told = ranking(cache, index)
        assert hits == index.search(QUESTION)
        assert told == [f"--kv rank=lexical+landmarks: {error.message}; passages are chosen without"]


@pytest.mark.parametrize("heads", [[], [[9, 0]], "17.3", [[0]], None])
def test_words_rank_where_no_heads_are_known(
    heads: object, indexed: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    with asking(indexed, kv="rank=landmarks") as (cache, index):
        monkeypatch.setattr(cache.kept, "facts", lambda _: {HEADS_FACT: {"heads": heads}})
        hits, told = ranking(cache, index)
        assert hits == index.search(QUESTION)
        assert len(told) == 1
        assert "no retrieval heads of tiny" in told[0]


def test_heads_that_came_with_the_model_are_taken(indexed: Place) -> None:
    with asking(indexed) as (cache, _):
        cache.kept.facts = lambda _: {}  # type: ignore[method-assign]  # nothing found here
        assert isinstance(landmarks.retrieval_heads(cache), str)
        options = EngineOptions(retrieval_heads=("1.3", "0.0"))
        with open_model(indexed.model, options) as model:
            cache.model = model
            for known in ({}, {HEADS_FACT: {"heads": []}}, {HEADS_FACT: {"heads": [[9, 0]]}}):
                cache.kept.facts = lambda _, known=known: known  # type: ignore[misc]  # found in vain
                found = landmarks.retrieval_heads(cache)
                assert not isinstance(found, str)
                assert found.heads == ((1, 3), (0, 0))


def test_what_only_stored_kv_obeys_is_said_where_it_is_not_used(indexed: Place) -> None:
    answer = indexed.ask(indexed.write(SHORT, "short.md"), kv="lazy=on,refresh=50,budget=300")
    assert answer.strategy == "exact"
    assert any("--kv lazy=on,refresh=50%,budget=300 is for stored KV" in text for text in answer.warnings)
    assert not any("for stored KV" in text for text in indexed.ask(indexed.write(SHORT)).warnings)


def test_text_retrieval_says_that_it_chooses_by_words(indexed: Place) -> None:
    answer = indexed.ask(indexed.write(LONG), strategy="retrieve", kv="rank=landmarks")
    assert [text for text in answer.warnings if "rank=landmarks" in text and "is for stored KV" in text]
