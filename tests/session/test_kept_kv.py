"""Documents prefilled into a store and asked from it, end to end over a real tiny model.

What a new process would do is done with a model and a store opened anew.
"""

from __future__ import annotations

import random
import shutil
from contextlib import ExitStack
from pathlib import Path

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf
from session.conftest import answer_of, of_kind

from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.errors import NotComposable, UsageError
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.events import Listener, Notice, Progress, ignore_progress
from localctx.session.indexed import Indexed, IndexedDocument
from localctx.session.indexing import index_documents
from localctx.session.kept import Kept
from localctx.session.one_context import Held
from localctx.settings import Settings
from localctx.store import KVStore, StoreUnusable

WORDS = (
    "harbour", "town", "west", "ships", "evening", "salt", "rope", "news", "clerk", "name", "goods", "price",
    "wall", "stones", "hill", "church",
)  # fmt: skip
QUESTION = "code of gate 7?"


def chapters(n: int, seed: int = 1) -> str:
    """Prose that repeats nothing, about 130 tokens a chapter; each has a gate with a code."""
    chance = random.Random(seed)
    text = []
    for number in range(n):
        sentences = (" ".join(chance.choice(WORDS) for _ in range(9)).capitalize() for _ in range(6))
        code = 1000 * seed + 37 * number
        text.append(f"# Part {number}\n\n{'. '.join(sentences)}. The code of gate {number} is {code}.\n\n")
    return "".join(text)


LONG = chapters(20)  # more than the model's 2,048 tokens
SHORT = chapters(3)


class Place:
    """A folder with documents, a store and a model file."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder, self.model = folder, model
        self.store = folder / "store"

    def settings(self, **settings: object) -> Settings:
        return Settings(**{"store": str(self.store), "max_tokens": 12, **settings})  # type: ignore[arg-type]  # by name

    def write(self, text: str, name: str = "book.md") -> str:
        path = self.folder / name
        path.write_text(text, "utf-8")
        return str(path)

    def ask(
        self, *files: str, question: str = QUESTION, held: Held | None = None, **settings: object
    ) -> Answer:
        """Ask in a process of its own, so to speak."""
        with ExitStack() as stack:
            model = stack.enter_context(open_model(self.model, EngineOptions(n_threads=1)))
            documents = [stack.enter_context(open_document(file, cache_dir=None)) for file in files]
            return answer_of(list(ask(documents, model, question, self.settings(**settings), held=held)))

    def index(
        self, file: str, listen: Listener = ignore_progress, **settings: object
    ) -> tuple[IndexedDocument, list[str]]:
        """Index one file; what was done, and the notices."""
        with (
            open_model(self.model, EngineOptions(n_threads=1)) as model,
            open_document(file, cache_dir=None) as document,
        ):
            events = list(index_documents([document], model, self.settings(**settings), listen))
        assert isinstance(events[-1], Indexed)
        return events[-1].documents[0], [notice.text for notice in of_kind(events, Notice)]


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Place:
    """The long text, indexed; to be copied."""
    place = Place(tmp_path_factory.mktemp("indexed"), tiny_model_path)
    row, _ = place.index(place.write(LONG))
    assert (row.policy, row.codec, row.tokens_stored_before) == ("window", "int4", 0)
    assert row.tokens_stored == row.tokens_total > 2048
    assert row.tokens_evaluated >= row.tokens_total
    return place


@pytest.fixture
def indexed(indexed_once: Place, tmp_path: Path) -> Place:
    """A place of this test's own where the long text is indexed already."""
    shutil.copytree(indexed_once.folder, tmp_path / "copy")
    return Place(tmp_path / "copy", indexed_once.model)


def book(place: Place) -> str:
    return str(place.folder / "book.md")


# --- answers from the store ---------------------------------------------------------------------------


def test_a_new_process_restores_and_evaluates_little(indexed: Place) -> None:
    answer = indexed.ask(book(indexed), strategy="stream", kv="refresh=0")
    coverage = answer.coverage
    assert answer.strategy == "stream"
    assert answer.tokens.evaluated < 200
    assert answer.tokens.restored >= coverage.tokens_attended > 100
    assert coverage.tokens_read == coverage.tokens_total > 2048
    assert "gate 7" in "".join(c.quote for c in answer.citations) or answer.support == "none"


def test_refreshing_all_is_evaluating_all(indexed: Place) -> None:
    none, third, whole = (
        indexed.ask(book(indexed), strategy="stream", kv=f"refresh={share}") for share in (0, 33, 100)
    )
    assert none.tokens.evaluated < third.tokens.evaluated < whole.tokens.evaluated
    assert none.tokens.restored > third.tokens.restored > whole.tokens.restored
    sums = {answer.tokens.evaluated + answer.tokens.restored for answer in (none, third, whole)}
    assert len(sums) == 1
    n_passages = none.coverage.tokens_attended
    assert third.tokens.evaluated - none.tokens.evaluated == pytest.approx(n_passages / 3, abs=40)
    assert whole.tokens.evaluated - none.tokens.evaluated == n_passages


def test_refreshed_answers_do_not_depend_on_what_is_stored(indexed: Place, place: Place) -> None:
    stored = indexed.ask(book(indexed), strategy="stream", kv="refresh=100")
    fresh = place.ask(place.write(LONG), strategy="stream", store="off", kv="refresh=100,lazy=on")
    assert stored.text == fresh.text


def test_latency_decides_how_much_is_refreshed(indexed: Place) -> None:
    hurried = indexed.ask(book(indexed), strategy="stream", latency=0.0)
    patient = indexed.ask(book(indexed), strategy="stream", latency=1000.0)
    none = indexed.ask(book(indexed), strategy="stream", kv="refresh=0", latency=0.0)
    share = (none.tokens.restored - hurried.tokens.restored) / none.coverage.tokens_attended
    assert 0.15 < share <= 0.34  # a third, in whole sentences
    assert patient.tokens.restored < 64  # the prefix alone


def test_where_most_can_be_refreshed_all_is(indexed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """In one piece it takes no longer."""
    none = indexed.ask(book(indexed), strategy="stream", kv="refresh=0")
    n_attended, n_new = none.coverage.tokens_attended, none.tokens.evaluated
    restored = {}
    for share in (0.7, 0.95):
        rate = n_attended * share + n_new
        monkeypatch.setattr("localctx.session.cache.Cache.rate", lambda *_, rate=rate: rate)
        restored[share] = indexed.ask(book(indexed), strategy="stream", latency=1.0).tokens.restored
    n_prefix = none.tokens.restored - n_attended
    assert restored[0.95] <= n_prefix < restored[0.7]


def test_the_exact_answer_is_the_same_from_kept_kv(place: Place) -> None:
    file = place.write(SHORT)
    plain = place.ask(file, store="off")
    first, second = place.ask(file), place.ask(file)
    assert {answer.strategy for answer in (plain, first, second)} == {"exact"}
    assert first.text == second.text == plain.text
    assert first.tokens.evaluated > second.coverage.tokens_total
    assert second.tokens.restored > second.coverage.tokens_total
    assert second.tokens.evaluated < 150
    assert (plain.tokens.restored, plain.coverage) == (0, second.coverage)


def test_a_small_document_is_indexed_for_exact_attention(place: Place) -> None:
    file = place.write(SHORT)
    row, _ = place.index(file)
    assert row.codec == "f16"
    answer = place.ask(file)
    assert answer.strategy == "exact"
    assert answer.tokens.evaluated < 150


def test_exact_kv_serves_stored_answers_too(place: Place) -> None:
    file = place.write(SHORT)
    row, _ = place.index(file, kv="window=128")
    assert row.policy == "exact"
    answer = place.ask(file, strategy="stream", kv="window=128,refresh=0")
    assert answer.strategy == "stream"
    assert answer.tokens.evaluated < 200
    assert not [warning for warning in answer.warnings if "does not serve" in warning]


# --- prefilling ---------------------------------------------------------------------------------------


def test_indexing_again_evaluates_nothing(indexed: Place) -> None:
    row, _ = indexed.index(book(indexed))
    assert (row.tokens_evaluated, row.tokens_stored_before) == (0, row.tokens_total)


def test_an_appended_text_is_prefilled_from_its_tail(indexed: Place) -> None:
    before, _ = indexed.index(book(indexed))
    row, _ = indexed.index(indexed.write(LONG + chapters(2, seed=2)))
    assert row.tokens_stored_before >= before.tokens_total // 128 * 128 - 256
    assert row.tokens_evaluated < row.tokens_total - row.tokens_stored_before + 64
    assert row.tokens_stored == row.tokens_total


def test_stopped_work_goes_on_where_it_was(
    place: Place, indexed_once: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localctx.session.prefill.REPORT_SECONDS", 0.0)  # be told of every chunk
    file = place.write(LONG)

    def stop(step: Progress) -> None:
        if step.what == "prefill" and step.done >= step.total // 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        place.index(file, stop)
    row, _ = place.index(file)
    assert row.tokens_total // 3 < row.tokens_stored_before < row.tokens_total
    assert row.tokens_evaluated < row.tokens_total - row.tokens_stored_before + 64
    with KVStore.open(place.store) as store, KVStore.open(indexed_once.store) as other:
        assert {d.key for d in store.documents()} == {d.key for d in other.documents()}
        assert [d.n_runs for d in store.documents()] == [d.n_runs for d in other.documents()]
        assert store.verify().is_clean


def test_progress_says_how_fast(place: Place) -> None:
    steps: list[Progress] = []
    place.index(place.write(SHORT), steps.append)
    prefill = [step for step in steps if step.what == "prefill"]
    assert prefill[-1].done == prefill[-1].total > 0
    assert all(step.rate and step.rate > 0 for step in prefill)


@pytest.mark.parametrize("policy", ["exact", "independent"])
def test_other_policies(place: Place, policy: str) -> None:
    file = place.write(chapters(9))
    row, _ = place.index(file, kv=f"policy={policy}", strategy="stream")
    assert (row.policy, row.tokens_stored) == (policy, row.tokens_total)
    answer = place.ask(file, strategy="stream", kv=f"policy={policy},refresh=0")
    assert answer.tokens.evaluated < 200
    assert answer.tokens.restored > 100


# --- lazy ---------------------------------------------------------------------------------------------


def test_lazy_prefills_only_what_the_question_needs_and_keeps_it(place: Place) -> None:
    file = place.write(LONG)
    first = place.ask(file, strategy="stream", kv="lazy=on,refresh=0")
    assert 0 < first.coverage.tokens_read < first.coverage.tokens_total
    assert first.coverage.tokens_dropped == first.coverage.tokens_total - first.coverage.tokens_read
    assert first.tokens.evaluated < first.coverage.tokens_total
    second = place.ask(file, strategy="stream", kv="lazy=on,refresh=0")
    assert second.tokens.evaluated < 200
    assert second.text == first.text


def test_lazy_auto_says_why_and_when_indexing_pays(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.session.supply.EAGER_SECONDS", 0.0)
    monkeypatch.setattr("localctx.session.supply.LAZY_TOKENS", 0)
    answer = place.ask(place.write(LONG), strategy="stream", kv="refresh=0")
    assert answer.coverage.tokens_dropped > 0
    assert any("indexing would take" in warning for warning in answer.warnings)
    assert any("pays after about" in warning for warning in answer.warnings)


def test_a_quick_document_is_indexed_at_once(place: Place) -> None:
    file = place.write(LONG)
    assert place.ask(file, strategy="stream").coverage.tokens_dropped == 0
    assert place.ask(file, strategy="stream", kv="refresh=0").tokens.evaluated < 200


def test_the_indexed_part_answers(place: Place) -> None:
    place.index(place.write(chapters(10)), strategy="stream")
    answer = place.ask(
        place.write(LONG), strategy="stream", kv="lazy=off,refresh=0", question="code of gate 15?"
    )
    assert any("are indexed, only these are searched" in warning for warning in answer.warnings)
    assert 0 < answer.coverage.tokens_read < answer.coverage.tokens_total
    assert answer.tokens.evaluated < 250


# --- stores that cannot be used -----------------------------------------------------------------------


def test_without_a_store_nothing_is_left(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(place.folder / "cache"))
    answer = place.ask(place.write(LONG), strategy="stream", store="off", kv="refresh=0")
    assert answer.strategy == "stream"
    assert answer.tokens.restored > 100
    assert [path.name for path in place.folder.iterdir()] == ["book.md"]
    with pytest.raises(UsageError, match="keeps nothing"):
        place.index(book(place), store="off")


def test_memory_keeps_runs_from_question_to_question(place: Place) -> None:
    file = place.write(LONG)
    kept = Kept(None, lambda text: None, has_store=False)
    first = place.ask(file, strategy="stream", store="off", kv="refresh=0", held=Held(kept))
    second = place.ask(file, strategy="stream", store="off", kv="refresh=0", held=Held(kept))
    assert second.tokens.evaluated < 200 < first.tokens.evaluated
    assert second.text == first.text


def test_an_unusable_store_is_one_warning(place: Place) -> None:
    place.store.mkdir()
    (place.store / "kv").write_text("in the way")
    file = place.write(LONG)
    answer = place.ask(file, strategy="stream", kv="refresh=0")
    assert answer.tokens.restored > 100
    assert len([warning for warning in answer.warnings if "is not kept" in warning]) == 1
    assert place.ask(file).strategy == "retrieve"
    with pytest.raises(StoreUnusable):
        place.index(file)


def test_a_read_only_store_is_read(indexed: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.store.folder.os.access", lambda path, mode: False)
    before = sorted(path.name for path in indexed.store.rglob("*.seg"))
    answer = indexed.ask(book(indexed), strategy="stream", kv="refresh=0")
    assert answer.tokens.evaluated < 200
    other = indexed.ask(indexed.write(chapters(20, seed=3), "other.md"), strategy="stream", kv="refresh=0")
    assert other.tokens.restored > 100
    assert sorted(path.name for path in indexed.store.rglob("*.seg")) == before
    with pytest.raises(StoreUnusable):
        indexed.index(indexed.write(LONG + "more", "more.md"))


def test_damaged_kv_costs_time_not_the_answer(indexed: Place) -> None:
    for segment in indexed.store.rglob("*.seg"):
        data = bytearray(segment.read_bytes())
        for at in range(len(data) // 2, len(data), 997):
            data[at] ^= 0xFF
        segment.write_bytes(bytes(data))
    answer = indexed.ask(book(indexed), strategy="stream", kv="refresh=0")
    assert any("damaged" in warning for warning in answer.warnings)
    assert answer.coverage.tokens_attended > 100


# --- identity -----------------------------------------------------------------------------------------


def test_another_model_window_or_codec_is_a_miss_and_said(indexed: Place, tmp_path: Path) -> None:
    file = book(indexed)
    other = Place(indexed.folder, write_tiny_gguf(tmp_path / "other.gguf", bpe_vocabulary(), seed=8))
    row, notices = other.index(file)
    assert row.tokens_stored_before == 0
    assert any("another model" in notice for notice in notices)
    row, notices = indexed.index(file, kv="window=256")
    assert row.tokens_stored_before == 0
    assert any("window 1,4" in notice for notice in notices)
    row, notices = indexed.index(file, kv="codec=int8")
    assert (row.tokens_stored_before, row.codec) == (0, "int8")
    assert any("another codec" in notice for notice in notices)
    assert indexed.index(file)[0].tokens_stored_before == row.tokens_total


def test_a_smaller_context_still_uses_what_a_larger_one_prefilled(indexed: Place) -> None:
    answer = indexed.ask(book(indexed), strategy="stream", kv="refresh=0", ctx=1024)
    assert answer.tokens.evaluated < 200


def test_documents_never_see_each_others_cells(indexed: Place) -> None:
    one, two = book(indexed), indexed.write(chapters(20, seed=4), "other.md")
    alone = indexed.ask(two, strategy="stream", kv="refresh=0")
    kept = Kept(indexed.store, lambda text: None)
    answers = [
        indexed.ask(file, strategy="stream", kv="refresh=0", held=Held(kept)) for file in (one, two, one, two)
    ]
    kept.close()
    assert answers[1].text == answers[3].text == alone.text
    assert answers[0].text == answers[2].text
    assert answers[0].text != answers[1].text
    both = indexed.ask(one, two, strategy="stream", kv="refresh=0")
    assert len(both.documents) == 2
    assert both.tokens.evaluated < 300


# --- models that cannot -------------------------------------------------------------------------------


def test_a_model_whose_kv_cannot_be_stored_is_named(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "localctx.engine.llama.LlamaModel.kv_refusal", lambda model: "has sliding-window layers"
    )
    file = place.write(LONG)
    answer = place.ask(file)
    assert answer.strategy == "retrieve"
    assert any("has sliding-window layers" in warning for warning in answer.warnings)
    assert place.ask(place.write(SHORT, "short.md")).strategy == "exact"
    for call in (lambda: place.ask(file, strategy="stream"), lambda: place.index(file)):
        with pytest.raises(NotComposable, match="sliding-window"):
            call()


def test_without_a_verdict_auto_leaves_the_store_alone(indexed: Place) -> None:
    answer = indexed.ask(book(indexed))
    assert answer.strategy == "retrieve"
    assert any("no verdict yet" in warning for warning in answer.warnings)


@pytest.mark.parametrize(("passes", "strategy"), [(True, "stream"), (False, "retrieve")])
def test_the_verdict_decides(indexed: Place, passes: bool, strategy: str) -> None:
    with open_model(indexed.model) as model, KVStore.open(indexed.store) as store:
        store.set_model_fact(model.info.fingerprint, "verdict", {"stream": {"passes": passes}})
    answer = indexed.ask(book(indexed))
    assert answer.strategy == strategy


@pytest.mark.parametrize("kv", ["policy=exact", "window=256,sinks=4096"])
def test_a_policy_beyond_the_trained_length_is_refused_by_its_name(indexed: Place, kv: str) -> None:
    for act in (indexed.index, indexed.ask):
        with pytest.raises(UsageError, match="was trained for 2,048") as refused:
            act(book(indexed), strategy="stream", kv=kv)
        assert "--kv policy" in refused.value.message
