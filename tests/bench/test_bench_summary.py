"""`bench summary`: planting, measures, and the whole of it over a tiny model."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localctx.bench.faithfulness_modes import Inputs
from localctx.bench.summary import ALL_WAYS, Asked, Report, measure
from localctx.bench.summary_facts import found, planted
from localctx.bench.summary_measures import coverage, redundancy
from localctx.engine import EngineOptions, open_model
from localctx.errors import UsageError
from localctx.settings import Settings

TEXT = "".join(
    f"The harbour of town {n} trades in salt and timber. Its council keeps the wall and the mill number {n}. "
    f"The ferry crosses the river twice a day, and the market opens with the tide.\n\n"
    for n in range(60)
)
Run = Callable[..., Any]


def test_facts_stand_in_their_tenths_and_depend_on_the_seed_alone() -> None:
    text, facts = planted(TEXT, 10, 3)
    assert planted(TEXT, 10, 3) == (text, facts)
    assert planted(TEXT, 10, 4)[1] != facts
    assert [fact.decile for fact in facts] == list(range(10))
    for fact in facts:
        place = text.index(fact.sentence) / len(text)
        assert fact.decile / 10 <= place <= (fact.decile + 1) / 10
        assert text[text.index(fact.sentence) - 2 :][0] in ".!?"
        assert (fact.name in fact.sentence, fact.figure in fact.sentence) == (True, True)
    rest = text
    for fact in facts:
        rest = rest.replace(" " + fact.sentence, "")
    assert rest == TEXT


def test_a_fact_is_told_by_name_and_figure_of_one_line() -> None:
    _, facts = planted(TEXT, 4, 1)
    first, second = facts[:2]
    said = f"{first.name} had {first.figure.replace(',', '')}.\n{second.name} had many.\n{second.figure} too."
    assert found(said, facts) == [True, False, False, False]


def test_more_facts_than_sentences_are_refused() -> None:
    with pytest.raises(ValueError, match="5 facts, 24 names, 1 sentences"):
        planted("One sentence is here.", 5, 1)


def test_coverage_counts_the_parts_that_lines_speak_of() -> None:
    text = " ".join(f"alpha{k} beta{k} gamma{k}" for k in range(100, 300))
    spread = [f"alpha{k} gamma{k}" for k in range(105, 300, 10)]
    assert coverage(spread, text) == 1.0
    assert coverage(["alpha101 beta102", "alpha102 beta101", "beta103 gamma103"], text) == pytest.approx(
        1 / 3
    )
    assert coverage([], text) == 0.0
    assert coverage(["zeta"], text) == 0.0


def test_redundancy_is_what_other_lines_hold() -> None:
    assert redundancy(["salt timber market", "salt timber market"]) == 1.0
    assert redundancy(["salt timber", "river ferry"]) == 0.0
    assert redundancy(["salt timber market wall", "salt timber ferry tide"]) == pytest.approx(0.5)
    assert redundancy([]) == 0.0


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Iterator[Report]:
    folder = tmp_path_factory.mktemp("texts")
    (folder / "a.txt").write_text(TEXT, "utf-8")
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as model:
        asked = Asked(n_facts=4, n_words=96, n_tokens=1500)
        yield measure(model, Settings(max_tokens=8), Inputs(str(folder)), asked, lambda line: None)


def test_every_way_is_measured_at_one_length(report: Report) -> None:
    rows = {row.way: row for row in report.ways}
    assert [*rows, "index"] == list(ALL_WAYS)
    assert all((row.n_texts, row.n_failed) == (1, 0) for row in rows.values())
    most = rows["map-reduce"].n_words
    assert 0 < rows["lead"].n_words <= most
    assert 0 < rows["centroid"].n_words <= most
    assert rows["taps"].n_evaluated > 0 < rows["refine"].n_generated
    assert rows["lead"].n_evaluated == 0
    for row in rows.values():
        assert len(row.recall_by_decile) == 10
        assert 0 <= row.recall <= 1
    assert rows["lead"].faithfulness in (None, 1.0)
    (cost,) = report.index
    assert cost.n_tokens > 1000
    assert cost.ratio > 0 < cost.cpu_ratio


def test_the_report_as_json(report: Report) -> None:
    value = report.as_json()
    assert value["schema"] == "localctx.bench.summary/1"
    assert [row["way"] for row in value["ways"]] == list(ALL_WAYS[:-1])
    assert set(value["index"][0]) >= {"ratio", "cpu_ratio", "n_tokens"}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (Asked(ways=("tap",)), "unknown way 'tap'.*taps"),
        (Asked(n_facts=0), "--facts 0"),
        (Asked(n_facts=25), "--facts 25"),
        (Asked(n_words=3), "--words 3"),
        (Asked(n_tokens=3), "--tokens 3"),
    ],
)
def test_what_makes_no_sense_is_refused(asked: Asked, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        asked.check()
