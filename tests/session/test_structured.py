"""Answers under a schema, from documents, with a real tiny model."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

import localctx
from localctx.document import open_document
from localctx.engine.echo import EchoModel
from localctx.errors import UsageError
from localctx.session.ask import ask
from localctx.session.events import Finished
from localctx.session.structured import answer_schema, said
from localctx.settings import Settings

SCHEMA = {
    "type": "object",
    "properties": {"ship": {"type": "string", "maxLength": 8}, "crew": {"type": "integer", "maximum": 99}},
    "required": ["ship", "crew"],
}
TEXT = "The ship Marta came in with a crew of 12. She brought salt, rope and news to the harbour. " * 3


@pytest.fixture
def document(tmp_path: Path) -> Path:
    path = tmp_path / "harbour.txt"
    path.write_text(TEXT)
    return path


@pytest.fixture
def model(tmp_path: Path) -> str:
    return str(write_tiny_gguf(tmp_path / "random.gguf", bpe_vocabulary()))


@pytest.mark.parametrize("store", ["kept", "off"])
def test_every_answer_fulfils_the_schema(tmp_path: Path, document: Path, model: str, store: str) -> None:
    root = "off" if store == "off" else str(tmp_path / "store")
    settings = {"store": root, "schema": json.dumps(SCHEMA), "embedder": "off", "temp": 1.0}
    with localctx.open(document, model=model, max_tokens=300, **settings) as opened:
        for question in ("Which ship came?", "How many people were on it?"):
            answer = opened.ask(question)
            assert answer.finish_reason == "stop"
            jsonschema.validate(json.loads(answer.text), SCHEMA)
            assert answer.statements == ()


def test_a_cut_answer_warns(tmp_path: Path, document: Path, model: str) -> None:
    file = tmp_path / "schema.json"
    file.write_text("\ufeff" + json.dumps(SCHEMA))
    with localctx.open(
        document, model=model, store="off", embedder="off", schema=str(file), max_tokens=4
    ) as opened:
        answer = opened.ask("Which ship came?")
        assert answer.finish_reason == "length"
        assert any("no complete JSON" in warning for warning in answer.warnings)
        with pytest.raises(UsageError, match="not for summarize"):
            opened.summarize()


def test_a_structured_answer_is_judged_by_its_values() -> None:
    assert said('{"a": "Marta", "b": [12, true, null], "c": {"d": "salt"}}') == "Marta\n12\ntrue\nsalt"
    assert said('{"a": "Mar') == '{"a": "Mar'


@pytest.mark.parametrize(
    ("value", "flagged"),
    [
        ({"ship": "Zebulon", "crew": 12, "cargo": "fish"}, ["Zebulon"]),
        ({"ship": "zebulon"}, ["zebulon"]),
        ({"ship": "MARTA", "crew": 77}, ["77"]),
        ({"ship": "the ship Marta", "crew": "a crew of 12"}, []),
        ({"ship": None, "crew": "not mentioned", "cargo": "rope"}, []),
        ({"ship": ["Marta", "Ilse"]}, ["Ilse"]),
    ],
)
def test_values_that_the_document_does_not_hold_are_flagged(
    document: Path, value: object, flagged: list[str]
) -> None:
    """`cargo` is one of the schema's own words, whatever the document says."""
    properties = {"ship": {}, "crew": {}, "cargo": {"enum": ["fish", "rope"]}}
    model = EchoModel(lambda question: json.dumps(value))
    settings = Settings(store="off", schema=json.dumps({"properties": properties}))
    with open_document(document, cache_dir=None) as opened:
        events = list(ask([opened], model, "Which ship came, and with how many?", settings))
    assert isinstance(events[-1], Finished)
    told = [text for text in events[-1].answer.warnings if text.startswith("not in the document")]
    assert told == [f"not in the document: {name}" for name in flagged]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is not JSON"),
        ('{"enum": [NaN]}', "NaN is no number of JSON"),
        ('{"const": 1e1000}', "1e1000 is too large a number"),
        ("[" * 100_000, "nested too deeply"),
        ("3", "a schema is an object"),
        ('{"type": "integer", "multipleOf": 2}', '"multipleOf" is not supported'),
        (None, "no such file"),
        ("\0", "is not JSON"),
    ],
)
def test_a_schema_that_is_none_is_refused_in_one_line(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "schema.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError) as error:
        answer_schema(Settings(schema=str(file)))
    assert said in error.value.message
    assert "\n" not in error.value.message


def test_side_by_side_each_question_has_a_form_of_its_own(tmp_path: Path, document: Path, model: str) -> None:
    digit = {"type": "integer", "minimum": 2, "maximum": 7}
    forms = [json.dumps(SCHEMA), json.dumps(digit), None]
    opened = localctx.open(document, model=model, store=str(tmp_path / "store"), embedder="off")
    with opened, opened.side_by_side() as asking:
        for form in forms:
            asked = replace(opened.settings, schema=form, max_tokens=60)
            asking.submit(opened.documents, "Which ship came?", settings=asked)
        texts = {ticket: event.answer.text for ticket, event in asking if isinstance(event, Finished)}
    jsonschema.validate(json.loads(texts[0]), SCHEMA)
    jsonschema.validate(json.loads(texts[1]), digit)
    assert len(texts) == 3
