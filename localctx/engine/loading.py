"""A model file into llama.cpp, with what of its metadata is replaced. Is handed llama_cpp."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from typing import Any

from localctx.engine.gguf import GGUFHeader, display
from localctx.engine.llama_log import LoadLog, logged
from localctx.engine.llama_vocab import adds_space
from localctx.engine.new_context import freed_on_error
from localctx.engine.options import EngineOptions
from localctx.engine.overrides import Override, check_applied, override_array, parse_overrides
from localctx.engine.placing import Placing, check_moved
from localctx.errors import ModelError

__all__ = ["load_file"]


class _BufferOverride(ctypes.Structure):
    """llama_model_tensor_buft_override, which the bindings leave out."""

    _fields_ = (("pattern", ctypes.c_char_p), ("buffer_type", ctypes.c_void_p))


_NO_SPACE = Override("tokenizer.ggml.add_space_prefix", "bool", False)
"""Leaves SentencePiece's first space to LlamaVocab: llama.cpp would add one after each marker inside a
document too.
"""


def load_file(
    lib: Any,
    header: GGUFHeader,
    options: EngineOptions,
    show: Callable[[LoadLog], None],
    placing: Placing | None = None,
    *,
    allocates: bool = True,
) -> tuple[int, str]:
    """llama.cpp's model, its vocabulary alone without `placing`; and what it said while loading, which is
    shown. Without `allocates` nothing is read into memory but the vocabulary: contexts of it are only counted
    (no_alloc.py). Raises ModelError with its own reason, UsageError for an override that it never looked at.
    """
    parameters = lib.llama_model_default_params()
    parameters.vocab_only = placing is None
    if not allocates:
        parameters.no_alloc = True
        parameters.load_mode = lib.LLAMA_LOAD_MODE_NONE  # with any other the process is ended
    kept = _place(lib, parameters, placing or Placing())
    overrides = parse_overrides(options.overrides)
    passed = [override for override in overrides if override.key != _NO_SPACE.key]
    if adds_space(header):
        passed.append(_NO_SPACE)
    array = override_array(lib, passed)
    if passed:
        parameters.kv_overrides = array

    def work(go_on: Callable[[], bool]) -> int | None:
        progress = lib.llama_progress_callback(lambda fraction, _: go_on())
        parameters.progress_callback = progress
        model: int | None = lib.llama_model_load_from_file(os.fsencode(header.path), parameters)
        return model

    model, log = logged(lib, work, lib.llama_model_free)
    show(log)
    if not model:
        raise ModelError(f"{display(header.path)}: llama.cpp cannot load it: {log.error()}")
    del kept
    if placing is not None:
        with freed_on_error(lib.llama_model_free, model):
            check_applied(overrides, log.text)
            check_moved(placing.moves, log.text)
    return model, log.text


def _place(lib: Any, parameters: Any, placing: Placing) -> list[Any]:
    """Tell llama.cpp; what is returned has to live until the model is loaded."""
    parameters.n_gpu_layers = placing.n_gpu_layers
    if placing.split_mode is not None:
        parameters.split_mode = getattr(lib, f"LLAMA_SPLIT_MODE_{placing.split_mode.upper()}")
    parameters.main_gpu = placing.main_gpu
    kept: list[Any] = []
    if placing.shares:
        kept.append((ctypes.c_float * lib.llama_max_devices())(*placing.shares))
        parameters.tensor_split = kept[-1]
    if placing.moves:
        array = (_BufferOverride * (len(placing.moves) + 1))()  # an empty element ends it
        for place, move in zip(array, placing.moves, strict=False):
            place.pattern, place.buffer_type = os.fsencode(move.pattern), move.device.buffer_type
        kept.append(array)
        parameters.tensor_buft_overrides = ctypes.addressof(array)
    return kept
