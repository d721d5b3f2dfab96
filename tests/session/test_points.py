"""A rewrite takes the place of its sentence only when it is whole and faithful."""

from __future__ import annotations

import pytest
from session.conftest import CHAPTERS

from localctx.document import Document
from localctx.session.parts import cut_parts
from localctx.session.points import Point, accept, group, key_points, render_point
from localctx.session.reading import Reading
from localctx.values import Citation

SENTENCE = "In the year 1742 the silver mine of Quarz was, after long talks, not opened by Anna Feld."


def point(text: str = SENTENCE, score: float = 1.0, pages: str = "") -> Point:
    return Point(text, text, "Mines", pages, score, (Citation("book.md", 0, len(text), text, score),))


def test_a_faithful_rewrite_is_taken() -> None:
    taken = accept(point(), "The silver mine of Quarz was not opened by Anna Feld in 1742.", "stop")
    assert taken.rewritten
    assert taken.text.startswith("The silver mine")


@pytest.mark.parametrize(
    ("rewrite", "finish_reason"),
    [
        ("The silver mine of Quarz was not opened by Anna Feld in", "length"),
        ("The silver mine of Quarz was not opened by Anna Feld in 1743.", "stop"),
        ("The silver mine of Quarz was not opened by Karl Feld in 1742.", "stop"),
        ("The silver mine of Quarz was opened by Anna Feld in 1742.", "stop"),
        ("Many people believe that mining was important for towns.", "stop"),
        (SENTENCE + " It was a great success for everyone.", "stop"),
        ("The mine was not opened.\nIt stayed shut.", "stop"),
        ("", "stop"),
        ("The silver mine of Quarz was not opened.", "cancelled"),
    ],
    ids=["cut", "number", "name", "negation", "stray", "longer", "lines", "empty", "cancelled"],
)
def test_any_other_rewrite_is_not(rewrite: str, finish_reason: str) -> None:
    kept = accept(point(), rewrite, finish_reason)  # type: ignore[arg-type]  # a literal from the table
    assert kept == point()


def test_the_key_sentence_is_cited_where_it_stands(book: Document) -> None:
    reading = Reading(book)
    assert "".join(block.text for block in reading.read(lambda text, first: list(text.split()))) == CHAPTERS
    for part in cut_parts([reading], 40):
        found = key_points(part, None)
        citation = found.citations[0]
        assert book.read(citation.start, citation.end) == citation.quote
        assert " ".join(citation.quote.split()) == found.text
        assert found.title in ("Rivers", "Mines", "Railways")


def test_parts_cover_the_document_once(book: Document) -> None:
    reading = Reading(book)
    for _ in reading.read(lambda text, first: list(text.split())):
        pass
    for size in (1, 10, 30, 1000):
        parts = cut_parts([reading], size)
        assert [part.first for part in parts] == [0, *(part.last + 1 for part in parts[:-1])]
        assert parts[-1].last == reading.n_blocks - 1
        assert sum(part.n_tokens for part in parts) == reading.n_tokens


@pytest.mark.parametrize(("n", "wanted", "most"), [(22, 5, 4), (5, 5, 4), (100, 1, 4), (3, 2, 4)])
def test_groups_keep_order_and_never_fall_below_the_wanted_number(n: int, wanted: int, most: int) -> None:
    points = [point(str(k)) for k in range(n)]
    groups = group(points, wanted, most)
    assert [p for members in groups for p in members] == points
    assert wanted <= len(groups) <= n
    assert all(len(members) <= most + 1 for members in groups)


def test_joined_points_keep_the_best_sentence_all_citations_and_the_page_range() -> None:
    joined = Point.joined([point("One.", 0.2, "p. 3"), point("Two.", 0.9, "pp. 4–6"), point("Three.", 0.1)])
    assert (joined.text, joined.source_text, joined.pages) == ("Two.", "One.\nTwo.\nThree.", "pp. 3–6")
    assert [citation.quote for citation in joined.citations] == ["Two.", "One.", "Three."]


def test_a_heading_is_shown_when_it_changes() -> None:
    assert list(render_point(point("A.", pages="p. 1"), 1, "")) == ["## Mines", "- A. (p. 1) [1]"]
    assert list(render_point(point("A."), 2, "Mines")) == ["- A. [2]"]
    assert list(render_point(point("A."), 3, "Rivers")) == ["", "## Mines", "- A. [3]"]
