"""Versions of installed packages, for what holds for one of them only. Imports none of them."""

from __future__ import annotations

import functools
import importlib.metadata

__all__ = ["package_version"]


@functools.cache
def package_version(name: str) -> str:
    """Its version; "" where it is not here, or was put here without what a package says of itself.

    Kept: looking it up takes some milliseconds.
    """
    try:
        return importlib.metadata.version(name) or ""
    except importlib.metadata.PackageNotFoundError:
        return ""
