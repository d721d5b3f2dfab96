"""Everything that is shown: answers to standard output, the rest to standard error. The only user of rich.

Progress and colour appear only where standard error is a terminal; NO_COLOR is respected.
"""

from __future__ import annotations

import sys
from types import TracebackType
from typing import TYPE_CHECKING, Protocol, Self

from localctx.session.events import (
    Event,
    Finished,
    Notice,
    Overview,
    Planned,
    Progress,
    Replaced,
    SectionDone,
    Text,
)

from .answer_lines import footer_lines, overview_lines
from .citations import citation_lines
from .terminal import note, print_json, shown, write, write_as_is

if TYPE_CHECKING:
    from rich.progress import Progress as ProgressBars
    from rich.progress import TaskID

    from localctx.session.answer import Answer

__all__ = ["Painter", "Reporter"]

LONG_TOKENS = 100_000


class Painter(Protocol):
    """Shows an answer on a terminal as it grows."""

    def add(self, text: str) -> None:
        """The next piece."""

    def end(self) -> None:
        """It is complete; the cursor stands on a new line."""


class Reporter:
    """Shows one run: progress on a terminal, notes, the answer as it comes, the coverage footer."""

    def __init__(
        self,
        *,
        as_json: bool,
        quiet: bool,
        verbose: bool,
        shows_answer: bool,
        painter: Painter | None = None,
    ) -> None:
        """Without `shows_answer` the pieces of the answer are kept back (JSON, or an output file). `painter`
        shows them on a terminal instead of plain text.
        """
        self._painter = painter
        self._as_json = as_json
        self._quiet = quiet
        self._verbose = verbose
        self._shows_answer = shows_answer
        self._live = sys.stderr.isatty() and not quiet
        self._bars: ProgressBars | None = None
        self._tasks: dict[str, TaskID] = {}
        self._at_line_start = True
        self._previewed: set[str] = set()
        self._held: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop_bars()

    def progress(self, step: Progress) -> None:
        """Move the bar of a stage; nothing without a terminal."""
        if not self._live:
            return
        if self._bars is None:
            from rich.console import Console
            from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

            columns = (
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.percentage:>3.0f}%"),
                TextColumn("{task.fields[rate]}"),
            )
            self._bars = Progress(
                *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
            )
            self._bars.start()
        if step.what not in self._tasks:
            self._tasks[step.what] = self._bars.add_task(step.what, total=step.total, rate="")
        rate = f"{step.rate:,.0f} {step.unit}/s" if step.rate is not None else ""
        self._bars.update(self._tasks[step.what], completed=step.done, total=step.total, rate=rate)

    def event(self, event: Event) -> None:
        """Show one event."""
        if isinstance(event, Text):
            self._text(event.text)
        elif isinstance(event, Replaced):
            self._replace(event.text)
        elif isinstance(event, Finished):
            self._finished(event.answer)
        elif not self._quiet:
            for line in self._lines(event):
                self._note(line)

    def stop(self) -> None:
        """The work was stopped: nothing of it stays half shown."""
        self._stop_bars()
        self._held.clear()
        self._end_line()

    def line(self, text: str) -> None:
        """A line about the work."""
        if not self._quiet:
            self._note(text)

    def preview(self, overview: Overview, plan: str) -> None:
        """Show what a document is, and what will probably be done, before it is read whole."""
        if not self._quiet:
            for line in [*overview_lines(overview), plan]:
                self._note(line)
        self._previewed.add(overview.source)

    def _lines(self, event: Event) -> list[str]:
        """What is said of an event that is not the answer."""
        if isinstance(event, Overview):
            return [] if event.source in self._previewed else overview_lines(event)
        if isinstance(event, Planned):
            parts = f" in {event.n_parts} parts" if event.n_parts > 1 else ""
            lines = [f"plan: {event.strategy}{parts} ({event.why}); {event.n_tokens:,} tokens"]
            if event.strategy == "map-reduce" and event.n_parts > 1 and event.n_tokens > LONG_TOKENS:
                lines.append("  this can take long; --strategy condense reads only each part's key sentence")
            return lines
        if isinstance(event, SectionDone) and (self._live or self._verbose):
            place = f" ({event.pages})" if event.pages else ""
            return [f"  · {event.title}{place}: {event.text}"]
        if isinstance(event, Notice):
            return [f"warning: {event.text}"]
        return []

    def _note(self, line: str) -> None:
        if self._bars is not None:
            self._bars.console.print(shown(line, sys.stderr), markup=False, highlight=False, soft_wrap=True)
        else:
            self._end_line()
            note(line)

    def _text(self, text: str) -> None:
        """A terminal sees the answer grow; anything else gets it whole, once it is known to stand."""
        if not self._shows_answer:
            return
        if not sys.stdout.isatty():
            self._held.append(text)
            return
        self._show(text)

    def _replace(self, text: str) -> None:
        """What was shown so far does not stand."""
        self._held = [text]
        if self._shows_answer and sys.stdout.isatty():
            self._end_line()
            self._show(text)

    def _show(self, text: str) -> None:
        self._stop_bars()
        if self._painter is not None:
            self._painter.add(text)
            self._at_line_start = False
            return
        write(text)
        self._at_line_start = text.endswith("\n")

    def _end_line(self) -> None:
        if not self._at_line_start and self._shows_answer:
            if self._painter is not None:
                self._painter.end()
            else:
                write("\n")
            self._at_line_start = True

    def _stop_bars(self) -> None:
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
            self._tasks.clear()

    def _finished(self, answer: Answer) -> None:
        self._stop_bars()
        if self._shows_answer and self._held:
            self._show("".join(self._held))
            self._held = []
        self._end_line()
        if self._as_json:
            print_json(answer.to_json())
            return
        lines = citation_lines(answer, for_terminal=sys.stdout.isatty())
        if lines and self._shows_answer:
            write_as_is("\n" + "\n".join(lines) + "\n")
        if not self._quiet:
            for line in footer_lines(answer, self._verbose):
                note(line)
