"""Reads one GGUF header in bounded time and memory. Knows the format, not what a model needs.

No count is believed: each is compared with the bytes that are left in the file, and with a cap, before
anything is read or allocated. Long arrays are stepped over and stay in the file.
"""

from __future__ import annotations

import stat
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeAlias

from localctx.engine.ggml_types import TYPE_SIZES
from localctx.engine.gguf_cursor import Cursor
from localctx.engine.lookalikes import describe
from localctx.errors import ModelError
from localctx.names import display_name
from localctx.small_text import reason_of

__all__ = ["LazyArray", "RawHeader", "Scalar", "TensorInfo", "Value", "display", "read_raw"]

Scalar: TypeAlias = int | float | bool | str

_MAX_KEYS = 1 << 16
_MAX_TENSORS = 1 << 18
_MAX_STRINGS = 1 << 22  # elements of string arrays, all together; the largest vocabularies hold 2^18
_MAX_KEY_BYTES = 1 << 16
_MAX_TEXT_BYTES = 1 << 22  # longer strings stay in the file
_MAX_KEPT_BYTES = 1 << 25  # of strings, all together; the rest stays in the file
_MAX_ALIGNMENT = 1 << 16
_MAX_SHORT_ARRAY = 1024
_MAX_DIMENSIONS = 4
_STRING, _ARRAY = 8, 9
_FORMATS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_DEFAULT_ALIGNMENT = 32


@dataclass(frozen=True, slots=True)
class LazyArray:
    """A long array, or one long string, left in the file: `count` elements of `size_bytes` in all."""

    count: int
    size_bytes: int

    def __len__(self) -> int:
        return self.count


Value: TypeAlias = Scalar | tuple[Scalar, ...] | LazyArray


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """One row of the tensor table. `offset` counts from the data's start; size None for an unknown type."""

    name: str
    shape: tuple[int, ...]
    type_id: int
    type_name: str
    offset: int
    size_bytes: int | None


@dataclass(frozen=True, slots=True)
class RawHeader:
    """What one file says. `size_expected` is where its last known tensor ends."""

    path: Path
    version: int
    metadata: Mapping[str, Value]
    tensors: tuple[TensorInfo, ...]
    data_offset: int
    size_bytes: int
    size_expected: int


def display(path: Path) -> str:
    """The path as it may be printed, whatever bytes its name holds."""
    return display_name(path)


def read_raw(path: Path) -> RawHeader:
    """The header of one file. Raises ModelError, one line, for all that is no complete GGUF."""
    where = display(path)
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise ModelError(f"{where}: is a folder, not a model file", "name the .gguf file in it")
        if not stat.S_ISREG(mode):
            raise ModelError(f"{where}: is not a regular file", "name a .gguf file on disk")
        with path.open("rb") as file:
            _check_magic(file, where)
            return _parse(Cursor(file, path, 4))
    except FileNotFoundError as error:
        raise ModelError(f"{where}: no such model file", "check the path, or: localctx models ls") from error
    except OSError as error:
        raise ModelError(f"{where}: cannot be read: {reason_of(error)}") from error


def _check_magic(file: IO[bytes], where: str) -> None:
    head = file.read(4096)
    looks = describe(head)
    if looks is not None:
        raise ModelError(f"{where}: not a GGUF model: {looks.what}", looks.hint)


@dataclass(slots=True)
class _Budget:
    """What a header may still cost."""

    n_strings: int = _MAX_STRINGS
    kept_bytes: int = _MAX_KEPT_BYTES


def _parse(cursor: Cursor) -> RawHeader:
    version = _read_version(cursor)
    n_tensors, n_keys = cursor.u64("the tensor count"), cursor.u64("the key count")
    cursor.need(n_keys * 13, f"a table of {n_keys:,} keys")  # the smallest: empty name, type, one byte
    cursor.need(n_tensors * 24, f"a table of {n_tensors:,} tensors")
    if n_keys > _MAX_KEYS or n_tensors > _MAX_TENSORS:
        raise cursor.fail(f"{n_keys:,} keys and {n_tensors:,} tensors")
    metadata: dict[str, Value] = {}
    budget = _Budget()
    for _ in range(n_keys):
        key = cursor.text(_MAX_KEY_BYTES, "a key")
        if key in metadata:
            raise cursor.fail(f"the key {key[:80]!r} occurs twice")
        metadata[key] = _read_value(cursor, key, budget)
    alignment = _alignment(cursor, metadata)
    tensors = tuple(_read_tensor(cursor, alignment) for _ in range(n_tensors))
    data_offset = -(-cursor.offset // alignment) * alignment
    end = max((t.offset + t.size_bytes for t in tensors if t.size_bytes is not None), default=0)
    expected = data_offset + end if tensors else cursor.offset
    if cursor.size_bytes < expected:
        raise ModelError(
            f"{cursor.where}: cut short: has {cursor.size_bytes:,} of {expected:,} bytes", "download it again"
        )
    return RawHeader(cursor.path, version, metadata, tensors, data_offset, cursor.size_bytes, expected)


def _read_version(cursor: Cursor) -> int:
    version = cursor.u32("the version")
    if version & 0xFFFF == 0 and version:
        raise ModelError(
            f"{cursor.where}: a big-endian GGUF",
            "convert the model for a little-endian machine, or download such a file",
        )
    if version == 1:
        raise ModelError(
            f"{cursor.where}: GGUF version 1, which llama.cpp no longer reads", "convert or download it anew"
        )
    if version not in (2, 3):
        raise ModelError(f"{cursor.where}: GGUF version {version}, not known here (2 and 3 are)")
    return version


def _read_scalar(cursor: Cursor, value_type: int) -> Scalar:
    if value_type == _STRING:
        return cursor.text(_MAX_TEXT_BYTES, "a string")
    layout = "<" + _FORMATS[value_type]
    value: Scalar = struct.unpack(layout, cursor.take(struct.calcsize(layout), "a value"))[0]
    return value


def _read_value(cursor: Cursor, key: str, budget: _Budget) -> Value:
    value_type = cursor.u32(f"the type of {key[:80]!r}")
    if value_type == _ARRAY:
        return _read_array(cursor, key, budget)
    if value_type == _STRING:
        n_bytes = cursor.u64(f"the string {key[:80]!r}")
        cursor.need(n_bytes, f"the string {key[:80]!r}")
        budget.kept_bytes -= n_bytes
        if n_bytes > _MAX_TEXT_BYTES or budget.kept_bytes < 0:
            cursor.skip(n_bytes, key)
            return LazyArray(1, n_bytes)
        return cursor.take(n_bytes, key).decode("utf-8", "replace")
    if value_type not in _FORMATS:
        raise cursor.fail(f"value type {value_type} of {key[:80]!r}")
    return _read_scalar(cursor, value_type)


def _read_array(cursor: Cursor, key: str, budget: _Budget) -> Value:
    what = f"the array {key[:80]!r}"
    value_type, count = cursor.u32(what), cursor.u64(what)
    if value_type == _ARRAY:
        raise cursor.fail(f"{what} holds arrays")
    if value_type != _STRING and value_type not in _FORMATS:
        raise cursor.fail(f"{what} of value type {value_type}")
    n_bytes = count * (8 if value_type == _STRING else struct.calcsize("<" + _FORMATS[value_type]))
    cursor.need(n_bytes, f"{what} of {count:,} elements")
    if value_type == _STRING:
        budget.n_strings -= count
        if budget.n_strings < 0:
            raise cursor.fail(f"more than {_MAX_STRINGS:,} strings")
    offset = cursor.offset
    if value_type != _STRING:
        if count <= _MAX_SHORT_ARRAY:
            return struct.unpack(f"<{count}{_FORMATS[value_type]}", cursor.take(n_bytes, what))
        cursor.skip(n_bytes, what)
    else:
        if count <= _MAX_SHORT_ARRAY and budget.kept_bytes >= 0:
            texts = tuple(cursor.text(_MAX_KEY_BYTES, what) for _ in range(count))
            budget.kept_bytes -= sum(map(len, texts))
            return texts
        cursor.skip_strings(count, what)
    return LazyArray(count, cursor.offset - offset)


def _alignment(cursor: Cursor, metadata: Mapping[str, Value]) -> int:
    value = metadata.get("general.alignment", _DEFAULT_ALIGNMENT)
    if not isinstance(value, int) or not 1 <= value <= _MAX_ALIGNMENT or value & (value - 1):
        shown = value if isinstance(value, int) else "no whole number"
        raise cursor.fail(f"general.alignment is {shown}, not a power of two up to {_MAX_ALIGNMENT:,}")
    return value


def _read_tensor(cursor: Cursor, alignment: int) -> TensorInfo:
    name = cursor.text(_MAX_KEY_BYTES, "a tensor's name")
    n_dimensions = cursor.u32(f"tensor {name[:80]!r}")
    if n_dimensions > _MAX_DIMENSIONS:
        raise cursor.fail(f"tensor {name[:80]!r} has {n_dimensions:,} dimensions")
    shape = tuple(cursor.u64("a dimension") for _ in range(n_dimensions))
    type_id, offset = cursor.u32("a tensor's type"), cursor.u64("a tensor's offset")
    n_elements = 1
    for n in shape:
        n_elements *= n
    if n_elements >= 1 << 63 or offset >= 1 << 63:
        raise cursor.fail(f"tensor {name[:80]!r} of shape {shape} at offset {offset:,}")
    if offset % alignment:
        raise cursor.fail(f"tensor {name[:80]!r} at offset {offset:,}, which is not aligned to {alignment}")
    type_name, per_block, block_bytes = TYPE_SIZES.get(type_id, (f"type {type_id}", 0, 0))
    if not per_block:
        return TensorInfo(name, shape, type_id, type_name, offset, None)
    if shape and shape[0] % per_block:
        raise cursor.fail(f"tensor {name[:80]!r} of {type_name} has rows of {shape[0]:,} elements")
    return TensorInfo(name, shape, type_id, type_name, offset, n_elements // per_block * block_bytes)
