"""Documents that were read before: found again without cutting or counting, and the answers are the same."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from session.conftest import answer_of, of_kind

from localctx.document import Document, open_document
from localctx.engine.echo import EchoModel
from localctx.index import LexicalIndex
from localctx.session import shelf as shelf_module
from localctx.session.answer import Answer, Timings
from localctx.session.ask import ask
from localctx.session.events import Notice, ignore_progress
from localctx.session.opening import index_all, read_all
from localctx.session.run import Run, start
from localctx.session.summarize import summarize
from localctx.settings import Settings
from localctx.store.derived import DerivedFiles
from localctx.values import Message, Prompt

PARTS = [
    f"# Part {n}\n\nThe gate of part {n} was built in {1700 + n} by a mason of Tannau. Its code is {37 * n}. "
    "Ships came in the evening with salt, rope and news of the town.\n\n"
    for n in range(60)
]
TEXT = "".join(PARTS)
QUESTION = "What is the code of the gate of part 7?"


class CountingModel(EchoModel):
    """Counts the characters that it tokenises."""

    n_characters = 0
    name = "echo-1"
    lead: tuple[int, ...] = ()

    def __init__(self) -> None:
        super().__init__()
        self.info = replace(self.info, fingerprint=self.name)

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        prompt = super().prompt(messages)
        return replace(prompt, tokens=(*self.lead, *prompt.tokens))

    def tokenize(self, text: str, first: bool = True) -> list[int]:
        self.n_characters += len(text)
        return super().tokenize(text, first)


@pytest.fixture(autouse=True)
def short_texts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelf_module, "LEAST_BYTES", 1000)


class Place:
    """A folder with documents and a store."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.store = folder, folder / "store"

    def write(self, text: str, name: str = "book.md") -> str:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return str(path)

    def settings(self, **settings: Any) -> Settings:
        return Settings(**{"store": str(self.store), "strategy": "retrieve", "max_tokens": 20, **settings})

    @contextmanager
    def opened(self, files: Sequence[str], **settings: Any) -> Iterator[tuple[Run, CountingModel]]:
        with ExitStack() as stack:
            documents = [stack.enter_context(open_document(file, cache_dir=None)) for file in files]
            model = CountingModel()
            yield start(documents, model, self.settings(**settings), ignore_progress), model

    def ask(self, *files: str, **settings: Any) -> tuple[Answer, list[str]]:
        """The answer without its times, and all notices."""
        with self.opened(files, **settings) as (run, model):
            documents = [reading.document for reading in run.readings]
            events = list(ask(documents, model, QUESTION, run.settings))
            notices = [notice.text for notice in of_kind(events, Notice)]
            return replace(answer_of(events), timings=Timings()), notices

    def is_found(self, *files: str, **settings: Any) -> bool:
        """Whether the documents can be searched without tokenising them."""
        with self.opened(files, **settings) as (run, model), index_all(run):
            assert model.n_characters < 1000 or model.n_characters > len(TEXT)
            return model.n_characters < 1000

    def kept(self) -> int:
        return len(DerivedFiles(self.store).sizes())


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def facts_of(run: Run) -> list[object]:
    """All that is known of a run's documents."""
    return [
        [reading.passage(number) for number in range(reading.n_blocks)]
        + [reading.stream.tobytes(), list(reading.first_tokens), reading.seam_warning, reading.n_tokens]
        for reading in run.readings
    ]


@pytest.mark.parametrize("names", [["a.md"], ["a.md", "b.txt"]])
def test_a_second_question_gets_the_same_answer_and_the_text_is_not_tokenised(
    place: Place, names: list[str]
) -> None:
    files = [place.write(TEXT + name, name) for name in names]
    without, notices = place.ask(*files, store="off")
    assert not place.store.exists()
    assert not place.is_found(*files, store="off")
    assert place.ask(*files) == (without, notices)
    assert place.is_found(*files)
    assert place.ask(*files) == (without, notices)
    assert place.kept() == len(names)


def test_everything_that_is_known_of_the_blocks_comes_back(place: Place) -> None:
    file = place.write(TEXT)
    with place.opened([file]) as (run, _), index_all(run) as index:
        expected = facts_of(run), index.search(QUESTION), index.absent("the zebra of part 7")
    with place.opened([file]) as (run, model), index_all(run) as index:
        assert (facts_of(run), index.search(QUESTION), index.absent("the zebra of part 7")) == expected
        assert model.n_characters < 1000


def test_what_summarize_kept_serves_ask_and_the_other_way_round(place: Place) -> None:
    file = place.write(TEXT)
    with place.opened([file], strategy="auto") as (run, _):
        expected = answer_of(list(summarize([run.readings[0].document], EchoModel(), run.settings)))
    with place.opened([file]) as (run, model):
        index_all(run).close()  # makes the index of the words from the blocks that were kept
        assert model.n_characters < 1000
    for _ in range(2):
        with place.opened([file]) as (run, model):
            read_all(run)
            assert model.n_characters < 1000
            again = answer_of(
                list(summarize([run.readings[0].document], model, place.settings(strategy="auto")))
            )
            assert replace(again, timings=Timings()) == replace(expected, timings=Timings())
    assert place.kept() == 1


def test_the_words_of_several_documents_are_indexed_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [place.write(TEXT, "a.md"), place.write("A short note on the gate.", "b.md")]
    built: list[int] = []
    build = LexicalIndex.build.__func__  # type: ignore[attr-defined]  # of the class method

    def counting(cls: type[LexicalIndex], *args: Any, **named: Any) -> LexicalIndex:
        built.append(1)
        return build(cls, *args, **named)

    monkeypatch.setattr(LexicalIndex, "build", classmethod(counting))
    without = place.ask(*files, store="off")
    assert [place.ask(*files) for _ in range(2)] == [without] * 2
    assert len(built) == 2
    with place.opened(files) as (run, _), index_all(run) as index:
        assert index.n_blocks == run.n_blocks
    place.ask(*reversed(files))  # block numbers are others then
    place.write("A short note on the gates.", "b.md")
    place.ask(*files)
    assert len(built) == 4


def test_a_document_among_others_is_found_alone(place: Place) -> None:
    files = [place.write(TEXT, "a.md"), place.write(TEXT + "More.", "b.md")]
    place.ask(*files)
    assert place.is_found(files[1])
    assert place.ask(files[1]) == place.ask(files[1], store="off")


@pytest.mark.parametrize("change", ["text", "block", "sections", "language", "model", "prompt", "version"])
def test_another_text_size_outline_tokenizer_or_version_is_read_anew(
    place: Place, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    place.ask(place.write(TEXT))
    settings, name = {}, "book.md"
    if change == "text":
        place.write(TEXT.replace("mason", "baker"))
    if change == "block":
        settings["kv"] = "block=64"
    if change == "sections":
        name = "book.txt"  # the same text without headings
        place.write(TEXT, name)
    if change == "language":
        monkeypatch.setattr(Document, "language", property(lambda document: "de"))
    if change == "version":
        monkeypatch.setattr(shelf_module, "SHELF_VERSION", 0)
    if change == "model":
        monkeypatch.setattr(CountingModel, "name", "another")
    if change == "prompt":
        monkeypatch.setattr(CountingModel, "lead", (1,))
    file = str(place.folder / name)
    with place.opened([file], **settings) as (run, model), index_all(run):
        assert model.n_characters > len(TEXT)
        found = facts_of(run)
    with place.opened([file], store="off", **settings) as (run, _), index_all(run):
        assert facts_of(run) == found


def test_damage_is_read_anew_and_mended(place: Place) -> None:
    file = place.write(TEXT)
    expected = place.ask(file)[0]
    (path,) = (place.store / "index").iterdir()
    data = bytearray(path.read_bytes())
    data[len(data) // 3] ^= 4
    path.write_bytes(data)
    assert not place.is_found(file)
    assert place.is_found(file)
    assert place.ask(file)[0] == expected


def test_parts_of_another_making_change_nothing(place: Place) -> None:
    with place.opened([place.write(TEXT)]) as (run, _):
        (reading,) = run.readings
        for parts in ({}, {"facts": b"[]"}, {"facts": b"{"}):
            assert not reading.restore(parts)
        read_all(run)
        good, before = reading.parts(), facts_of(run)
        for name in good:
            assert not reading.restore({**good, name: good[name][:-1]}), name
        assert (
            not reading.restore({**good, "places": b"\xff" * len(good["places"])}) or facts_of(run) == before
        )
        assert facts_of(run) == before


def test_a_full_disk_is_said_once_and_the_answer_comes(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [place.write(TEXT, "a.md"), place.write(TEXT + "More.", "b.md")]
    expected = place.ask(*files, store="off")[0]

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("localctx.store.derived.os.fsync", full)
    answer, notices = place.ask(*files)
    told = [notice for notice in notices if "indexed again" in notice]
    assert told == ["the words are indexed again for the next question: no space left on device"]
    assert replace(answer, warnings=()) == replace(expected, warnings=())
    assert list((place.store / "index").iterdir()) == []


def test_what_is_too_large_is_not_written_and_said_once(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = [
        place.write(TEXT * 4, "a.md"),
        place.write(TEXT * 4 + "More.", "b.md"),
        place.write(TEXT, "c.md"),
    ]
    written: list[Path] = []
    monkeypatch.setattr("localctx.store.derived._seal", lambda path, name: written.append(path))
    _, notices = place.ask(*files[:2], store_limit="50k")
    assert len([notice for notice in notices if "all such files may take 5.0 kB" in notice]) == 1
    assert (place.kept(), written) == (0, [])
    monkeypatch.undo()
    monkeypatch.setattr(shelf_module, "LEAST_BYTES", 1000)
    place.ask(*files, store_limit="400k")
    assert place.kept() == 1  # of the third, although the others are too large


def test_what_a_password_opened_or_a_stream_brought_is_not_kept(place: Place) -> None:
    file = place.write(TEXT)
    secret = place.write("secret\n", "password")
    place.ask(file, password_file=secret)
    with open(file, "rb") as stream, open_document("-", cache_dir=None, stdin=stream) as document:  # noqa: PTH123  # as a shell would
        run = start([document], EchoModel(), place.settings(), ignore_progress)
        index_all(run).close()
    place.ask(place.write("Short.", "short.md"))
    assert not (place.store / "index").exists()
