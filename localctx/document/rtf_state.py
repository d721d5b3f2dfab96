"""What RTF keeps in mind of a group and of a style. Knows no words."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Group", "Style"]


@dataclass(frozen=True, slots=True)
class Group:
    """What a group inherits and its end takes back. reads: body, note, fonts, styles or nothing."""

    reads: str = "body"
    n_skipped_after_unicode: int = 1
    font: int | None = None
    is_hidden: bool = False
    is_deleted: bool = False
    level: int | None = None
    is_in_table: bool = False


@dataclass(slots=True)
class Style:
    """A style of the stylesheet that is being read."""

    number: int = 0
    name: str = ""
    level: int | None = None
