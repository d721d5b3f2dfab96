"""The one file format: what is written is read back, and nothing that is not whole is believed."""

from __future__ import annotations

import json
import os
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.store.segments import (
    MAGIC,
    PREFIX,
    VERSION,
    checksum_of,
    new_segment,
    read_header,
    write_container,
)

DATA = [b"a" * 100, b"b", b"c" * 64]


def entries(data: list[bytes]) -> list[tuple[dict[str, Any], bytes, bytes]]:
    """What is given to a writer."""
    return [({"number": number}, checksum_of(one), one) for number, one in enumerate(data)]


def container(data: list[bytes], path: Path) -> bytes:
    """A whole file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
    write_container(descriptor, {"kind": "test"}, entries(data))
    os.close(descriptor)
    return path.read_bytes()


def header_of(data: bytes, path: Path) -> Any:
    """The header of such a file."""
    path.write_bytes(data)
    with path.open("rb") as file:
        return read_header(file.fileno())


def with_header(header: object, tail: bytes, **changed: int) -> bytes:
    """A file with a header of our own, its checksum right."""
    body = header if isinstance(header, bytes) else json.dumps(header).encode()
    pad = bytes(-(PREFIX.size + len(body)) % 64)
    size = changed.get("size", PREFIX.size + len(body) + len(pad) + len(tail))
    prefix = PREFIX.pack(
        MAGIC, VERSION, changed.get("n", 1), changed.get("length", len(body)), size, checksum_of(body)
    )
    return prefix + body + pad + tail


@given(st.lists(st.binary(max_size=300), max_size=6))
@settings(deadline=None, max_examples=30)
def test_what_is_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, data: list[bytes]) -> None:
    path = tmp_path_factory.getbasetemp() / "container"
    whole = container(data, path)
    header = header_of(whole, path)
    assert header.facts == {"kind": "test"}
    assert [whole[e.offset : e.offset + e.size_bytes] for e in header.entries] == data
    assert all(entry.offset % 64 == 0 for entry in header.entries)
    assert [entry.facts["number"] for entry in header.entries] == list(range(len(data)))


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_a_changed_header_is_never_believed(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.getbasetemp() / "container"
    whole = bytearray(container(DATA, path))
    length = PREFIX.unpack(bytes(whole[: PREFIX.size]))[3]
    offset = data.draw(st.integers(0, PREFIX.size + length - 1).filter(lambda at: not 48 <= at < 64))
    whole[offset] ^= data.draw(st.integers(1, 255))
    with pytest.raises(ValueError, match=r"."):
        header_of(bytes(whole), path)


@given(st.integers(0, 2000))
@settings(deadline=None, max_examples=60)
def test_a_cut_file_is_never_believed(tmp_path_factory: pytest.TempPathFactory, length: int) -> None:
    path = tmp_path_factory.getbasetemp() / "container"
    whole = container(DATA, path)
    with pytest.raises(ValueError, match=r"."):
        header_of(whole[: min(length, len(whole) - 1)], path)


GOOD = {"offset": 0, "size": 4, "checksum": "00" * 16}


@pytest.mark.parametrize(
    "header",
    [
        {"facts": {}, "entries": [{**GOOD, "size": 1 << 62}]},
        {"facts": {}, "entries": [{**GOOD, "size": -4}]},
        {"facts": {}, "entries": [{**GOOD, "size": True}]},
        {"facts": {}, "entries": [{**GOOD, "size": 4.0}]},
        {"facts": {}, "entries": [{**GOOD, "offset": -64}]},
        {"facts": {}, "entries": [{**GOOD, "offset": 64}]},
        {"facts": {}, "entries": [GOOD, GOOD]},
        {"facts": {}, "entries": [{**GOOD, "checksum": "00"}]},
        {"facts": {}, "entries": [{**GOOD, "checksum": 7}]},
        {"facts": {}, "entries": [{"size": 4}]},
        {"facts": {}, "entries": 5},
        {"facts": 5, "entries": [GOOD]},
        {"facts": {}, "entries": [[]]},
        [],
        b"\xff\xfe",
        b"[" * 100_000,
    ],
)
def test_hostile_headers(tmp_path: Path, header: object) -> None:
    with pytest.raises(ValueError, match=r"header|add up"):
        header_of(with_header(header, b"data"), tmp_path / "file")


@pytest.mark.parametrize(
    "changed", [{"length": 1 << 63}, {"size": 1 << 63}, {"n": 0}, {"n": 1 << 31}, {"length": 0}]
)
def test_hostile_figures(tmp_path: Path, changed: dict[str, int]) -> None:
    good = {"facts": {}, "entries": [GOOD]}
    assert header_of(with_header(good, b"data"), tmp_path / "file").entries[0].size_bytes == 4
    with pytest.raises(ValueError, match=r"."):
        header_of(with_header(good, b"data", **changed), tmp_path / "file")


def test_another_version_is_named(tmp_path: Path) -> None:
    whole = bytearray(container(DATA, tmp_path / "file"))
    struct.pack_into("<I", whole, 8, 7)
    with pytest.raises(ValueError, match=r"it has version 7, this localctx reads version 1"):
        header_of(bytes(whole), tmp_path / "file")


def test_a_segment_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    for call in ("write", "fsync", "rename"):
        with monkeypatch.context() as patched:
            patched.setattr(os, call, fail)
            with pytest.raises(OSError, match="No space"), new_segment(tmp_path, {}, entries(DATA)):
                raise AssertionError("not reached")
        assert list(tmp_path.iterdir()) == [], call
    with new_segment(tmp_path, {}, entries(DATA)) as written:
        assert (tmp_path / f"{written.name}.seg").stat().st_size == written.size_bytes
        assert (tmp_path / f"{written.name}.seg").stat().st_mode & 0o777 == 0o600
