"""Summary points: key sentences with their places, and the check that lets a rewrite replace them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import regex

from localctx.index.terms import content_words, stem
from localctx.selection import key_sentences, unsupported
from localctx.session.citing import cite
from localctx.session.parts import Part, join_pages
from localctx.values import Citation, FinishReason

__all__ = ["Point", "accept", "key_point", "merge_groups", "render", "spread_pages"]

KEPT_SHARE = 0.75
"""Share of a rewrite's content words that its sentence must hold."""
_NEGATION = regex.compile(
    r"\b(?:not|no|never|neither|nor|none|without|cannot|nicht|kein\w*|nie|ohne|ne|pas|jamais|sans|sin|nunca|non|mai)\b"
    r"|n[’']t\b|[不没無非未]",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a summary: a key sentence until a rewrite of it is accepted.

    source_text: what it may say · section: the outermost heading it stands under, unique in its document ·
    title: all its headings · pages: first and last page of what it stands for · citation: the key sentence.
    """

    text: str
    source_text: str
    section: str
    title: str
    pages: tuple[str, str] | None
    citation: Citation
    language: str = "en"
    rewritten: bool = False


def key_point(part: Part, focus: str | None) -> Point:
    """The part's key sentence as a point."""
    document = part.reading.document
    language = document.language or "en"
    start, end = part.span
    text = document.read(start, end)
    found = key_sentences(text, 1, focus=focus, language=language)
    if found:
        span, score = (start + found[0].start, start + found[0].end), found[0].score
    else:
        span, score = (start, min(end, start + 300)), 0.0
    citation = cite(document, *span, score)
    sentence = " ".join(citation.quote.split())
    return Point(sentence, sentence, part.section, part.title, part.pages, citation, language)


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


def merge_groups(points: Sequence[Point], n_wanted: int, most: int, focus: str | None) -> list[list[Point]]:
    """Neighbours to be merged, each group led by the point that says most of it.

    Sections are kept apart as long as there are no more than twice as many as points wanted; every section
    keeps at least one point. A group has about `most` points at most.
    """
    sections = [list(members) for _, members in groupby(points, key=lambda point: point.section)]
    if len(sections) > 2 * n_wanted:
        sections = [list(points)]
    n_groups = max(n_wanted, len(sections), -(-len(points) // most))
    groups: list[list[Point]] = []
    for members in sections:
        share = max(1, round(n_groups * len(members) / len(points)))
        groups += _around(members, min(share, len(members)), focus)
    return groups


def _around(points: Sequence[Point], n: int, focus: str | None) -> list[list[Point]]:
    """The points in n groups, cut half-way between the n points that say most."""
    leaders = _leaders(points, n, focus)
    edges = [0, *((a + b + 1) // 2 for a, b in pairwise(leaders)), len(points)]
    groups = []
    for place, leader in enumerate(leaders):
        others = [points[k] for k in range(edges[place], edges[place + 1]) if k != leader]
        groups.append([points[leader], *others])
    return groups


def _leaders(points: Sequence[Point], n: int, focus: str | None) -> list[int]:
    """Places of the n points whose texts say most of what all say; the first ones where that is undecided."""
    text, starts = "", []
    for point in points:
        starts.append(len(text))
        text += point.text + "\n\n"
    found = {
        max(k for k, start in enumerate(starts) if start <= sentence.start)
        for sentence in key_sentences(text, n, focus=focus, language=points[0].language)
    }
    rest = (place for place in range(len(points)) if place not in found)
    return sorted([*found, *(place for place, _ in zip(rest, range(n - len(found)), strict=False))])


def spread_pages(points: Sequence[Point]) -> tuple[str, str] | None:
    """From the first page to the last one of all that the points stand for."""
    ordered = sorted(points, key=lambda point: point.citation.start)
    known = [point.pages for point in ordered if point.pages is not None]
    return (known[0][0], known[-1][1]) if known else None


def render(points: Sequence[Point]) -> Iterator[str]:
    """The lines of the summary: a heading a section with the pages read, its points with their own page."""
    number = 0
    for section, group in groupby(points, key=lambda point: point.section):
        members = list(group)
        pages = join_pages([point.pages for point in members])
        if number:
            yield ""
        yield f"## {section}" + (f" ({pages})" if pages else "")
        for point in members:
            number += 1
            label = point.citation.page_label or point.citation.page
            yield f"- {point.text}" + (f" (p. {label})" if label else "") + f" [{number}]"
