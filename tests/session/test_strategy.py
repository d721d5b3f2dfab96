"""The ladder of strategies is pure arithmetic."""

from __future__ import annotations

import pytest

from localctx.errors import UsageError
from localctx.session.strategy import (
    STRATEGIES_OF,
    check_strategy,
    choose_ask,
    choose_summarize,
    round_n_ctx,
)


@pytest.mark.parametrize(("needed", "strategy"), [(4096, "exact"), (4097, "retrieve")])
def test_ask_is_exact_up_to_the_last_token(needed: int, strategy: str) -> None:
    choice = choose_ask("auto", needed, 4096)
    assert choice.strategy == strategy
    assert f"{needed:,}" in choice.why


@pytest.mark.parametrize(("needed", "strategy"), [(4096, "exact"), (4097, "map-reduce")])
def test_summarize_falls_back_to_parts(needed: int, strategy: str) -> None:
    assert choose_summarize("auto", needed, 4096).strategy == strategy


def test_kept_kv_answers_by_itself_only_where_the_document_does_not_fit() -> None:
    assert choose_ask("auto", 4096, 4096, "indexed").strategy == "exact"
    choice = choose_ask("auto", 4097, 4096, "indexed")
    assert (choice.strategy, "indexed" in choice.why) == ("stream", True)
    assert choose_ask("retrieve", 4097, 4096, "indexed").strategy == "retrieve"
    assert choose_ask("stream", 10, 4096).strategy == "stream"


def test_what_is_asked_for_is_taken() -> None:
    assert choose_ask("retrieve", 10, 4096).strategy == "retrieve"
    assert choose_summarize("condense", 10, 4096).strategy == "condense"


def test_exact_that_does_not_fit_names_both_sizes() -> None:
    with pytest.raises(UsageError, match="5,000 tokens needed, context 4,096"):
        choose_ask("exact", 5000, 4096)


@pytest.mark.parametrize(
    ("strategy", "command", "error"),
    [
        ("map-reduce", "ask", UsageError),
        ("retrieve", "summarize", UsageError),
    ],
)
def test_a_strategy_of_another_command_is_refused(
    strategy: str, command: str, error: type[UsageError]
) -> None:
    with pytest.raises(error) as raised:
        check_strategy(strategy, command)
    assert raised.type is error
    assert "one of auto, exact" in raised.value.hint


def test_every_strategy_of_a_command_passes() -> None:
    for command, strategies in STRATEGIES_OF.items():
        for strategy in ("auto", *strategies):
            check_strategy(strategy, command)


@pytest.mark.parametrize(("n", "rounded"), [(1, 256), (256, 256), (257, 512)])
def test_context_sizes_are_steps_of_256(n: int, rounded: int) -> None:
    assert round_n_ctx(n) == rounded
