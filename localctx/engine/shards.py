"""Finds all files of a model that was split, from any one of them. Knows names and headers, not models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from localctx.engine.gguf_reader import RawHeader, display
from localctx.errors import ModelError

__all__ = ["check_set", "resolve"]

_SHARD = re.compile(r"-(\d{5})-of-(\d{5})\.gguf\Z", re.IGNORECASE)
_MAX_LISTED = 5


def resolve(path: Path) -> list[Path]:
    """All shards of the model, the first one first; a file that was not split is alone.

    Raises ModelError that lists the missing ones.
    """
    match = _SHARD.search(path.name)
    if match is None:
        return [path]
    number, n_shards = int(match[1]), int(match[2])
    if not 1 <= number <= n_shards:
        raise ModelError(
            f"{display(path)}: shard {number} of {n_shards} by its name", "check the file's name"
        )
    stem, suffix = path.name[: match.start()], path.name[-len(".gguf") :]
    shards = [path.with_name(f"{stem}-{i:05d}-of-{match[2]}{suffix}") for i in range(1, n_shards + 1)]
    missing = [shard for shard in shards if not shard.exists()]
    if len(missing) == n_shards:
        raise ModelError(f"{display(path)}: no such model file", "check the path, or: localctx models ls")
    if missing:
        names = ", ".join(display(Path(shard.name)) for shard in missing[:_MAX_LISTED])
        more = f" and {len(missing) - _MAX_LISTED} more" if len(missing) > _MAX_LISTED else ""
        raise ModelError(
            f"{display(path)}: {len(missing)} of the model's {n_shards} files missing: {names}{more}",
            "put all shards into one folder, under their own names",
        )
    return shards


def check_set(headers: Sequence[RawHeader]) -> None:
    """Raises ModelError unless the files are the whole of one model, in order and not joined end to end."""
    for number, header in enumerate(headers):
        count = header.metadata.get("split.count", 1)
        position = header.metadata.get("split.no", 0)
        where = display(header.path)
        if isinstance(count, int) and count > 1 and len(headers) == 1:
            raise ModelError(
                f"{where}: one of {count} files of a split model",
                "keep the name it came with: NAME-00001-of-0000N.gguf",
            )
        if len(headers) > 1 and (count != len(headers) or position != number):
            raise ModelError(
                f"{where}: holds part {position} of {count} (from 0), by its name {number} of {len(headers)}",
                "download the set again",
            )
        if _joined(header):
            raise ModelError(
                f"{where}: another GGUF follows the first one: shards were joined end to end",
                "keep the shards apart, or join them with llama-gguf-split --merge",
            )
    n_tensors = headers[0].metadata.get("split.tensors.count")
    n_found = sum(len(header.tensors) for header in headers)
    if isinstance(n_tensors, int) and len(headers) > 1 and n_tensors != n_found:
        raise ModelError(
            f"{display(headers[0].path)}: the files hold {n_found} of {n_tensors} tensors",
            "download the set again",
        )


def _joined(header: RawHeader) -> bool:
    if header.size_bytes < header.size_expected + 4 or any(t.size_bytes is None for t in header.tensors):
        return False
    alignment = header.metadata.get("general.alignment", 32)
    step = alignment if isinstance(alignment, int) else 32
    with header.path.open("rb") as file:
        for offset in (header.size_expected, -(-header.size_expected // step) * step):
            file.seek(offset)
            if file.read(4) == b"GGUF":
                return True
    return False
