"""Cluster boundaries and heading paths against the plain way to find them."""

from __future__ import annotations

import regex
from blocks.text_cases import texts
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.blocks.graphemes import is_boundary, last_boundary
from localctx.blocks.locate import Locator
from localctx.blocks.pieces import split_long
from localctx.values import Page, Section


@settings(deadline=None, max_examples=200)
@given(texts)
def test_boundaries_are_those_of_the_whole_text(text: str) -> None:
    boundaries = {0, len(text)} | {cluster.end() for cluster in regex.finditer(r"\X", text)}
    for at in range(len(text) + 1):
        assert is_boundary(text, at) == (at in boundaries)
        assert last_boundary(text, at) == max(place for place in boundaries if place <= at)


@settings(deadline=None, max_examples=200)
@given(texts, st.integers(1, 50), st.booleans())
def test_long_text_is_cut_to_size_and_joins_back(text: str, size: int, after_line_breaks: bool) -> None:
    parts = [part for part, _ in split_long(text, size, after_line_breaks)]
    assert "".join(parts) == text
    assert all(0 < len(part) <= size for part in parts) or not text


def test_a_word_is_not_cut_where_white_space_is_near() -> None:
    text = "some words " + "y" * 30 + " and more words"
    assert [part for part, _ in split_long(text, 33, False)] == [
        "some words",
        " " + "y" * 30,
        " and more words",
    ]


spans = st.tuples(st.integers(0, 40), st.integers(0, 20), st.integers(1, 3))


@settings(deadline=None, max_examples=200)
@given(st.lists(spans, max_size=8))
def test_heading_path_lists_every_section_round_a_position(given_spans: list[tuple[int, int, int]]) -> None:
    sections = [
        Section(level, str(index), start, start + length)
        for index, (start, length, level) in enumerate(given_spans)
    ]
    locator = Locator((), sections)
    for position in range(70):
        round_it = [section for section in sections if section.start <= position < section.end]
        path = locator.heading_path(position)
        assert sorted(path) == sorted(section.title for section in round_it)
        outermost_first = [sections[int(title)] for title in path]
        assert outermost_first == sorted(outermost_first, key=lambda s: (s.start, s.level, -s.end))


def test_page_of_a_position() -> None:
    locator = Locator([Page(1, 5, 10), Page(2, 10, 10), Page(3, 12, 20)], ())
    found = [locator.page(at) for at in (0, 5, 9, 10, 11, 12, 19)]
    assert [page.number if page else None for page in found] == [None, 1, 1, 2, 2, 3, 3]
