"""What runs in the child process of OCR: pages drawn or images opened, lines recognised. Knows no limits.

`read_pdf` and `read_image` yield JSON values: the number, text and confidence of each page without text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from localctx.document.ocr_order import Box, text_of_boxes
from localctx.errors import InputError, PasswordNeeded

__all__ = ["read_image", "read_pdf"]

Item: TypeAlias = dict[str, Any]

POINTS_PER_INCH = 72
DOTS_PER_INCH = 200
MAX_SIDE = 2400
"""Pixels of the longer side of what is recognised: an A4 page at 200 dots an inch."""
SMALL_SIDE = 1200
"""An image smaller than this is enlarged: letters of a low-resolution scan are too small for the detector."""
MAX_PIXELS = 200_000_000
MAX_THREADS = 4


def read_pdf(path: str, password: str | None, ranges: Sequence[Sequence[int]]) -> Iterator[Item]:
    """The pages of `ranges` (of indices, first and last) that draw something but hold no text."""
    import pypdfium2

    document = opened(path, password)
    recognise = recogniser()
    for first, last in ranges:
        for index in range(first, min(last, len(document) - 1) + 1):
            page = document[index]
            try:
                if is_scan(page):
                    scale = min(DOTS_PER_INCH / POINTS_PER_INCH, MAX_SIDE / max(*page.get_size(), 1.0))
                    bitmap = page.render(scale=scale, may_draw_forms=True)
                    yield recognise(bitmap.to_numpy()[:, :, :3]) | {"number": index + 1}
            except pypdfium2.PdfiumError as error:
                raise InputError(f"page {index + 1} cannot be drawn ({error})") from None
            finally:
                page.close()


def opened(path: str, password: str | None) -> Any:
    """The document, by the empty or the given password."""
    import pypdfium2

    for attempt in dict.fromkeys(("", password or "")):
        try:
            return pypdfium2.PdfDocument(path, password=attempt)
        except pypdfium2.PdfiumError as error:
            problem = str(error)
    raise PasswordNeeded(f"cannot be opened for OCR ({problem})")


def is_scan(page: Any) -> bool:
    """Whether a page draws something but holds no text."""
    text = page.get_textpage()
    try:
        if text.get_text_bounded().strip():
            return False
    finally:
        text.close()
    return next(iter(page.get_objects(max_depth=1)), None) is not None


def read_image(path: str, name: str, first: int, last: int) -> Iterator[Item]:
    """Frames `first` to `last` of a PNG, JPEG or TIFF image. Raises InputError (damaged, too large)."""
    import numpy
    from PIL import Image, ImageOps, ImageSequence

    Image.MAX_IMAGE_PIXELS = MAX_PIXELS // 2  # Pillow refuses twice as many
    recognise = recogniser()
    try:
        with Image.open(path, formats=("PNG", "JPEG", "TIFF")) as image:
            yield {"n_pages": getattr(image, "n_frames", 1)}
            for number, frame in enumerate(ImageSequence.Iterator(image), 1):
                if first <= number <= last:
                    clean = scaled(flattened(ImageOps.exif_transpose(frame)))
                    yield recognise(numpy.asarray(clean)[:, :, ::-1]) | {"number": number}
    except (OSError, SyntaxError, ValueError, EOFError, Image.DecompressionBombError) as error:
        raise InputError(f"{name}: not a readable image ({error})", "open and save it again") from None


def flattened(image: Any) -> Any:
    """The image in RGB on white."""
    from PIL import Image

    if image.mode.startswith(("I", "F")):  # 16-bit and float greys: convert() would clip them
        wide = image.convert("I") if image.mode.startswith("I;16") else image  # of any byte order
        low, high = wide.getextrema()
        return (
            wide.point(lambda value: (value - low) * (255.0 / max(high - low, 1))).convert("L").convert("RGB")
        )
    if image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info:
        layered = image.convert("RGBA")
        paper = Image.new("RGBA", layered.size, "white")
        paper.alpha_composite(layered)
        return paper.convert("RGB")
    return image.convert("RGB")


def scaled(image: Any) -> Any:
    """The image in a size that suits the detector."""
    from PIL import Image

    side = max(image.size)
    scale = MAX_SIDE / side if side > MAX_SIDE else 2.0 if side < SMALL_SIDE else 1.0
    width, height = (max(1, round(length * scale)) for length in image.size)
    return image if scale == 1.0 else image.resize((width, height), Image.Resampling.LANCZOS)


def recogniser() -> Any:
    """A function from pixels (rows, columns, blue green red) to text and confidence."""
    from rapidocr import RapidOCR

    engine: Any = RapidOCR(  # what it returns depends on what it was asked for
        params={
            "Global.log_level": "critical",
            "Global.max_side_len": MAX_SIDE,
            "EngineConfig.onnxruntime.intra_op_num_threads": min(MAX_THREADS, os.cpu_count() or 1),
            "EngineConfig.onnxruntime.inter_op_num_threads": 1,
        }
    )

    def recognise(pixels: Any) -> Item:
        found = engine(pixels)
        if found.boxes is None or found.txts is None:
            return {"text": "", "confidence": 0.0}
        boxes = [
            Box(text, *(float(v) for v in (*corners.min(axis=0), *corners.max(axis=0))))
            for corners, text in zip(found.boxes, found.txts, strict=True)
        ]
        n = [len(text) for text in found.txts]
        total = sum(score * k for score, k in zip(found.scores, n, strict=True))
        return {"text": text_of_boxes(boxes), "confidence": round(total / max(1, sum(n)), 4)}

    return recognise
