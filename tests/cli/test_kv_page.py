"""The reference page of --kv is what the settings make it."""

from __future__ import annotations

from pathlib import Path

from localctx.cli.kv_page import page
from localctx.kv_settings import LATER_KEYS, setting_rows

PAGE = Path(__file__).parents[2] / "docs" / "kv.md"


def test_the_page_is_fresh() -> None:
    assert PAGE.read_text("utf-8") == page(), "python -m localctx.cli.kv_page > docs/kv.md"


def test_every_key_stands_on_the_page_with_a_meaning() -> None:
    text, rows = page(), setting_rows()
    assert all(f"`{key}`" in text for key in [*(row[0] for row in rows), *LATER_KEYS])
    assert all(values and meaning for _, values, _, meaning in rows)
    assert ("cache_type", "`streaming`") in [row[:2] for row in rows]
