"""One file format for everything that is kept or carried away: a header, then byte strings, 64-byte aligned.

    magic 8 · version u32 · entries u32 · header bytes u64 · file bytes u64 · xxh3-128 of the header 16 ·
    zeros 16 header: JSON {"facts": {...}, "entries": [{"offset", "size", "checksum", ...}]}, offsets from the
    data's start data:   the byte strings in order, each at the next multiple of 64

Files are written under a temporary name, synced and renamed, so each is whole or absent. Knows no catalogue.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import xxhash

from localctx.private_files import sync_folder
from localctx.store.locks import try_lock

__all__ = [
    "ALIGNMENT",
    "MAX_SEGMENT_BYTES",
    "OWN_NAME",
    "SUFFIX",
    "TEMPORARY_PREFIX",
    "Buffer",
    "Entry",
    "Header",
    "Written",
    "aligned",
    "checksum_of",
    "new_segment",
    "read_exactly",
    "read_header",
    "write_container",
]

MAGIC, VERSION = b"LCTXSEG\n", 1
PREFIX = struct.Struct("<8sIIQQ16s16x")
ALIGNMENT = 64
MAX_SEGMENT_BYTES = 256 << 20
MAX_HEADER_BYTES = 256 << 20
"""An exported document of ten million tokens has a header of about 20 MB."""
SUFFIX, TEMPORARY_PREFIX = ".seg", "tmp-"
OWN_NAME = re.compile(r"tmp-[0-9a-f]{32}|[0-9a-f]{32}\.seg", re.ASCII)
"""What this module calls its files."""
Buffer: TypeAlias = "bytes | bytearray | memoryview"


@dataclass(frozen=True, slots=True)
class Entry:
    """One byte string of a file. offset: from the file's beginning · facts: what else the header says."""

    offset: int
    size_bytes: int
    checksum: bytes
    facts: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Header:
    """A file's checked header."""

    facts: dict[str, Any]
    entries: tuple[Entry, ...]
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Written:
    """A new segment: its name and size, and where each byte string begins, from the file's beginning."""

    name: str
    size_bytes: int
    offsets: tuple[int, ...]


def aligned(n_bytes: int) -> int:
    """The next multiple of 64."""
    return -(-n_bytes // ALIGNMENT) * ALIGNMENT


def checksum_of(data: Buffer) -> bytes:
    """xxh3-128, 16 bytes."""
    return xxhash.xxh3_128_digest(data)


@contextlib.contextmanager
def new_segment(
    folder: Path, facts: dict[str, Any], entries: Sequence[tuple[dict[str, Any], bytes, Buffer]]
) -> Iterator[Written]:
    """Write a segment of (facts, checksum, data) and yield it, synced under its final name.

    It stays locked until the block ends, so that nobody takes it for a leftover before its rows are
    committed. Raises OSError; nothing of the file is left then.
    """
    name = secrets.token_hex(16)
    path = folder / f"{TEMPORARY_PREFIX}{name}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        try:
            try_lock(descriptor, is_exclusive=True)
            size_bytes, offsets = write_container(descriptor, facts, entries)
            os.fsync(descriptor)
            path = path.rename(folder / (name + SUFFIX))
            sync_folder(folder)
        except BaseException:
            path.unlink(missing_ok=True)
            raise
        yield Written(name, size_bytes, offsets)
    finally:
        os.close(descriptor)


def write_container(
    descriptor: int, facts: dict[str, Any], entries: Sequence[tuple[dict[str, Any], bytes, Buffer]]
) -> tuple[int, tuple[int, ...]]:
    """Write (facts, checksum, data) entries to an empty file; its size and the data's offsets in it."""
    position = 0
    placed: list[dict[str, Any]] = []
    for entry_facts, checksum, data in entries:
        position = aligned(position)
        placed.append({**entry_facts, "offset": position, "size": len(data), "checksum": checksum.hex()})
        position += len(data)
    body = json.dumps({"facts": facts, "entries": placed}, separators=(",", ":")).encode()
    start = aligned(PREFIX.size + len(body))
    size_bytes = start + position
    prefix = PREFIX.pack(MAGIC, VERSION, len(placed), len(body), size_bytes, checksum_of(body))
    _write_all(descriptor, prefix + body + bytes(start - PREFIX.size - len(body)))
    written = 0
    for (_, _, data), place in zip(entries, placed, strict=True):
        _write_all(descriptor, bytes(place["offset"] - written))
        _write_all(descriptor, data)
        written = place["offset"] + len(data)
    return size_bytes, tuple(start + place["offset"] for place in placed)


def read_header(descriptor: int) -> Header:
    """The header of an open file, every figure of it checked against the file's size.

    Raises ValueError naming what is wrong, OSError.
    """
    size_bytes = os.fstat(descriptor).st_size
    prefix = os.pread(descriptor, PREFIX.size, 0)
    if len(prefix) < PREFIX.size or not prefix.startswith(MAGIC):
        raise ValueError("it is no file of localctx's store")
    _, version, n_entries, body_bytes, stated_bytes, checksum = PREFIX.unpack(prefix)
    if version != VERSION:
        raise ValueError(f"it has version {version}, this localctx reads version {VERSION}")
    if stated_bytes != size_bytes:
        raise ValueError(f"it has {size_bytes:,} bytes instead of {stated_bytes:,}")
    if body_bytes > min(size_bytes - PREFIX.size, MAX_HEADER_BYTES):
        raise ValueError("its header is damaged")
    body = bytearray(body_bytes)
    if not read_exactly(descriptor, memoryview(body), PREFIX.size) or checksum_of(body) != checksum:
        raise ValueError("its header is damaged")
    try:
        value = json.loads(bytes(body))
        start = aligned(PREFIX.size + body_bytes)
        entries = tuple(_entry(dict(item), start) for item in value["entries"])
        facts = dict(value["facts"])
    except (KeyError, TypeError, ValueError, RecursionError):
        raise ValueError("its header is not understood") from None
    _check_places(entries, start, n_entries, size_bytes)
    return Header(facts, entries, size_bytes)


def read_exactly(descriptor: int, out: memoryview, offset: int) -> bool:
    """Fill `out` from the file; False where the file ends before. Raises OSError."""
    done = 0
    while done < len(out):
        n_bytes = os.preadv(descriptor, [out[done:]], offset + done)
        if n_bytes == 0:
            return False
        done += n_bytes
    return True


def _entry(item: dict[str, Any], start: int) -> Entry:
    """An entry from its JSON value. Raises KeyError, TypeError, ValueError."""
    offset, size_bytes, checksum = item.pop("offset"), item.pop("size"), bytes.fromhex(item.pop("checksum"))
    if type(offset) is not int or type(size_bytes) is not int or len(checksum) != 16:
        raise ValueError("an entry's figures")
    return Entry(start + offset, size_bytes, checksum, item)


def _check_places(entries: Sequence[Entry], start: int, n_entries: int, size_bytes: int) -> None:
    """Raises ValueError unless the entries lie in order, apart, and fill the file."""
    position = start
    for entry in entries:
        if entry.offset != aligned(position) or entry.size_bytes < 0:
            raise ValueError("its entries do not add up")
        position = entry.offset + entry.size_bytes
    if position != size_bytes or len(entries) != n_entries:
        raise ValueError("its entries do not add up")


def _write_all(descriptor: int, data: Buffer) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]
