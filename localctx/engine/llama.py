"""llama.cpp through its C API: tokenizer, models, contexts. The only importer of llama_cpp.

A context holds its model; a model frees its contexts first. What C calls back while decoding is C.
"""

from __future__ import annotations

import dataclasses
import os
import re
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localctx._native import AbortFlag
from localctx.engine.batch_context import BatchContext
from localctx.engine.devices import Device, backends, devices
from localctx.engine.estimate import CELL_STEP, ContextSettings, estimate, largest_n_ctx, require
from localctx.engine.gguf import GGUFHeader, chat_template, display
from localctx.engine.gguf import open_model as open_header
from localctx.engine.limits import check_context_size, spin_count, usable_cpus
from localctx.engine.llama_context import LlamaDecoder
from localctx.engine.llama_log import LoadLog, logged, silence
from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.memory import available, format_bytes
from localctx.engine.model_facts import kv_shape, model_facts
from localctx.engine.options import EngineOptions
from localctx.engine.prompt import ContentTokenizer, assemble
from localctx.engine.schedule import Scheduler, Slice
from localctx.engine.template import render_chat
from localctx.engine.thinking import ThinkingSplitter, ThinkingTags, detect
from localctx.errors import LocalctxError, ModelError, OutOfMemory, UsageError
from localctx.values import Message, ModelInfo, Prompt, RopeInfo

# libgomp reads this when it is loaded, which the next import does.
os.environ.setdefault("GOMP_SPINCOUNT", str(spin_count(os.getloadavg()[0], os.cpu_count() or 1)))

import llama_cpp
import llama_cpp.llama_cpp as lib
import numpy as np
from llama_cpp._ggml import libggml

__all__ = ["LlamaContext", "LlamaModel", "build_info", "find_devices", "open_model", "trial"]

_ROPE_TYPES = {
    lib.LLAMA_ROPE_TYPE_NONE: "none",
    lib.LLAMA_ROPE_TYPE_NORM: "norm",
    lib.LLAMA_ROPE_TYPE_NEOX: "neox",
    lib.LLAMA_ROPE_TYPE_MROPE: "mrope",
    lib.LLAMA_ROPE_TYPE_IMROPE: "imrope",
    lib.LLAMA_ROPE_TYPE_VISION: "vision",
}
_SCALINGS = {
    "none": lib.LLAMA_ROPE_SCALING_TYPE_NONE,
    "linear": lib.LLAMA_ROPE_SCALING_TYPE_LINEAR,
    "yarn": lib.LLAMA_ROPE_SCALING_TYPE_YARN,
}
_KV_TYPES = {
    name: getattr(lib, f"GGML_TYPE_{name.upper()}")
    for name in ("f32", "f16", "bf16", "q8_0", "q5_1", "q5_0", "q4_1", "q4_0", "iq4_nl")
    if hasattr(lib, f"GGML_TYPE_{name.upper()}")
}
_N_BATCH_CPU, _N_BATCH_GPU = 512, 1024


# --- the library: log, devices ----------------------------------------------------------------------


@cache
def _start_library() -> None:
    """Initialise the backends once."""
    lib.llama_backend_init()


silence(lib)  # importing llama_cpp installs a Python callback


def find_devices() -> list[Device]:
    """The devices that this build can compute on."""
    _start_library()
    return devices(libggml)


def build_info() -> dict[str, object]:
    """Version, CPU features, backends and GPUs of the installed llama.cpp, as JSON values."""
    found = find_devices()
    built = backends(libggml)
    return {
        "llama_cpp_python": llama_cpp.__version__,
        "system_info": (lib.llama_print_system_info() or b"").decode("utf-8", "replace").strip(),
        "backends": built,
        "gpu_offload": any(name not in ("CPU", "BLAS", "RPC") for name in built),
        "supports_gpu": bool(lib.llama_supports_gpu_offload()),
        "devices": [f"{d.name} ({d.description}, {format_bytes(d.total_bytes)})" for d in found if d.is_gpu],
        "n_threads": usable_cpus(),
    }


# --- the model ----------------------------------------------------------------------------------------


def open_model(path: Path, options: EngineOptions | None = None) -> LlamaModel:
    """Check the file, load tokenizer and template; weights come with the first context.

    Raises ModelError for a file that is no complete language model, UsageError for options that cannot be.
    """
    options = options or EngineOptions()
    header = open_header(path)
    _check_options(options)
    _start_library()
    return LlamaModel(header, options)


def _check_options(options: EngineOptions) -> None:
    for name in (options.type_k, options.type_v):
        if name not in _KV_TYPES:
            raise UsageError(f"KV cache type {name!r} is not known", f"one of {', '.join(_KV_TYPES)}")
    if options.rope.scaling is not None and options.rope.scaling not in _SCALINGS:
        raise UsageError(
            f"RoPE scaling {options.rope.scaling!r} is not known", f"one of {', '.join(_SCALINGS)}"
        )
    if options.gpu_layers not in ("auto", "0") and not lib.llama_supports_gpu_offload():
        raise UsageError(
            f"--gpu-layers {options.gpu_layers}: no GPU can be used"
            f" (devices: {', '.join(device.name for device in find_devices())})",
            "--gpu-layers auto, or install a GPU build: make install GPU=cuda",
        )


def _n_gpu_layers(options: EngineOptions) -> int:
    """llama.cpp's number: negative for all."""
    if options.gpu_layers in ("auto", "all"):
        return -1 if lib.llama_supports_gpu_offload() else 0
    return int(options.gpu_layers)


TEMPLATE_DATE = datetime(2024, 7, 26)  # a label, no instant
"""The date that templates see: what stands before a document must be the same every day, to be kept."""


class LlamaModel:
    """A values.Model. `vocab` serves as long as the model is open."""

    def __init__(self, header: GGUFHeader, options: EngineOptions) -> None:
        """The header comes from gguf.open_model(); loads the vocabulary only."""
        facts = model_facts(header)
        self.info: ModelInfo = dataclasses.replace(facts, name=options.name or facts.name)
        self._header = header
        self._options = options
        self._template = options.template or chat_template(header)
        self._thinking = options.thinking or detect(self._template)
        self._contexts: list[LlamaContext] = []
        self._weights: int | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._tokenizer_model = self._load(vocab_only=True)
        self.vocab = LlamaVocab(lib, lib.llama_model_get_vocab(self._tokenizer_model), _adds_space(header))
        self._content = ContentTokenizer(self.vocab, self._template)
        tags = "".join((self._thinking.open, self._thinking.close, *self._thinking.dropped))
        self.vocab.shown_controls = self.vocab.control_ids.intersection(self.vocab.encode_special(tags))

    def _load(self, vocab_only: bool) -> int:
        """Load the file. Raises ModelError with llama.cpp's own reason."""
        parameters = lib.llama_model_default_params()
        parameters.vocab_only = vocab_only
        parameters.n_gpu_layers = 0 if vocab_only else _n_gpu_layers(self._options)
        overrides = _no_added_space()
        if _adds_space(self._header):
            parameters.kv_overrides = overrides

        def work(go_on: Callable[[], bool]) -> int | None:
            progress = lib.llama_progress_callback(lambda fraction, _: go_on())
            parameters.progress_callback = progress
            model = lib.llama_model_load_from_file(os.fsencode(self._header.path), parameters)
            if model and not go_on():
                lib.llama_model_free(model)
                return None
            return model  # type: ignore[no-any-return]  # ctypes

        model, log = logged(lib, work)
        self.show(log)
        if not model:
            raise ModelError(f"{display(self._header.path)}: llama.cpp cannot load it: {log.error()}")
        return model

    def show(self, log: LoadLog) -> None:
        """Hand llama.cpp's lines to options.on_log."""
        if self._options.on_log is not None:
            for line in log.text.splitlines():
                self._options.on_log(line)

    @property
    def template(self) -> str | None:
        """The chat template in use."""
        return self._template

    def tokenize(self, text: str, first: bool = True) -> list[int]:
        """Token ids of content: no control token, whatever the text says."""
        self._check_open()
        return self._content(text, first)

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The chat template rendered round the messages, content kept apart from scaffold."""
        self._check_open()
        vocab = self.vocab
        rendered = render_chat(
            self._template,
            messages,
            has_token=vocab.has_token,
            bos_token=vocab.token_text(vocab.bos_id) if vocab.bos_id is not None else "",
            eos_token=vocab.token_text(vocab.eos_id) if vocab.eos_id is not None else "",
            variables=self._options.template_variables,
            now=TEMPLATE_DATE,
        )
        return assemble(rendered, vocab, self._content, self._thinking)

    def usable_n_ctx(self, wanted: int | None = None, n_seq: int = 1) -> int:
        """See values.Model."""
        self._check_open()
        if wanted is None:
            wanted = largest_n_ctx(self._header, available(), self._context_settings(n_seq)) or CELL_STEP
        check_context_size(
            self.info, wanted, n_seq, scaled=self._options.rope.stretches, force=self._options.force
        )
        self._require_memory(wanted, n_seq)
        return wanted

    def open_context(self, n_ctx: int, n_seq: int = 1) -> LlamaContext:
        """Raises UsageError beyond the trained length, OutOfMemory before anything is allocated, ModelError
        with llama.cpp's reason.
        """
        self._check_open()
        options = self._options
        check_context_size(self.info, n_ctx, n_seq, scaled=options.rope.stretches, force=options.force)
        notices = self._require_memory(n_ctx, n_seq)
        with self._lock:
            if self._weights is None:
                self._weights = self._load(vocab_only=False)
        context = LlamaContext(self, n_ctx, n_seq, notices)
        self._contexts.append(context)
        return context

    def _context_settings(self, n_seq: int) -> ContextSettings:
        options, n_layers = self._options, _n_gpu_layers(self._options)
        return ContextSettings(
            n_ubatch=_n_batch(options),
            n_seq=n_seq,
            type_k=options.type_k,
            type_v=options.type_v,
            n_gpu_layers=n_layers if n_layers >= 0 else self.info.n_layer + 1,
        )

    def _require_memory(self, n_ctx: int, n_seq: int) -> tuple[str, ...]:
        if self._options.force:
            return ()
        settings = self._context_settings(n_seq)
        free, needed = available(), estimate(self._header, n_ctx, settings)
        gpu_free = sum(device.free_bytes for device in find_devices() if device.is_gpu)
        if needed.vram_bytes > gpu_free > 0 and self._weights is None:
            raise OutOfMemory(
                f"{self.info.name}: {format_bytes(needed.vram_bytes)} of GPU memory for a context of"
                f" {n_ctx:,} tokens; {format_bytes(gpu_free)} free",
                "a smaller --ctx, or fewer --gpu-layers",
            )
        return require(needed, free, self.info.name, largest_n_ctx(self._header, free, settings))

    @property
    def weights(self) -> int:
        """llama.cpp's model, for contexts."""
        self._check_open()
        if self._weights is None:
            raise LocalctxError("the weights are not loaded")
        return self._weights

    @property
    def options(self) -> EngineOptions:
        """The settings it was opened with."""
        return self._options

    @property
    def thinking(self) -> ThinkingTags:
        """What marks thinking in this model's output."""
        return self._thinking

    @property
    def can_reuse(self) -> bool:
        """Whether cached tokens can be cut at any position and shared."""
        return kv_shape(self._header).is_plain

    def forget(self, context: LlamaContext) -> None:
        """A context was closed."""
        self._contexts.remove(context)

    def _check_open(self) -> None:
        if self._closed:
            raise LocalctxError("the model is closed")

    def close(self) -> None:
        """Close the contexts, then free everything; again is harmless."""
        if self._closed:
            return
        for context in list(self._contexts):
            context.close()
        self._closed = True
        for model in (self._weights, self._tokenizer_model):
            if model is not None:
                lib.llama_model_free(model)
        self._weights = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


def _no_added_space() -> Any:
    """An override that leaves SentencePiece's first space to LlamaVocab: llama.cpp would add one after each
    marker inside a document too. The second, empty element ends the list.
    """
    overrides = (lib.llama_model_kv_override * 2)()
    overrides[0].tag = lib.LLAMA_KV_OVERRIDE_TYPE_BOOL
    overrides[0].key = b"tokenizer.ggml.add_space_prefix"
    value: Any = overrides[0].value
    value.val_bool = False
    return overrides


def _adds_space(header: GGUFHeader) -> bool:
    """Whether the tokenizer puts a space first: SentencePiece-style ones do unless the file says no."""
    kind = header.text("tokenizer.ggml.model")
    return header.flag("tokenizer.ggml.add_space_prefix", kind in ("llama", "t5")) is True and kind != "gpt2"


# --- the context --------------------------------------------------------------------------------------


def _n_batch(options: EngineOptions) -> int:
    return options.n_batch or (_N_BATCH_GPU if _n_gpu_layers(options) else _N_BATCH_CPU)


class LlamaContext(BatchContext):
    """A values.Context on llama.cpp. `n_ctx_effective`: cells as llama.cpp rounded them; `rope`: in force."""

    def __init__(self, model: LlamaModel, n_ctx: int, n_seq: int, notices: tuple[str, ...] = ()) -> None:
        stop = AbortFlag()
        handle, log = _new_context(model, n_ctx, n_seq, stop)
        self._model = model
        self.n_ctx_effective = int(lib.llama_n_ctx(handle))
        self.rope = _rope_in_force(model, log.text)
        decoder = LlamaDecoder(lib, handle, model.vocab, stop, _n_batch(model.options))
        self.decoder = decoder
        tags = model.thinking
        super().__init__(
            decoder,
            Scheduler(min(n_ctx, self.n_ctx_effective), n_seq, reuse=model.can_reuse),
            stop,
            lambda is_open: ThinkingSplitter(tags.open, tags.close, is_open, tags.dropped),
            notices,
        )

    def close(self) -> None:
        """Free the cache; again is harmless."""
        if not self._closed:
            super().close()
            self._model.forget(self)


def _new_context(model: LlamaModel, n_ctx: int, n_seq: int, stop: AbortFlag) -> tuple[int, LoadLog]:
    options, rope = model.options, model.options.rope
    parameters = lib.llama_context_default_params()
    parameters.n_ctx = n_ctx
    parameters.n_batch = parameters.n_ubatch = _n_batch(options)
    parameters.n_seq_max = n_seq
    parameters.n_outputs_max = n_seq  # one row of logits a sequence, not one a token of the batch
    parameters.n_threads = parameters.n_threads_batch = options.n_threads or usable_cpus()
    parameters.kv_unified = True
    parameters.flash_attn_type = lib.LLAMA_FLASH_ATTN_TYPE_ENABLED
    parameters.type_k, parameters.type_v = _KV_TYPES[options.type_k], _KV_TYPES[options.type_v]
    parameters.abort_callback = lib.ggml_abort_callback(stop.callback_address)
    parameters.abort_callback_data = stop.data_address
    if rope.scaling is not None:
        parameters.rope_scaling_type = _SCALINGS[rope.scaling]
    if rope.freq_base is not None:
        parameters.rope_freq_base = rope.freq_base
    if rope.freq_scale is not None:
        parameters.rope_freq_scale = rope.freq_scale
    if rope.yarn_orig_ctx is not None:
        parameters.yarn_orig_ctx = rope.yarn_orig_ctx

    def work(go_on: Callable[[], bool]) -> int | None:
        context = lib.llama_init_from_model(model.weights, parameters)
        if context and not go_on():
            lib.llama_free(context)
            return None
        return context  # type: ignore[no-any-return]  # ctypes

    handle, log = logged(lib, work)
    model.show(log)
    if not handle:
        raise ModelError(
            f"{model.info.name}: llama.cpp cannot make a context of {n_ctx:,} tokens: {log.error()}",
            "a smaller --ctx, or localctx doctor",
        )
    return handle, log


def _rope_in_force(model: LlamaModel, log: str) -> RopeInfo:
    """The file's settings with what llama.cpp reports for the context."""
    values = {
        name: float(value) for name, value in re.findall(r"(freq_base|freq_scale) += +([\d.e+-]+)", log)
    }
    rope = model.info.rope
    kind = lib.llama_model_rope_type(model.weights)
    return dataclasses.replace(
        rope,
        type=_ROPE_TYPES.get(kind, rope.type),
        scaling=model.options.rope.scaling or rope.scaling,
        freq_base=values.get("freq_base", rope.freq_base),
        freq_scale=values.get("freq_scale", rope.freq_scale),
    )


def trial(path: Path, options: EngineOptions | None = None) -> dict[str, object]:
    """Decode one token, as JSON values; "finite" says that all logits are numbers."""
    with open_model(path, options) as model:
        context = model.open_context(min(256, model.info.n_ctx_train or 256))
        tokens = np.array(model.prompt([Message("user", ("Say yes.",))]).tokens, np.int32)
        started = time.monotonic()
        context.decoder.evaluate([Slice(0, 0, tokens, sample=True)])
        took_s = time.monotonic() - started
        logits = context.decoder.logits(len(tokens) - 1)
        token = int(logits.argmax())
        return {
            "model": model.info.name,
            "token": token,
            "text": model.vocab.piece(token).decode("utf-8", "replace"),
            "finite": bool(np.isfinite(logits).all()),
            "tokens_per_s": round(len(tokens) / took_s, 1),
            "rope": dataclasses.asdict(context.rope),
        }
