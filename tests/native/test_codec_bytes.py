"""Bytes that are no run are refused when it is opened; what is accepted can be read at any address."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from native.codec_cases import encoded, make_case, rows_of, same

from localctx._native import Run
from native import codec_twin


@pytest.fixture(scope="module")
def whole_run() -> bytes:
    return encoded(make_case(130, 16, 2), "int3", 1, 0.8)


def test_a_cut_run_is_refused(whole_run: bytes) -> None:
    assert Run(whole_run).n_outliers > 0
    for size in [*range(200), *range(200, len(whole_run), 61)]:
        with pytest.raises(ValueError, match="no run of KV"):
            Run(whole_run[:size])
    with pytest.raises(ValueError, match="length"):
        Run(whole_run + b"\0")


@pytest.mark.parametrize(
    ("offset", "packed", "says"),
    [
        (0, b"LCKX", "begin"),
        (4, b"\2\0", "version 2"),
        (6, b"\7", "codec"),
        (7, b"\1", "reserved"),
        (8, struct.pack("<I", 0), "tokens"),
        (8, struct.pack("<I", 2**32 - 1), "tokens"),
        (8, struct.pack("<I", 65535), "cut"),
        (12, struct.pack("<I", 2**32 - 1), "layers"),
        (12, struct.pack("<I", 0), "length"),
        (16, struct.pack("<I", 0), "head"),
        (16, struct.pack("<I", 13), "row sizes"),
        (16, struct.pack("<I", 2**31), "row sizes"),
        (20, struct.pack("<I", 0), "head"),
        (24, struct.pack("<f", math.nan), "errors"),
        (28, struct.pack("<f", -1.0), "errors"),
        (32, struct.pack("<Q", 2**63), "outliers"),
        (40, struct.pack("<Q", 2**64 - 1), "length"),
        (50, b"\1", "reserved"),
        (64, struct.pack("<I", 2**32 - 32), "row sizes"),
        (68, struct.pack("<I", 2**32 - 2), "row sizes"),
        (72, struct.pack("<Q", 2**64 - 64), "sections"),
        (80, struct.pack("<I", 2**32 - 1), "cut"),
        (84, struct.pack("<I", 4), "belong"),
        (84, struct.pack("<I", 0), "outliers of f16"),
        (84, struct.pack("<I", 2**32 - 1), "codec"),
    ],
)
def test_a_hostile_header_is_refused(whole_run: bytes, offset: int, packed: bytes, says: str) -> None:
    data = bytearray(whole_run)
    data[offset : offset + len(packed)] = packed
    with pytest.raises(ValueError, match=says):
        Run(bytes(data))


def test_hostile_outliers_are_refused(whole_run: bytes) -> None:
    start, n_outliers = struct.unpack_from("<QI", whole_run, 72)
    section = codec_twin.Section("int3", True, 130, 32, 16, 1)
    at = start + section.codes_offset + 130 * section.row_size
    last = at + 4 * (n_outliers - 1)
    for offset, index in ((at, 130 * 32), (at, 2**32 - 1), (last, 130 * 32), (last, 0)):
        data = bytearray(whole_run)
        struct.pack_into("<I", data, offset, index)
        with pytest.raises(ValueError, match="outliers out of order"):
            Run(bytes(data))


@given(flips=st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 255)), min_size=1, max_size=4))
@settings(deadline=None, max_examples=300)
def test_changed_bytes_are_refused_or_read(flips: list[tuple[int, int]]) -> None:
    data = bytearray(SMALL_RUN)
    for at, byte in flips:
        data[at % len(data) if at % 2 else at % 200] = byte
    try:
        run = Run(bytes(data))
    except ValueError:
        return
    assert all(rows.shape[0] == run.n_tokens for rows in rows_of(run))


SMALL_RUN = encoded(make_case(20, 8, 2), "int2", 1, 0.5)


def test_layers_are_counted_from_zero() -> None:
    run = Run(SMALL_RUN)
    for layer in (-1, 2, 2**40):
        with pytest.raises(IndexError, match="no layer"):
            run.keys(layer)
        with pytest.raises(IndexError, match="no layer"):
            run.values(layer)


def test_a_run_keeps_its_buffer_at_any_address() -> None:
    case = make_case(40)
    data = encoded(case, "int3", 1, 0.3)
    odd = Run(memoryview(b"?" + data)[1:])
    assert all(same(a, b) for a, b in zip(rows_of(odd), rows_of(Run(data)), strict=True))
