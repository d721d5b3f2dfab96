"""Whether text of the colour behind it is seen all the same: its page is drawn with it and without it.

Runs in the child only. Knows nothing of why the text is suspected.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import pypdfium2.raw as c

if TYPE_CHECKING:
    import numpy as np

    from localctx.document.pdf_objects import Box

__all__ = ["unseen"]

PIXELS_PER_POINT = 2.0
MAX_PIXELS = 8_000_000
LEAST_DIFFERENCE = 12
"""Of a channel (0-255): less is not seen."""
BYTES_PER_PIXEL = 4

Suspect: TypeAlias = "tuple[object, Box]"


def unseen(page: object, suspects: Sequence[Suspect]) -> Iterator[object]:
    """Those of the text objects, given with their bounds, without which the page looks the same there.

    They are filled text, on the page itself. A page that cannot be drawn hides nothing.
    """
    width, height = c.FPDF_GetPageWidthF(page), c.FPDF_GetPageHeightF(page)
    if not (math.isfinite(width * height) and width * height > 0):
        return
    scale = min(PIXELS_PER_POINT, math.sqrt(MAX_PIXELS / (width * height)))
    size = max(1, min(MAX_PIXELS, int(width * scale))), max(1, min(MAX_PIXELS, int(height * scale)))
    if size[0] * size[1] > 2 * MAX_PIXELS:
        return
    whole = picture(page, size)
    set_mode((item for item, _ in suspects), c.FPDF_TEXTRENDERMODE_INVISIBLE)
    try:
        without = picture(page, size)
    finally:
        set_mode((item for item, _ in suspects), c.FPDF_TEXTRENDERMODE_FILL)
    if whole is None or without is None:
        return
    for item, box in suspects:
        rows, columns = pixels(page, box, size)
        there, gone = whole[rows, columns].astype("int16"), without[rows, columns].astype("int16")
        if not (abs(there - gone) > LEAST_DIFFERENCE).any():
            yield item


def picture(page: object, size: tuple[int, int]) -> np.ndarray[Any, Any] | None:
    """The page as pixels: rows, columns, channels; None where there is no room for it."""
    import numpy as np

    width, height = size
    pixels = np.full((height, width, BYTES_PER_PIXEL), 255, np.uint8)
    address = pixels.ctypes.data_as(ctypes.c_void_p)
    bitmap = c.FPDFBitmap_CreateEx(width, height, c.FPDFBitmap_BGRx, address, width * BYTES_PER_PIXEL)
    if not bitmap:
        return None
    try:
        c.FPDF_RenderPageBitmap(bitmap, page, 0, 0, width, height, 0, 0)
    finally:
        c.FPDFBitmap_Destroy(bitmap)
    return pixels


def pixels(page: object, box: Box, size: tuple[int, int]) -> tuple[slice, slice]:
    """The rows and columns that a box of the page takes of its picture."""
    x, y = ctypes.c_int(), ctypes.c_int()
    xs, ys = [], []
    for left, bottom in ((box.left, box.bottom), (box.right, box.top)):
        c.FPDF_PageToDevice(page, 0, 0, *size, 0, left, bottom, x, y)
        xs.append(x.value)
        ys.append(y.value)
    return slice(max(0, min(ys) - 1), max(0, max(ys) + 2)), slice(max(0, min(xs) - 1), max(0, max(xs) + 2))


def set_mode(items: Iterable[object], mode: int) -> None:
    """Draw text so from now on."""
    for item in items:
        c.FPDFTextObj_SetTextRenderMode(item, mode)
