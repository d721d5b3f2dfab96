"""A comparison as one HTML page that needs nothing else: no script, nothing fetched, all text escaped."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

from .comparison_text import CHANGED, LABELS, place

if TYPE_CHECKING:
    from localctx.session.compared import Compared, ComparedDifference
    from localctx.session.provenance import Citation

__all__ = ["html_page"]

_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")
"""Also what turns the direction of what follows: a report shows text, it does not obey it."""
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif }
body { max-width: 76rem; margin: 2rem auto; padding: 0 1rem }
h1 { font-size: 1.3rem } h2 { font-size: 1.1rem; margin-top: 2rem }
table { border-collapse: collapse; width: 100% }
th, td { border-top: 1px solid #8886; padding: .4rem .6rem; text-align: left; vertical-align: top }
td.text { width: 42%; overflow-wrap: anywhere } small { opacity: .75; display: block }
del { background: #f8c4c4; color: #400 } ins { background: #bfe8c2; color: #030; text-decoration: none }
.kind { white-space: nowrap; font-weight: 600 } .why { font-style: italic }
"""


def html_page(compared: Compared) -> str:
    """The whole page."""
    title = f"{compared.a.source} → {compared.b.source}"
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            f"<title>{_shown(title)}</title><style>{_STYLE}</style></head><body>",
            f"<h1>{_shown(title)}</h1>",
            *_summary(compared),
            *_differences(compared),
            *_clauses(compared),
            "</body></html>",
            "",
        ]
    )


def _summary(compared: Compared) -> Iterator[str]:
    counts = compared.counts
    yield (
        "<p>No difference.</p>"
        if compared.is_same
        else (f"<p>{compared.similarity:.1%} of the words in common.</p>")
    )
    names = [("kept", "kept clauses"), *((kind, LABELS.get(kind, kind)) for kind in CHANGED)]
    cells = [(name, counts[kind]) for kind, name in names]
    cells += [("renumbered", compared.n_renumbered), ("cross-references adapted", compared.references)]
    yield f"<table><tr>{''.join(f'<th>{_shown(name)}</th>' for name, _ in cells)}</tr>"
    yield f"<tr>{''.join(f'<td>{n:,}</td>' for _, n in cells)}</tr></table>"
    yield "".join(f"<p><small>{_shown(warning)}</small></p>" for warning in compared.warnings)


def _differences(compared: Compared) -> Iterator[str]:
    if compared.is_same:
        return
    yield "<h2>Differences</h2><table><tr><th></th>"
    yield f"<th>{_shown(compared.a.source)}</th><th>{_shown(compared.b.source)}</th></tr>"
    for number, difference in enumerate(compared.differences, start=1):
        name = LABELS.get(difference.kind, difference.kind)
        why = difference.explanation
        yield f'<tr id="d{number}"><td class="kind">{number}. {_shown(name)}</td>'
        yield f'<td class="text">{_side(difference, difference.a, 0)}</td>'
        yield f'<td class="text">{_side(difference, difference.b, 1)}</td></tr>'
        if why is not None:
            yield f'<tr><td></td><td colspan="2" class="why">{_shown(why)}</td></tr>'
    yield "</table>"


def _side(difference: ComparedDifference, citation: Citation | None, side: int) -> str:
    """One side of a difference: its place, then its words with what changed marked."""
    if citation is None:
        return ""
    mark = ("del", "ins")[side]
    where = f"{place(citation)} · {citation.start:,}–{citation.end:,}"
    text = " ".join(citation.quote.split())
    if difference.kind in ("added", "removed"):
        marked = f"<{mark}>{_shown(text)}</{mark}>"
    else:
        marked = _marked(text, [change[side] for change in difference.changes], mark)
    return f"<small>{_shown(where)}</small>{marked}"


def _marked(text: str, changes: Sequence[str], mark: str) -> str:
    """The text with each of the changes marked where it comes next."""
    parts: list[str] = []
    at = 0
    for change in changes:
        found = text.find(change, at) if change else -1
        if found >= 0:
            parts += [_shown(text[at:found]), f"<{mark}>{_shown(change)}</{mark}>"]
            at = found + len(change)
    return "".join([*parts, _shown(text[at:])])


def _clauses(compared: Compared) -> Iterator[str]:
    yield "<h2>Clauses</h2><table><tr><th></th>"
    yield f"<th>{_shown(compared.a.source)}</th><th>{_shown(compared.b.source)}</th><th>similarity</th></tr>"
    for clause in compared.clauses:
        kinds = ", ".join((*clause.kinds, *(["renumbered"] if clause.is_renumbered else [])))
        similarity = f"{clause.similarity:.2f}" if clause.a is not None and clause.b is not None else ""
        yield (
            f'<tr><td class="kind">{_shown(kinds)}</td><td class="text">{_shown(clause.a or "")}</td>'
            f'<td class="text">{_shown(clause.b or "")}</td><td>{similarity}</td></tr>'
        )
    yield "</table>"


def _shown(text: str) -> str:
    return escape(_CONTROLS.sub("\ufffd", text))
