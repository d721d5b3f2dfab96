"""Records of documents: parsed where they have fields, read by the model elsewhere, never invented."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

import localctx
from localctx.document import Document
from localctx.engine.echo import EchoModel
from localctx.engine.json_schema import grammar_of
from localctx.engine.source_values import NothingFits, Phrase, Sources
from localctx.errors import UsageError
from localctx.selection.passage_values import date_spans, passage_values
from localctx.session.extract import extract
from localctx.session.extract_passages import _is_same_number
from localctx.session.extraction import Extraction, FoundRecord
from localctx.settings import Settings

PAYMENT = {
    "title": "payment",
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "amount": {"type": "integer", "description": "euros"},
        "date": {"type": "string", "format": "date"},
        "kind": {"enum": ["gift", "loan"]},
    },
    "required": ["name", "amount"],
}
TEXT = (
    "The harbour was full of boats. Anna Feld gave 1,200 euros on 3 May 2021. Nobody saw her.\n\n"
    "On May 4, 2021 Bert Lee gave 75 euros. The mill has stood for 90 years. Anna Feld gave 1200 euros.\n"
)
SMALL = frozenset({"the", "on", "of", "in", "was", "has", "for"})


def run(
    documents: Sequence[Document], schema: object, reply: Callable[[str], str] = str
) -> tuple[list[FoundRecord], Extraction]:
    """All records, and the outcome."""
    settings = Settings(store="off", schema=json.dumps(schema))
    events = list(extract(documents, EchoModel(reply), settings))
    assert isinstance(events[-1], Extraction)
    return [event for event in events if isinstance(event, FoundRecord)], events[-1]


def values(records: Sequence[FoundRecord]) -> list[dict[str, Any]]:
    """The records alone."""
    return [dict(record.value) for record in records]


class Scripted:
    """Answers in order, whatever is asked."""

    def __init__(self, *answers: object) -> None:
        self._answers = [one if isinstance(one, str) else json.dumps(one) for one in answers]

    def __call__(self, question: str) -> str:
        return self._answers.pop(0)


def test_only_sentences_that_can_hold_a_record_are_read(open_text: Callable[..., Document]) -> None:
    anna = {"name": "Anna Feld", "amount": 1200, "date": "2021-05-03", "kind": "gift"}
    bert = {"name": "Bert Lee", "amount": 75, "date": "2021-05-04"}
    again = {"name": "anna feld", "amount": 1200}
    records, done = run([open_text(TEXT)], PAYMENT, Scripted(anna, bert, again))
    assert values(records) == [anna, bert]
    assert [one.quote for one in records[0].citations] == [
        "Anna Feld gave 1,200 euros on 3 May 2021.",
        "Anna Feld gave 1200 euros.",
    ]
    assert (done.passed.n_units, done.passed.n_read, done.passed.n_repeated) == (6, 3, 1)
    coverage = done.coverage
    assert coverage.tokens_total == coverage.tokens_read + coverage.tokens_dropped
    assert 0 < coverage.tokens_read < coverage.tokens_total


@pytest.mark.parametrize(
    "invented",
    [
        {"name": "Zebulon", "amount": 1200},
        {"name": "Anna Feld", "amount": 1201},
        {"name": "Anna Feld", "amount": 1200, "date": "2021-05-04"},
    ],
)
def test_a_value_that_does_not_stand_in_its_sentence_leaves_the_record_out(
    open_text: Callable[..., Document], invented: dict[str, Any]
) -> None:
    text = "Anna Feld gave 1,200 euros on 3 May 2021. On 4 May 2021 Zebulon gave 1,201 euros."
    second = {"name": "Zebulon", "amount": 1201}
    records, done = run([open_text(text)], PAYMENT, Scripted(invented, second))
    assert values(records) == [second]
    assert done.passed.n_unheld == 1
    assert any("does not stand in the text" in warning for warning in done.warnings)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0.00005", 0.00005),
        ("0.000000125", 1.25e-7),
        ("1200", 1200.0),
        ("10000000000000000000000", 1e22),
        ("3.14159265358979323846", 3.14159265358979323846),
        ("12345678901234567890", 12345678901234567890),
    ],
)
def test_a_number_is_held_however_it_is_spelled(
    open_text: Callable[..., Document], written: str, read: float
) -> None:
    schema = {"properties": {"rate": {"type": "number"}}, "required": ["rate"]}
    records, done = run([open_text(f"It has a rate of {written} now.")], schema, Scripted({"rate": read}))
    assert (values(records), done.passed.n_unheld) == ([{"rate": read}], 0)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("0.00005", 0.00006),
        ("12345678901234567890", 12345678901234567891),
        ("1.2.3", 1.2),
        ("7", float("inf")),
        ("7", float("nan")),
    ],
)
def test_another_number_is_not_held(open_text: Callable[..., Document], written: str, read: float) -> None:
    schema = {"properties": {"rate": {"type": "number"}}, "required": ["rate"]}
    text = f"It has the rates {written} and 8 now."
    records, done = run([open_text(text)], schema, Scripted({"rate": read}))
    assert (records, done.passed.n_unheld + done.passed.n_broken) == ([], 1)


def test_no_number_is_held_as_one_without_end() -> None:
    assert not _is_same_number(float("inf"), "9" * 400)


def test_what_is_no_json_is_counted(open_text: Callable[..., Document]) -> None:
    records, done = run([open_text("Anna gave 12 euros.")], PAYMENT, Scripted('{"name": "An'))
    assert (records, done.passed.n_broken) == ([], 1)


def test_values_that_share_words_are_told_apart(open_text: Callable[..., Document]) -> None:
    schema = {
        "properties": {"name": {"type": "string"}, "city": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["name", "city", "n"],
    }
    answers = Scripted(
        {"name": "Bert Lee of Vienna", "city": "Vienna", "n": 7},
        {"name": "Ines Jensen", "city": "Ines", "n": 8},
        {"name": "Porto", "city": "Porto", "n": 9},
        {"name": "Ines Jensen", "city": "Porto", "n": 8},
        {"name": "Porto", "city": "museum", "n": 9},
    )
    text = "Bert Lee of Vienna paid 7. In Porto Ines Jensen paid 8. A museum in Porto has 9."
    records, _ = run([open_text(text)], schema, answers)
    assert values(records) == [
        {"name": "Bert Lee", "city": "Vienna", "n": 7},
        {"name": "Ines Jensen", "city": "Porto", "n": 8},
        {"name": "Porto", "city": "museum", "n": 9},
    ]


def test_names_are_whole_and_the_right_way_round(open_text: Callable[..., Document]) -> None:
    """A name takes the capitalised words beside it; what is a town everywhere else is one here too."""
    schema = {
        "properties": {"name": {"type": "string"}, "town": {"type": "string"}, "n": {"type": "integer"}},
        "required": ["name", "town", "n"],
    }
    answers = Scripted(
        {"name": "Moreau", "town": "Graz", "n": 7},
        {"name": "Graz", "town": "Ines Jensen", "n": 8},
        {"name": "Feld", "town": "Anna", "n": 9},
        {"name": "Bo", "town": "Graz", "n": 4},
    )
    text = (
        "We saw that Hugo Moreau gave 7 in Graz. Later Ines Jensen gave 8 in Graz. By Anna Feld 9. "
        "And Bo gave 4 in Graz."
    )
    records, _ = run([open_text(text)], schema, answers)
    assert values(records) == [
        {"name": "Hugo Moreau", "town": "Graz", "n": 7},
        {"name": "Ines Jensen", "town": "Graz", "n": 8},
        {"name": "Feld", "town": "Anna", "n": 9},
        {"name": "Bo", "town": "Graz", "n": 4},
    ]


ROWS = [{"Full Name": "Anna", "amount_eur": "1,200", "paid": "yes", "when": "3 May 2021"},
        {"Full Name": "Bert", "amount_eur": "n/a", "paid": "no", "when": ""}]  # fmt: skip


def test_fields_become_properties_without_the_model(open_text: Callable[..., Document]) -> None:
    schema = {
        "properties": {
            "full_name": {"type": "string"},
            "amount eur": {"type": ["integer", "null"]},
            "paid": {"type": "boolean"},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["full_name", "amount eur"],
    }
    document = open_text(json.dumps(ROWS, indent=0), "a.json")
    records, done = run([document], schema, Scripted())
    assert values(records) == [{"full_name": "Anna", "amount eur": 1200, "paid": True, "when": "2021-05-03"}]
    (place,) = records[0].citations
    assert json.loads(place.quote) == ROWS[0]
    assert (done.passed.n_units, done.passed.n_unfit, done.how) == (2, 1, frozenset({"parser"}))
    assert done.tokens.evaluated == 0


def test_a_constant_of_the_schema_chooses_records(open_text: Callable[..., Document]) -> None:
    rows = "".join(f"{n},{'Lyon' if n % 3 else 'Oslo'}\n" for n in range(90))
    schema = {
        "properties": {"id": {"type": "integer"}, "city": {"const": "Oslo"}},
        "required": ["id", "city"],
    }
    records, done = run([open_text(f"id,city\n{rows}", "a.csv")], schema)
    assert [record.value["id"] for record in records] == list(range(0, 90, 3))
    assert done.n_records == 30


@pytest.mark.parametrize(
    "schema", [None, {"type": "object"}, {"type": "string"}, {"type": "array", "items": {"type": "integer"}}]
)
def test_a_schema_without_properties_is_refused(open_text: Callable[..., Document], schema: object) -> None:
    settings = Settings(store="off", schema=None if schema is None else json.dumps(schema))
    with pytest.raises(UsageError):
        list(extract([open_text(TEXT)], EchoModel(), settings))


def test_the_grammar_holds_what_stands_in_the_sentence_only() -> None:
    found = passage_values(
        "On 3 May 2021 the Bank of England lent 1,200 euros (and 7 pounds) to Anna.", SMALL
    )
    assert found.dates == ("2021-05-03",)
    assert found.numbers == ("1200", "7")
    assert found.numbers_of({"euros"}) == ("1200",)
    assert [" ".join(run) for run, _ in found.phrases][:1] == ["Bank of England lent"]
    sources = Sources([Phrase(run, inner) for run, inner in found.phrases], found.numbers, found.dates)
    grammar = grammar_of(PAYMENT, sources)
    assert '"1200"' in grammar
    assert "2021-05-03" in grammar
    with pytest.raises(NothingFits):
        grammar_of(PAYMENT, Sources(sources.phrases, (), ()))
    assert "date" not in grammar_of(PAYMENT, Sources(sources.phrases, ("7",), ())).split("kind")[0][:400]


@pytest.mark.parametrize(
    ("text", "dates"),
    [
        ("3 May 2021, May 4, 2021 and 2021-05-05", ["2021-05-03", "2021-05-04", "2021-05-05"]),
        ("am 3. März 2021, den 04.05.2021", ["2021-03-03", "2021-05-04"]),
        ("le 1er août 1999, 3 de mayo de 2001", ["1999-08-01", "2001-05-03"]),
        ("31 February 2021, 3 Maybe 2021, 2021-13-01, 12.2021", []),
    ],
)
def test_dates_are_read_in_their_usual_forms(text: str, dates: list[str]) -> None:
    assert [date for *_, date in date_spans(text)] == dates


def test_from_python(tmp_path: Path, tiny_model_path: Path) -> None:
    """A model with random weights finds nothing but values of the sentence."""
    (tmp_path / "a.txt").write_text(TEXT)
    with localctx.open(
        tmp_path / "a.txt", model=str(tiny_model_path), store="off", embedder="off", max_tokens=200
    ) as doc:
        records = list(doc.extract(PAYMENT))
        assert doc.extraction is not None
        assert doc.extraction.passed.n_unheld == 0
        for record in records:
            assert record.value["name"] in record.citations[0].quote
            assert record.value["amount"] in (1200, 75)
