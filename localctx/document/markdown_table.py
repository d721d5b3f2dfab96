"""Rows of a table as Markdown. Pure text; knows no format."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["header_rule", "table_row"]


def table_row(cells: Iterable[str]) -> str:
    """Cells of one line each as a row, without a line end."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def header_rule(n_columns: int) -> str:
    """What stands between a header and its rows, without a line end."""
    return "|" + " --- |" * n_columns
