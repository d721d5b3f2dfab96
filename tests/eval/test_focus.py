"""Order and focus: the passages in each order, and a row for each way on a tiny model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localctx.eval import focus
from localctx.eval.focus import ORDERS, Row, Wanted, measure, ordered, render
from localctx.from_settings import ChosenModel
from localctx.settings import Settings
from localctx.verify.confusable import Chapter, Shape

CHAPTERS = [
    Chapter(name, f"[{name}]\n", f"What of {name}?", str(place), "…", 100 * place, 100 * place + 50)
    for place, name in enumerate(("Oslo", "Lima", "Turin", "Cork"))
]


def test_the_best_passage_stands_where_the_order_says_and_the_others_as_in_the_document() -> None:
    asked, others = CHAPTERS[1], [CHAPTERS[3], CHAPTERS[0], CHAPTERS[2]]
    found = {order: [one.name for one in ordered(asked, others, order)] for order in ORDERS}
    assert found == {
        "document": ["Oslo", "Lima", "Turin", "Cork"],
        "best-last": ["Oslo", "Turin", "Cork", "Lima"],
        "best-first": ["Lima", "Oslo", "Turin", "Cork"],
    }


def test_every_way_is_a_row(tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(focus, "SHAPE", Shape(n_filler=40, n_passage=64, n_chapters=4))
    monkeypatch.setattr(focus, "WINDOW", 128)
    wanted = Wanted(1, 2, (2, 3), ("document", "best-last"), (1.2,))
    chosen = ChosenModel("tiny", tiny_model_path, None)
    rows = list(measure(replace(Settings(), threads=1, store="off"), chosen, wanted))
    assert [(row.n_passages, row.order, row.factor) for row in rows] == [
        (2, "document", 1.0),
        (2, "best-last", 1.0),
        (3, "document", 1.0),
        (3, "best-last", 1.0),
        (2, "document", 1.2),
        (3, "document", 1.2),
    ]
    assert all(row.n == 2 and row.n_evaluated > 0 for row in rows)
    assert rows[2].n_evaluated > rows[0].n_evaluated


def test_the_table_has_a_line_a_way() -> None:
    lines = render([Row(12, "best-last", 1.1, 3, 12, 560.4)]).splitlines()
    assert lines[2] == "| 12 | best-last | 1.1 | 3 of 12 | 560 |"
