"""Lines over lengths, in a terminal (plotext) or a file (matplotlib), imported when they are needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localctx.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plot", "check_plot_file"]

_HINT = "pip install 'localctx[plot]'"
MAX_TICKS = 8
"""Places that are all named on the axis."""
_ENDINGS = "a name in .png, .svg or .pdf"


def check_plot_file(path: Path) -> None:
    """Before hours of measuring: raises UsageError where Plot.to_file() could not write that file."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError:
        raise UsageError("a plot in a file needs matplotlib", _HINT) from None
    ending = path.suffix.removeprefix(".").lower()
    if ending and ending not in FigureCanvasBase.filetypes:
        raise UsageError(f"cannot write the plot to {path}: {path.suffix} is no kind of picture", _ENDINGS)
    place = path if path.exists() else path.parent
    if path.is_dir() or not os.access(place, os.W_OK):
        reason = "no such folder" if not place.exists() else "it cannot be written"
        raise UsageError(f"cannot write the plot to {path}: {reason}", "name another file")


@dataclass(frozen=True, slots=True)
class Plot:
    """Values of several lines at the same places; `is_log`: a logarithmic scale of values."""

    title: str
    x_name: str
    y_name: str
    places: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    is_log: bool = False

    def for_terminal(self, n_columns: int, n_rows: int = 20) -> str:
        """As text without colour. Raises UsageError without plotext."""
        try:
            import plotext
        except ImportError:
            raise UsageError("a plot in the terminal needs plotext", _HINT) from None
        plotext.clear_figure()
        plotext.theme("clear")
        plotext.plotsize(n_columns, n_rows)
        for marker, (name, values) in zip("ox+*#@%&$", self.lines.items(), strict=False):
            plotext.plot(list(self.places), list(values), label=name, marker=marker)
        plotext.title(self.title)
        plotext.xlabel(self.x_name)
        plotext.ylabel(self.y_name)
        plotext.xticks(list(self.places))
        if self.is_log:
            plotext.yscale("log")
        return str(plotext.uncolorize(plotext.build()))

    def draw(self, axes: Axes) -> None:
        """Onto a part of a picture."""
        for name, values in self.lines.items():
            axes.plot(self.places, values, marker="o", label=name)
        axes.set(title=self.title, xlabel=self.x_name, ylabel=self.y_name)
        if len(self.places) <= MAX_TICKS:
            axes.set_xticks(list(self.places))
        if self.is_log:
            axes.set_yscale("log")
        axes.legend()

    def to_file(self, path: Path, source: str = "") -> None:
        """As a picture; the name's ending says of what kind. Raises UsageError without matplotlib, or where
        the file cannot be written. source: what an SVG says that it was drawn from, in place of a date.
        """
        try:
            from matplotlib import rc_context
            from matplotlib.figure import Figure
        except ImportError:
            raise UsageError("a plot in a file needs matplotlib", _HINT) from None
        figure = Figure(figsize=(7, 4.5), layout="constrained")
        axes = figure.add_subplot()
        self.draw(axes)
        try:
            with rc_context({"svg.hashsalt": source or None}):
                figure.savefig(path, dpi=150, metadata={"Source": source, "Date": None} if source else None)
        except (OSError, ValueError) as error:
            raise UsageError(f"cannot write the plot to {path}: {error}", _ENDINGS) from None
