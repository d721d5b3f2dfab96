"""A model file into llama.cpp, with what of its metadata is replaced. Is handed llama_cpp."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from localctx.engine.gguf import GGUFHeader, display
from localctx.engine.llama_log import LoadLog, logged
from localctx.engine.llama_vocab import adds_space
from localctx.engine.load_options import n_gpu_layers
from localctx.engine.options import EngineOptions
from localctx.engine.overrides import Override, check_applied, override_array, parse_overrides
from localctx.errors import ModelError

__all__ = ["load_file"]

_NO_SPACE = Override("tokenizer.ggml.add_space_prefix", "bool", False)
"""Leaves SentencePiece's first space to LlamaVocab: llama.cpp would add one after each marker inside a
document too.
"""


def load_file(
    lib: Any,
    header: GGUFHeader,
    options: EngineOptions,
    show: Callable[[LoadLog], None],
    *,
    vocab_only: bool,
    allocates: bool = True,
) -> int:
    """llama.cpp's model; what it said while loading is shown. Without `allocates` nothing is read into memory
    but the vocabulary: contexts of it are only counted (no_alloc.py). Raises ModelError with its own reason,
    UsageError for an override that it never looked at.
    """
    parameters = lib.llama_model_default_params()
    parameters.vocab_only = vocab_only
    if not allocates:
        parameters.no_alloc = True
        parameters.load_mode = lib.LLAMA_LOAD_MODE_NONE  # with any other the process is ended
    parameters.n_gpu_layers = 0 if vocab_only else n_gpu_layers(lib, options)
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
    if not vocab_only:
        try:
            check_applied(overrides, log.text)
        except BaseException:
            lib.llama_model_free(model)
            raise
    return model
