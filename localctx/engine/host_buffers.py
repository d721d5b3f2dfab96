"""Memory that KV is exported to and restored from: page-locked where the backend has such, and used again.

Is handed libggml; knows no layout.
"""

from __future__ import annotations

import ctypes
import threading
import weakref
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localctx.engine.devices import function

__all__ = ["HostBuffers"]

_GROWTH = 1.25  # exports grow by a few cells from one to the next
_MOST_FREE = 4  # chunks on their way to the store and slices on their way back are of different sizes


class HostBuffers:
    """Byte arrays on loan. `kind`: "page-locked", "plain memory", or "plain memory (page-locked refused)"."""

    def __init__(self, libggml: Any) -> None:
        """Looks for a device that copies faster from memory of its own kind."""
        self._libggml = libggml
        self._buffer_type = _host_buffer_type(libggml)
        self._free: list[NDArray[np.uint8]] = []
        self._lock = threading.RLock()  # a loan may end in any thread, in a collection inside lend() too
        self.kind = "plain memory" if self._buffer_type is None else "page-locked"

    def lend(self, n_bytes: int) -> NDArray[np.uint8]:
        """An array of n_bytes; its memory is lent again when the array and all views of it are gone."""
        with self._lock:
            self._free.sort(key=len)
            fitting = next((i for i, memory in enumerate(self._free) if len(memory) >= n_bytes), None)
            if fitting is not None:
                memory = self._free.pop(fitting)
            else:
                del self._free[: max(0, len(self._free) - _MOST_FREE + 1)]  # the smallest are of no use now
                memory = self._new(int(n_bytes * _GROWTH))
        # A base that is no array: NumPy lets views refer to the loan, not to the memory behind it.
        loan = np.frombuffer(memory.data[:n_bytes], np.uint8)
        weakref.finalize(loan, self._take_back, memory).atexit = False
        return loan

    def _take_back(self, memory: NDArray[np.uint8]) -> None:
        with self._lock:
            self._free.append(memory)

    def _new(self, n_bytes: int) -> NDArray[np.uint8]:
        if self._buffer_type is not None:
            locked = _locked(self._libggml, self._buffer_type, n_bytes)
            if locked is not None:
                return locked
            self._buffer_type, self.kind = None, "plain memory (page-locked refused)"
        return np.empty(n_bytes, np.uint8)


def _host_buffer_type(libggml: Any) -> int | None:
    """The host buffer type of the first device that has one."""
    get = function(libggml, "ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
    host = function(libggml, "ggml_backend_dev_host_buffer_type", ctypes.c_void_p, ctypes.c_void_p)
    for index in range(function(libggml, "ggml_backend_dev_count", ctypes.c_size_t)()):
        buffer_type: int | None = host(get(index))
        if buffer_type:
            return buffer_type
    return None


def _locked(libggml: Any, buffer_type: int, n_bytes: int) -> NDArray[np.uint8] | None:
    """Memory of that type, freed with its last user; None where the backend gave plain memory instead."""
    pointer = ctypes.c_void_p
    allocate = function(libggml, "ggml_backend_buft_alloc_buffer", pointer, pointer, ctypes.c_size_t)
    free = function(libggml, "ggml_backend_buffer_free", None, pointer)
    type_of = function(libggml, "ggml_backend_buffer_get_type", pointer, pointer)
    base = function(libggml, "ggml_backend_buffer_get_base", pointer, pointer)
    buffer = allocate(buffer_type, n_bytes)
    if not buffer:
        return None
    if type_of(buffer) != buffer_type:
        free(buffer)
        return None
    memory = np.frombuffer(memoryview((ctypes.c_uint8 * n_bytes).from_address(base(buffer))), np.uint8)
    weakref.finalize(memory, free, buffer).atexit = False
    return memory
