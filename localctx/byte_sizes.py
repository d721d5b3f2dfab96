"""Sizes in bytes as people write and read them: 20G, 1.5GB, 512 MiB, 1_000_000. Knows nothing else."""

from __future__ import annotations

import re

from localctx.errors import UsageError

__all__ = ["format_bytes", "parse_bytes"]

_SIZE = re.compile(r"(\d[\d_]*(?:\.\d+)?)\s*([kmgt]?)(i?)b?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}
_MOST = 1 << 62


def format_bytes(n_bytes: float) -> str:
    """A size for people, in thousands: "93.8 MB"."""
    if n_bytes < 1000:
        return f"{n_bytes:.0f} B"
    for unit in ("kB", "MB", "GB"):
        n_bytes /= 1000
        if n_bytes < 999.95:  # more would be shown as 1000.0
            return f"{n_bytes:.1f} {unit}"
    return f"{n_bytes / 1000:.1f} TB"


def parse_bytes(text: str, name: str) -> int:
    """The bytes that `text` says; K, M, G and T are thousands, Ki, Mi, Gi and Ti 1,024s.

    Raises UsageError, with `name` in it, for anything else.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or (match[3] and not match[2]):
        raise UsageError(f"{name} = {text!r} is no size", "like 50G or 512M")
    base = 1024 if match[3] else 1000
    size = float(match[1].replace("_", "")) * float(base ** _POWERS[match[2].lower()])
    if not 1 <= size <= _MOST:
        raise UsageError(f"{name} = {text!r} is out of range", "like 50G or 512M")
    return round(size)
