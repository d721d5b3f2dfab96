"""A rewrite takes the place of its sentence only when it is whole and faithful."""

from __future__ import annotations

from dataclasses import replace

import pytest
from session.conftest import CHAPTERS

from localctx.document import Document
from localctx.session.parts import cut_parts, join_pages
from localctx.session.points import Point, accept, best_cited, key_point, merge_groups, render, spread_pages
from localctx.session.provenance import Citation
from localctx.session.reading import Reading

SENTENCE = "In the year 1742 the silver mine of Quarz was, after long talks, not opened by Anna Feld."


def point(
    text: str = SENTENCE, section: str = "Mines", page: int | None = None, start: int = 0, document: int = 0
) -> Point:
    pages = (str(page), str(page)) if page else None
    citation = Citation(f"book{document}.md", start, start + len(text), text, 1.0, page)
    return Point(text, text, section, section, pages, citation, document=document)


def test_a_faithful_rewrite_is_taken() -> None:
    taken = accept(point(), "The silver mine of Quarz was not opened by Anna Feld in 1742.", "stop")
    assert taken.text == "The silver mine of Quarz was not opened by Anna Feld in 1742."
    assert taken.source_text == SENTENCE


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


def test_a_rewrite_may_not_drop_a_figure() -> None:
    source = "The silver mine of Quarz gave 4,812 ounces of silver to Anna Feld."
    long = replace(point(), text=source, source_text=source)
    assert accept(long, "The silver mine of Quarz gave silver to Anna Feld.", "stop") == long
    shorter = "The silver mine of Quarz gave 4,812 ounces of silver."
    assert accept(long, shorter, "stop").text == shorter


@pytest.mark.parametrize(
    ("amount", "kept", "other"),
    [
        ("$4,812", "4,812 dollars", "$4"),
        ("€12.5 million", "12.5 million euros", "€1 million"),
        ("7.5 % of $30", "$30", "75 % of $30"),
    ],
)
def test_an_amount_is_its_whole_number(amount: str, kept: str, other: str) -> None:
    source = f"The silver mine of Quarz gave {amount} in dollars or euros to Anna Feld after talks."
    long = replace(point(), text=source, source_text=source)
    said = f"The silver mine of Quarz gave {kept} to Anna Feld."
    assert (accept(long, said, "stop").text == said) == (kept != "$30")
    assert accept(long, f"The silver mine of Quarz gave {other} to Anna Feld.", "stop") == long
    assert accept(long, "The silver mine of Quarz gave dollars to Anna Feld.", "stop") == long


def test_the_key_sentence_is_cited_where_it_stands(book: Document) -> None:
    reading = Reading(book)
    blocks = reading.read(lambda text, first: [0] * len(text.split()))
    assert "".join(block.text for block in blocks) == CHAPTERS
    sections = []
    for part in cut_parts([reading], 40):
        found = key_point(part, None)
        assert book.read(found.citation.start, found.citation.end) == found.citation.quote
        assert " ".join(found.citation.quote.split()) == found.text
        assert found.citation.heading_path == (found.section,)
        sections.append(found.section)
    assert sections == ["Rivers", "Mines", "Railways"]


def test_parts_cover_the_document_once(book: Document) -> None:
    reading = Reading(book)
    for _ in reading.read(lambda text, first: [0] * len(text.split())):
        pass
    for size in (1, 10, 30, 1000):
        parts = cut_parts([reading], size)
        assert [part.first for part in parts] == [0, *(part.last + 1 for part in parts[:-1])]
        assert parts[-1].last == reading.n_blocks - 1
        assert sum(part.n_tokens for part in parts) == reading.n_tokens


@pytest.mark.parametrize(("n", "wanted", "most"), [(22, 5, 4), (5, 5, 4), (100, 1, 4), (3, 2, 4), (40, 9, 4)])
def test_groups_hold_every_point_once_and_lead_with_one_of_their_own(n: int, wanted: int, most: int) -> None:
    points = [point(f"Sentence {k} tells of matter {k % 7}.", start=k) for k in range(n)]
    groups = merge_groups(points, wanted, most, None)
    assert sorted(p.citation.start for members in groups for p in members) == list(range(n))
    spans = [sorted(p.citation.start for p in members) for members in groups]
    assert spans == sorted(spans)
    assert len(groups) == max(wanted, -(-n // most))
    assert max(len(members) for members in groups) <= most


def test_sections_keep_a_point_each_until_they_are_far_too_many() -> None:
    points = [point(f"Matter {k}.", section=f"Chapter {k // 4}", start=k) for k in range(24)]
    groups = merge_groups(points, 3, 4, None)
    assert [{p.section for p in members} for members in groups] == [{f"Chapter {k}"} for k in range(6)]
    assert len(merge_groups(points, 2, 24, None)) == 2


def test_documents_are_never_merged_with_each_other() -> None:
    points = [point(f"Matter {k}.", section="Introduction", start=k, document=k // 3) for k in range(6)]
    groups = merge_groups(points, 1, 4, None)
    assert [{p.document for p in members} for members in groups] == [{0}, {1}]


def test_a_merged_point_cites_the_member_that_holds_its_words() -> None:
    members = [point("Nothing is known of the mill.", start=0), point("The town has 740 houses.", start=9)]
    merged = best_cited(replace(members[0], text="The town has 740 houses."), members)
    assert merged.citation == members[1].citation


def test_the_leader_says_most_of_its_group() -> None:
    points = [
        point("The cat slept.", start=0),
        point(
            "The silver mine of Quarz flooded, and the silver trade of Quarz ended with the flooded mine.",
            start=1,
        ),
        point("The flooded silver mine of Quarz was pumped dry for the silver trade.", start=2),
    ]
    (group,) = merge_groups(points, 1, 4, None)
    assert group[0].citation.start in (1, 2)


def test_pages_spread_over_all_that_a_point_stands_for() -> None:
    assert spread_pages([point(page=7, start=9), point(page=3, start=1), point(start=5)]) == ("3", "7")
    assert spread_pages([point()]) is None
    assert join_pages([("3", "4"), None, ("4", "9")]) == "pp. 3–9"
    assert join_pages([("3", "3")]) == "p. 3"
    assert join_pages([None]) == ""


def test_the_lines_of_a_summary() -> None:
    points = [point("A.", page=1), point("B.", page=2), point("C.", section="Rivers", page=5)]
    assert list(render(points)) == [
        "## Mines (pp. 1–2)", "- A. (p. 1) [1]", "- B. (p. 2) [2]", "", "## Rivers (p. 5)", "- C. (p. 5) [3]",
    ]  # fmt: skip
    assert list(render([point("A.")])) == ["## Mines", "- A. [1]"]
    several = [point("A.", section="Introduction"), point("B.", section="Introduction", document=1)]
    assert list(render(several, several=True)) == [
        "## book0.md › Introduction", "- A. [1]", "", "## book1.md › Introduction", "- B. [2]",
    ]  # fmt: skip
