"""The numbered list under an answer: where each [n] stands and what it says. Links on a terminal (OSC 8)."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING
from urllib.parse import quote

from localctx.document.pages import page_name

from .terminal import shown

if TYPE_CHECKING:
    from collections.abc import Iterator

    from localctx.session.answer import Answer
    from localctx.session.provenance import Citation

__all__ = ["citation_lines", "text_with_citations"]


def citation_lines(answer: Answer, *, for_terminal: bool = False) -> list[str]:
    """`[1] file.pdf p. 12 “quote”`; the quote is left out where the answer already is the quote. `[?]` lines
    name the answer's statements without support.

    With `for_terminal` control characters are gone and marks link to their page; such lines are written as
    they are.
    """
    said = _squeezed(answer.text)
    lines = []
    for number, citation in enumerate(answer.citations, 1):
        page = page_name(citation.page, citation.page_label)
        where = citation.source
        if page:
            where += f" p. {page}"
        elif citation.heading_path:
            where += f" › {citation.heading_path[-1]}"
        words = _squeezed(citation.quote)
        if answer.command == "ask" or words not in said:
            where += f" “{words}”"
        mark = f"[{number}]"
        if for_terminal:
            mark, where = _linked(mark, citation), shown(where, sys.stdout)
        lines.append(f"{mark} {where}")
    return lines + [shown(line, sys.stdout) if for_terminal else line for line in _unsupported(answer)]


def _unsupported(answer: Answer) -> Iterator[str]:
    """A line for each statement of the answer that the document does not support, or less than others."""
    verdicts = {statement.verdict for statement in answer.statements}
    for statement in answer.statements:
        words = _squeezed(answer.text[statement.start : statement.end])
        if statement.verdict == "none":
            yield f"[?] not supported: “{words}”"
        elif statement.verdict == "partial" and "supported" in verdicts:
            yield f"[?] supported in part only: “{words}”"


def text_with_citations(answer: Answer) -> str:
    """The answer as a file holds it."""
    lines = citation_lines(answer)
    return answer.text + "\n" + ("\n" + "\n".join(lines) + "\n" if lines else "")


def _squeezed(text: str) -> str:
    return " ".join(text.split())


def _linked(mark: str, citation: Citation) -> str:
    """The mark as a link to the page, where standard output is a terminal and the source a real file."""
    if not sys.stdout.isatty() or os.environ.get("TERM") == "dumb":
        return mark
    if citation.source == "-" or not os.path.isfile(citation.source):  # noqa: PTH113  # a name for display may be no path
        return mark
    path = os.path.abspath(citation.source)  # noqa: PTH100  # keeps the spelling of links
    page = f"#page={citation.page}" if citation.page is not None else ""
    return f"\x1b]8;;file://{quote(os.fsencode(path))}{page}\x1b\\{mark}\x1b]8;;\x1b\\"
