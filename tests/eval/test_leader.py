"""`eval leader` on a tiny model: the same twice, every measure there, and as docs/eval.md defines it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from localctx.engine import EngineOptions, open_model
from localctx.errors import UsageError
from localctx.eval import leader_asking
from localctx.eval.benchmark_renderers import tables_of
from localctx.eval.documents import Question
from localctx.eval.generate import Wanted
from localctx.eval.leader import LeaderOptions, measure
from localctx.eval.leader_asking import is_located
from localctx.eval.leader_report import LeaderReport
from localctx.eval.niah import Options
from localctx.eval.perturbations import PERTURBATIONS, register_perturbation
from localctx.from_settings import open_document_for
from localctx.index import LexicalIndex
from localctx.session.ask import answered, ask
from localctx.session.events import Event, Finished
from localctx.session.indexing import index_documents
from localctx.session.provenance import Citation
from localctx.session.run import Run
from localctx.settings import Settings

SMALL = Wanted(seed=5, lengths=(2048,), tasks=("single",), n_questions=4, n_answer=6)
MODES = ("exact", "oracle-text", "stream-lexical")


def silent(_: str) -> None:
    pass


@pytest.fixture(scope="module")
def unchanged() -> Iterator[str]:
    """A perturbation that leaves all as it is."""
    register_perturbation("unchanged", lambda draft, source: draft)
    yield "unchanged"
    del PERTURBATIONS["unchanged"]


def measured(path: Path, perturb: tuple[str, ...], **options: Any) -> LeaderReport:
    with open_model(path, EngineOptions(n_threads=1)) as model:
        return measure(model, Settings(), LeaderOptions(Options(SMALL, MODES, **options), perturb), silent)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("leader")


@pytest.fixture(scope="module")
def report(tiny_model_path: Path, data: Path, unchanged: str) -> LeaderReport:
    return measured(tiny_model_path, ("shuffle", unchanged), data=str(data))


@pytest.fixture(scope="module")
def shown(report: LeaderReport) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(json.dumps(report.to_json()))
    return value


def test_every_mode_has_every_measure(shown: dict[str, Any]) -> None:
    assert (shown["schema"], shown["perturb"]) == ("localctx.eval.leader/1", ["shuffle", "unchanged"])
    assert [row["mode"] for row in shown["scores"]] == list(MODES)
    for row in shown["scores"]:
        assert (row["n"], row["n_without_answer"]) == (3, 1)
        assert row["cri_delta"] > 0 < row["cri_without"]
        assert 0 <= row["match"] <= 1 >= row["lpa5"] >= 0
    distances = [(row["mode"], row["distance"], row["n"]) for row in shown["distances"]]
    assert distances == [(mode, distance, 3) for mode in MODES for distance in (1024, 1754)]
    names = [row["perturbation"] for row in shown["perturbations"] if row["mode"] == "exact"]
    assert names == ["shuffle", "unchanged", "without evidence"]
    assert [row["n_tokens"] > 1600 for row in shown["documents"]] == [True] * 4
    (chance,) = shown["chance"]
    assert (chance["n_values"], chance["match"]) == (3, pytest.approx(1 / 3, abs=1e-3))
    assert chance["lpa5"] == pytest.approx(11 / shown["documents"][0]["n_tokens"], rel=1e-3)


def test_a_document_that_is_not_changed_is_no_divergence(shown: dict[str, Any]) -> None:
    for row in shown["questions"]:
        if row["variant"] == "unchanged" and row["gold"]:
            assert row["kl"] == pytest.approx(0.0, abs=1e-4), row
        if row["variant"] == "shuffle" and row["gold"]:
            assert row["kl"] > 1e-3
            assert row["kl_value"] is None  # six tokens of the reference do not reach it


def test_the_same_seed_gives_the_same_figures(
    tiny_model_path: Path, unchanged: str, shown: dict[str, Any]
) -> None:
    again = measured(tiny_model_path, ("shuffle", unchanged)).to_json()
    for part in ("scores", "distances", "perturbations", "families", "chance", "documents", "questions"):
        assert json.loads(json.dumps(again[part])) == shown[part], part


def test_what_is_watched_answers_as_ask_does(
    tiny_model_path: Path, data: Path, tmp_path: Path, shown: dict[str, Any]
) -> None:
    settings = Settings(
        store=str(tmp_path), strategy="stream", kv="rank=lexical,refresh=33%", temp=0.0, max_tokens=6
    )
    told = {
        row["question"]: row["text"]
        for row in shown["questions"]
        if (row["mode"], row["variant"]) == ("stream-lexical", "base")
    }
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        open_document_for(str(data / "en-2048-base.txt"), settings) as document,
    ):
        for strategy in ("stream", "exact"):  # as both were asked for there
            list(index_documents([document], model, replace(settings, strategy=strategy)))
        for question, text in told.items():
            events = list(ask([document], model, question, settings))
            assert isinstance(events[-1], Finished)
            assert events[-1].answer.text == text
    assert len(told) == 4


def test_the_lines_hold_each_measure(report: LeaderReport) -> None:
    text = "\n".join(report.lines)
    for word in ("LPA@5", "CRI-Δ", "LDR", "at random", "1,024", "shuffle", "without evidence", *MODES):
        assert word in text


def test_the_page_of_benchmarks_shows_each_measure(shown: dict[str, Any]) -> None:
    text = "\n".join(table.markdown for table in tables_of(shown))
    for word in ("LPA@5", "CRI-Δ", "LDR", "At random", "1,024", "shuffle", "without evidence", *MODES):
        assert word in text


def test_answers_are_kept_as_they_come(data: Path, shown: dict[str, Any]) -> None:
    lines = (data / "answers.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line) for line in lines] == shown["questions"]


def test_a_question_without_its_selector_stops_no_other_one(
    tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def noted(run: Run, index: LexicalIndex, question: str, *others: Any) -> Iterator[Event]:
        asked.append(question)
        return answered(run, index, question, *others)

    monkeypatch.setattr(leader_asking, "answered", noted)
    monkeypatch.setattr(
        leader_asking, "missing_selectors", lambda run: "dense" if asked[-1] == asked[0] else ""
    )
    wanted = replace(SMALL, lengths=(1024,), languages=("en", "zh"), n_answer=2)
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        report = measure(model, Settings(), LeaderOptions(Options(wanted, ("stream-lexical",)), ()), silent)
    shown = report.to_json()
    counted = [(row["language"], row["n"] + row["n_without_answer"]) for row in shown["scores"]]
    assert counted == [("en", 3), ("zh", 4)]
    (skipped,) = shown["skipped"]
    assert (skipped["language"], skipped["mode"], skipped["n"]) == ("en", "stream-lexical", 1)
    assert report.lines[-1].startswith("no stream-lexical for 1 of 4 questions, en, 1,024 tokens: dense: ")


TEXT = "It rained. The mill's yearly rent is 4821 crowns, they say. It rained."
SENTENCE = (TEXT.index("The mill"), TEXT.index(", they say. ") + len(", they say."))


@pytest.mark.parametrize(
    ("answer", "cited", "expected"),
    [
        ("It is 4821 crowns.", SENTENCE, True),
        ("It is 4821.", (0, len(TEXT)), True),
        ("It is 9999.", SENTENCE, False),
        ("They say so.", SENTENCE, False),
        ("It is 4821.", (0, 10), False),
        ("It is 4821.", None, False),
    ],
)
def test_an_answer_is_located_by_what_it_says_in_what_it_cites(
    answer: str, cited: tuple[int, int] | None, expected: bool
) -> None:
    question = Question(
        "single", "en", "How high is the yearly rent of the mill?", ("4821",), (SENTENCE,), ()
    )
    citation = None if cited is None else Citation("x", *cited, quote=TEXT[slice(*cited)], score=1.0)

    def located(one: Question) -> bool | None:
        return is_located(one, answer, citation, lambda a, b: TEXT[a:b], lambda text, first: text.split())

    assert located(question) is expected
    assert located(replace(question, gold=("4821", "1"))) is None


@pytest.mark.parametrize(
    ("text", "value", "answer"),
    [
        ("Straße, Fuß, Gruß, Maß und Spaß: die Pacht ist 4821 Kronen, heißt es.", "4821", "Es sind 4821."),
        ("The rent of the mill is 4821 crowns, they say.", "4821", "It is 4,821 crowns."),
        ("The rent of the mill is 4,821 crowns, they say.", "4,821", "It is 4821 crowns."),
        ("The keeper of the mill is Zoë Weiß, they say.", "Zoë Weiß", "It is ZOE WEISS."),
    ],
)
def test_an_answer_is_found_as_the_document_writes_it(text: str, value: str, answer: str) -> None:
    question = Question("single", "en", "What is it?", (value,), ((0, len(text)),), ())
    citation = Citation("x", 0, len(text), quote=text, score=1.0)

    def between(start: int, end: int) -> str:
        read.append((start, end))
        return text[start:end]

    read: list[tuple[int, int]] = []
    is_located(question, answer, citation, between, lambda text, first: text.split())
    assert read[-1] == (text.index(value), text.index(value))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LeaderOptions(Options(replace(SMALL, tasks=("cwe",)))), "--tasks: unknown 'cwe'"),
        (LeaderOptions(Options(SMALL, modes=("retrieve",))), "--modes: unknown 'retrieve'"),
        (LeaderOptions(Options(SMALL, MODES), ("shufle",)), "did you mean 'shuffle'"),
        (LeaderOptions(Options(replace(SMALL, lengths=(64,)), MODES)), "--lengths 64 is out of range"),
    ],
)
def test_what_makes_no_sense_is_refused(options: LeaderOptions, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        options.check()


@pytest.fixture
def leader(eval_command: Callable[..., tuple[int, str, str]]) -> Callable[..., tuple[int, str, str]]:
    return partial(eval_command, "leader")


def test_the_command(leader: Callable[..., tuple[int, str, str]]) -> None:
    words = ("--lengths", "1k", "--languages", "zh", "--questions", "4", "--max-tokens", "4", "--seed", "9")
    code, out, err = leader(
        *words,
        "--tasks",
        "single",
        "--perturb",
        "noise",
        "--modes",
        "stream-fused,stream-landmarks",
        "--json",
    )
    shown = json.loads(out)
    assert (code, err) == (0, "")
    assert (shown["seed"], shown["languages"], shown["tasks"]) == (9, ["zh"], ["single"])
    assert (shown["scores"], shown["questions"]) == ([], [])
    skipped = {row["mode"]: row["reason"] for row in shown["skipped"]}
    assert {row["n"] for row in shown["skipped"]} == {4}
    assert skipped["stream-fused"].startswith("dense: ")
    assert skipped["stream-fused"].endswith("no embedder was asked for")
    assert "no retrieval heads" in skipped["stream-landmarks"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--perturb", "typos"), "--perturb: unknown 'typos'"),
        (("--perturb", ","), "--perturb names nothing"),
        (("--tasks", "fwe"), "--tasks: unknown 'fwe'"),
        (("--strategy", "exact"), "--strategy is not for eval leader"),
        (("--lengths", "1k", "--questions", "32"), "planted sentences take"),
    ],
)
def test_errors_are_one_line(
    leader: Callable[..., tuple[int, str, str]], words: tuple[str, ...], said: str
) -> None:
    code, out, err = leader(*words, "--quiet")
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1


@pytest.mark.model
@pytest.mark.slow
def test_evidence_matters_more_than_order(smollm2_path: Path) -> None:
    wanted = Wanted(seed=1, lengths=(1024,), tasks=("single",), n_questions=4, n_answer=24)
    options = LeaderOptions(Options(wanted, ("oracle-text",)), ("shuffle",))
    with closing(open_model(smollm2_path, EngineOptions(n_threads=1))) as model:
        (bound,) = measure(model, Settings(), options, silent).to_json()["scores"]
    assert bound["cri_without"] > 2 * bound["cri_delta"]
    assert bound["ldr"] is None  # one distance only
