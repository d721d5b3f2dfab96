"""The cells of one context, taken out as state blobs and put back. Is handed llama_cpp and its context.

What is in a blob is _native's affair.
"""

from __future__ import annotations

import ctypes
import hashlib
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localctx.engine.host_buffers import HostBuffers
from localctx.errors import ModelError

__all__ = ["CellStates", "library_id"]


@cache
def library_id(lib: Any) -> str:
    """A hash of the llama.cpp library that is loaded: what is in a blob is its own affair."""
    return hashlib.blake2b(Path(lib._lib._name).read_bytes(), digest_size=8).hexdigest()


class CellStates:
    """Exports, restores and edits the cells of sequences; positions are half-open ranges."""

    def __init__(self, lib: Any, handle: int, buffers: HostBuffers) -> None:
        """The context `handle` must outlive this."""
        self._lib = lib
        self._handle = handle
        self._memory = lib.llama_get_memory(handle)
        self.buffers = buffers

    def export(self, sequence: int) -> NDArray[np.uint8]:
        """The sequence's blob, in a buffer on loan. Raises ModelError when llama.cpp cannot write it."""
        n_bytes = self.export_size(sequence)
        blob = self.buffers.lend(n_bytes)
        written = self._lib.llama_state_seq_get_data(self._handle, _pointer(blob), n_bytes, sequence)
        if written != n_bytes or not n_bytes:
            raise ModelError("llama.cpp cannot export this context's KV", "localctx doctor")
        return blob

    def export_size(self, sequence: int) -> int:
        """Bytes of the sequence's blob."""
        return int(self._lib.llama_state_seq_get_size(self._handle, sequence))

    def restore(self, sequence: int, blob: NDArray[np.uint8]) -> None:
        """Make the blob's cells those of `sequence`. Raises ModelError when llama.cpp refuses it; the
        sequence is empty then.
        """
        read = self._lib.llama_state_seq_set_data(self._handle, _pointer(blob), len(blob), sequence)
        if not read or read != len(blob):
            self.drop(sequence)
            raise ModelError("llama.cpp refuses the KV that was to be restored", "localctx store verify")

    def drop(self, sequence: int, start: int = 0, end: int = -1) -> None:
        """Free the sequence's cells in [start, end); to the end without `end`."""
        self._lib.llama_memory_seq_rm(self._memory, sequence, start, end)

    def clear(self) -> None:
        """Free all cells."""
        self._lib.llama_memory_clear(self._memory, False)

    def copy(self, source: int, sequence: int, start: int, end: int) -> None:
        """Let the cells of `source` in [start, end) belong to `sequence` too."""
        self._lib.llama_memory_seq_cp(self._memory, source, sequence, start, end)


def _pointer(blob: NDArray[np.uint8]) -> Any:
    return blob.ctypes.data_as(ctypes.POINTER(ctypes.c_uint8))
