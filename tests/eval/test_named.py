"""How many passages header lines lead: what stands where, and a row for each way on a tiny model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from localctx.errors import UsageError
from localctx.eval import named
from localctx.eval.named import Arm, Tried, Wanted, arm_of, arranged, main, measure, render
from localctx.from_settings import ChosenModel
from localctx.settings import Settings
from localctx.verify.confusable import Chapter, Shape
from localctx.verify.gate import probe_text

CHAPTERS = [
    Chapter(name, f"[{name}]\n", f"What of {name}?", str(place), "…", 100 * place, 100 * place + 50)
    for place, name in enumerate(("Oslo", "Lima", "Turin", "Cork", "Riga", "Perth"))
]


def test_the_best_are_led_and_stand_behind_the_others() -> None:
    ranked = [CHAPTERS[number] for number in (2, 5, 0, 1, 3, 4)]
    found = [(one.name, one.header) for one in arranged(ranked, 3)]
    unnamed = [("Lima", ""), ("Cork", ""), ("Riga", "")]
    assert found == [*unnamed, ("Oslo", "[Oslo]\n"), ("Perth", "[Perth]\n"), ("Turin", "[Turin]\n")]
    assert all(one.header for one in arranged(ranked, 6))


@pytest.mark.parametrize("text", ["", "24", "4:5", "4:0", "65:4", "a:b", "4:2:1"])
def test_what_is_no_arm_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        arm_of(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--questions", "99"], "--questions"),
        (["--places", "23", "--arms", "12:12"], "--places"),
        (["--places", "x"], "--places"),
        (["--shares", "a"], "--shares"),
        (["--shares", "200"], "--shares"),
    ],
)
def test_options_that_make_no_sense_are_refused_before_a_model_is_opened(words: list[str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        main([*words, "--model", "/nowhere.gguf"])


def test_every_question_is_asked_in_every_way(tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(named, "WINDOW", 128)
    monkeypatch.setattr(named, "probe_text", lambda: probe_text()[:8000])
    arms, shape = (arm_of("6:6"), arm_of("6:2")), Shape(n_filler=20, n_passage=48, n_chapters=6)
    wanted = Wanted(arms, (0, 2), (0.0, 0.5), n_documents=1, n_questions=2, shape=shape)
    settings = replace(Settings(), threads=1, store="off")
    tried = list(measure(settings, ChosenModel("tiny", tiny_model_path, None), wanted))
    ways = [(place, share, arm) for place in (0, 2) for share in (0.0, 0.5) for arm in arms]
    assert [(one.place, one.share, one.arm) for one in tried] == 2 * ways
    assert len({one.asked for one in tried}) == 2
    all_led, two_led = tried[0].n_evaluated, tried[1].n_evaluated
    assert 0 < two_led < all_led < tried[2].n_evaluated


def test_what_is_gained_and_lost_is_beside_all_header_lines() -> None:
    def tried(asked: str, n_named: int, is_right: bool) -> Tried:
        return Tried(0, asked, 0, 0.0, Arm(8, n_named), is_right, 10 * n_named)

    right = {("a", 8): True, ("b", 8): False, ("c", 8): True, ("a", 2): True, ("b", 2): True, ("c", 2): False}
    lines = render([tried(*way, is_right) for way, is_right in right.items()]).splitlines()
    assert lines[2:] == [
        "| 8 | 2 | 1 | 0% | 2 of 3 | 1, 1 | 20 |",
        "| 8 | 8 | 1 | 0% | 2 of 3 | 0, 0 | 80 |",
    ]
    assert render([tried("a", 8, True), tried("b", 8, True), tried("a", 2, False)]).endswith(
        "1 of 1 | 0, 0 | 80 |"
    )
