"""How fast bytes get to a device and back, from page-locked memory where there is such. Is handed libggml."""

from __future__ import annotations

import ctypes
import statistics
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np

from localctx.engine.devices import Device, function
from localctx.engine.host_buffers import HostBuffers
from localctx.errors import ModelError

__all__ = ["CopySpeed", "copy_speed"]

_GGML_TYPE_I8 = 24
_N_TIMES = 5


@dataclass(frozen=True, slots=True)
class CopySpeed:
    """Bytes a second, the median of a few; memory: what kind lies on the host's side (HostBuffers.kind)."""

    device: str
    memory: str
    to_bytes_per_s: float
    from_bytes_per_s: float


class _InitParams(ctypes.Structure):
    """ggml_init_params."""

    _fields_ = (("mem_size", ctypes.c_size_t), ("mem_buffer", ctypes.c_void_p), ("no_alloc", ctypes.c_bool))


def copy_speed(libggml: Any, device: Device, n_bytes: int = 64 << 20) -> CopySpeed:
    """Copy so many bytes to the device and back. Raises ModelError where it has no room for them."""
    pointer, size = ctypes.c_void_p, ctypes.c_size_t
    allocate = function(libggml, "ggml_backend_buft_alloc_buffer", pointer, pointer, size)
    base = function(libggml, "ggml_backend_buffer_get_base", pointer, pointer)
    place = function(libggml, "ggml_backend_tensor_alloc", ctypes.c_int, pointer, pointer, pointer)
    put = function(libggml, "ggml_backend_tensor_set", None, pointer, pointer, size, size)
    get = function(libggml, "ggml_backend_tensor_get", None, pointer, pointer, size, size)
    buffers = HostBuffers(libggml)
    with ExitStack() as stack:
        buffer = allocate(device.buffer_type, n_bytes + (1 << 20))
        if not buffer:
            raise ModelError(f"{device.name} has no room for {n_bytes:,} bytes")
        stack.callback(function(libggml, "ggml_backend_buffer_free", None, pointer), buffer)
        start = function(libggml, "ggml_init", pointer, _InitParams)
        context = start(_InitParams(1 << 16, None, True))
        stack.callback(function(libggml, "ggml_free", None, pointer), context)
        new = function(libggml, "ggml_new_tensor_1d", pointer, pointer, ctypes.c_int, ctypes.c_int64)
        tensor = new(context, _GGML_TYPE_I8, n_bytes)
        place(buffer, tensor, base(buffer))
        host = buffers.lend(n_bytes)
        host[:] = np.arange(n_bytes, dtype=np.uint8)
        to = _rate(n_bytes, lambda: put(tensor, host.ctypes.data, 0, n_bytes))
        back = _rate(n_bytes, lambda: get(tensor, host.ctypes.data, 0, n_bytes))
    return CopySpeed(device.name, buffers.kind, to, back)


def _rate(n_bytes: int, copy: Callable[[], object]) -> float:
    """Bytes a second; the first time, which may map memory, does not count."""
    copy()
    seconds = []
    for _ in range(_N_TIMES):
        started = time.monotonic()
        copy()
        seconds.append(time.monotonic() - started)
    return n_bytes / max(statistics.median(seconds), 1e-9)
