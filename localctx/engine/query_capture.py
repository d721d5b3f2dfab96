"""The queries with which a model looks for what a text asks: un-rotated, of chosen (layer, query head) pairs.

A second, small context on the same model, whose graph is watched by a C callback (which can be set only
when a context is made, and slows it down). Is handed llama_cpp and ggml; knows no documents and no keys.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx._native import AbortFlag, QueryCapture, Rope
from localctx.engine.gguf import GGUFHeader
from localctx.engine.llama_context import Owner
from localctx.engine.llama_decoder import LlamaDecoder
from localctx.engine.model_kv import ModelKV
from localctx.engine.new_context import ContextSizes, freed_on_error, new_context
from localctx.engine.schedule import Slice
from localctx.errors import NotComposable
from localctx.values import Model

__all__ = ["Queries", "QueryModel", "QueryReader"]

N_CTX_STEP = 256
_HINT = "--kv rank=lexical"


class Queries(Protocol):
    """What a model asks for, as vectors."""

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """(query heads, KV heads) of each layer; query heads share KV heads in order, equally many each."""

    @property
    def known_heads(self) -> tuple[tuple[int, int], ...]:
        """(layer, query head) of the model's retrieval heads, where they came with it."""

    @property
    def scale(self) -> float:
        """What products of queries and keys are multiplied by before the softmax. Raises NotComposable."""

    def capture(
        self, tokens: Sequence[int], heads: Sequence[tuple[int, int]], first: int = 0
    ) -> NDArray[np.float32]:
        """The un-rotated queries of tokens[first:], all tokens evaluated from position 0 on, of (layer, query
        head) pairs: [n_tokens - first, n_heads, head_dim]. Their products with un-rotated keys are what
        attention sees when both stand at one position, but for a factor. Raises NotComposable, OutOfMemory,
        ModelError.
        """


@runtime_checkable
class QueryModel(Model, Protocol):
    """A model that shows its queries."""

    @property
    def queries(self) -> Queries:
        """Its queries."""


class QueryReader:
    """The Queries of a model of llama.cpp."""

    def __init__(
        self,
        lib: Any,
        libggml: Any,
        model: Owner,
        kv: ModelKV,
        header: GGUFHeader,
        prepare: Callable[[ContextSizes], object],
    ) -> None:
        """`prepare` checks sizes and loads the weights."""
        self._lib, self._libggml = lib, libggml
        self._model = model
        self._kv = kv
        self._header = header
        self._prepare = prepare

    @property
    def heads(self) -> tuple[tuple[int, int], ...]:
        """See Queries."""
        n_layer, key = self._model.info.n_layer, self._header.arch_key
        heads = self._header.per_layer(key("attention.head_count"), n_layer)
        kv_heads = self._header.per_layer(key("attention.head_count_kv"), n_layer, -1)
        return tuple((n, m if m >= 0 else n) for n, m in zip(heads, kv_heads, strict=True))

    @property
    def known_heads(self) -> tuple[tuple[int, int], ...]:
        """See Queries."""
        pairs = (head.partition(".") for head in self._model.options.retrieval_heads)
        return tuple((int(layer), int(head)) for layer, _, head in pairs)

    @property
    def scale(self) -> float:
        """See Queries."""
        of_file = self._header.number(self._header.arch_key("attention.scale"))
        return of_file or 1.0 / math.sqrt(self._kv.table(self._model.info.name).head_dim)

    def capture(
        self, tokens: Sequence[int], heads: Sequence[tuple[int, int]], first: int = 0
    ) -> NDArray[np.float32]:
        """See Queries."""
        model = self._model
        table = self._kv.table(model.info.name)
        rope = Rope(table.frequencies, table.head_dim, neox=table.neox, magnitude=table.magnitude)
        n_cells = -(-(len(tokens) + 1) // N_CTX_STEP) * N_CTX_STEP
        sizes = ContextSizes(self._kv.least_n_ctx(n_cells))
        self._prepare(sizes)
        capture = QueryCapture(*_addresses(self._libggml), sorted({layer for layer, _ in heads}))
        stop = AbortFlag()
        handle, _ = new_context(self._lib, model, sizes, stop, capture)
        with freed_on_error(self._lib.llama_free, handle):
            decoder = LlamaDecoder(self._lib, handle, model.vocab, stop, model.n_batch)
        try:
            return _captured(decoder, capture, rope, tokens, heads, first)
        except (RuntimeError, IndexError) as error:
            raise NotComposable(f"{model.info.name}: its queries cannot be read ({error})", _HINT) from error
        finally:
            decoder.close()


def _captured(
    decoder: LlamaDecoder,
    capture: QueryCapture,
    rope: Rope,
    tokens: Sequence[int],
    heads: Sequence[tuple[int, int]],
    first: int,
) -> NDArray[np.float32]:
    """The heads' queries, a batch at a time. Raises RuntimeError, IndexError for what is not there."""
    wanted = np.array(tokens, np.int32)
    out = np.empty((len(wanted) - first, len(heads), rope.head_dim), np.float32)
    layers = {layer for layer, _ in heads}
    start = 0
    while start < len(wanted):
        end = min(start + decoder.n_batch, len(wanted))
        capture.clear()
        decoder.evaluate([Slice(0, start, wanted[start:end], sample=False)])
        if end > first:
            positions = np.arange(start, end, dtype=np.int32)
            skipped = max(0, first - start)
            rows = {layer: capture.unrotated(layer, rope, positions)[skipped:] for layer in layers}
            for place, (layer, head) in enumerate(heads):
                out[start + skipped - first : end - first, place] = rows[layer][:, head]
        start = end
    return out


def _addresses(libggml: Any) -> tuple[int, int, int]:
    """Of the functions that the callback calls: the bindings load them where no linker looks."""
    name, n_bytes, get = (
        ctypes.cast(getattr(libggml, function), ctypes.c_void_p).value or 0
        for function in ("ggml_get_name", "ggml_nbytes", "ggml_backend_tensor_get")
    )
    return name, n_bytes, get
