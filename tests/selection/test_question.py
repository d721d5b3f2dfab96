"""Questions that passages can answer, and those that need the whole document."""

from __future__ import annotations

import pytest

from localctx.selection import question_traits


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("How many records are there?", "count"),
        ("how often is tea mentioned", "count"),
        ("What is the total number of ships?", "count"),
        ("Wie viele Kinder gab es?", "count"),
        ("Combien de fois ?", "count"),
        ("¿Cuántos barcos hay?", "count"),
        ("Сколько человек упомянуто?", "count"),
        ("文中提到了多少个人？", "count"),
        ("いくつありますか", "count"),
        ("몇 개 있습니까?", "count"),
        ("List all names in the text.", "list"),
        ("Give me every date", "list"),
        ("Which cities are mentioned?", "list"),
        ("What are all the chapters?", "list"),
        ("Nenne alle Städte", "list"),
        ("列出所有城市", "list"),
        ("What does line 300 say?", "position"),
        ("What is the last sentence?", "position"),
        ("Which is the 3rd paragraph?", "position"),
        ("Was steht in Zeile 12?", "position"),
        ("第三行是什么？", "position"),
        ("What was the net revenue?", "plain"),
        ("How much did it cost?", "plain"),
        ("Who was the first president?", "plain"),
        ("Name the king of Spain.", "plain"),
        ("What does section 3 say about taxes?", "plain"),
        ("Is the county line marked?", "plain"),
        ("", "plain"),
        ("?" * 100_000, "plain"),
        ("last " * 20_000, "plain"),
    ],
)
def test_kinds(question: str, kind: str) -> None:
    traits = question_traits(question)
    assert traits.kind == kind
    assert traits.needs_whole_document == (kind != "plain")


def test_identifiers_and_quotes() -> None:
    traits = question_traits('What does "net revenue" mean for QX-417 in config.toml?')
    assert traits.identifiers == ("QX-417", "config.toml")
    assert traits.quotes == ("net revenue",)
