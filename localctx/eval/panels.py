"""Several plots side by side in one picture, and plots as JSON values. Measures nothing."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from localctx.errors import UsageError
from localctx.eval.plots import Plot

__all__ = ["panels_to_file", "plot_json"]


def panels_to_file(plots: Sequence[Plot], path: Path) -> None:
    """As a picture of one plot or more; the name's ending says of what kind. Raises UsageError without
    matplotlib, and where the file cannot be written.
    """
    if len(plots) == 1:
        plots[0].to_file(path)
        return
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise UsageError("a plot in a file needs matplotlib", "pip install 'localctx[plot]'") from None
    figure = Figure(figsize=(7 * len(plots), 4.5), layout="constrained")
    for number, plot in enumerate(plots):
        plot.draw(figure.add_subplot(1, len(plots), number + 1))
    try:
        figure.savefig(path, dpi=150)
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot write the plot to {path}: {error}", "another --plot FILE") from None


def plot_json(plot: Plot) -> dict[str, Any]:
    """Its parts."""
    return {
        "title": plot.title,
        "x_name": plot.x_name,
        "y_name": plot.y_name,
        "places": list(plot.places),
        "lines": {name: [float(f"{value:.6g}") for value in values] for name, values in plot.lines.items()},
        "is_log": plot.is_log,
    }
