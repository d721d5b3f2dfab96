"""Questions about all records: counted exactly, or not at all. What is right is computed beside."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.sax.saxutils import quoteattr

import pytest

from localctx.document import Document, open_document
from localctx.engine.echo import EchoModel
from localctx.session.ask import ask
from localctx.session.conversation import Conversation
from localctx.session.counting import Counted, count
from localctx.session.events import Event, Finished
from localctx.session.side_by_side import SideBySide
from localctx.settings import Settings

CITIES = ("Lyon", "Paris", "New York", "Oslo", "Bad Homburg", "A-12")
STATES = ("open", "closed", "in progress")
Row = dict[str, Any]
Rule = Callable[[Row], bool]


def rows_of(n: int, seed: int = 7) -> list[Row]:
    """Generated records; a fifth has no email."""
    chance = random.Random(seed)
    return [
        {
            "id": number,
            "name": f"{chance.choice(('Anna', 'Bert', 'Carla'))} {chance.choice(('Keller', 'Ortiz', 'Lee'))}",
            "city": chance.choice(CITIES),
            "amount": round(chance.uniform(0, 1000), 2),
            "paid": chance.random() < 0.5,
            "due_date": f"{chance.randint(2018, 2023)}-{chance.randint(1, 12):02}-{chance.randint(1, 28):02}",
            "email": None if chance.random() < 0.2 else f"u{number}@x.org",
            "status": chance.choice(STATES),
        }
        for number in range(n)
    ]


QUESTIONS: list[tuple[str, Rule]] = [
    ("How many records are there?", lambda row: True),
    ("How many records does the file contain in total?", lambda row: True),
    ("How many records have the city Lyon?", lambda row: row["city"] == "Lyon"),
    ("How many records are from New York?", lambda row: row["city"] == "New York"),
    ("How many records have city A-12?", lambda row: row["city"] == "A-12"),
    ("How many records have an amount over 500?", lambda row: row["amount"] > 500),
    ("How many records have amount <= 99.5?", lambda row: row["amount"] <= 99.5),
    ("How many records have an amount between 100 and 200?", lambda row: 100 <= row["amount"] <= 200),
    ("How many records have no email?", lambda row: row["email"] is None),
    ("How many paid records are there?", lambda row: row["paid"]),
    ("How many records are not paid?", lambda row: not row["paid"]),
    ("How many records are in Lyon or Paris?", lambda row: row["city"] in ("Lyon", "Paris")),
    ("Which records have id 17?", lambda row: row["id"] == 17),
    ("How many records have status open and city Oslo?",
     lambda row: row["status"] == "open" and row["city"] == "Oslo"),
    ("How many records have a due date after 2020?", lambda row: row["due_date"] > "2020-99"),
    ("How many records have a due date before 2019-06-15?", lambda row: row["due_date"] < "2019-06-15"),
    ("How many records have a city other than Lyon?", lambda row: row["city"] != "Lyon"),
    ("List all names of records with city Oslo and amount above 990",
     lambda row: row["city"] == "Oslo" and row["amount"] > 990),
    ("How many records have a name starting with Anna?", lambda row: row["name"].startswith("Anna")),
    ('How many entries have status "in progress" and are paid?',
     lambda row: row["status"] == "in progress" and row["paid"]),
    ("Wie viele Datensätze haben city Lyon?", lambda row: row["city"] == "Lyon"),
    ("How many records have the id 999999999?", lambda row: False),
]  # fmt: skip
NOT_COUNTED = [
    "How many people live in Lyon?",
    "How many records are older than 5?",
    "How many records have a city that is in Europe?",
    "How many records have an amount over the average?",
    "How many records are there per city?",
    "How many records have more than 5?",
    "How many records have no amount over",
]


def written(value: object) -> str:
    """A value as text."""
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def as_csv(rows: list[Row]) -> str:
    """The rows as CSV; what is missing is empty."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]))
    writer.writeheader()
    writer.writerows({key: written(value) for key, value in row.items()} for row in rows)
    return out.getvalue()


def as_xml(rows: list[Row], *, attributes: bool = False) -> str:
    """The rows as XML; what is missing is left out."""
    texts = [{key: written(value) for key, value in row.items() if value is not None} for row in rows]
    if attributes:
        lines = [f"<record {' '.join(f'{k}={quoteattr(v)}' for k, v in row.items())}/>" for row in texts]
    else:
        lines = [f"<record>{''.join(f'<{k}>{v}</{k}>' for k, v in row.items())}</record>" for row in texts]
    return f"<all>{''.join(lines)}</all>"


FORMS: dict[str, Callable[[list[Row]], str]] = {
    "a.json": json.dumps,
    "b.json": lambda rows: json.dumps({"version": 1, "rows": rows}, indent=1),
    "a.jsonl": lambda rows: "\n".join(map(json.dumps, rows)),
    "a.csv": as_csv,
    "a.xml": as_xml,
    "b.xml": lambda rows: as_xml(rows, attributes=True),
}


def opened(folder: Path, name: str, rows: list[Row]) -> Document:
    """The rows in one of the forms."""
    path = folder / name
    path.write_text(FORMS[name](rows))
    return open_document(path, cache_dir=None)


@pytest.mark.parametrize("name", FORMS)
def test_counts_are_exact(tmp_path: Path, name: str) -> None:
    rows = rows_of(1_200)
    with opened(tmp_path, name, rows) as document:
        for question, rule in QUESTIONS:
            counted = count([document], question)
            assert isinstance(counted, Counted), f"{question}: {counted}"
            assert (counted.n_matched, counted.n_read) == (sum(map(rule, rows)), len(rows)), question
            for cited in counted.citations[:3]:
                assert document.read(cited.start, cited.end) == cited.quote


@pytest.mark.parametrize("question", NOT_COUNTED)
def test_what_is_not_understood_is_not_counted(tmp_path: Path, question: str) -> None:
    with opened(tmp_path, "a.json", rows_of(50)) as document:
        reason = count([document], question)
        assert isinstance(reason, str)
        assert reason


def test_no_such_question_is_none(tmp_path: Path) -> None:
    with opened(tmp_path, "a.json", rows_of(5)) as document:
        assert count([document], "What is the city of Anna Lee?") == ""


def test_different_values_are_counted(tmp_path: Path) -> None:
    rows = rows_of(300)
    with opened(tmp_path, "a.csv", rows) as document:
        counted = count([document], "How many different cities are there in records with status closed?")
        assert isinstance(counted, Counted)
        closed = [row["city"] for row in rows if row["status"] == "closed"]
        assert counted.values == {city: closed.count(city) for city in set(closed)}
        assert counted.text.startswith(
            f"{len(set(closed))} different values of city in {len(closed)} records"
        )


def test_a_value_of_several_fields_needs_its_field(tmp_path: Path) -> None:
    rows = [
        {"home": "Lyon", "work": "Oslo"},
        {"home": "Oslo", "work": "Lyon"},
        {"home": "Lyon", "work": "Lyon"},
    ]
    (tmp_path / "a.json").write_text(json.dumps(rows))
    with open_document(tmp_path / "a.json", cache_dir=None) as document:
        assert (
            count([document], "How many records are in Lyon?")
            == "'lyon' stands in home, work: name the field"
        )
        counted = count([document], "How many records have home Lyon and not work Oslo?")
        assert isinstance(counted, Counted)
        assert counted.n_matched == 1


def test_a_damaged_file_is_not_counted(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('[{"a": 1}, {"a": ')
    (tmp_path / "b.jsonl").write_text('{"a": 1}\n{"a": \n')
    for name in ("a.json", "b.jsonl"):
        with open_document(tmp_path / name, cache_dir=None) as document:
            assert isinstance(count([document], "How many records are there?"), str)


def finished(events: list[Event]) -> Finished:
    """The last of the events."""
    assert isinstance(events[-1], Finished)
    return events[-1]


def test_every_way_of_asking_counts_and_says_so(tmp_path: Path) -> None:
    rows, question = rows_of(400), "How many records have the city Oslo?"
    wanted = sum(row["city"] == "Oslo" for row in rows)
    model, settings = EchoModel(), Settings(store="off")
    with opened(tmp_path, "a.json", rows) as document:
        answers = [finished(list(ask([document], model, question, settings))).answer]
        with Conversation([document], model, settings) as talk:
            answers.append(finished(list(talk.say(question))).answer)
            follow = finished(list(talk.say("And how many are in Paris?"))).answer
            assert follow.records is not None
            assert follow.records.matched == sum(row["city"] == "Paris" for row in rows)
        with SideBySide(model, settings) as asking:
            asking.submit([document], question)
            answers += [event.answer for _, event in asking if isinstance(event, Finished)]
    for answer in answers:
        value = answer.to_json()
        assert value["strategy"] == "count"
        assert value["records"] == {"read": len(rows), "matched": wanted}
        assert value["tokens"] == {"evaluated": 0, "restored": 0, "generated": 0}
        assert answer.text == f"{wanted} records where city is oslo, of {len(rows)}."
    assert len(answers) == 3


def test_what_is_not_counted_says_that_it_rests_on_a_selection(tmp_path: Path) -> None:
    with opened(tmp_path, "a.json", rows_of(400)) as document:
        events = list(
            ask(
                [document],
                EchoModel(n_ctx_train=2048),
                "How many people live in Lyon?",
                Settings(store="off"),
            )
        )
    warnings = " ".join(finished(events).answer.warnings)
    assert "the records were not counted: 'people' is no field" in warnings
    assert "needs the whole document" in warnings
    assert "localctx extract" in warnings


@pytest.mark.proof
def test_120_000_records_are_counted_exactly(tmp_path: Path) -> None:
    rows = rows_of(120_000)
    with opened(tmp_path, "a.json", rows) as document:
        for question, rule in QUESTIONS:
            counted = count([document], question)
            assert isinstance(counted, Counted), f"{question}: {counted}"
            assert (counted.n_matched, counted.n_read) == (sum(map(rule, rows)), len(rows)), question
