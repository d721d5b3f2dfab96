"""Tables and plots of any command's JSON, for docs/benchmarks.md: its lists of objects, a column a figure.

Knows no schema and no files. How some schemas are shown is benchmark_renderers.py's.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localctx.eval.plots import Plot

__all__ = ["Table", "cell", "generic_tables", "plots_of"]

MOST_ROWS = 60
MOST_COLUMNS = 16
MOST_NUMBERS = 6
"""Of a list that is shown in one cell."""
TOLD_ELSEWHERE = ("schema", "command", "model.fingerprint")
NOT_SHOWN = ("answers", "documents", "plots", "questions")
"""Lists that say little without the documents."""
SPREAD = frozenset({"median", "lowest", "highest"})


@dataclass(frozen=True, slots=True)
class Table:
    """Cells as they are shown; `title` may be empty."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]

    @property
    def markdown(self) -> str:
        """As Markdown; a bar in a cell does not end it."""
        lines = [self.columns, ["---"] * len(self.columns), *self.rows]
        text = "\n".join(f"| {' | '.join(_safe(cell) for cell in line)} |" for line in lines)
        return f"{self.title}:\n\n{text}" if self.title else text


def _safe(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def cell(value: Any) -> str:
    """A figure as it is shown: a spread as `median (lowest-highest)`, four digits of a fraction."""
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= 10_000 else f"{value:.4g}"
        case str():
            return value
        case {"median": median, "lowest": lowest, "highest": highest}:
            return cell(median) if lowest == highest else f"{cell(median)} ({cell(lowest)}-{cell(highest)})"
        case [*parts]:
            return " / ".join(map(cell, parts))
    return str(value)


def plots_of(result: Mapping[str, Any]) -> list[Plot]:
    """Those that the result brings under `plots`."""
    return [
        Plot(
            one["title"], one["x_name"], one["y_name"], one["places"], one["lines"], one.get("is_log", False)
        )
        for one in result.get("plots", ())
    ]


def generic_tables(result: Mapping[str, Any]) -> list[Table]:
    """A table of the figures that stand alone, and one of each list of objects, at any depth of objects."""
    alone = {name: value for name, value in _flat(result).items() if name not in TOLD_ELSEWHERE}
    tables = (
        [Table("", ["", "value"], [[name, cell(value)] for name, value in alone.items()])] if alone else []
    )
    tables += (_table(name, rows) for name, rows in _lists(result))
    return tables


def _lists(values: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Sequence[Mapping[str, Any]]]]:
    """The lists of objects, by name, but for those that are too long to be read."""
    for key, value in values.items():
        if isinstance(value, Mapping):
            yield from _lists(value, f"{before}{key}.")
        elif key not in NOT_SHOWN and _is_rows(value):
            yield f"{before}{key}", value


def _is_rows(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(one, Mapping) for one in value)


def _table(name: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    flat = [_flat(row) for row in rows[:MOST_ROWS]]
    columns = list(dict.fromkeys(key for row in flat for key in row))[:MOST_COLUMNS]
    left = f", {MOST_ROWS} of {len(rows)}" if len(rows) > MOST_ROWS else ""
    return Table(f"`{name}`{left}", columns, [[cell(row.get(key)) for key in columns] for row in flat])


def _flat(values: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """Figures and short texts, those of objects inside as `outer.inner`; no lists but those of numbers."""
    flat: dict[str, Any] = {}
    for key, value in values.items():
        name = f"{before}{key}"
        if isinstance(value, Mapping) and not value.keys() >= SPREAD:
            flat |= _flat(value, f"{name}.")
        elif isinstance(value, list):
            if 0 < len(value) <= MOST_NUMBERS and all(isinstance(one, int | float) for one in value):
                flat[name] = value
        else:
            flat[name] = value
    return flat
