"""Where a window of text may be cut, and how good each cut is. Knows no tokens.

A cut falls before the white space between two words, because byte-pair tokenizers attach a space to the
word that follows: so the parts' tokens are those of the whole. Tokenizers that attach line breaks to what
precedes them (see seams.py) get their cuts after the last line break instead.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from enum import IntEnum

import sentencex

from localctx.blocks.graphemes import is_boundary, last_boundary
from localctx.blocks.rows import row_spans

__all__ = ["RUN_LOOK", "Rank", "candidate_cuts", "cut_in_white_space"]

RUN_LOOK = 256
"""Code points of white space looked at on either side of a section's edge."""


LONGEST_GAP = 4096
"""White space that may lie between two sentences."""


class Rank(IntEnum):
    """How good a cut is; a higher rank wins."""

    LIMIT = 0
    WHITESPACE = 1
    LINE = 2
    SENTENCE = 3
    ROW = 4
    PARAGRAPH = 5
    SECTION = 6


_LONG_RUN = re.compile(r"\s{2,}|[\f\u2029]")
_LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
# Scripts without spaces end a sentence by the mark alone. sentencex knows these marks too, but its time grows
# with the square of their number in a line, so it gets to see letters in their place.
_FULL_STOPS = "。！？｡"
_SENTENCE_END = re.compile(rf"[{_FULL_STOPS}]+[”’」』）》〉】〗〕]*")
_MASK = str.maketrans(dict.fromkeys(_FULL_STOPS, "x"))


def candidate_cuts(
    window: str,
    offset: int,
    section_edges: Sequence[int],
    after_line_breaks: bool,
    horizon: int,
    is_table: bool = False,
) -> list[tuple[int, Rank]]:
    """Cuts of a window that starts `offset` into the text, ascending.

    The window begins at a cut; only a section's edge can yield a cut at 0. Sentences, paragraphs and edges
    beyond `horizon` are context for the cuts before it. White space at the end of the text stays with what
    precedes it. Rows of tables are cut apart, not inside; is_table: every line is a row.
    """
    content_end = len(window.rstrip())
    cuts: dict[int, Rank] = {}
    for position in _sentence_ends(window):
        cuts[cut_in_white_space(window, position, after_line_breaks)] = Rank.SENTENCE
    for run in _LONG_RUN.finditer(window):
        if _is_paragraph_break(run.group()):
            cuts[cut_in_white_space(window, run.start(), after_line_breaks)] = Rank.PARAGRAPH
    if rows := list(row_spans(window, is_table)):
        cuts = _between_rows(window, cuts, rows, after_line_breaks)
    kept = {
        at: rank
        for at, rank in cuts.items()
        if 0 < at <= horizon and at < content_end and is_boundary(window, at)
    }
    first = bisect_left(section_edges, offset)
    last = bisect_right(section_edges, offset + horizon)
    for edge in section_edges[first:last]:
        at = cut_in_white_space(window, edge - offset, after_line_breaks)
        if at < content_end:
            kept[last_boundary(window, at)] = Rank.SECTION
    return sorted(kept.items())


def _between_rows(
    window: str, cuts: dict[int, Rank], rows: Sequence[tuple[int, int, bool]], after_line_breaks: bool
) -> dict[int, Rank]:
    """The cuts without those inside a row, and with those before rows."""
    starts = [start for start, _, _ in rows]
    outside: dict[int, Rank] = {}
    for at, rank in cuts.items():
        row = bisect_left(starts, at) - 1  # the last row that begins before the cut
        if row < 0 or at >= rows[row][1] or rank >= Rank.PARAGRAPH:
            outside[at] = rank
    for start, _, may_part in rows:
        before = cut_in_white_space(window, start, after_line_breaks)
        if may_part:
            outside[before] = max(outside.get(before, Rank.ROW), Rank.ROW)
        else:
            outside.pop(before, None)
    return outside


def cut_in_white_space(window: str, position: int, after_line_breaks: bool) -> int:
    """The place for a cut in the run of white space that touches `position`, which may be empty.

    The place is the start of the run, or the end of its last line break.
    """
    low = max(0, position - RUN_LOOK)
    start = low + len(window[low:position].rstrip())
    if not after_line_breaks:
        return start
    ahead = window[position : position + RUN_LOOK]
    end = position + len(ahead) - len(ahead.lstrip())
    cut = start
    for line_break in _LINE_BREAK.finditer(window, start, end):
        cut = line_break.end()
    return cut


def _sentence_ends(window: str) -> list[int]:
    masked = window.translate(_MASK) if any(mark in window for mark in _FULL_STOPS) else window
    ends: list[int] = []
    at = 0
    for sentence in sentencex.segment("en", masked):
        if not masked.startswith(sentence, at):
            # sentencex leaves out some white space between paragraphs.
            found = masked.find(sentence, at, at + len(sentence) + LONGEST_GAP)
            if found < 0:
                continue
            at = found
        at += len(sentence)
        # Between two marks (a full stop and its closing quote) a cut would change the tokens.
        if window[at - 1].isspace() or window[at : at + 1].isspace():
            ends.append(at)
    if masked is not window:
        ends.extend(match.end() for match in _SENTENCE_END.finditer(window))
    return ends


def _is_paragraph_break(run: str) -> bool:
    return run.count("\n") > 1 or run.count("\r") > 1 or "\f" in run or "\u2029" in run
