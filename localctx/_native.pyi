"""The C++ core. Buffers are read with the GIL released; offsets are 64-bit."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Buffer

class Utf8Index:
    """Byte <-> code-point map of UTF-8 text that is fed once, in order, in pieces of any size.

    Keeps one checkpoint per `step` bytes, so a 1 GB text costs about 2 MB at the default step.
    """

    def __init__(self, step: int = 4096) -> None: ...
    def feed(self, data: Buffer) -> bool:
        """Validate and count the next bytes (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF;
        a character may straddle two pieces). False once invalid; `error_offset` then says where, and the
        counts stay at what precedes it.
        """
    def finish(self) -> bool:
        """End of text; False when it ends inside a character."""
    @property
    def n_bytes(self) -> int: ...
    @property
    def n_code_points(self) -> int:
        """Complete code points so far."""
    @property
    def n_nul(self) -> int:
        """NUL bytes so far."""
    @property
    def error_offset(self) -> int | None:
        """Byte offset of the first byte of the first invalid sequence."""
    def checkpoint_for_code_point(self, code_point: int) -> tuple[int, int]:
        """(byte offset, code-point offset) of the last checkpoint at or before `code_point`; the byte
        offset is a character boundary. Raises IndexError outside [0, n_code_points].
        """

def utf8_advance(data: Buffer, n_code_points: int) -> int:
    """Bytes taken by the first `n_code_points` of `data` (which starts on a boundary and is valid);
    len(data) when it holds fewer.
    """

ignore_log_address: int
"""Address of a C function of ggml_log_callback's type that does nothing."""

class AbortFlag:
    """An atomic flag, its C abort callback (int64 address of `bool (*)(void*)`) and its data pointer.

    Hand both addresses to llama.cpp; the flag must outlive the context.
    """

    def __init__(self) -> None: ...
    def set(self) -> None: ...
    def clear(self) -> None: ...
    @property
    def is_set(self) -> bool: ...
    @property
    def callback_address(self) -> int: ...
    @property
    def data_address(self) -> int: ...
    def watch(self, signals: Sequence[int]) -> None:
        """From now until unwatch(), these signals also set this flag from the C signal handler, before
        Python's own handlers (still called) get their turn. One that the process ignores stays ignored.
        Raises RuntimeError while another flag watches, ValueError for a number that is no signal's.
        """
    def unwatch(self) -> None: ...

class Rope:
    """The rotation of keys: pair i of a head turns by position * frequencies[i] radians, lengths by
    `magnitude`.

    frequencies: float64 [n_rot / 2], all factors and scalings in them. Pairs are (i, i + n_rot / 2) with
    `neox`,
    else (2i, 2i + 1); dimensions from n_rot to head_dim stay as they are.
    """

    def __init__(
        self, frequencies: NDArray[np.float64], head_dim: int, *, neox: bool, magnitude: float = 1.0
    ) -> None: ...
    @property
    def head_dim(self) -> int: ...
    @property
    def n_rot(self) -> int: ...
    def turn(
        self, keys: NDArray[np.float16], positions: NDArray[np.int32], *, inverse: bool = False
    ) -> NDArray[np.float16]:
        """Keys [n_tokens, n_heads * head_dim] rotated to `positions`, or back from them."""

class QueryCapture:
    """The queries of some layers, copied while a graph is computed by a C evaluation callback.

    name, n_bytes, get: addresses of ggml_get_name, ggml_nbytes and ggml_backend_tensor_get. Hand
    callback_address and data_address to llama.cpp as cb_eval and cb_eval_user_data; the object must outlive
    the context. Raises ValueError for an address of 0.
    """

    def __init__(self, name: int, n_bytes: int, get: int, layers: Sequence[int]) -> None: ...
    @property
    def callback_address(self) -> int: ...
    @property
    def data_address(self) -> int: ...
    def clear(self) -> None:
        """Forget what was captured; before every evaluation."""
    def unrotated(self, layer: int, rope: Rope, positions: NDArray[np.int32]) -> NDArray[np.float32]:
        """The queries of the last evaluation, whose tokens stood at `positions`, turned back from them and
        without magnitude: [n_tokens, n_heads, head_dim]. Raises IndexError for a layer that was not asked
        for, RuntimeError where nothing was captured or its size does not fit.
        """

class KVSource:
    """Rows of KV of consecutive tokens: a Run or a State."""

class State(KVSource):
    """A parsed llama.cpp state blob of one sequence; keeps the buffer, copies nothing. Rows are by position.

    Raises ValueError, naming what is not understood: several streams, transposed V, no V (MLA), row types
    other
    than f16, cells with two-dimensional positions (M-RoPE), lengths that do not add up, an odd address. Of
    a blob
    that is more than one attention section, `sections`, `n_tokens` and `positions` (of the first section)
    can be
    read; all else raises ValueError. The magic is not judged: compose() writes that of `like`.
    """

    def __init__(self, blob: Buffer | NDArray[np.uint8]) -> None: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_layer(self) -> int: ...
    @property
    def positions(self) -> NDArray[np.int32]:
        """Ascending."""
    @property
    def layout(self) -> str:
        """Types and row sizes of all layers in one line; states and runs of equal layouts compose."""
    @property
    def sections(self) -> tuple[str, ...]:
        """What the blob holds, in order: "attention", "window", "recurrent"."""
    def keys(self, layer: int) -> NDArray[np.float16]:
        """A copy, [n_tokens, row elements], rotated as in the cache."""
    def values(self, layer: int) -> NDArray[np.float16]: ...

class Run(KVSource):
    """An encoded run: un-rotated keys, and values, of consecutive tokens; keeps the buffer, copies nothing.

    Raises ValueError for bytes that are no run of a known version, or that do not add up.
    """

    def __init__(self, data: Buffer | NDArray[np.uint8]) -> None: ...
    @property
    def n_tokens(self) -> int: ...
    @property
    def n_layer(self) -> int: ...
    @property
    def layout(self) -> str: ...
    @property
    def codec(self) -> str: ...
    @property
    def head_group(self) -> int:
        """Neighbouring KV heads that share scale and zero point."""
    @property
    def max_error(self) -> tuple[float, float]:
        """Largest absolute error of any key (f16 as decoded, against f32 un-rotated) and of any value; NaN
        and infinities, which are kept, aside.
        """
    @property
    def n_outliers(self) -> int:
        """Values kept in f16 because the codec would have exceeded the error bound or could not hold them
        (NaN, infinities). A layer's keys or values that would take more bytes that way are all in f16.
        """
    def keys(self, layer: int) -> NDArray[np.float16]:
        """Decoded, un-rotated, [n_tokens, row elements]."""
    def values(self, layer: int) -> NDArray[np.float16]: ...

CODECS: tuple[str, ...]
"""f16, fp8_e4m3, fp8_e5m2, int8, int4, int3, int2."""

def encode(
    state: State | Run,
    first: int,
    n_tokens: int,
    rope: Rope,
    codec: str,
    *,
    head_group: int = 1,
    error_bound: float | None = None,
    n_threads: int = 0,
) -> bytes:
    """Rows [first, first + n_tokens) of `state`, un-rotated and encoded. Keys share scale and zero point per
    channel over 128 tokens, values per token; both over `head_group` heads. A value whose error would exceed
    `error_bound` is kept in f16, whose own rounding of keys remains. n_threads 0: all of the pool. Raises
    ValueError for rows that are not there, more than 65,535 of them, and options out of range.
    """

def compose(
    like: State,
    parts: Sequence[tuple[State | Run, int, int]],
    positions: NDArray[np.int32],
    rope: Rope,
    *,
    n_threads: int = 0,
    out: NDArray[np.uint8] | None = None,
) -> NDArray[np.uint8]:
    """A state blob of `like`'s layout that holds the rows (source, first, n) in order, at `positions` (one a
    row, ascending). `out`: a buffer of state_size() bytes to write to. Raises ValueError for layouts that
    differ.
    """

def state_size(like: State, n_tokens: int) -> int:
    """Bytes of a composed blob of n_tokens."""

def scan_encode(
    source: KVSource,
    first: int,
    n_tokens: int,
    rope: Rope,
    heads: Sequence[tuple[int, int]],
    *,
    n_threads: int = 0,
) -> tuple[NDArray[np.int8], NDArray[np.float32]]:
    """Un-rotated keys, without magnitude, of the (layer, KV head) pairs in INT8: codes [n_tokens, n_heads,
    head_dim] and the scales [n_tokens, n_heads] they are multiplied by. Columns of consecutive rows
    concatenate. A
    head's key that is not finite becomes 0. Raises ValueError for rows and heads that are not there.
    """

def scan(
    codes: NDArray[np.int8],
    scales: NDArray[np.float32],
    queries: NDArray[np.float32],
    block_starts: NDArray[np.int64],
    *,
    n_threads: int = 0,
) -> NDArray[np.float32]:
    """The largest query . key over the tokens [block_starts[b], block_starts[b + 1]) of each block b, for
    queries
    [n_queries, n_heads, head_dim] (un-rotated, in the column's order of heads): [n_queries, n_heads,
    n_blocks],
    minus infinity for an empty block. Queries are rounded to 15 bits, sums are exact integers. Raises
    ValueError for
    shapes that differ, starts that do not ascend within the column, queries that are not finite.
    """

def set_threads(n_threads: int) -> None:
    """Size of the pool that encode, compose and scan share; default: the CPUs this process may use."""

def simd_level() -> str:
    """The instructions in use: "avx512", "avx2", "neon" or "scalar" (LOCALCTX_SIMD=scalar forces the
    last).
    """

__version__: str
