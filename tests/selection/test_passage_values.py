"""Numbers that may be values of a record, with their signs and units."""

from __future__ import annotations

from typing import Any

import pytest

from localctx.selection.passage_values import passage_values
from localctx.selection.record_schema import RecordSchema

SMALL = frozenset({"it", "was", "to", "then", "a", "of", "in", "the", "and", "from", "or", "is"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was -5 degrees, then \u22127.5 °C and +3.", ("-5", "-7.5", "3")),
        ("-5 in the morning; a loss of -$1,200 or $-30, (-8).", ("-5", "-1200", "-30", "-8")),
        ("Pages 3-5, room A-6, 7 - 8 and flight BA-9.", ("3", "5", "6", "7", "8", "9")),
        ("In 1990\u20131992 gate 2020-21 and call 555-01.", ("1990", "1992", "2020", "21", "555", "1")),
        ("Net loss | (5.00) | ($1,250.50)", ("5", "-5", "1250.5", "-1250.5")),
        ("Five (5.00) of three (3) men and (12).", ("5", "3", "12")),
        ("It is -0 or 0.", ("0",)),
    ],
)
def test_numbers_have_their_signs(text: str, expected: tuple[str, ...]) -> None:
    """What stands in brackets as accounts write amounts may be either, unless it repeats a number."""
    assert sorted(passage_values(text, SMALL).numbers) == sorted(expected)


def test_a_signed_number_keeps_its_unit() -> None:
    found = passage_values("It fell from 4 euros to -4 euros, then to -€9.", SMALL)
    assert found.numbers_of({"euros"}) == ("4", "-4")
    assert found.numbers_of({"€"}) == ("-9",)


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ("(5.00)", -5),
        ("(1,250.50)", -1250.5),
        ("\u22125", -5),
        ("-7.5", -7.5),
        ("5", 5),
        ("3-5", "3-5"),
        ("(A)", "(A)"),
    ],
)
def test_a_cell_in_brackets_is_below_zero(cell: str, value: Any) -> None:
    record = {"type": "object", "properties": {"a": {"type": "number"}}}
    schema = RecordSchema(record, record)
    assert schema.made_fit(cell, schema.properties["a"]) == value
