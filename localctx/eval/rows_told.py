"""Rows of a measurement as they are found: with --json a line each, at once. Knows no figure."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any, TypeVar

__all__ = ["told"]

T = TypeVar("T", bound=Any)
"""A dataclass."""


def told(rows: Iterable[T], *, as_json: bool) -> list[T]:
    """All rows; as_json: each is printed as soon as it is there."""
    found = []
    for row in rows:
        found.append(row)
        if as_json:
            sys.stdout.write(json.dumps(asdict(row)) + "\n")
            sys.stdout.flush()
    return found
