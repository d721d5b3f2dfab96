"""The speed of the C++ codec on made-up KV of a model's shape, beside NumPy doing the same. Needs no model.

Encoding: f16 keys and values of a state blob, keys un-rotated, into runs of 128 tokens; counted are the bytes
of KV that go in. Decoding: those runs dequantised, rotated to other positions and written as a state blob;
counted are the bytes that come out. NumPy does it with one run, without a byte layout or a blob. A plain copy
of memory is the limit of all of it.
"""

from __future__ import annotations

import re
import struct
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.bench import numpy_codec
from localctx.bench.codec_report import CodecRow, Copying, Report
from localctx.bench.machine import machine
from localctx.bench.repeats import check_repeats, in_turns
from localctx.errors import UsageError
from localctx.kv import RUN_TOKENS
from localctx.settings import nearest

__all__ = ["SHAPES", "Options", "Shape", "measure", "shape_named", "state_blob"]

COPY_BYTES = 256 << 20
FREQ_BASE = 1e5
MAX_BYTES = 8 << 30


@dataclass(frozen=True, slots=True)
class Shape:
    """A model's KV: layers, KV heads, dimensions of a head."""

    name: str
    n_layer: int
    n_heads: int
    head_dim: int

    @property
    def bytes_per_token(self) -> int:
        """In f16."""
        return 4 * self.n_layer * self.n_heads * self.head_dim


SHAPES = {"smollm2-135m": Shape("smollm2-135m", 30, 3, 64), "8b": Shape("8b", 32, 8, 128)}


@dataclass(frozen=True, slots=True)
class Options:
    """What is measured; empty: every shape and codec. n_threads: beside one thread; None: all of the pool."""

    shapes: Sequence[str] = ()
    codecs: Sequence[str] = ()
    n_tokens: int = 512
    n_repeats: int = 5
    n_threads: int | None = None

    def check(self) -> None:
        """Raises UsageError for what makes no sense."""
        check_repeats(self.n_repeats)
        for codec in self.codecs:
            if codec not in _native.CODECS:
                raise UsageError(
                    f"unknown codec {codec!r}{nearest(codec, _native.CODECS)}",
                    f"one of {', '.join(_native.CODECS)}",
                )
        if self.n_tokens < RUN_TOKENS or self.n_tokens % RUN_TOKENS:
            raise UsageError(f"--tokens {self.n_tokens} is out of range", f"a multiple of {RUN_TOKENS}")
        if self.n_threads is not None and not 1 <= self.n_threads <= 1024:
            raise UsageError(f"--threads {self.n_threads} is out of range", "from 1 to 1024")


def shape_named(text: str) -> Shape:
    """A known shape, or LAYERSxHEADSxDIM. Raises UsageError."""
    if text in SHAPES:
        return SHAPES[text]
    found = re.fullmatch(r"(\d{1,4})x(\d{1,4})x(\d{1,4})", text)
    sizes = [int(part) for part in found.groups()] if found else [0]
    if min(sizes) < 1 or sizes[-1] % 2:
        raise UsageError(
            f"--shape {text!r} is not understood", f"one of {', '.join(SHAPES)}, or LAYERSxHEADSxDIM"
        )
    return Shape(text, *sizes)


def measure(options: Options, say: Callable[[str], None]) -> Report:
    """All codecs on all shapes; `say` is told what is done. Raises UsageError."""
    options.check()
    shapes = [shape_named(text) for text in options.shapes or SHAPES]
    for shape in shapes:
        if shape.bytes_per_token * options.n_tokens > MAX_BYTES:
            raise UsageError(f"{shape.name}: {options.n_tokens:,} tokens are too much", "fewer --tokens")
    facts = machine(options.n_threads)
    n_threads = int(facts["n_threads"])
    _native.set_threads(n_threads)
    copying = _copying(n_threads, options.n_repeats)
    rows = []
    for shape in shapes:
        case = _Case(shape, options.n_tokens, n_threads)
        for codec in options.codecs or _native.CODECS:
            say(f"{shape.name}, {codec}")
            rows.append(case.row(codec, options.n_repeats))
    return Report(facts, options.n_tokens, n_threads, copying, tuple(rows))


def _copying(n_threads: int, n_repeats: int) -> Copying:
    """Bytes copied a second, by one thread and by all."""
    source = np.ones(COPY_BYTES, np.uint8)
    target = np.zeros_like(source)  # all pages are there

    def copy(n: int) -> Callable[[], float]:
        pieces = list(zip(np.array_split(target, n), np.array_split(source, n), strict=True))

        def work() -> float:
            started = time.perf_counter()
            if n == 1:
                np.copyto(target, source)
            else:
                list(pool.map(lambda pair: np.copyto(*pair), pieces))
            return COPY_BYTES / (time.perf_counter() - started)

        return work

    with ThreadPoolExecutor(n_threads) as pool:
        list(pool.map(lambda _: None, range(n_threads)))
        found = in_turns({n: copy(n) for n in {1, n_threads}}, n_repeats)
    return Copying(COPY_BYTES, tuple(found[1]), tuple(found[n_threads]))


class _Case:
    """KV of one shape, and the ways it is encoded and decoded."""

    def __init__(self, shape: Shape, n_tokens: int, n_threads: int) -> None:
        self._shape, self._n_tokens, self._n_threads = shape, n_tokens, n_threads
        self._n_bytes = shape.bytes_per_token * n_tokens
        self._frequencies = FREQ_BASE ** -(np.arange(shape.head_dim // 2) / (shape.head_dim // 2))
        self._rope = _native.Rope(self._frequencies, shape.head_dim, neox=False)
        self._keys, self._values = _random_kv(shape, n_tokens)
        self._positions = np.arange(n_tokens, dtype=np.int32)
        self._state = _native.State(state_blob(self._positions, self._keys, self._values))
        self._out = np.zeros(_native.state_size(self._state, n_tokens), np.uint8)

    def row(self, codec: str, n_repeats: int) -> CodecRow:
        """One codec, everything by turns; all of it runs once before it counts."""
        data = self._encoded(codec, 0)
        runs = [_native.Run(one) for one in data]
        coded = self._numpy_encoded(codec)
        n_run_bytes = self._shape.bytes_per_token * RUN_TOKENS
        many = self._n_threads
        ways: Mapping[tuple[str, int], tuple[int, Callable[[], object]]] = {
            ("encode", 1): (self._n_bytes, lambda: self._encoded(codec, 1)),
            ("encode", many): (self._n_bytes, lambda: self._encoded(codec, many)),
            ("encode", 0): (n_run_bytes, lambda: self._numpy_encoded(codec)),
            ("decode", 1): (self._n_bytes, lambda: self._composed(runs, 1)),
            ("decode", many): (self._n_bytes, lambda: self._composed(runs, many)),
            ("decode", 0): (n_run_bytes, lambda: self._numpy_decoded(coded)),
        }
        timed = {name: _rate_of(n_bytes, work) for name, (n_bytes, work) in ways.items()}
        in_turns(timed, 1)
        found = in_turns(timed, n_repeats)
        return CodecRow(
            shape=self._shape.name,
            codec=codec,
            bytes_per_token=sum(map(len, data)) / self._n_tokens,
            bytes_per_token_f16=self._shape.bytes_per_token,
            max_key_error=max(run.max_error[0] for run in runs),
            max_value_error=max(run.max_error[1] for run in runs),
            encode={n: tuple(found["encode", n]) for n in (1, many, 0)},
            decode={n: tuple(found["decode", n]) for n in (1, many, 0)},
        )

    def _encoded(self, codec: str, n_threads: int) -> list[bytes]:
        return [
            _native.encode(self._state, first, RUN_TOKENS, self._rope, codec, n_threads=n_threads)
            for first in range(0, self._n_tokens, RUN_TOKENS)
        ]

    def _composed(self, runs: Sequence[_native.Run], n_threads: int) -> object:
        parts = [(run, 0, run.n_tokens) for run in runs]
        moved = self._positions + RUN_TOKENS
        return _native.compose(self._state, parts, moved, self._rope, n_threads=n_threads, out=self._out)

    # --- NumPy, the first run ---------------------------------------------------------------------

    def _numpy_encoded(self, codec: str) -> list[numpy_codec.Coded]:
        head_dim, angles = self._shape.head_dim, self._angles(-self._positions[:RUN_TOKENS])
        coded = []
        for keys, values in zip(self._keys, self._values, strict=True):
            still = numpy_codec.turned(keys[:RUN_TOKENS], angles, head_dim)
            coded.append(numpy_codec.encode(still, codec, head_dim, is_key=True))
            plain = values[:RUN_TOKENS].astype(np.float32)
            coded.append(numpy_codec.encode(plain, codec, head_dim, is_key=False))
        return coded

    def _numpy_decoded(self, coded: Sequence[numpy_codec.Coded]) -> list[NDArray[np.float16]]:
        head_dim, angles = self._shape.head_dim, self._angles(self._positions[:RUN_TOKENS] + RUN_TOKENS)
        rows = []
        for place, one in enumerate(coded):
            is_key = place % 2 == 0
            decoded = numpy_codec.decode(one, RUN_TOKENS, head_dim, is_key=is_key)
            moved = numpy_codec.turned(decoded, angles, head_dim) if is_key else decoded
            rows.append(moved.astype(np.float16))
        return rows

    def _angles(self, positions: NDArray[np.int32]) -> NDArray[np.float64]:
        angles: NDArray[np.float64] = positions[:, None] * self._frequencies
        return angles


def _rate_of(n_bytes: int, work: Callable[[], object]) -> Callable[[], float]:
    """Bytes a second."""

    def timed() -> float:
        started = time.perf_counter()
        work()
        return n_bytes / (time.perf_counter() - started)

    return timed


def _random_kv(shape: Shape, n_tokens: int) -> tuple[list[NDArray[np.float16]], list[NDArray[np.float16]]]:
    """Keys whose channels differ in size and offset, as models' do, and values with a few large ones."""
    random = np.random.default_rng(1)
    n = shape.n_heads * shape.head_dim
    keys, values = [], []
    for _ in range(shape.n_layer):
        spread, offset = random.gamma(1.0, 1.0, n), random.normal(0, 3, n)
        keys.append((random.normal(0, 1, (n_tokens, n)) * spread + offset).astype(np.float16))
        values.append(random.standard_t(4, (n_tokens, n)).astype(np.float16))
    return keys, values


def state_blob(
    positions: NDArray[np.int32],
    keys: Sequence[NDArray[np.float16]],
    values: Sequence[NDArray[np.float16]],
) -> NDArray[np.uint8]:
    """A sequence's state as llama.cpp writes it: rows of f16, one sequence, no transposed values."""

    def pieces() -> Iterator[bytes]:
        cells = np.stack([positions, np.ones_like(positions), np.zeros_like(positions)], axis=1)
        yield struct.pack("<IIII", 0xAF143CD8, 0, 1, len(positions)) + cells.astype("<i4").tobytes()
        yield struct.pack("<II", 0, len(keys))
        for rows in (*keys, *values):
            yield struct.pack("<iQ", 1, 2 * rows.shape[1]) + rows.tobytes()

    return np.frombuffer(b"".join(pieces()), np.uint8)
