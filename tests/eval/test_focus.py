"""Order and focus: the passages in each order, the weight of distance, and a row for each way on a tiny
model.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from localctx.errors import UsageError
from localctx.eval import focus
from localctx.eval.focus import ORDERS, Arm, Tried, Wanted, arm_of, measure, opened, ordered, render, weighed
from localctx.from_settings import ChosenModel
from localctx.settings import Settings
from localctx.verify.confusable import KINDS, Chapter, Shape, make_document, words
from localctx.verify.gate import probe_text
from localctx.verify.questions import Asker, store_document

CHAPTERS = [
    Chapter(name, f"[{name}]\n", f"What of {name}?", str(place), "…", 100 * place, 100 * place + 50)
    for place, name in enumerate(("Oslo", "Lima", "Turin", "Cork"))
]
PROSE = probe_text()[:8000]
SETTINGS = replace(Settings(), threads=1, store="off")


def test_the_best_passage_stands_where_the_order_says_and_the_others_as_in_the_document() -> None:
    asked, others = CHAPTERS[1], [CHAPTERS[3], CHAPTERS[0], CHAPTERS[2]]
    found = {order: [one.name for one in ordered(asked, others, order)] for order in ORDERS}
    assert found == {
        "document": ["Oslo", "Lima", "Turin", "Cork"],
        "best-last": ["Oslo", "Turin", "Cork", "Lima"],
        "best-first": ["Lima", "Oslo", "Turin", "Cork"],
    }


def test_an_arm_is_read_as_it_is_typed() -> None:
    assert arm_of("8:best-last:1.1:0.8") == Arm(8, "best-last", 1.1, 0.8)
    assert arm_of("8") == Arm(8, "document", 1.0, 1.0)
    assert arm_of(arm_of("4:best-first").name) == Arm(4, "best-first")


@pytest.mark.parametrize(
    "text", ["", "x", "0:document", "13:document", "4:last", "4:document:0", "4:document:1:1:1"]
)
def test_what_is_no_arm_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        arm_of(text)


def test_every_question_is_asked_in_every_way(tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(focus, "WINDOW", 128)
    monkeypatch.setattr(focus, "probe_text", lambda: PROSE)
    arms = tuple(map(arm_of, ("2:document", "3:best-last", "2:document:1.2", "3:document:1:0.5")))
    wanted = Wanted(arms, 1, 2, 0, Shape(n_filler=40, n_passage=64, n_chapters=4))
    tried = list(measure(SETTINGS, ChosenModel("tiny", tiny_model_path, None), wanted))
    assert [one.arm for one in tried] == 2 * [arm.name for arm in arms]
    assert len({one.asked for one in tried}) == 2
    assert tried[1].n_evaluated > tried[0].n_evaluated > 0


def test_the_keys_of_far_passages_are_shorter(tiny_model_path: Path) -> None:
    with opened(SETTINGS, ChosenModel("tiny", tiny_model_path, None)) as (model, context):
        asker = Asker(model, context)
        shape = Shape(n_filler=40, n_passage=64, n_chapters=3)
        document = make_document(0, words(PROSE, model.tokenize), model.tokenize, KINDS["city"], shape)
        stored = store_document(context, asker.prefix, document, 128, "f16")
        first, second, third = document.chapters
        context.place(asker.prefix, [])
        like, head_dim = context.export(0, 1), context.rope_table.head_dim
        found = weighed(like, head_dim, stored, [first, second, third], 0.5)
        assert weighed(like, head_dim, stored, [first], 1.0) is stored
        for chapter, share in ((first, 0.5), (second, 0.5**0.5), (third, 1.0)):
            before, row = stored.run_of(chapter.first + 3)
            after, new_row = found.run_of(chapter.first + 3)
            assert np.allclose(after.keys(1)[new_row], share * before.keys(1)[row].astype(float), atol=2e-3)
            assert np.array_equal(after.values(1)[new_row], before.values(1)[row])


def test_the_table_counts_only_questions_that_were_asked_in_every_way() -> None:
    arms = (Arm(12), Arm(12, "best-last"))
    tried = [
        Tried(0, "Oslo", arms[0].name, False, 560),
        Tried(0, "Oslo", arms[1].name, True, 560),
        Tried(0, "Lima", arms[0].name, True, 560),
    ]
    lines = render(tried, arms).splitlines()
    assert lines[2:] == [
        "| 12 | document | 1 | 1 | 0 of 1 | 0, 0 | 560 |",
        "| 12 | best-last | 1 | 1 | 1 of 1 | 1, 0 | 560 |",
    ]
