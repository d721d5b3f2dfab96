"""Passages ranked by words and vectors, with a tiny real embedder: what is made, kept, used, and said."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from engine.tiny_bert import write_tiny_bert, write_tiny_reranker
from session.conftest import answer_of, of_kind

from localctx.document import Document, open_document
from localctx.engine import EchoModel
from localctx.engine.embedder import Embedder, EmbedderFile
from localctx.engine.options import EngineOptions
from localctx.engine.reranker import RerankerFile
from localctx.index import Hits
from localctx.index.vectors import BlockVectors
from localctx.selection.dense import max_sim
from localctx.session import judging, ranking
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.embedding import embed_all
from localctx.session.events import Event, Listener, Notice, Progress, ignore_progress
from localctx.session.opening import index_all
from localctx.session.ranking import ranked_blocks, vectors_of
from localctx.session.run import Run, start
from localctx.session.vectors import RunVectors, embedded_text
from localctx.settings import Settings

PARTS = [
    f"# Part {n}\n\nThe river of part {n} rises near Tannau. {'A mine was opened in it. ' * (n % 5)}"
    f"Where does the silver mine begin? What was opened? {'The mine is silver. ' * (n % 7)}\n\n"
    for n in range(40)
]
TEXT = "".join(PARTS)
QUESTION = "Where was the silver mine opened in part 7?"


class Place:
    """A folder with documents, a store and an embedder."""

    def __init__(self, folder: Path, embedder: EmbedderFile | str | None) -> None:
        self.folder, self.embedder = folder, embedder
        self.stack = ExitStack()

    def open(self, text: str) -> Document:
        path = self.folder / "book.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
        return self.stack.enter_context(open_document(str(path), cache_dir=None))

    def run(self, text: str = TEXT, listen: Listener = ignore_progress, **settings: Any) -> Run:
        kept = {"store": str(self.folder / "store"), "strategy": "retrieve", "max_tokens": 20}
        run = start([self.open(text)], EchoModel(), Settings(**{**kept, **settings}), listen)
        run.embedder = self.embedder
        return run

    def rank(self, run: Run, question: str = QUESTION) -> tuple[Hits, list[str]]:
        with index_all(run) as index:
            steps, events = ranked_blocks(run, index, question), list[Event]()
            while True:
                try:
                    events.append(next(steps))
                except StopIteration as end:
                    return end.value, [event.text for event in of_kind(events, Notice)]

    def ask(self, text: str = TEXT, question: str = QUESTION, **settings: Any) -> Answer:
        kept = {"store": str(self.folder / "store"), "strategy": "retrieve", "max_tokens": 20}
        run_settings = Settings(**{**kept, **settings})
        return answer_of(
            list(ask([self.open(text)], EchoModel(), question, run_settings, embedder=self.embedder))
        )


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """With a tiny embedder for English."""
    with EmbedderFile(write_tiny_bert(tmp_path / "tiny-bert.gguf"), "tiny-bert", ["en"]) as file:
        place = Place(tmp_path, file)
        with place.stack:
            yield place


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts were embedded by each call."""
    counts: list[int] = []
    embed = Embedder.embed

    def counting(self: Embedder, texts: list[str], *more: Any, **named: Any) -> Any:
        counts.append(len(texts))
        return embed(self, texts, *more, **named)

    monkeypatch.setattr(Embedder, "embed", counting)
    return counts


def test_vectors_alone_rank_as_numpy_does(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "N_EMBEDDED", 1000)
    run = place.run(kv="rank=dense")
    hits, told = place.rank(run)
    assert told == []
    assert isinstance(place.embedder, EmbedderFile)
    texts = [embedded_text(run.passage(n)) for n in range(run.n_blocks)]
    likeness = place.embedder.open().vectors(texts) @ place.embedder.open().vectors([QUESTION])[0]
    assert hits.ranking[0][0] in np.argsort(-likeness)[:2]  # rows are f16
    assert run.selection == {
        "selectors": ["dense"],
        "embedder": "tiny-bert",
        "passages": run.n_blocks,
        "passages_with_vectors": run.n_blocks,
    }


def test_headings_are_part_of_what_is_embedded(place: Place) -> None:
    run = place.run()
    place.rank(run)
    assert embedded_text(run.passage(0), "passage: ").startswith("passage: Part 0\n")


def test_vectors_are_made_once(place: Place, made: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "N_EMBEDDED", 1000)
    first, _ = place.rank(place.run(kv="rank=lexical+dense"))
    assert sum(made) > 40
    made.clear()
    again, _ = place.rank(place.run(kv="rank=lexical+dense"))
    assert made == [1]  # the question
    assert again == first


def test_vectors_are_opened_once_a_reading(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "N_EMBEDDED", 1000)
    first = place.run()
    place.rank(first)
    opened: list[int] = []
    load = BlockVectors.load

    def counting(n_blocks: int, *more: Any) -> BlockVectors:
        opened.append(n_blocks)
        return load(n_blocks, *more)

    monkeypatch.setattr(BlockVectors, "load", counting)
    before = place.rank(first)[0]
    later = replace(first)
    assert place.rank(later)[0] == before
    assert opened == []
    other = place.run()
    assert place.rank(other)[0] == before
    assert opened == [other.n_blocks]


def test_what_a_pipe_brought_or_no_store_keeps_is_made_again(place: Place, made: list[int]) -> None:
    place.rank(place.run(kv="rank=dense", store="off"))
    made.clear()
    place.rank(place.run(kv="rank=dense", store="off"))
    assert sum(made) > 40


def test_index_makes_all_and_says_so(place: Place, made: list[int]) -> None:
    told: list[Progress] = []
    run = place.run(listen=told.append)
    index_all(run).close()
    assert list(embed_all(run)) == []
    assert run.selection is not None
    assert run.selection["passages_embedded"] == run.n_blocks
    assert {step.what for step in told} == {"reading", "embedding"}
    made.clear()
    place.rank(place.run(kv="rank=dense"))
    assert made == [1]


def test_without_an_index_the_blocks_that_words_point_at_get_vectors(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "N_EMBEDDED", 5)
    run = place.run(kv="rank=lexical+dense")
    with index_all(run) as index:
        by_words = [number for number, _ in index.search(QUESTION).ranking]
        list(ranked_blocks(run, index, QUESTION))
        vectors = ranking.vectors_of(run)
        assert not isinstance(vectors, str)
        there = set(np.flatnonzero(vectors.is_there))
    assert run.selection is not None
    assert len(there) == 5
    assert run.selection["passages_with_vectors"] == len(there)
    assert there == set(by_words[: len(there)])


def test_a_question_is_embedded_once_for_all_selectors(place: Place, made: list[int]) -> None:
    run = place.run()
    with index_all(run) as index:
        list(embed_all(run))
        made.clear()
        list(ranked_blocks(run, index, QUESTION))
    assert run.selection is not None
    assert "maxsim" in str(run.selection["selectors"])
    assert made == [1]  # the tokens of the passages are kept with their vectors


def test_tokens_that_are_not_kept_are_made_again_of_the_best(place: Place, made: list[int]) -> None:
    run = place.run()
    index_all(run).close()
    list(embed_all(run))
    for path in (place.folder / "store" / "index").iterdir():
        if path.read_bytes().startswith(b"LCTXTOK1"):
            path.unlink()
    made.clear()
    later = place.run()
    place.rank(later)
    assert made == [1, ranking.N_RERANKED]
    assert later.selection is not None
    assert later.selection["selectors"] == ["lexical", "dense", "maxsim"]


def test_what_was_embedded_before_an_interrupt_is_kept(place: Place) -> None:
    def interrupt(progress: Progress) -> None:
        if progress.what == "embedding" and progress.done:
            raise KeyboardInterrupt

    run = place.run(listen=interrupt)
    with index_all(run), pytest.raises(KeyboardInterrupt):
        list(embed_all(run))
    later = place.run()
    index_all(later).close()
    vectors = ranking.vectors_of(later)
    assert not isinstance(vectors, str)
    assert 0 < vectors.is_there.sum() < later.n_blocks


def test_switched_off_is_said_only_where_nothing_else_was_asked_for(place: Place) -> None:
    place.embedder = None
    said = {rank: place.ask(kv=f"rank={rank}").warnings for rank in ("fused", "dense")}
    assert not [text for text in said["fused"] if "by words alone" in text]
    assert [text for text in said["dense"] if "by words alone: no embedder was asked for" in text]


def test_without_an_embedder_words_decide_and_it_is_said(place: Place) -> None:
    place.embedder = "all-minilm-l6-v2 is not installed (run: localctx models pull all-minilm-l6-v2)"
    answer = place.ask()
    assert [text for text in answer.warnings if "by words alone: all-minilm-l6-v2 is not installed" in text]
    assert answer.to_json()["selection"] == {
        "selectors": ["lexical"],
        "embedder": None,
        "passages": answer.to_json()["selection"]["passages"],
        "passages_with_vectors": 0,
    }
    asked_for = place.ask(kv="rank=lexical")
    assert not [text for text in asked_for.warnings if "by words" in text]
    place.embedder = None
    assert not [text for text in place.ask().warnings if "by words" in text]


GERMAN = (
    "# Der Fluss\n\nDer Fluss entspringt in den Bergen bei Tannau und ist zweihundert Kilometer lang. Die "
    "Boote werden im Herbst gebaut, und die Leute fahren damit zum Markt in der Stadt.\n\n"
)


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (GERMAN * 30, "Wo entspringt der Fluss?", "is in 'de'"),
        (TEXT, "Tannau 的河 mine 7 是什么时候开的?", "the question is in 'zh'"),
        (TEXT, "Wann wurde das silver mine in part 7 eröffnet?", "the question is in 'de'"),
    ],
)
def test_words_that_single_passages_out_decide_alone_where_a_language_is_not_covered(
    place: Place, made: list[int], text: str, question: str, said: str
) -> None:
    run = place.run(text)
    hits, told = place.rank(run, question)
    assert len(told) == 1
    assert told[0].startswith("passages are chosen by words alone: the embedder tiny-bert is made for en")
    assert said in told[0]
    assert made == []
    with index_all(run) as index:
        assert hits == index.search(question)


FARMS = "".join(
    f"# Hof {n}\n\nDer Bauer verkauft im Herbst die Äpfel und das Holz {'auf dem Markt ' * (n % 6)}in der "
    "Stadt.\n\n"
    for n in range(40)
)


@pytest.mark.parametrize(
    ("text", "question", "said"),
    [
        (FARMS, "Wann kam der Kaiser mit seinem Heer?", "is in 'de'"),
        (TEXT, "银矿是什么时候开的?", "the question is in 'zh'"),
        (TEXT, "?", ""),
    ],
)
def test_likeness_orders_what_words_leave_open_whatever_the_language_and_it_is_said(
    place: Place, made: list[int], monkeypatch: pytest.MonkeyPatch, text: str, question: str, said: str
) -> None:
    monkeypatch.setattr(ranking, "N_EMBEDDED", 20)
    run = place.run(text)
    hits, told = place.rank(run, question)
    assert len(told) == bool(said)
    for line in told:
        assert line.startswith("words single no passage out, so likeness orders them, though the embedder")
        assert said in line
    assert sorted(made) == [1, 20]  # no more, however long the document is
    assert len(hits.ranking) > 1
    assert run.selection is not None
    assert run.selection["embedder"] == "tiny-bert"
    assert (run.likeness is None) == bool(said)  # what is read again still goes by words


def test_index_makes_the_vectors_of_a_language_that_is_not_covered_and_says_when_they_choose(
    place: Place,
) -> None:
    run = place.run(FARMS)
    index_all(run).close()
    told = [event.text for event in of_kind(embed_all(run), Notice)]
    assert len(told) == 1
    assert told[0].startswith("vectors choose only where words single no passage out: the embedder tiny-bert")
    assert run.selection is not None
    assert run.selection["passages_embedded"] == run.n_blocks


def test_an_embedder_that_says_no_languages_covers_all(tmp_path: Path) -> None:
    with EmbedderFile(write_tiny_bert(tmp_path / "t.gguf"), "t") as file:
        place = Place(tmp_path, file)
        with place.stack:
            assert place.rank(place.run(GERMAN * 30), "Wo entspringt der Fluss?")[1] == []


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("the silver mine was opened " * 2000, "Where was the mine opened?"),
        ("x" * 20_000, "What was opened?"),
        ("\n\n".join(["mine", "river", "silver"] * 100), "river"),
        (
            "The silver mine was opened in Tannau, and the river rises near it. \n\n" * 200,
            "Who opened the mine?",
        ),
        (TEXT, "what was opened where and who does it? " * 60),
        (TEXT, "?"),
        (TEXT, "zzz qqq"),
    ],
    ids=[
        "one giant line",
        "one giant word",
        "words alone",
        "all equal",
        "long question",
        "no word",
        "no hit",
    ],
)
@pytest.mark.parametrize("rank", ["fused", "dense", "fused+mmr+head+tail"])
def test_odd_texts_and_questions_are_answered(place: Place, text: str, question: str, rank: str) -> None:
    answer = place.ask(text, question, kv=f"rank={rank},block=32")
    assert answer.coverage.tokens_attended > 0


def test_the_edges_are_always_in(place: Place) -> None:
    run = place.run(kv="rank=lexical+head+tail")
    hits, _ = place.rank(run)
    assert {0, run.n_blocks - 1} <= {number for number, _ in hits.ranking[:3]}


def test_a_second_look_is_deterministic_and_said(place: Place) -> None:
    found = [place.rank(run)[0] for run in (place.run(kv="rank=fused"), place.run(kv="rank=fused"))]
    assert found[0] == found[1]
    run = place.run(kv="rank=fused")
    place.rank(run)
    assert run.selection is not None
    assert run.selection["selectors"] == ["lexical", "dense", "maxsim"]


def test_a_damaged_embedder_costs_the_vectors_not_the_answer(place: Place) -> None:
    path = write_tiny_bert(place.folder / "t.gguf")
    path.write_bytes(path.read_bytes()[:-5000])
    place.embedder = EmbedderFile(path, "t", ["en"])
    answer = place.ask()
    assert [text for text in answer.warnings if "by words alone" in text]
    assert answer.coverage.tokens_attended > 0


def test_a_cross_encoder_judges_the_best(place: Place) -> None:
    options = EngineOptions(name="r")
    with RerankerFile(write_tiny_reranker(place.folder / "r.gguf"), options) as reranker:
        run = place.run(kv="rank=lexical")
        run.reranker = reranker
        hits, _ = place.rank(run)
        assert run.selection is not None
        assert run.selection["selectors"] == ["lexical", "reranker"]
        texts = [embedded_text(run.passage(number)) for number, _ in hits.ranking[:2]]
        assert len(set(texts)) == 2
        assert all(0 < value < 1 for value in reranker.open().scores(QUESTION, texts))
        with index_all(run) as index:
            by_words = [number for number, _ in index.search(QUESTION).ranking]
        assert {number for number, _ in hits.ranking[:16]} == set(by_words[:16])


def test_vectors_that_another_process_kept_meanwhile_stay(place: Place) -> None:
    early, late = place.run(), place.run()
    for run in (early, late):
        index_all(run).close()
    first, second = vectors_of(early), vectors_of(late)
    assert isinstance(first, RunVectors)
    assert isinstance(second, RunVectors)
    first.make([0, 1, 2])
    second.make([2, 5])
    again = place.run()
    index_all(again).close()
    found = vectors_of(again)
    assert isinstance(found, RunVectors)
    assert np.flatnonzero(found.is_there).tolist() == [0, 1, 2, 5]
    assert np.array_equal(found.rows([0, 1]), first.rows([0, 1]))


def test_how_like_the_question_a_span_is_comes_from_the_tokens_kept_for_it(place: Place) -> None:
    run = place.run()
    place.rank(run)
    assert run.likeness is not None
    vectors = vectors_of(run)
    assert isinstance(vectors, RunVectors)
    passage, asked = run.passage(7), vectors.question(QUESTION).tokens
    tokens, text = vectors.tokens([7])[7], run.passage(7).text
    n_before = vectors.embedder.n_tokens("Part 7")
    cut = text.index("Where does")
    first, second = run.likeness(passage, [(0, cut), (cut, len(text))])
    n_first = vectors.embedder.n_tokens(text[:cut])
    assert n_before + n_first + vectors.embedder.n_tokens(text[cut:]) == len(tokens)
    assert first == pytest.approx(max_sim(asked, tokens[n_before : n_before + n_first]))
    assert second == pytest.approx(max_sim(asked, tokens[n_before + n_first :]))


def test_words_alone_point_where_no_vectors_are(place: Place) -> None:
    run = place.run(kv="rank=lexical")
    place.rank(run)
    assert run.likeness is None


@pytest.mark.parametrize(("least", "support"), [(-2.0, "partial"), (2.0, "none")])
@pytest.mark.parametrize("strategy", ["exact", "retrieve"])
def test_an_answer_in_other_words_stands_where_it_is_like_the_question(
    place: Place, monkeypatch: pytest.MonkeyPatch, least: float, support: str, strategy: str
) -> None:
    monkeypatch.setattr(judging, "LEAST_LEAD", least)
    text = "The shepherd counted 4821 lambs in spring. Nothing else was said of him."
    question = "What number of young sheep were tallied after the snow melted?"
    settings = Settings(store=str(place.folder / "store"), strategy=strategy)
    model = EchoModel(lambda prompt: "4821 lambs.")
    events = list(ask([place.open(text)], model, question, settings, embedder=place.embedder))
    assert answer_of(events).support == support
    assert answer_of(list(ask([place.open(text)], model, question, settings))).support == "none"


def test_an_answer_in_a_language_that_is_not_covered_is_not_saved_by_likeness(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "LEAST_LEAD", -2.0)
    settings = Settings(store=str(place.folder / "store"), strategy="retrieve")
    model, question = EchoModel(lambda prompt: "Die Äpfel."), "Wann kam der Kaiser mit seinem Heer?"
    answers = [
        answer_of(list(ask([place.open(FARMS)], model, question, settings, embedder=embedder)))
        for embedder in (place.embedder, None)
    ]
    assert [answer.support for answer in answers] == ["none", "none"]
    assert answers[0].text == answers[1].text
