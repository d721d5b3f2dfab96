"""Page and heading path of a position. Knows nothing of blocks; one bisection per question."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from localctx.values import Page, Section

__all__ = ["Locator"]


class Locator:
    """Answers for fixed pages and sections; sections may nest, and need not be sorted."""

    def __init__(self, pages: Sequence[Page], sections: Sequence[Section]) -> None:
        self._pages = sorted(pages, key=lambda page: (page.start, page.number))
        self._page_starts = [page.start for page in self._pages]
        self._path_starts, self._paths = _heading_paths(sections)

    def page(self, position: int) -> Page | None:
        """The page that holds `position`, or the page before it where it stands between two."""
        index = bisect_right(self._page_starts, position) - 1
        return self._pages[index] if index >= 0 else None

    def heading_path(self, position: int) -> tuple[str, ...]:
        """Titles of the sections that enclose `position`, outermost first."""
        index = bisect_right(self._path_starts, position) - 1
        return self._paths[index] if index >= 0 else ()

    def section_edges(self) -> Sequence[int]:
        """Every position where the heading path may change, ascending."""
        return self._path_starts


def _heading_paths(sections: Sequence[Section]) -> tuple[list[int], list[tuple[str, ...]]]:
    """Positions, ascending and distinct, and the heading path from each on."""
    ordered = sorted(sections, key=lambda section: (section.start, section.level, -section.end))
    edges = sorted({section.start for section in ordered} | {section.end for section in ordered})
    paths: list[tuple[str, ...]] = []
    open_sections: list[Section] = []
    upcoming = 0
    for edge in edges:
        open_sections = [section for section in open_sections if section.end > edge]
        while upcoming < len(ordered) and ordered[upcoming].start == edge:
            if ordered[upcoming].end > edge:
                open_sections.append(ordered[upcoming])
            upcoming += 1
        paths.append(tuple(section.title for section in open_sections))
    return edges, paths
