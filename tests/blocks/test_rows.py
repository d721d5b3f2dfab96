"""Rows of tables: blocks end between them, and what begins in a table is led by its header."""

from __future__ import annotations

import re

import pytest
from blocks.text_cases import StringText

from localctx.blocks import BlockPolicy, split, table_header

HEADER = "| Name | Note | Amount |"
ROWS = [f"| Mr. A. Name {n} | It ends here. And goes on. Nr. {n} | {n * 37:,} |" for n in range(120)]
TABLE = "\n".join([HEADER, "| --- | --- | --- |", *ROWS])
PROSE = "It is so. And then it is not. " * 20


def tokenize(text: str, first: bool) -> list[int]:
    """A token for each word, with the white space before it."""
    return [len(word) for word in re.findall(r"\s*\S+", text)]


@pytest.mark.parametrize("kind", ["fixed", "adaptive"])
def test_a_row_is_never_cut(kind: str) -> None:
    text = f"{PROSE}\n\n{TABLE}\n\n{PROSE}"
    policy = BlockPolicy(kind, "en")  # type: ignore[arg-type]  # one of the two
    blocks = list(split(StringText(text), tokenize, target_tokens=64, policy=policy))
    assert "".join(block.text for block in blocks) == text
    edges = {block.start for block in blocks}
    for row in [HEADER, *ROWS]:
        start = text.index(row)
        assert not edges & set(range(start + 1, start + len(row)))
    assert not edges & set(range(text.index(HEADER) + 1, text.index(ROWS[0])))  # the header has a row
    assert {block.cut for block in blocks if text.index(ROWS[3]) < block.end < text.index(ROWS[-3])} == {
        "row"
    }


def test_rows_of_csv_and_of_plain_tables_are_not_cut() -> None:
    csv = "\n".join(["name,note", *(f"{n},It ends. And goes on here." for n in range(200))])
    plain = "\n".join(f"{n} | It ends. And goes on here. | x" for n in range(200))
    for text, policy in ((csv, BlockPolicy(is_table=True)), (plain, BlockPolicy())):
        blocks = list(split(StringText(text), tokenize, target_tokens=64, policy=policy))
        assert len(blocks) > 5
        assert all(text[block.start] == "\n" for block in blocks[1:])


def test_what_begins_in_a_table_has_its_header() -> None:
    text = StringText(f"Before.\n\n{TABLE}\n\nAfter | this.")
    whole = text.read(0, text.n_code_points)
    for row in ROWS[1::20]:
        start = whole.index(row)
        assert table_header(text, start, start + 50, False) == HEADER
        assert table_header(text, start - 1, start + 50, False) == HEADER  # begins with the line break
    for other in ("Before.", HEADER, "After | this."):
        start = whole.index(other)
        assert table_header(text, start, start + 30, False) == ""


def test_a_table_without_a_header_and_one_far_above_have_none() -> None:
    rows = StringText("\n".join(ROWS))
    assert table_header(rows, rows.read(0, 99_999).index(ROWS[50]), 10_000, False) == ""
    long = StringText("\n".join([HEADER, "| --- | --- | --- |", *(ROWS * 20)]))
    assert table_header(long, long.n_code_points - len(ROWS[-1]), long.n_code_points, False) == ""
    assert table_header(StringText("a,b\n1,2\n3,4"), 4, 8, True) == "a,b"
    assert table_header(StringText("a,b\n1,2\n3,4"), 0, 8, True) == ""
