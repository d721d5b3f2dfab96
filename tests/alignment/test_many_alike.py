"""Hundreds of passages that are worded alike: each is compared with its own, and the work stays in step."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import overload

import pytest

from localctx.alignment.changes import Differ, Spot
from localctx.alignment.entities import Entity
from localctx.alignment.outline import outline_of
from localctx.alignment.words import Alphabet
from localctx.document.clauses import clauses_of
from localctx.eval.compare_pairs import compare_texts

PLAIN = "- The item costs {price} euros."
NAMED = "- The item no. {n} costs {price} euros."
SENTENCE = "The item costs {price} euros."


def listed(line: str, numbers: Sequence[int], more: int = 0, join: str = "\n") -> str:
    """A clause of such lines; prices that are no years."""
    lines = (line.format(n=n, price=f"{n + 5_000}.{more}") for n in numbers)
    return f"1. Prices\n\nThe prices are:\n{join.join(lines)}\n"


def changes(a: str, b: str) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [(d.kind, d.changes) for d in compare_texts(a, b)[2].differences]


def raised(numbers: Sequence[int]) -> list[tuple[str, tuple[tuple[str, str], ...]]]:
    return [("number", ((f"{n + 5_000}.0 euros", f"{n + 5_000}.1 euros"),)) for n in numbers]


@pytest.mark.parametrize("line", [PLAIN, NAMED, SENTENCE])
@pytest.mark.parametrize("size", [3, 60, 450])
def test_every_item_is_a_difference_of_its_own(line: str, size: int) -> None:
    numbers = range(size)
    join = " " if line == SENTENCE else "\n"
    assert changes(listed(line, numbers, 0, join), listed(line, numbers, 1, join)) == raised(numbers)


def test_items_are_known_by_their_numbers_where_others_went_and_came() -> None:
    found = changes(listed(NAMED, range(40, 340)), listed(NAMED, range(320), 1))
    assert [one for one in found if one[0] == "number"] == raised(range(40, 320))
    assert {kind for kind, _ in found} == {"number", "added", "removed"}


def test_items_without_a_name_keep_their_order() -> None:
    _, _, comparison = compare_texts(listed(PLAIN, range(250)), listed(PLAIN, range(300), 1))
    counts = Counter(difference.kind for difference in comparison.differences)
    assert (counts["number"], counts["moved"], counts["removed"]) == (250, 0, 0)


def test_an_item_among_many_that_grew_is_still_the_same() -> None:
    a, b = listed(PLAIN, range(300)), listed(PLAIN, range(300), 1)
    b = b.replace("5150.1 euros", "5150.1 euros net")
    found = changes(a, b)
    assert len(found) == 301
    assert [change for kind, change in found if kind == "reworded"] == [(("", "net"),)]


class Counted(Sequence[tuple[Entity, Spot]]):
    """Entities that count how often one is looked at."""

    def __init__(self, items: Sequence[tuple[Entity, Spot]]) -> None:
        self.items = items
        self.n_read = 0

    def __len__(self) -> int:
        return len(self.items)

    @overload
    def __getitem__(self, key: int) -> tuple[Entity, Spot]: ...
    @overload
    def __getitem__(self, key: slice) -> Sequence[tuple[Entity, Spot]]: ...
    def __getitem__(self, key: int | slice) -> tuple[Entity, Spot] | Sequence[tuple[Entity, Spot]]:
        self.n_read += len(self.items[key]) if isinstance(key, slice) else 1
        return self.items[key]

    def __iter__(self) -> Iterator[tuple[Entity, Spot]]:
        for item in self.items:
            self.n_read += 1
            yield item


def test_the_entities_of_a_stretch_are_found_without_looking_at_all() -> None:
    text = "The Tenant pays 5 euros on 1 May 2025 under Section 3, and the Landlord 70 dollars. " * 60
    outline = outline_of(text, clauses_of(text), Alphabet())
    words = Differ(text, text, frozenset(), {}, 0.9)._words(text, outline.passages)
    counted = Counted(words.entities)
    whole = type(words)(words.text, words.code, words.texts, words.starts, words.ends, counted, words.counts)
    spots = [(at, at + size) for at in range(len(words.texts) - 3) for size in (0, 1, 3)]
    for first, last in spots:
        near = (first, last) if first < last else (first - 1, last + 1)
        expected = [one for one in words.entities if one[1][0] < near[1] and near[0] < one[1][1]]
        assert whole.touched((first, last)) == expected
    assert counted.n_read < 40 * len(spots) < len(spots) * len(counted)


def test_many_changes_in_one_passage() -> None:
    a = "The parts are " + " and also ".join(f"{2 * n + 5_000}.0 euros" for n in range(2_000)) + "."
    found = changes(a, a.replace(".0 ", ".1 "))
    assert [(kind, len(parts)) for kind, parts in found] == [("number", 2_000)]
    assert found[0][1][1_999] == ("8998.0 euros", "8998.1 euros")


def test_numbers_in_a_row_are_one_change() -> None:
    a = "The parts are " + ", ".join(f"{n + 5_000}.0" for n in range(500)) + "."
    found = changes(a, a.replace(".0", ".1"))
    assert [(kind, len(parts)) for kind, parts in found] == [("number", 1)]
    assert found[0][1][0][0].startswith("5000.0, 5001.0")
    assert found[0][1][0][1].endswith(", 5499.1")
