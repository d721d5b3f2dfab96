"""Memory for exported KV: lent, taken back when nobody looks, page-locked where there is such."""

from __future__ import annotations

import ctypes
import gc
from typing import Any

import numpy as np

from localctx._native import State
from localctx.engine.host_buffers import HostBuffers
from localctx.engine.llama import LlamaModel, libggml


class Backend:
    """libggml's functions for one device with a host buffer type; `gives` is the type of its buffers."""

    def __init__(self, gives: int) -> None:
        self.freed: list[int] = []
        self._buffers: list[Any] = []
        functions = {
            "ggml_backend_dev_count": lambda: 2,
            "ggml_backend_dev_get": lambda index: 100 + index,
            "ggml_backend_dev_host_buffer_type": lambda device: 7 if device == 101 else None,
            "ggml_backend_buft_alloc_buffer": self._allocate,
            "ggml_backend_buffer_get_type": lambda buffer: gives,
            "ggml_backend_buffer_get_base": lambda buffer: ctypes.addressof(self._buffers[buffer - 1]),
            "ggml_backend_buffer_free": self.freed.append,
        }
        self.__dict__ |= {name: _CFunction(function) for name, function in functions.items()}

    def _allocate(self, buffer_type: int, n_bytes: int) -> int:
        self._buffers.append((ctypes.c_uint8 * n_bytes)())
        return len(self._buffers)


class _CFunction:
    """Callable, with ctypes' attributes."""

    def __init__(self, function: Any) -> None:
        self._function = function

    def __call__(self, *arguments: int) -> Any:
        return self._function(*arguments)


def address(array: np.ndarray) -> int:
    return int(array.ctypes.data)


def test_memory_is_lent_again_when_nobody_looks_at_it_any_more() -> None:
    buffers = HostBuffers(libggml)
    loan = buffers.lend(1000)
    assert (loan.dtype, len(loan), loan.flags.writeable) == (np.uint8, 1000, True)
    where, view = address(loan), loan[10:20][2:]
    del loan
    gc.collect()
    other = buffers.lend(1000)
    assert address(other) != where  # a view of a view still looks at the first
    del view
    gc.collect()
    assert address(buffers.lend(900)) == where
    assert buffers.kind == "plain memory"


def test_a_parsed_state_keeps_its_loan(tiny: LlamaModel) -> None:
    context = tiny.open_kv_context(256)
    context.place(tiny.tokenize("The harbour of the old town"), ())
    state = State(context.cells.export(0))
    keys = state.keys(0)
    for _ in range(3):
        context.cells.export(0)[:] = 0
    assert (state.keys(0) == keys).all()


def test_page_locked_memory_is_used_and_freed_with_its_last_user() -> None:
    backend = Backend(gives=7)
    buffers = HostBuffers(backend)
    loan = buffers.lend(100)
    loan[:] = 5
    assert buffers.kind == "page-locked"
    del buffers
    gc.collect()
    assert not backend.freed
    assert (loan == 5).all()
    del loan
    gc.collect()
    assert backend.freed == [1]


def test_plain_memory_in_its_place_is_noticed() -> None:
    backend = Backend(gives=1)
    buffers = HostBuffers(backend)
    assert len(buffers.lend(100)) == 100
    assert buffers.kind == "plain memory (page-locked refused)"
    assert backend.freed == [1]
