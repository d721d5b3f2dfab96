"""Names, numbers and identifiers are counted by what the language's script tells."""

from __future__ import annotations

import pytest

from localctx.blocks import count_entities


@pytest.mark.parametrize(
    ("text", "language", "n"),
    [
        ("He paid $3,500 on 2024-01-03.", "en", 2),
        ("They said that John F. Kennedy came to Paris.", "en", 2),
        ("The end. Then it began.", "en", 0),
        ("call foo_bar.baz() or fooBar, see utf8", "en", 3),
        ("Der Hund und die Katze im Haus", "de", 0),
        ("Gestern sprach Angela Merkel 2 Stunden", "de", 2),
        ("北京的GDP增长了5.3%，《论语》", "zh", 3),
        ("ロンドンで100人", "ja", 2),
        ("", None, 0),
    ],
)
def test_entities(text: str, language: str | None, n: int) -> None:
    assert count_entities(text, language) == n
