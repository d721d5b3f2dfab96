"""How fast the disk under the store writes and reads. Leaves nothing behind; knows nothing of KV."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from localctx.byte_sizes import format_bytes
from localctx.doctor.report import Finding
from localctx.engine.gguf import display

__all__ = ["check_disk", "file_speeds"]

_N_BYTES = 64 << 20
_N_PIECE = 4 << 20
_SLOW_BYTES_PER_S = 200e6
"""8,192 tokens of an 8B model are some 300 MB in INT4: below this a question waits 1.5 s for them."""


def check_disk(root: Path | None, n_bytes: int = _N_BYTES) -> Iterator[Finding]:
    """A file of n_bytes in the store's folder, or the nearest one above it that is there; None: no store."""
    if root is None:
        yield Finding("store disk", "ok", "--store off: nothing is kept")
        return
    folder = next((one for one in (root, *root.parents) if one.is_dir()), root)
    try:
        written, read = file_speeds(folder, n_bytes)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else str(error)
        yield Finding("store disk", "warn", f"{display(root)}: {why}", "another folder: LOCALCTX_STORE=DIR")
        return
    detail = f"{display(folder)}: {format_bytes(written)}/s written, {format_bytes(read)}/s read"
    is_slow = read < _SLOW_BYTES_PER_S
    yield Finding(
        "store disk",
        "warn" if is_slow else "ok",
        detail,
        "stored KV is read slowly: put the store on a faster disk with LOCALCTX_STORE=DIR" if is_slow else "",
        {"write_bytes_per_s": round(written), "read_bytes_per_s": round(read)},
    )


def file_speeds(folder: Path, n_bytes: int) -> tuple[float, float]:
    """Bytes a second written, to the disk, and read back, past the page cache where the system lets go of it.

    Raises OSError.
    """
    piece = os.urandom(min(n_bytes, _N_PIECE))  # of a kind that no file system makes small
    with tempfile.TemporaryFile(dir=folder, buffering=0) as file:
        started = time.monotonic()
        for start in range(0, n_bytes, len(piece)):
            file.write(piece[: n_bytes - start])
        os.fsync(file.fileno())
        written = n_bytes / max(time.monotonic() - started, 1e-9)
        if hasattr(os, "posix_fadvise"):
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        file.seek(0)
        started = time.monotonic()
        while file.read(_N_PIECE):
            pass
        return written, n_bytes / max(time.monotonic() - started, 1e-9)
