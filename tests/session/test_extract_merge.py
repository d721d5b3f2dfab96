"""Records that say the same, or a part of the same, become one where the first of them stands."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.session import extract
from localctx.session.extract import merge
from localctx.session.extraction import FoundRecord
from localctx.session.provenance import Citation


def place(number: int) -> Citation:
    return Citation("a.txt", number, number + 1, "x", 1.0)


def found(values: Sequence[Mapping[str, Any]]) -> list[FoundRecord]:
    """A record each, cited where it stands in the row."""
    return [FoundRecord(value, (place(number),), "model") for number, value in enumerate(values)]


def merged(values: Sequence[Mapping[str, Any]]) -> list[tuple[Mapping[str, Any], list[int]]]:
    """The records that are left, with the numbers of those they were made of."""
    kept, n_repeated = merge(found(values))
    assert n_repeated == len(values) - len(kept)
    return [(record.value, [citation.start for citation in record.citations]) for record in kept]


FULL = {"a": 1, "b": 2, "c": 3}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([{"a": 1, "b": 2}, {"a": 1, "c": 3}, FULL], [(FULL, [0, 1, 2])]),
        ([FULL, {"a": 1, "b": 2}, {"a": 1, "c": 3}], [(FULL, [0, 1, 2])]),
        ([{"a": 1}, {"a": 9}, FULL], [(FULL, [0, 2]), ({"a": 9}, [1])]),
        ([{"b": 2}, {"a": 1, "b": 2}, FULL], [(FULL, [0, 1, 2])]),
        ([{"a": "Anna"}, {"a": "ANNA", "b": None}], [({"a": "Anna"}, [0, 1])]),
        ([{"a": 1, "b": 2}, {"a": 1, "c": 3}], [({"a": 1, "b": 2}, [0]), ({"a": 1, "c": 3}, [1])]),
        ([{"a": 1}, {"b": 1}], [({"a": 1}, [0]), ({"b": 1}, [1])]),
        ([{}, {"a": 1}, {"a": None}], [({}, [0, 2]), ({"a": 1}, [1])]),
        ([], []),
    ],
)
def test_a_part_goes_into_the_whole(
    values: list[dict[str, Any]], expected: list[tuple[dict[str, Any], list[int]]]
) -> None:
    assert merged(values) == expected


RECORDS = st.lists(st.dictionaries(st.sampled_from("abcd"), st.integers(0, 1), min_size=1), max_size=9)


@settings(deadline=None)
@given(RECORDS)
def test_what_is_left_is_no_part_of_another_and_nothing_is_lost(values: list[dict[str, Any]]) -> None:
    kept = merged(values)
    for (one, _), (other, _) in itertools.permutations(kept, 2):
        assert not one.items() <= other.items()
    assert sorted(number for _, numbers in kept for number in numbers) == list(range(len(values)))
    assert [numbers[0] for _, numbers in kept] == sorted(numbers[0] for _, numbers in kept)
    for value, numbers in kept:
        assert numbers == sorted(numbers)
        assert all(values[number].items() <= value.items() for number in numbers)


def test_each_record_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of one kind and different names: time would grow with their square."""
    calls: list[FoundRecord] = []
    facts = extract._facts
    monkeypatch.setattr(extract, "_facts", lambda record: calls.append(record) or facts(record))
    values = [{"kind": "gift", "name": f"n{n % 400}", "town": f"t{n}"} for n in range(600)]
    assert len(merged(values)) == 600
    assert len(calls) == 600
