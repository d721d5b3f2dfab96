"""What a page draws besides readable text: ruling lines, filled areas, pictures, and text that nobody sees.

Runs in the child only, on pdfium's page objects. Knows no tables. Points, y upwards.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

import pypdfium2.raw as c

from localctx.document.pdf_visible import unseen

__all__ = ["Box", "Drawn", "Rule", "address", "drawn_on"]

MAX_OBJECTS = 20_000
"""Of one page; what comes after is not looked at."""
MAX_FORM_DEPTH = 4
MAX_SEGMENTS = 500
"""Of one path: a longer one is a drawing."""
THIN = 2.6
"""A filled area no thicker than this, in points, is a line."""
SAME_COLOUR = 12
"""Most difference of a channel (0-255) at which text cannot be told from what is behind it."""
SEEN_ALPHA = 13
WHITE = (255, 255, 255)
SMALL_SIZE = 2.5
"""Size of a font, in its own units, from which on text cannot be tiny unless it is scaled down."""
TINY = 1.5
"""Size of a font on the page, in points, whose letters nobody reads."""
OCR_SHARE = 0.5
"""Pictures that cover this share of a page make it a scan; invisible text over it is what was recognised."""

Colour: TypeAlias = tuple[int, int, int]


class Box(NamedTuple):
    """A rectangle of the page."""

    left: float
    bottom: float
    right: float
    top: float

    def holds(self, x: float, y: float) -> bool:
        """Whether the point lies inside."""
        return self.left <= x <= self.right and self.bottom <= y <= self.top


class Matrix(NamedTuple):
    """Where points are taken to: x to ax + cy + e, y to bx + dy + f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float

    def point(self, x: float, y: float) -> tuple[float, float]:
        """A point, moved."""
        return self.a * x + self.c * y + self.e, self.b * x + self.d * y + self.f

    def box(self, box: Box) -> Box:
        """The bounds of a box, moved."""
        points = [self.point(x, y) for x in (box.left, box.right) for y in (box.bottom, box.top)]
        xs, ys = [x for x, _ in points], [y for _, y in points]
        return Box(min(xs), min(ys), max(xs), max(ys))

    def then(self, after: Matrix) -> Matrix:
        """This, then the other."""
        e, f = after.point(self.e, self.f)
        a, b = self.a * after.a + self.b * after.c, self.a * after.b + self.b * after.d
        c, d = self.c * after.a + self.d * after.c, self.c * after.b + self.d * after.d
        return Matrix(a, b, c, d, e, f)


UNMOVED = Matrix(1, 0, 0, 1, 0, 0)


class Rule(NamedTuple):
    """A straight line: at `at` (y of a level one, x of an upright one), from `low` to `high`."""

    at: float
    low: float
    high: float


@dataclass(slots=True)
class Drawn:
    """What was found. `hidden`: address of a text object → why nobody sees it; `is_scan`: pictures cover most
    of the page; `is_recognised`: and its invisible text, kept, is what was recognised there; `n_text`: text
    objects."""

    level: list[Rule] = field(default_factory=list)
    upright: list[Rule] = field(default_factory=list)
    fills: list[tuple[Box, Colour]] = field(default_factory=list)
    pictures: list[Box] = field(default_factory=list)
    hidden: dict[int, str] = field(default_factory=dict)
    is_scan: bool = False
    is_recognised: bool = False
    n_text: int = 0

    def behind(self, box: Box) -> Colour | None:
        """The colour behind the middle of a box, None where a picture is."""
        x, y = (box.left + box.right) / 2, (box.bottom + box.top) / 2
        if any(picture.holds(x, y) for picture in self.pictures):
            return None
        return next((colour for area, colour in reversed(self.fills) if area.holds(x, y)), WHITE)


class Scanner:
    """One walk over a page's objects, those inside forms too. Of what forms draw only pictures are kept."""

    def __init__(self) -> None:
        self.drawn = Drawn()
        self.n_left = MAX_OBJECTS
        self.coloured: list[tuple[object, Colour]] = []
        self.invisible: list[object] = []
        self.channels = tuple(ctypes.c_uint() for _ in range(4))
        self.edges = tuple(ctypes.c_float() for _ in range(4))
        self.matrix = c.FS_MATRIX()

    def scan(self, objects: Iterator[object], depth: int = 0, place: Matrix = UNMOVED) -> None:
        """Look at every object; `place` takes their points to the page."""
        mode_of = c.FPDFTextObj_GetTextRenderMode
        fill_of = c.FPDFPageObj_GetFillColor
        size_of, size = c.FPDFTextObj_GetFontSize, ctypes.c_float()
        red, green, blue, alpha = self.channels
        for item in objects:
            self.n_left -= 1
            if self.n_left < 0:
                return
            mode = mode_of(item)
            if mode < 0:
                self.other(item, depth, place)
                continue
            self.drawn.n_text += 1
            if (
                depth == 0
                and size_of(item, size)
                and size.value < SMALL_SIZE
                and self.is_tiny(item, size.value)
            ):
                self.drawn.hidden[address(item)] = "too small to read"
            if mode == c.FPDF_TEXTRENDERMODE_INVISIBLE:
                self.invisible.append(item)
            elif mode == c.FPDF_TEXTRENDERMODE_FILL and fill_of(item, red, green, blue, alpha):
                if alpha.value < SEEN_ALPHA:
                    self.drawn.hidden[address(item)] = "transparent"
                elif depth == 0 and (red.value or green.value or blue.value):
                    self.coloured.append((item, (red.value, green.value, blue.value)))

    def other(self, item: object, depth: int, place: Matrix) -> None:
        """A path, a picture or a form."""
        kind = c.FPDFPageObj_GetType(item)
        if kind == c.FPDF_PAGEOBJ_FORM and depth < MAX_FORM_DEPTH:
            n_inside = min(c.FPDFFormObj_CountObjects(item), self.n_left)
            inner = self.matrix_of(item).then(place)
            self.scan((c.FPDFFormObj_GetObject(item, i) for i in range(n_inside)), depth + 1, inner)
        elif depth == 0 and kind == c.FPDF_PAGEOBJ_PATH:
            self.path(item)
        elif kind == c.FPDF_PAGEOBJ_IMAGE:
            self.drawn.pictures.append(place.box(self.box(item)))

    def is_tiny(self, item: object, size: float) -> bool:
        """Whether a text is drawn too small to be read: its font as it is scaled, not its signs alone, of
        which a dash or a point is low in any font."""
        box, matrix = self.box(item), self.matrix_of(item)
        on_page = size * math.hypot(matrix.c, matrix.d)
        return 0 < on_page < TINY and 0 < box.top - box.bottom < TINY

    def matrix_of(self, item: object) -> Matrix:
        """Where an object's own points are placed."""
        found = self.matrix
        if not c.FPDFPageObj_GetMatrix(item, found):
            return UNMOVED
        return Matrix(found.a, found.b, found.c, found.d, found.e, found.f)

    def box(self, item: object) -> Box:
        """The bounds of an object."""
        left, bottom, right, top = self.edges
        c.FPDFPageObj_GetBounds(item, left, bottom, right, top)
        return Box(left.value, bottom.value, right.value, top.value)

    def path(self, item: object) -> None:
        """Keep a path's straight level and upright lines, and the area that it fills."""
        fill_mode, stroke = ctypes.c_int(), ctypes.c_int()
        c.FPDFPath_GetDrawMode(item, fill_mode, stroke)
        n_segments = c.FPDFPath_CountSegments(item)
        if not (fill_mode.value or stroke.value) or n_segments < 2:
            return
        box = self.box(item)
        if stroke.value and not fill_mode.value and n_segments == 2:
            inset = min(box.right - box.left, box.top - box.bottom) / 2  # half the pen's width, at each end
            self.line(Box(box.left + inset, box.bottom + inset, box.right - inset, box.top - inset))
            return
        if fill_mode.value and min(box.right - box.left, box.top - box.bottom) <= THIN:
            self.line(box)
            return
        if stroke.value and n_segments <= MAX_SEGMENTS:
            for piece in segments(item, n_segments):
                self.line(piece)
        red, green, blue, alpha = self.channels
        is_area = fill_mode.value and n_segments <= 6
        if is_area and c.FPDFPageObj_GetFillColor(item, red, green, blue, alpha) and alpha.value > 128:
            self.drawn.fills.append((box, (red.value, green.value, blue.value)))

    def line(self, box: Box) -> None:
        """Keep a thin box as a level or upright line."""
        width, height = box.right - box.left, box.top - box.bottom
        if height <= THIN < width:
            self.drawn.level.append(Rule((box.bottom + box.top) / 2, box.left, box.right))
        elif width <= THIN < height:
            self.drawn.upright.append(Rule((box.left + box.right) / 2, box.bottom, box.top))

    def judge(self, page: object, page_box: Box) -> Drawn:
        """Decide which text is hidden, now that everything drawn is known. What seems to have the colour
        behind it is looked at as it is drawn: rounded and clipped areas, patterns, forms may lie there."""
        drawn = self.drawn
        area = (page_box.right - page_box.left) * (page_box.top - page_box.bottom)
        covered = sum((p.right - p.left) * (p.top - p.bottom) for p in drawn.pictures)
        drawn.is_scan = area > 0 and covered >= OCR_SHARE * area
        drawn.is_recognised = drawn.is_scan and bool(self.invisible)
        if not drawn.is_scan:
            drawn.hidden |= {address(item): "drawn invisibly" for item in self.invisible}
        backgrounds = {WHITE, *(colour for _, colour in drawn.fills)}
        suspects = []
        for item, colour in self.coloured:
            if any(alike(colour, other) for other in backgrounds):
                box = self.box(item)
                behind = drawn.behind(box)
                if behind is not None and alike(colour, behind):
                    suspects.append((item, box))
        if suspects:
            drawn.hidden |= {address(item): "of the colour behind it" for item in unseen(page, suspects)}
        return drawn


def drawn_on(page: object, n_objects: int, page_box: Box) -> Drawn:
    """What a page draws."""
    scanner = Scanner()
    get = c.FPDFPage_GetObject
    scanner.scan(get(page, i) for i in range(min(n_objects, MAX_OBJECTS)))
    return scanner.judge(page, page_box)


def segments(item: object, n_segments: int) -> Iterator[Box]:
    """The straight pieces of a path as boxes on the page."""
    matrix = c.FS_MATRIX()
    c.FPDFPageObj_GetMatrix(item, matrix)
    px, py = ctypes.c_float(), ctypes.c_float()
    start = before = (0.0, 0.0)
    for i in range(n_segments):
        segment = c.FPDFPath_GetPathSegment(item, i)
        c.FPDFPathSegment_GetPoint(segment, px, py)
        x, y = px.value, py.value
        here = (matrix.a * x + matrix.c * y + matrix.e, matrix.b * x + matrix.d * y + matrix.f)
        kind = c.FPDFPathSegment_GetType(segment)
        if kind == c.FPDF_SEGMENT_MOVETO:
            start = here
        elif kind == c.FPDF_SEGMENT_LINETO:
            yield between(before, here)
        before = here
        if c.FPDFPathSegment_GetClose(segment):
            yield between(here, start)
            before = start


def between(a: tuple[float, float], b: tuple[float, float]) -> Box:
    """The box of two points."""
    return Box(min(a[0], b[0]), min(a[1], b[1]), max(a[0], b[0]), max(a[1], b[1]))


def alike(a: Colour, b: Colour) -> bool:
    """Whether two colours cannot be told apart."""
    return all(abs(x - y) <= SAME_COLOUR for x, y in zip(a, b, strict=True))


def address(item: object) -> int:
    """Where pdfium keeps an object: the same for every pointer to it."""
    return ctypes.cast(item, ctypes.c_void_p).value or 0  # type: ignore[arg-type]  # a ctypes pointer
