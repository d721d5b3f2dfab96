"""Markdown painted as it grows: what a terminal shows at the end, and what it never writes twice."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.cli.markdown import MarkdownPainter, rendered

TEXT = """# Rivers

The river **Orle** rises near Tannau and is 212 kilometres long, which is more than the Lom.

- timber
- salt and rope

```
x = 1

y = 2
```

| river | km |
|---|---|
| Orle | 212 |

The end."""
CONTROL = re.compile(r"\x1b\[(\??)([0-9;]*)([A-Za-z])|\x1b\]8;[^\x1b]*\x1b\\")


class Screen:
    """As much of a terminal as the painter uses; `scrolled`: lines that have left it."""

    def __init__(self, columns: int, lines: int) -> None:
        self.columns, self.n_lines = columns, lines
        self.rows = [""]
        self.row, self.column = 0, 0
        self.written = ""

    def write(self, text: str) -> None:
        self.written += text
        at = 0
        while at < len(text):
            match = CONTROL.match(text, at)
            if match is not None:
                self._control(match[2] or "", match[3] or "")
                at = match.end()
            else:
                self._put(text[at])
                at += 1

    def _control(self, number: str, letter: str) -> None:
        if letter == "A":
            self.row = max(0, len(self.rows) - self.n_lines, self.row - int(number or 1))
        elif letter == "J":
            self.rows = [*self.rows[: self.row], self.rows[self.row][: self.column]]

    def _put(self, character: str) -> None:
        if character == "\r":
            self.column = 0
            return
        if character == "\n" or self.column == self.columns:
            self.row, self.column = self.row + 1, 0
            if self.row == len(self.rows):
                self.rows.append("")
            if character == "\n":
                return
        line = self.rows[self.row].ljust(self.column)
        self.rows[self.row] = line[: self.column] + character + line[self.column + 1 :]
        self.column += 1

    @property
    def shown(self) -> list[str]:
        return [line.rstrip() for line in self.rows]


def painted(text: str, n_pieces: int, columns: int = 40, lines: int = 50) -> Screen:
    """The screen after the text came in pieces of a few characters."""
    screen = Screen(columns, lines)
    painter = MarkdownPainter(screen.write, lambda: (columns, lines), lambda: float(len(screen.written)))
    size = max(1, len(text) // n_pieces)
    for at in range(0, len(text), size):
        painter.add(text[at : at + size])
    painter.end()
    return screen


def whole(text: str, columns: int = 40) -> list[str]:
    """The lines of the text as it would be printed at once."""
    return [CONTROL.sub("", line).rstrip() for line in rendered(text, columns)]


@pytest.mark.parametrize("n_pieces", [1, 7, 60, 1000])
def test_in_the_end_it_looks_as_if_printed_at_once(n_pieces: int) -> None:
    shown = [line for line in painted(TEXT, n_pieces).shown if line.strip()]
    assert shown == [line for line in whole(TEXT) if line.strip()]


def test_finished_blocks_are_written_once() -> None:
    screen = Screen(60, 50)
    painter = MarkdownPainter(screen.write, lambda: (60, 50))
    painter.add("The first paragraph stands.\n\nThe second")
    before = len(screen.written)
    for word in ["", "one", "grows", "word", "by", "word."]:
        painter.add(" " + word)
    painter.end()
    assert "first" not in screen.written[before:]
    assert "\x1b[2A" not in screen.written


def test_words_that_are_added_to_a_line_move_no_cursor() -> None:
    screen = Screen(80, 50)
    clock = iter(range(100))
    painter = MarkdownPainter(screen.write, lambda: (80, 50), lambda: float(next(clock)))
    for word in ("The", " river", " is", " long"):
        painter.add(word)
    painter.end()
    assert "\x1b[J" not in screen.written
    assert screen.shown == ["The river is long", ""]


def test_a_block_taller_than_the_screen_leaves_what_scrolled_away() -> None:
    text = "\n".join(f"- item {n}" for n in range(30))
    screen = painted(text, 30, 40, 8)
    shown = [line.strip() for line in screen.shown if line.strip()]
    assert [line.split()[-1] for line in shown] == [str(n) for n in range(30)]


def test_control_characters_of_a_document_do_nothing() -> None:
    screen = painted("Ring \x07 and \x1b[31mred\x1b[0m.", 1)
    assert "\x07" not in screen.written
    assert "\x1b[31m" not in screen.written


def test_no_colour_where_none_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert not re.search(r"\x1b\[3[0-9]", "".join(rendered("# Title\n\n`code` and **bold**", 40)))


@given(st.text(alphabet="ab *`#\n-|1.", max_size=120), st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_any_text_in_any_pieces_ends_the_same(text: str, n_pieces: int) -> None:
    assert painted(text, n_pieces).shown == painted(text, 1).shown
