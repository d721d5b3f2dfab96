"""How a path, or text from outside, is shown on one line of a terminal. Imports nothing of this package."""

from __future__ import annotations

import os

__all__ = ["display_name"]


def display_name(name: str | bytes | os.PathLike[str]) -> str:
    """The name with bytes that are not UTF-8, control, direction and other unprintable characters escaped."""
    try:
        data = os.fsencode(name)
    except UnicodeEncodeError:  # a lone surrogate that stands for no byte, or an ASCII-only system
        data = os.fsdecode(name).encode("utf-8", "backslashreplace")
    text = data.decode("utf-8", "backslashreplace")
    return text if text.isprintable() else "".join(map(_shown, text))


def _shown(character: str) -> str:
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
