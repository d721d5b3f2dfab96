"""One ladder for runs and plans: each rung has its reason, one is taken."""

from __future__ import annotations

import pytest

from localctx.errors import UsageError
from localctx.session.ladder import RUNGS, Facts, RungName, Step, chosen, ladder
from localctx.session.strategy import choose_ask, choose_summarize


def by_name(steps: tuple[Step, ...]) -> dict[str, Step]:
    return {step.rung.name: step for step in steps}


def test_the_order_is_from_the_best_answers_to_the_cheapest() -> None:
    names = [rung.name for rung in RUNGS]
    assert names == [
        "exact-f16", "exact-q8", "scaled-rope", "streamed-store", "lazy-store", "retrieve", "map-reduce",
        "condense",
    ]  # fmt: skip
    assert [step.rung for step in ladder("ask", "auto", Facts(10, 20))] == list(RUNGS)


@pytest.mark.parametrize("needed", [4096, 4097])
@pytest.mark.parametrize("stream", [None, "half is indexed"])
def test_a_run_takes_the_rung_that_the_ladder_shows(needed: int, stream: str | None) -> None:
    step = chosen(ladder("ask", "auto", Facts(needed, 4096, stream)))
    choice = choose_ask("auto", needed, 4096, stream)
    assert (choice.strategy, choice.why) == (step.rung.strategy, step.why)
    step = chosen(ladder("summarize", "auto", Facts(needed, 4096, stream)))
    choice = choose_summarize("auto", needed, 4096)
    assert (choice.strategy, choice.why) == (step.rung.strategy, step.why)


def test_what_is_passed_over_says_why() -> None:
    notes: dict[RungName, str] = {"exact-q8": "too large in q8 as well"}
    steps = by_name(ladder("ask", "auto", Facts(9000, 8192, "all is indexed", notes=notes)))
    assert steps["exact-f16"].why == "does not fit: 9,000 tokens needed, context 8,192"
    assert steps["exact-q8"].why == "too large in q8 as well"
    assert steps["scaled-rope"].why == "only where asked for: --rope-scaling auto"
    assert steps["streamed-store"].is_chosen and "all is indexed" in steps["streamed-store"].why
    assert steps["retrieve"].why == "not needed: streamed-store comes first"
    assert steps["map-reduce"].why == "not for ask"
    assert [step.is_chosen for step in steps.values()].count(True) == 1


def test_settings_say_which_rung_exact_and_stream_are() -> None:
    facts = Facts(10, 4096, exact="exact-q8", stored="lazy-store")
    assert chosen(ladder("ask", "auto", facts)).rung.name == "exact-q8"
    assert chosen(ladder("ask", "exact", facts)).rung.name == "exact-q8"
    assert chosen(ladder("ask", "stream", facts)).rung.name == "lazy-store"
    assert chosen(ladder("summarize", "condense", facts)).why == "as asked"
    with pytest.raises(UsageError, match="does not fit"):
        ladder("ask", "exact", Facts(4097, 4096))
