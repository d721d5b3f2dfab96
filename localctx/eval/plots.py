"""Lines over lengths, in a terminal (plotext) or a file (matplotlib), imported when they are needed."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from localctx.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["Plot", "check_plot_file", "panels_to_file"]

_HINT = "pip install 'localctx[plot]'"
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
    """Values of several lines at the same places, or at places of their own; `is_log`: a logarithmic scale of
    values · marked: places that are pointed out.
    """

    title: str
    x_name: str
    y_name: str
    places: Sequence[float]
    lines: Mapping[str, Sequence[float]]
    is_log: bool = False
    own_places: Mapping[str, Sequence[float]] = field(default_factory=dict)
    marked: Sequence[float] = ()

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
            plotext.plot(list(self._places_of(name)), list(values), label=name, marker=marker)
        plotext.title(self.title)
        plotext.xlabel(self.x_name)
        plotext.ylabel(self.y_name)
        plotext.xticks(list(self.places))
        if self.is_log:
            plotext.yscale("log")
        return str(plotext.uncolorize(plotext.build()))

    def _places_of(self, name: str) -> Sequence[float]:
        return self.own_places.get(name, self.places)

    def draw(self, axes: Axes) -> None:
        """Onto a part of a picture."""
        for name, values in self.lines.items():
            axes.plot(self._places_of(name), values, marker="o", label=name)
        for place in self.marked:
            axes.axvline(place, linestyle=":", color="grey")
        axes.set(title=self.title, xlabel=self.x_name, ylabel=self.y_name, xticks=list(self.places))
        if self.is_log:
            axes.set_yscale("log")
        axes.legend()

    def to_file(self, path: Path) -> None:
        """As a picture; the name's ending says of what kind. Raises UsageError without matplotlib, or where
        the file cannot be written.
        """
        panels_to_file([self], path)


def panels_to_file(plots: Sequence[Plot], path: Path) -> None:
    """Several plots side by side in one picture; see Plot.to_file()."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("a plot in a file needs matplotlib", _HINT) from None
    figure = Figure(figsize=(7 * len(plots), 4.5), layout="constrained")
    for number, plot in enumerate(plots):
        plot.draw(figure.add_subplot(1, len(plots), number + 1))
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write the plot to {path}: {error}", _ENDINGS) from None
