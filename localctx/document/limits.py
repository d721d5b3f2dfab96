"""The caps on a document's cost that callers may set. Knows no format.

What one format or child process needs besides (pages lost, seconds a page, bytes a message) stands there.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits"]

MiB = 1 << 20
GiB = 1 << 30


@dataclass(frozen=True, slots=True)
class Limits:
    """Caps on one document, in bytes; ratios are inflated to packed, and count beyond `ratio_free_bytes`."""

    stream_bytes: int = 64 * GiB
    """Standard input."""
    gzip_bytes: int = 64 * GiB
    gzip_ratio: int = 300
    zip_members: int = 50_000
    zip_bytes: int = 4 * GiB
    zip_ratio: int = 200
    ratio_free_bytes: int = 64 * MiB
    text_bytes: int = 64 * GiB
    """Extracted text."""
    tree_bytes: int = 64 * MiB
    """What is held whole: HTML, an EPUB chapter, a slide, tables of contents, a zip document's lists."""
    token_bytes: int = 64 * MiB
    """One XML tag with its attributes; in characters: one paragraph, table row, shape or note."""
    depth: int = 10_000
    """Nested XML elements."""
    headings: int = 200_000
    detect_bytes: int = 16 * MiB
    """What the encoding detector is shown of a file that is not UTF-8."""
    child_seconds: float = 60.0
    """Without any progress, of a parser in a child process."""
    child_bytes: int = 2 * GiB
    ocr: bool = True
    """Whether pictures of text are read, seconds a page, where the extra is installed."""
    ocr_seconds: float = 600.0
    """Of one page."""
    ocr_bytes: int = 6 * GiB
    """Address space of the process that reads images."""
