"""Summaries of sections: made beside a prefill or from stored KV, kept, merged; over a real tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path

import pytest
from engine.tiny_architectures import write_architecture
from session.conftest import answer_of, of_kind
from session.test_kept_kv import chapters

from localctx.document import Document, open_document
from localctx.engine import EchoModel, EngineOptions, open_model
from localctx.errors import OutOfMemory
from localctx.kv_taps import Tap, Taps
from localctx.session import outlines, sections, stored_sections
from localctx.session.answer import Answer
from localctx.session.events import Event, Notice, Planned, SectionDone
from localctx.session.indexed import Indexed
from localctx.session.indexing import index_documents
from localctx.session.sections import GPU_N_SIDE, N_SIDE, SECTION_TOKENS, is_small
from localctx.session.summarize import summarize
from localctx.session.wording import Asked
from localctx.settings import Settings
from localctx.values import ModelInfo

BOOK = chapters(20)


class Desk:
    """A store and a model; each call opens both anew."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model = folder, model

    def write(self, text: str, name: str = "book.md") -> str:
        (self.folder / name).write_text(text, "utf-8")
        return str(self.folder / name)

    def settings(self, **settings: object) -> Settings:
        found = {"store": str(self.folder / "store"), "max_tokens": 8, **settings}
        return Settings(**found)  # type: ignore[arg-type]  # by name

    @contextmanager
    def opened(self, *files: str) -> Iterator[tuple[list[Document], object]]:
        with open_model(self.model, EngineOptions(n_threads=1)) as model:
            documents = [open_document(file, cache_dir=None) for file in files]
            try:
                yield documents, model
            finally:
                for document in documents:
                    document.close()

    def index(self, *files: str, summaries: bool = True, **settings: object) -> tuple[Indexed, list[Event]]:
        with self.opened(*files) as (documents, model):
            steps = index_documents(
                documents,
                model,  # type: ignore[arg-type]  # a LlamaModel
                self.settings(**settings),
                summaries=summaries,
            )
            events = list(steps)
        assert isinstance(events[-1], Indexed)
        return events[-1], events[:-1]  # type: ignore[return-value]  # one Indexed, the last

    def summarize(
        self, *files: str, length: str = "long", focus: str | None = None, **settings: object
    ) -> tuple[Answer, list[Event]]:
        with self.opened(*files) as (documents, model):
            steps = summarize(documents, model, self.settings(**settings), length=length, focus=focus)  # type: ignore[arg-type]  # as above
            events = list(steps)
        return answer_of(events), events


@pytest.fixture
def desk(tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """The tiny model words sections here, as one of more weights does."""
    for module in (outlines, sections):
        monkeypatch.setattr(module, "is_small", lambda info: False)
    return Desk(tmp_path, tiny_model_path)


def n_sections(done: Indexed) -> int:
    """Of BOOK, whose chapters are much shorter than half a section."""
    return done.documents[0].tokens_total // (SECTION_TOKENS // 2)


def n_points(answer: Answer) -> int:
    return sum(line.startswith("- ") for line in answer.text.splitlines())


def test_a_summary_of_an_indexed_document_only_merges(desk: Desk) -> None:
    file = desk.write(BOOK)
    done, events = desk.index(file)
    told = of_kind(events, SectionDone)
    assert len(told) == n_sections(done) > 3
    titles = [section.title for section in told]
    assert titles == sorted(titles, key=lambda title: int(title.split()[-1]))
    answer, events = desk.summarize(file)
    assert answer.strategy == "stream"
    assert answer.tokens.evaluated == answer.tokens.generated == 0
    assert answer.coverage.tokens_read == answer.coverage.tokens_total == done.documents[0].tokens_total
    assert n_points(answer) == len(told) == of_kind(events, Planned)[0].n_parts
    assert [section.text in answer.text for section in told] == [True] * len(told)
    with open_document(file, cache_dir=None) as document:
        for citation in answer.citations:
            assert document.read(citation.start, citation.end) == citation.quote
    merged, _ = desk.summarize(file, length="48")
    assert n_points(merged) == 2
    assert 0 < merged.tokens.evaluated < answer.coverage.tokens_total / 2


def test_with_taps_and_without_the_same_is_stored(desk: Desk) -> None:
    """What a later prefill goes on from does not depend on them."""
    file = desk.write(BOOK)
    tapped, _ = desk.index(file)
    plain, _ = desk.index(file, summaries=False, store=str(desk.folder / "plain"))
    assert tapped.documents[0].tokens_stored == plain.documents[0].tokens_stored
    again, events = desk.index(file)
    assert again.documents[0].tokens_evaluated == 0
    assert not of_kind(events, SectionDone)


def test_what_was_indexed_before_is_summarised_from_stored_kv(desk: Desk) -> None:
    file = desk.write(BOOK)
    done, _ = desk.index(file, summaries=False)
    assert desk.summarize(file)[0].strategy != "stream"  # nothing is kept: nothing is said of it
    answer, events = desk.summarize(file, strategy="stream")
    n_sections = len(of_kind(events, SectionDone))
    assert n_sections == n_points(answer)
    assert answer.tokens.restored >= done.documents[0].tokens_total
    assert answer.tokens.evaluated < done.documents[0].tokens_total / 2
    assert desk.summarize(file)[0].tokens.evaluated == 0


def test_a_document_that_nobody_indexed_is_prefilled_once(desk: Desk) -> None:
    file = desk.write(BOOK)
    answer, events = desk.summarize(file, strategy="stream")
    assert of_kind(events, SectionDone)
    n_total = answer.coverage.tokens_total
    assert n_total < answer.tokens.evaluated < 1.5 * n_total
    row = desk.index(file, summaries=False)[0].documents[0]
    assert (row.tokens_evaluated, row.tokens_stored) == (0, n_total)


def test_without_a_store_it_serves_as_well(desk: Desk) -> None:
    file = desk.write(BOOK)
    answer, _ = desk.summarize(file, strategy="stream", store="off")
    assert answer.strategy == "stream"
    assert answer.coverage.tokens_dropped == 0


def test_beside_the_prefill_and_from_stored_kv_the_points_are_those_of_their_key_sentences(
    desk: Desk,
) -> None:
    """The tiny model says nothing that can be taken: both ways give the same sentences."""
    file = desk.write(BOOK)
    desk.index(file)
    beside, _ = desk.summarize(file)
    other = str(desk.folder / "other")
    desk.index(file, summaries=False, store=other)
    stored, _ = desk.summarize(file, strategy="stream", store=other)
    assert beside.text == stored.text


def test_another_focus_is_another_summary(desk: Desk) -> None:
    file = desk.write(BOOK)
    desk.index(file)
    assert desk.summarize(file, focus="salt and rope")[0].strategy == "map-reduce"
    focused, _ = desk.summarize(file, focus="salt and rope", strategy="stream")
    assert focused.question == "salt and rope"
    assert focused.tokens.evaluated < focused.coverage.tokens_total / 2
    again, _ = desk.summarize(file, focus="salt and rope")
    assert (again.strategy, again.tokens.evaluated, again.text) == ("stream", 0, focused.text)


def test_a_document_that_grew_keeps_its_first_sections(desk: Desk) -> None:
    _, events = desk.index(desk.write(BOOK))
    n_before = len(of_kind(events, SectionDone))
    _, events = desk.index(desk.write(BOOK + chapters(6, seed=2)))
    assert 0 < len(of_kind(events, SectionDone)) <= 3 < n_before
    assert desk.summarize(str(desk.folder / "book.md"))[0].tokens.evaluated == 0


def stop_after_two(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two sections beside a prefill the model is told to stop."""
    from localctx.engine.kv_context import LlamaKVContext

    plain: Callable[..., None] = LlamaKVContext.stream  # type: ignore[assignment]  # whatever it takes

    def stopping(self: LlamaKVContext, *words: object, **more: object) -> None:
        taps = self._taps
        if taps is not None:
            told: list[int] = []

            def tell(done: object) -> None:
                taps.on_tapped(done)  # type: ignore[arg-type]  # handed on
                told.append(1)
                if len(told) == 2:
                    self.cancel()

            self._taps = Taps(taps.taps, tell, taps.n_side, taps.n_tokens)
        return plain(self, *words, **more)

    monkeypatch.setattr(LlamaKVContext, "stream", stopping)


def stop_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is decoded from stored KV is told to stop at once."""
    from localctx.engine.kv_context import LlamaKVContext

    plain = LlamaKVContext.open_batch

    def stopped(self: LlamaKVContext) -> object:
        batch = plain(self)
        batch.stop()
        return batch

    monkeypatch.setattr(LlamaKVContext, "open_batch", stopped)


def test_stopped_work_keeps_the_sections_that_were_read(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """The next run makes the others."""
    file = desk.write(BOOK)
    with monkeypatch.context() as patch:
        stop_after_two(patch)
        done, events = desk.index(file)
    assert done.was_cancelled
    n_first = len(of_kind(events, SectionDone))
    assert n_first >= 2
    done, events = desk.index(file)
    assert not done.was_cancelled
    assert len(of_kind(events, SectionDone)) == n_sections(done) - n_first
    assert desk.summarize(file)[0].tokens.evaluated == 0


def test_a_stop_on_the_way_is_a_summary_cut_short(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the prefill, and from stored KV, where index says so too."""
    file = desk.write(BOOK)
    with monkeypatch.context() as patch:
        stop_after_two(patch)
        answer, _ = desk.summarize(file, strategy="stream")
    assert (answer.strategy, answer.finish_reason) == ("stream", "cancelled")
    assert 0 < answer.coverage.tokens_read < answer.coverage.tokens_total
    other = desk.write(chapters(20, seed=3), "other.md")
    assert not desk.index(other, summaries=False)[0].was_cancelled
    stop_batches(monkeypatch)
    answer, _ = desk.summarize(other, strategy="stream")
    assert (answer.strategy, answer.finish_reason) == ("stream", "cancelled")
    assert desk.index(other)[0].was_cancelled


def test_sections_that_cannot_be_made_are_no_stop(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A context for one request at a time: said, and the parts are read."""
    file = desk.write(BOOK)
    desk.index(file, summaries=False)
    monkeypatch.setattr(stored_sections, "BatchingContext", type("Other", (), {}))
    answer, _ = desk.summarize(file, strategy="stream")
    assert answer.finish_reason == "stop"
    assert answer.coverage.tokens_dropped == 0
    assert any("one request at a time" in warning for warning in answer.warnings)
    assert any("read by themselves" in warning for warning in answer.warnings)
    done, _ = desk.index(file)
    assert not done.was_cancelled
    assert any("sections are not summarised" in warning for warning in done.warnings)


def test_a_small_window_and_a_small_context_do(desk: Desk) -> None:
    file = desk.write(BOOK)
    done, events = desk.index(file, ctx=768, kv="window=256,sinks=128")
    assert len(of_kind(events, SectionDone)) == n_sections(done) > 3


def test_a_window_narrower_than_a_section_gives_no_point_of_its_end_alone(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside the prefill its beginning is gone when its end is reached: it is put back afterwards."""
    tapped: list[Tap] = []
    plain = outlines._taps

    def noted(outline: outlines.Outline, asked: Sequence[Future[Asked]]) -> Taps:
        taps = plain(outline, asked)
        tapped.extend(taps.taps if asked else ())
        return taps

    monkeypatch.setattr(outlines, "_taps", noted)
    file = desk.write(BOOK)
    desk.index(file, kv="window=256", store=str(desk.folder / "narrow"))
    assert not tapped
    desk.index(file, kv="window=1024", store=str(desk.folder / "wide"))
    assert len(tapped) > 3


def test_points_of_another_window_or_codec_are_not_taken_for_exact_ones(desk: Desk) -> None:
    """Those that saw all before them serve whatever the window is."""
    file = desk.write(BOOK)
    done, _ = desk.index(file, kv="window=256")
    assert desk.summarize(file)[0].strategy != "stream"
    assert desk.summarize(file, kv="window=256")[0].tokens.evaluated == 0
    _, events = desk.index(file, kv="codec=int8")
    assert len(of_kind(events, SectionDone)) == n_sections(done)
    assert desk.summarize(file, kv="codec=f16")[0].strategy != "stream"
    for kv in ("codec=int8", "", "window=8192"):  # KV in any codec serves where none is asked for
        assert desk.summarize(file, kv=kv)[0].tokens.evaluated == 0, kv


def test_equal_sections_share_a_point(desk: Desk) -> None:
    file = desk.write("# One\n\n" + "The mill stands by the river. " * 800)
    desk.index(file, kv="window=256")
    answer, _ = desk.summarize(file, kv="window=256")
    assert (answer.strategy, answer.tokens.evaluated) == ("stream", 0)


@pytest.mark.parametrize("kv", ["policy=independent", "window=512,routed=2"])
def test_under_other_policies_sections_are_summarised_from_stored_kv(desk: Desk, kv: str) -> None:
    _, events = desk.index(desk.write(BOOK), kv=kv)
    assert len(of_kind(events, SectionDone)) > 3


def test_documents_kept_together_have_none_and_say_so(desk: Desk) -> None:
    files = desk.write(chapters(2), "a.md"), desk.write(chapters(2, seed=2), "b.md")
    done, events = desk.index(*files)
    assert not of_kind(events, SectionDone)
    assert any("index them one by one" in warning for warning in done.warnings)


def test_a_model_whose_cache_cannot_be_copied_says_so_and_reads_the_parts(desk: Desk, tmp_path: Path) -> None:
    model = write_architecture(tmp_path / "mamba.gguf", "mamba")
    recurrent = Desk(tmp_path, model)
    file = recurrent.write(chapters(3))
    _, events = recurrent.index(file)
    notices = [notice.text for notice in of_kind(events, Notice)]
    assert any("is recurrent" in text and "not summarised" in text for text in notices)
    answer, events = recurrent.summarize(file, strategy="stream")
    assert answer.strategy == "exact"
    assert any("read by themselves" in warning for warning in answer.warnings)


def test_an_engine_without_kv_reads_the_parts(open_text: Callable[..., Document]) -> None:
    document = open_text(BOOK)
    answer = answer_of(list(summarize([document], EchoModel(n_ctx_train=2048), Settings(strategy="stream"))))
    assert answer.strategy == "map-reduce"
    assert any("no KV" in warning for warning in answer.warnings)


def test_damaged_points_are_made_again(desk: Desk) -> None:
    file = desk.write(BOOK)
    _, events = desk.index(file)
    told = of_kind(events, SectionDone)[0].text.encode()
    (segment,) = [
        path for path in (desk.folder / "store" / "kv" / "segments").iterdir() if told in path.read_bytes()
    ]
    segment.write_bytes(segment.read_bytes().replace(told, told[::-1]))
    assert desk.summarize(file)[0].strategy != "stream"
    answer, _ = desk.summarize(file, strategy="stream")
    assert answer.coverage.tokens_dropped == 0
    assert told.decode() in answer.text


@pytest.mark.parametrize(
    ("description", "size_bytes", "small"),
    [
        ("llama 135M q4_1", 9 << 30, True),
        ("qwen3 1.7B q4_k", 1 << 20, False),
        ("llama 8B q4_k", 1 << 20, False),
        ("qwen3 0.6B q8_0", 9 << 30, True),
        ("llama q4_k", 100 << 20, True),
        ("llama q4_k", 5 << 30, False),
    ],
)
def test_small_models_are_known_by_their_label_or_size(
    description: str, size_bytes: int, small: bool
) -> None:
    info = EchoModel().info
    values = {name: getattr(info, name) for name in ("name", "path", "fingerprint", "architecture", "rope")}
    made = ModelInfo(
        **values,
        n_ctx_train=1,
        n_layer=1,
        n_vocab=1,
        size_bytes=size_bytes,
        kv_bytes_per_token=1,
        description=description,
    )
    assert is_small(made) is small


@pytest.mark.parametrize(("n_refused", "expected"), [(0, GPU_N_SIDE), (1, N_SIDE), (2, None)])
def test_a_gpu_words_more_side_by_side_where_memory_holds_their_cells(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, n_refused: int, expected: int | None
) -> None:
    """Fewer where it does not; with none the points are made afterwards, which is said."""
    from localctx.engine.kv_context import LlamaKVContext
    from localctx.engine.llama import LlamaModel

    opened, tapped, refused = LlamaModel.open_kv_context, LlamaKVContext.tapping, list[int]()
    n_side: list[int] = []

    def opening(self: LlamaModel, n_ctx: int, *words: int, **more: int | None) -> LlamaKVContext:
        if more.get("n_longest") is not None and len(refused) < n_refused:
            refused.append(n_ctx)
            raise OutOfMemory("too little memory")
        return opened(self, n_ctx, *words, **more)  # type: ignore[arg-type]  # handed on

    def tapping(self: LlamaKVContext, taps: Taps) -> object:
        n_side.append(taps.n_side)
        return tapped(self, taps)

    monkeypatch.setattr(LlamaModel, "is_offloaded", property(lambda self: True))
    monkeypatch.setattr(LlamaModel, "open_kv_context", opening)
    monkeypatch.setattr(LlamaKVContext, "tapping", tapping)
    done, events = desk.index(desk.write(BOOK))
    assert n_side == ([] if expected is None else [expected])
    assert refused == sorted(refused, reverse=True) and len(refused) == n_refused
    assert len(of_kind(events, SectionDone)) == n_sections(done)
    notices = [notice.text for notice in of_kind(events, Notice) if "no memory" in notice.text]
    assert len(notices) == (1 if expected is None else 0)
