"""Summary points: key sentences with their places, and the check that lets a rewrite replace them. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import regex

from localctx.index.terms import content_words, stem
from localctx.selection import figures, key_sentences, unsupported
from localctx.session.citing import cite
from localctx.session.parts import Part, join_pages
from localctx.session.provenance import Citation
from localctx.values import FinishReason

__all__ = [
    "Point",
    "accept",
    "accept_worded",
    "best_cited",
    "key_point",
    "merge_groups",
    "pointed",
    "render",
    "spread_pages",
]

KEY_CHARACTERS = 400
"""A key sentence is preferred to be no longer than this."""
KEPT_SHARE = 0.9
"""Share of a rewrite's content words that its sentence must hold."""
WORDED_SHARE, WORDED_CHARACTERS = 0.7, 500
"""The same of what a larger model words itself, and how long that may be."""
_NEGATION = regex.compile(
    r"\b(?:not|no|never|neither|nor|none|without|cannot|nicht|kein\w*|nie|ohne|ne|pas|jamais|sans|sin|nunca|non|mai)\b"
    r"|n[’']t\b|[不没無非未]",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Point:
    """One point of a summary: a key sentence until a rewrite of it is accepted.

    source_text: what it may say · document: the ordinal of its document · section: the outermost heading it
    stands under · title: all its headings · pages: first and last page of what it stands for · citation: the
    key sentence.
    """

    text: str
    source_text: str
    section: str
    title: str
    pages: tuple[str, str] | None
    citation: Citation
    language: str = "en"
    document: int = 0

    @property
    def place(self) -> tuple[int, str]:
        """What points under one heading have in common."""
        return self.document, self.section


def key_point(part: Part, focus: str | None) -> Point:
    """The part's key sentence as a point."""
    document = part.reading.document
    language = document.language or "en"
    start, end = part.span
    text = document.read(start, end)
    found = key_sentences(text, 1, focus=focus, language=language, max_characters=KEY_CHARACTERS)
    if found:
        span, score = (start + found[0].start, start + found[0].end), found[0].score
    else:
        span, score = (start, min(end, start + 300)), 0.0
    return pointed(part, cite(document, *span, score))


def pointed(part: Part, citation: Citation) -> Point:
    """The part's point where `citation` is its key sentence."""
    sentence, language = " ".join(citation.quote.split()), part.reading.document.language or "en"
    return Point(
        sentence, sentence, part.section, part.title, part.pages, citation, language, part.reading.ordinal
    )


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
    if bool(_NEGATION.search(text)) != bool(_NEGATION.search(source)) or not _keeps_figures(text, point):
        return point
    return replace(point, text=text)


def accept_worded(point: Point, text: str, finish_reason: FinishReason, source: str) -> Point:
    """The point in words of the model's own, if they are whole, and hold no number or name and few words that
    the part, `source`, does not.
    """
    said = " ".join(text.split()).strip('"“” ')
    if finish_reason != "stop" or not said or len(said) > WORDED_CHARACTERS or unsupported(said, source):
        return point
    words = [stem(word) for word in content_words(said)]
    held = {stem(word) for word in content_words(source)}
    if not words or sum(word in held for word in words) < WORDED_SHARE * len(words):
        return point
    return replace(point, text=said) if _keeps_figures(said, point) else point


def _keeps_figures(text: str, point: Point) -> bool:
    """Whether what the point says in figures is said by a text in its place."""
    return set(figures(point.text)) <= set(figures(text))


def best_cited(point: Point, members: Sequence[Point]) -> Point:
    """The point with the citation of the member that holds most of its words."""
    words = {stem(word) for word in content_words(point.text)}

    def n_held(member: Point) -> int:
        return len(words & {stem(word) for word in content_words(member.citation.quote)})

    return replace(point, citation=max(members, key=n_held).citation)


def merge_groups(points: Sequence[Point], n_wanted: int, most: int, focus: str | None) -> list[list[Point]]:
    """Neighbours to be merged, at most `most` in a group, led by the point that says most of its group.

    Documents are kept apart, and sections as long as they are no more than twice as many as points wanted;
    each keeps at least one point.
    """
    runs = [list(members) for _, members in groupby(points, key=lambda point: point.place)]
    if len(runs) > 2 * n_wanted:
        runs = [list(members) for _, members in groupby(points, key=lambda point: point.document)]
    groups: list[list[Point]] = []
    for members in runs:
        share = max(1, round(n_wanted * len(members) / len(points)), -(-len(members) // most))
        n_groups = min(share, len(members))
        edges = [round(k * len(members) / n_groups) for k in range(n_groups + 1)]
        groups += [_led(members[a:b], focus) for a, b in pairwise(edges)]
    return groups


def _led(points: Sequence[Point], focus: str | None) -> list[Point]:
    """The points, the one first whose text says most of what all say; the first of equals."""
    text, starts = "", []
    for point in points:
        starts.append(len(text))
        text += point.text + "\n\n"
    found = key_sentences(text, 1, focus=focus, language=points[0].language)
    leader = max(k for k, start in enumerate(starts) if start <= found[0].start) if found else 0
    return [points[leader], *points[:leader], *points[leader + 1 :]]


def spread_pages(points: Sequence[Point]) -> tuple[str, str] | None:
    """From the first page to the last one of all that the points stand for."""
    ordered = sorted(points, key=lambda point: point.citation.start)
    known = [point.pages for point in ordered if point.pages is not None]
    return (known[0][0], known[-1][1]) if known else None


def render(points: Sequence[Point], several: bool = False) -> Iterator[str]:
    """The lines of the summary: a heading a section with the pages read, its points with their own page.

    With `several` documents each heading names its own.
    """
    number = 0
    for _, group in groupby(points, key=lambda point: point.place):
        members = list(group)
        first = members[0]
        if number:
            yield ""
        named = several and first.section != first.citation.source
        title = f"{first.citation.source} › {first.section}" if named else first.section
        pages = join_pages([point.pages for point in members])
        yield f"## {title}" + (f" ({pages})" if pages else "")
        for point in members:
            number += 1
            label = point.citation.page_label or point.citation.page
            yield f"- {point.text}" + (f" (p. {label})" if label else "") + f" [{number}]"
