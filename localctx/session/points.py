"""Summary points: key sentences with their places, and the check that lets a rewrite replace them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import regex

from localctx.index.terms import content_words, stem
from localctx.selection import key_sentences, unsupported
from localctx.session.citing import cite
from localctx.session.parts import Part
from localctx.values import Citation, FinishReason

__all__ = ["Point", "accept", "group", "key_points", "render_point"]

KEPT_SHARE = 0.75
"""Share of a rewrite's content words that its sentence must hold."""
_NEGATION = regex.compile(
    r"\b(?:not|no|never|neither|nor|none|without|cannot|nicht|kein\w*|nie|ohne|ne|pas|jamais|sans|sin|nunca|non|mai)\b"
    r"|n[’']t\b|[不没無非未]",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a summary. `source_text` is what it may say; `rewritten` whether the model worded it."""

    text: str
    source_text: str
    title: str
    pages: str
    score: float
    citations: tuple[Citation, ...]
    rewritten: bool = False
    best_text: str = ""

    @staticmethod
    def joined(points: Sequence[Point]) -> Point:
        """Several neighbours as one: said by the best of them until a rewrite is accepted."""
        best = max(points, key=lambda point: point.score)
        citations = sorted(
            (c for p in points for c in p.citations), key=lambda c: c.quote != best.citations[0].quote
        )
        return replace(
            best,
            source_text="\n".join(point.text for point in points),
            pages=_join_pages([point.pages for point in points]),
            citations=tuple(citations),
        )


def key_points(part: Part, focus: str | None) -> Point:
    """The part's key sentence as a point."""
    document = part.reading.document
    start, end = part.span
    text = document.read(start, end)
    found = key_sentences(text, 1, focus=focus, language=document.language or "en")
    if found:
        sentence = " ".join(found[0].text.split())
        span, score = (start + found[0].start, start + found[0].end), found[0].score
    else:
        sentence, span, score = " ".join(text.split())[:300], (start, end), 0.0
    citation = cite(document, *span, score)
    return Point(sentence, sentence, part.title, part.pages, score, (citation,))


def accept(point: Point, rewrite: str, finish_reason: FinishReason) -> Point:
    """The point as the model worded it, if that is whole and says only what its source says."""
    lines = [line.strip() for line in rewrite.strip().splitlines() if line.strip()]
    if finish_reason != "stop" or len(lines) != 1:
        return point
    text = lines[0].strip('"“” ')
    source = point.source_text
    if not text or len(text) >= len(source) or unsupported(text, source):
        return point
    words = [stem(word) for word in content_words(text)]
    held = {stem(word) for word in content_words(source)}
    if not words or sum(word in held for word in words) < KEPT_SHARE * len(words):
        return point
    if bool(_NEGATION.search(text)) != bool(_NEGATION.search(source)):
        return point
    return replace(point, text=text, rewritten=True)


def group(points: Sequence[Point], n_wanted: int, most: int) -> list[list[Point]]:
    """Neighbours in groups of at most `most`, evenly, so that no fewer than n_wanted groups result."""
    n_groups = max(n_wanted, -(-len(points) // most))
    edges = [round(k * len(points) / n_groups) for k in range(n_groups + 1)]
    return [list(points[a:b]) for a, b in pairwise(edges) if a < b]


def render_point(point: Point, number: int, last_title: str) -> Iterator[str]:
    """The lines of a point: its heading when that changes, then the point with pages and citation mark."""
    if point.title != last_title:
        if last_title:
            yield ""
        yield f"## {point.title}"
    pages = f" ({point.pages})" if point.pages else ""
    yield f"- {point.text}{pages} [{number}]"


def _join_pages(pages: Sequence[str]) -> str:
    """`p. 3` … `pp. 7–9` → `pp. 3–9`."""
    labels = [
        label for text in pages if text for label in text.removeprefix("pp. ").removeprefix("p. ").split("–")
    ]
    if not labels:
        return ""
    return f"p. {labels[0]}" if labels[0] == labels[-1] else f"pp. {labels[0]}–{labels[-1]}"
