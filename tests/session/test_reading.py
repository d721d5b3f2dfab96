"""A reading put back from its parts: all of it, or nothing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from localctx.document import open_document
from localctx.session.reading import FACTS, Reading


def tokenize(text: str, first: bool) -> list[int]:
    return [len(word) for word in text.split()]


@pytest.fixture
def reading(tmp_path: Path) -> Iterator[Reading]:
    path = tmp_path / "book.md"
    path.write_text("".join(f"# Part {n}\n\n{'Salt and rope. ' * 40}\n\n" for n in range(4)), "utf-8")
    with open_document(str(path), cache_dir=None) as document:
        reading = Reading(document, block_size=60)
        for _ in reading.read(tokenize):
            pass
        yield reading


@pytest.mark.parametrize("name", ["places", "paths", "seams"])
def test_facts_of_another_making_change_nothing(reading: Reading, name: str) -> None:
    good, passages = reading.parts(), list(map(reading.passage, range(reading.n_blocks)))
    assert len({passage.heading_path for passage in passages}) > 1
    other = {"places": [[7, "vii"]] * 9, "paths": [["Elsewhere"]] * 9, "seams": [1, 2]}
    for wrong in (None, 3, [1, 2, 3, 4, 5, 6, 7]):
        facts = json.dumps({**other, name: wrong}).encode()
        assert not reading.restore({**good, FACTS: facts})
        assert list(map(reading.passage, range(reading.n_blocks))) == passages
        assert reading.parts() == good
    assert reading.restore({**good, FACTS: json.dumps(other).encode()})
    assert reading.passage(0).heading_path == ("Elsewhere",)
