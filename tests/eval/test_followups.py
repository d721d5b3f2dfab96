"""The scripts and the table of `python -m localctx.eval.followups`."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from localctx.errors import UsageError
from localctx.eval.followup_scripts import LANGUAGES, scripts_of, things_of
from localctx.eval.followups import Outcome, Wanted, main, measure, table, written


@pytest.mark.parametrize("code", sorted(LANGUAGES))
def test_every_fact_of_a_script_stands_in_the_document(code: str, tmp_path: Path) -> None:
    dice, speech = random.Random(3), LANGUAGES[code]
    things = things_of(speech, 12, dice)
    path, offsets = written(speech, things, tmp_path, dice)
    text = path.read_text("utf-8")
    for script in scripts_of(speech, things, 10, dice):
        assert len(script.turns) == 6
        assert script.turns[0].form == "full"
        for turn in script.turns:
            thing, aspect = turn.fact
            assert things[thing].values[aspect] in text[offsets[turn.fact] :].split("\n")[0]
            assert turn.form == "full" or turn.asked != turn.alone


@pytest.mark.slow
def test_rewritten_questions_keep_nine_tenths_of_the_recall(tiny_model_path: Path) -> None:
    outcomes = list(measure(Wanted(n_scripts=8, model=str(tiny_model_path), embedder="off")))
    for code in LANGUAGES:
        some = [outcome.found for outcome in outcomes if outcome.language == code]
        alone = sum(found["alone"] for found in some)
        assert alone > 0.8 * len(some)
        assert sum(found["rewritten"] for found in some) >= 0.9 * alone
        assert sum(found["asked"] for found in some) < 0.8 * alone


def test_the_table_has_a_row_for_each_form() -> None:
    outcomes = [
        Outcome("en", "pronoun", {"asked": False, "rewritten": True, "alone": True}),
        Outcome("en", "full", {"asked": True, "rewritten": False, "alone": True}),
    ]
    lines = table(outcomes)
    assert lines[1].split() == ["en", "all", "2", "0.500", "0.500", "1.000", "50.0%"]
    assert lines[3].split() == ["en", "pronoun", "1", "0.000", "1.000", "1.000", "100.0%"]


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(UsageError, match="'fr'"):
        main(["--languages", "fr"])
