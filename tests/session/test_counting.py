"""Questions about all records: counted exactly, or not at all. What is right is computed beside."""

from __future__ import annotations

import csv
import io
import json
import random
from collections.abc import Callable, Iterator
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
        assert dict(counted.groups.values()) == {city: closed.count(city) for city in set(closed)}
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


ORDERS = (
    "order,customer,city,price,status,employees\n"
    "1,Ann,Paris,100,open,5\n2,Bob,Lyon,200,closed,7\n3,Cy,Paris,50,open,9\n"
)
FLAGGED = json.dumps(
    [
        {"customer": "Ann", "active": True, "verified": False, "email": "a@x", "phone": None, "paid": "yes",
         "due_date": "2019-05-01", "tags": ["red", "blue"], "grade": "A+", "cost": "$100", "land": "IT"},
        {"customer": "Bob", "active": False, "verified": True, "email": None, "phone": "12", "paid": "no",
         "due_date": "2020-01-01", "tags": ["red"], "grade": "A", "cost": "$250", "land": None},
    ]
)  # fmt: skip
RIGHT = [
    ("How many rows have a customer from Paris?", 2),
    ("List all customers from Paris", 2),
    ("How many rows have a price under 100?", 1),
    ("How many rows have a price greater than or equal to 100?", 2),
    ("How many rows have a price on or after 100?", 2),
    ("How many rows are in Paris or Lyon?", 3),
    ("How many rows have a price over 50 and a price under 200?", 1),
    ("How many rows are not from Paris and not from Lyon?", 0),
    ("How many rows have a city that is Lyon?", 1),
    ("What is the total number of rows?", 3),
    ("How many rows are there in total?", 3),
    ("How many customers are open?", 2),
    ("How many open customers are there?", 2),
]
RIGHT_FLAGGED = [
    ("How many records are active?", 1),
    ("How many records have no email and no phone?", 0),
    ("How many records have tags red and blue?", 1),
    ("How many records have tags red or blue?", 2),
    ("How many records have a due date in 2019?", 1),
    ("How many records have paid yes?", 1),
    ("How many records have the value of paid yes?", 1),
    ("How many records have cost $100?", 1),
    ("How many records have a phone of 13?", 0),
]
EITHER_WAY = [
    "How many rows have a city Ann?",
    "How many employees does Acme have?",
    "How many employees does Ann have?",
    "How many rows are listed under Paris?",
    "How many rows are in Paris and Lyon?",
    "How many rows are from Paris, Lyon or Nice?",
    "How many rows have a price from 50 to 100?",
    "How many rows have a price from 50?",
    "How many rows have a price to 100?",
    "How many rows have a price of 50 to 100?",
    "How many rows have a price between 100 and 50?",
    "How many rows have a price on Paris or after 100?",
    "How many rows have the price 50 or over 100?",
    "How many rows have a price over Paris?",
    "How many rows are not from Paris and Lyon?",
    "How many rows are not from Paris and open?",
    "How many rows are from Paris or not from Lyon?",
    "How many rows have a city or a price?",
    "How many employees are there in total?",
    "How many orders are there?",
    "How many customers and cities are there?",
    "How many different customers and cities are there?",
    "How many rows are there by city?",
    "How many rows have a city that equals the customer?",
    "How many rows have a city that is the customer?",
    "Show the total price",
    "Show the total of orders",
    "How many rows have price $100?",
    "How many rows have customers over 5?",
    "How many cities contain Lyon?",
    "How many fields are there?",
    "How many values does the file contain?",
    "How many rows have all values set?",
    "How many rows have every city?",
]
EITHER_WAY_FLAGGED = [
    "How many records are active or verified?",
    "How many customers are active or verified?",
    "How many records have an email or a phone?",
    "How many records have no email and phone?",
    "How many records are not active and verified?",
    "How many records are paid?",
    "How many records are not paid?",
    "How many records have paid no?",
    'How many records have the grade "A"?',
    "How many records have the grade A+?",
    "How many records have the grade A?",
    "How many records are from IT?",
    "How many records have cost 100?",
    "How many records have a due date 05/2019?",
    'How many records have the grade "B" or customer "Cy"?',
    "How many records have a cost over 50?",
    "How many records have a land other than IT?",
    'How many records have a land other than "IT"?',
]


@pytest.fixture
def asked(tmp_path: Path) -> Iterator[Callable[[str, str], Counted | str]]:
    """Ask a question about records in a file of that name."""
    (tmp_path / "a.csv").write_text(ORDERS)
    (tmp_path / "a.json").write_text(FLAGGED)
    documents = {name: open_document(tmp_path / name, cache_dir=None) for name in ("a.csv", "a.json")}
    yield lambda name, question: count([documents[name]], question)
    for document in documents.values():
        document.close()


Asking = Callable[[str, str], "Counted | str"]


@pytest.mark.parametrize(
    ("name", "question", "n"),
    [("a.csv", *one) for one in RIGHT] + [("a.json", *one) for one in RIGHT_FLAGGED],
)
def test_what_can_be_meant_in_one_way_is_counted(asked: Asking, name: str, question: str, n: int) -> None:
    counted = asked(name, question)
    assert isinstance(counted, Counted), counted
    assert (counted.n_matched, counted.n_read) == (n, len(json.loads(FLAGGED)) if "json" in name else 3)


@pytest.mark.parametrize(
    ("name", "question"),
    [("a.csv", one) for one in EITHER_WAY] + [("a.json", one) for one in EITHER_WAY_FLAGGED],
)
def test_what_may_be_meant_otherwise_is_not_counted(asked: Asking, name: str, question: str) -> None:
    reason = asked(name, question)
    assert isinstance(reason, str), reason.text
    assert reason


def test_what_a_value_belongs_to_is_told(asked: Asking) -> None:
    counted = asked("a.csv", "List all customers from Paris")
    assert isinstance(counted, Counted)
    assert counted.text == "2 records where city is paris, of 3:\n- Ann\n- Cy"


def test_values_are_different_by_all_of_their_text(tmp_path: Path) -> None:
    long = "word " * 60
    rows = ["Lyon", "lyon", " LYON ", "C", "C++", f"{long}a", f"{long}b", "1.0", "1"]
    (tmp_path / "a.csv").write_text("city,b\n" + "".join(f"{row},x\n" for row in rows))
    with open_document(tmp_path / "a.csv", cache_dir=None) as document:
        counted = count([document], "How many different cities are there?")
    assert isinstance(counted, Counted)
    assert counted.text.startswith("6 different values of city in 9 records")
    assert sorted(n for _, n in counted.groups.values()) == [1, 1, 1, 1, 2, 3]
    assert all(len(shown) <= 200 for shown, _ in counted.groups.values())


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
