"""Schemas to grammars, judged by jsonschema on what a random model writes under them."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from engine.conftest import ask, collect, text_of
from engine.tiny_gguf import CHATML, bpe_vocabulary, write_tiny_gguf
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.gbnf import integers
from localctx.engine.json_schema import grammar_of
from localctx.engine.llama import LlamaModel, open_model
from localctx.errors import ModelError, UsageError
from localctx.values import Context

SHORT = {"type": "string", "maxLength": 4}
TREE = {
    "$ref": "#/$defs/node",
    "$defs": {
        "node": {
            "type": "object",
            "title": "a node",
            "properties": {
                "name": {"enum": ["left", "right"]},
                "below": {"type": "array", "items": {"$ref": "#/$defs/node"}, "maxItems": 1},
            },
            "required": ["name"],
        }
    },
}
SCHEMAS: list[dict[str, Any]] = [
    {"type": "boolean"},
    {"type": "null"},
    {"type": "integer"},
    {"type": "number"},
    {"type": "number", "minimum": 0},
    {"type": ["integer", "null"]},
    {"type": "integer", "minimum": -17, "maximum": 205},
    {"type": "integer", "exclusiveMinimum": 0, "exclusiveMaximum": 2},
    {"type": "integer", "minimum": 1995},
    {"type": "string", "minLength": 3, "maxLength": 5},
    {"type": "string", "format": "date"},
    {"type": "string", "format": "date-time"},
    {"type": "string", "format": "uuid"},
    {"const": {"a": [1, 'quo"te', "back\\slash", "line\nbreak", "é\x7f"]}},
    {"enum": ["yes", "no", 3, None]},
    {"type": "string", "enum": ["yes", 3]},
    {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 3},
    {"type": "array", "items": {"type": "boolean"}, "maxItems": 1},
    {"type": "array", "items": {"type": "boolean"}, "maxItems": 0},
    {"type": "object", "additionalProperties": False},
    {"type": "object", "properties": {"a": SHORT, "b": SHORT, "c": SHORT}, "required": ["b"]},
    {"type": "object", "properties": {"a b": SHORT, 'c"d': {"type": "boolean"}}},
    {"properties": {"a": {"anyOf": [SHORT, {"type": "null"}]}}, "required": ["a", "a"]},
    {
        "type": "object",
        "properties": {"a": {"allOf": [SHORT]}},
        "required": ["a"],
        "additionalProperties": False,
    },
    TREE,
]


@pytest.fixture(scope="module")
def context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LlamaModel, Context]]:
    """A model of random weights: under a grammar it writes anything that the grammar allows."""
    folder = tmp_path_factory.mktemp("schema")
    path = write_tiny_gguf(folder / "random.gguf", bpe_vocabulary())
    with open_model(path) as model:
        yield model, model.open_context(1024)


def written(
    context: tuple[LlamaModel, Context], grammar: str, seed: int, max_tokens: int = 400
) -> tuple[str, str]:
    """The answer and why it ended."""
    model, opened = context
    request = ask(
        model,
        "?",
        grammar=grammar,
        temperature=1.5,
        top_p=1.0,
        top_k=0,
        min_p=0.0,
        seed=seed,
        max_tokens=max_tokens,
    )
    pieces = collect(opened, [request])[0]
    return text_of(pieces), str(pieces[-1].finish_reason)


@pytest.mark.parametrize("schema", SCHEMAS, ids=json.dumps)
def test_what_is_written_is_valid(context: tuple[LlamaModel, Context], schema: dict[str, Any]) -> None:
    validator = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    grammar = grammar_of(schema)
    n_whole = 0
    for seed in range(8):
        text, reason = written(context, grammar, seed)
        assert "\ufffd" not in text[:-1]  # single bytes chosen at random still are UTF-8
        if reason == "stop":
            n_whole += 1
            assert text == text.strip()
            validator.validate(json.loads(text))
    assert n_whole >= 2


def test_greedy_keeps_to_the_grammar_too(context: tuple[LlamaModel, Context]) -> None:
    model, opened = context
    grammar = grammar_of(
        {"type": "object", "properties": {"n": {"type": "integer", "maximum": 9}}, "required": ["n"]}
    )
    pieces = collect(opened, [ask(model, "?", grammar=grammar), ask(model, "?", max_tokens=5)])
    assert json.loads(text_of(pieces[0])).keys() == {"n"}
    assert len(pieces[1]) >= 1  # beside it one without a grammar


def test_an_answer_that_is_cut_says_length(context: tuple[LlamaModel, Context]) -> None:
    text, reason = written(context, grammar_of({"type": "string", "minLength": 300}), 1, max_tokens=10)
    assert reason == "length"
    with pytest.raises(json.JSONDecodeError):
        json.loads(text)


def test_an_open_thinking_block_is_closed_first(tmp_path: Path) -> None:
    template = CHATML.replace("assistant\n{% endif", "assistant\n<think>\n{% endif")
    path = write_tiny_gguf(tmp_path / "thinks.gguf", bpe_vocabulary(), template=template)
    with open_model(path) as model:
        plain = ask(model, "?")
        assert plain.prompt.thinking_open
        pieces = collect(model.open_context(512), [ask(model, "?", grammar=grammar_of({"type": "boolean"}))])[
            0
        ]
    assert json.loads(text_of(pieces)) in (True, False)
    assert "".join(piece.thinking for piece in pieces) == ""


def test_a_grammar_that_llama_cpp_refuses_is_an_error(context: tuple[LlamaModel, Context]) -> None:
    with pytest.raises(ModelError, match="does not take the grammar"):
        written(context, "root ::= nothing-of-the-kind", 1)


@settings(deadline=None, max_examples=300)
@given(st.integers(-3000, 3000), st.integers(-3000, 3000))
def test_ranges_of_integers_hold_every_number_and_no_other(one: int, other: int) -> None:
    low, high = sorted((one, other))
    pattern = re.compile(integers(low, high).replace('"', "").replace(" ", ""))
    steps = {
        low,
        high,
        low - 1,
        high + 1,
        0,
        (low + high) // 2,
        *range(low - 12, low + 12),
        *range(high - 12, high + 12),
    }
    for number in steps:
        assert bool(pattern.fullmatch(str(number))) == (low <= number <= high), number


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"type": "integer", "multipleOf": 3}, 'schema at its top: "multipleOf" is not supported'),
        ({"properties": {"age": {"type": "strnig"}}}, 'at properties/age: type "strnig" is not one of'),
        ({"type": []}, "type [] is not one of"),
        ({"type": {}}, "type {} is not one of"),
        ({"oneOf": [{"type": "null"}]}, '"oneOf" is not supported'),
        ({"type": "object", "properties": {"a": {"pattern": "^a$"}}}, 'properties/a: "pattern"'),
        ({"$ref": "https://example.org/schema"}, "leads out of the schema"),
        ({"$ref": "#/$defs/none"}, "leads nowhere"),
        ({"properties": {f"p{n}": {} for n in range(3000)}}, "3,000 properties are more than the 1,000"),
        ({"properties": {"a": {"enum": list(range(1001))}}}, "at properties/a/enum: 1,001 values are more"),
        ({"anyOf": [{"type": "null"}] * 1001}, "1,001 schemas are more than the 1,000"),
        ({"$ref": "#"}, "leads back to itself"),
        ({"anyOf": [{"$ref": "#"}, {"type": "null"}]}, "leads back to itself"),
        ({"anyOf": []}, "not a list of schemas"),
        ({"anyOf": [{"type": "null"}], "type": "null"}, '"type" is not supported here'),
        ({"allOf": [{"type": "null"}, {"type": "integer"}]}, "allOf of several"),
        ({"enum": []}, "not a list of values"),
        ({"enum": ["\ud800"]}, "surrogate"),
        ({"enum": [1], "type": "string"}, "no value is of type"),
        ({"type": "integer", "minimum": 3, "maximum": 2}, "no integer lies between"),
        ({"type": "number", "minimum": 3}, "minimum of a number"),
        ({"type": "string", "maxLength": 5000}, "maxLength is not a whole number up to 1000"),
        ({"type": "array", "minItems": 2, "maxItems": 1}, "minItems is above maxItems"),
        ({"type": "array", "items": False}, "items: nothing fulfils"),
        (
            {"type": "object", "required": ["a"], "additionalProperties": False},
            "additionalProperties forbids",
        ),
        ({"type": "object", "required": "a"}, "required: is not a list of names"),
        ([], "a schema is an object"),
    ],
    ids=str,
)
def test_what_cannot_be_held_is_refused_by_name(schema: object, said: str) -> None:
    with pytest.raises(UsageError) as error:
        grammar_of(schema)
    assert said in error.value.message


def test_nesting_has_an_end() -> None:
    schema: dict[str, Any] = {"type": "null"}
    for _ in range(200):
        schema = {"type": "array", "items": schema}
    with pytest.raises(UsageError, match="nested more than"):
        grammar_of(schema)
