"""Where the rows of tables stand in a text, and which row heads one: Markdown's, CSV, " | ". Knows no tokens.

A row is a line. Long tables are cut between rows, never inside one; the header is looked up for what comes
later (`table_header`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from localctx.values import TextSource

__all__ = ["row_spans", "table_header"]

ROW = re.compile(r"^[^\n]*\S \| [^\n]*$|^\|[^\n]*\|[ \t]*$", re.MULTILINE)
LINE = re.compile(r"^[^\n]*\S[^\n]*$", re.MULTILINE)
DASHES = re.compile(r"\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*(?::?-+:?[ \t]*)?$")
LOOK_BACK = 1 << 16
"""Code points before a row in which its table's header is looked for."""
LOOK_STEP = 1 << 12
LONGEST_HEADER = 400
"""Code points; a longer header is said up to here."""


def row_spans(window: str, is_table: bool) -> Iterator[tuple[int, int, bool]]:
    """Start, end, and whether a cut may stand before it, of each row; is_table: every line is a row (CSV).

    No cut parts the header of a Markdown table from its first row.
    """
    if not is_table and "|" not in window:
        return
    held = 0  # rows to come that stay with the one before
    for found in (LINE if is_table else ROW).finditer(window):
        start, end = found.span()
        if DASHES.match(found[0]):
            yield start, end, False
            held = 1
        else:
            yield start, end, held == 0
            held = 0


def table_header(text: TextSource, start: int, end: int, is_table: bool) -> str:
    """The header of the table in whose middle the passage [start, end) begins; "" where it begins in none."""
    if is_table:
        first = text.read(0, LONGEST_HEADER + 1).lstrip("\n").partition("\n")[0]
        return first[:LONGEST_HEADER] if start > 0 else ""
    head = text.read(start, min(end, start + LOOK_STEP))
    low = start + len(head) - len(head.lstrip("\n"))
    if not head.lstrip("\n").startswith("|"):
        return ""
    before = ""
    for _ in range(LOOK_BACK // LOOK_STEP):
        begin = max(0, low - LOOK_STEP)
        before = text.read(begin, low) + before
        low = begin
        lines = before.removesuffix("\n").split("\n")
        for i in range(len(lines) - 1, 0 if low == 0 else 1, -1):
            if DASHES.match(lines[i]):
                return lines[i - 1][:LONGEST_HEADER]
            if not lines[i].startswith("|"):
                return ""
        if low == 0:
            break
    return ""
