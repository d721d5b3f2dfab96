"""llama.cpp through its C API: the library, models with their tokenizer. The only importer of llama_cpp.

A model frees its contexts (llama_context.py) first. What C calls back while decoding is C.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Self

from localctx.engine.devices import Device, build_facts, devices
from localctx.engine.estimate import CELL_STEP, ContextSettings, estimate, largest_n_ctx, require
from localctx.engine.ggml_types import CACHE_TYPES
from localctx.engine.gguf import GGUFHeader, chat_template, display, missing_template
from localctx.engine.gguf import open_model as open_header
from localctx.engine.limits import check_context_size, spin_count, usable_cpus
from localctx.engine.llama_context import ROPE_SCALINGS, LlamaContext, freed_on_error
from localctx.engine.llama_log import LoadLog, logged, silence
from localctx.engine.llama_vocab import LlamaVocab, adds_space, no_added_space
from localctx.engine.memory import available, format_bytes
from localctx.engine.model_facts import kv_shape, model_facts
from localctx.engine.options import EngineOptions
from localctx.engine.prompt import ContentTokenizer, assemble
from localctx.engine.template import Rendered, render_chat
from localctx.engine.thinking import ThinkingTags, detect
from localctx.errors import LocalctxError, ModelError, OutOfMemory, UsageError
from localctx.values import Message, ModelInfo, Prompt

# libgomp reads this when it is loaded, which the next import does.
os.environ.setdefault("GOMP_SPINCOUNT", str(spin_count(os.getloadavg()[0], os.cpu_count() or 1)))

import llama_cpp
import llama_cpp.llama_cpp as lib
from llama_cpp._ggml import libggml

__all__ = ["LlamaModel", "build_info", "find_devices", "open_model"]

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
    _start_library()
    return {
        "llama_cpp_python": llama_cpp.__version__,
        "n_threads": usable_cpus(),
        **build_facts(lib, libggml),
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
        if name not in CACHE_TYPES:
            raise UsageError(f"KV cache type {name!r} is not known", f"one of {', '.join(CACHE_TYPES)}")
    if options.rope.scaling is not None and options.rope.scaling not in ROPE_SCALINGS:
        raise UsageError(
            f"RoPE scaling {options.rope.scaling!r} is not known", f"one of {', '.join(ROPE_SCALINGS)}"
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


_PROBES = (
    (Message("user", ("a",)),),
    tuple(Message(role, ("a",)) for role in ("system", "user", "assistant", "user")),
)
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
        with freed_on_error(lib.llama_model_free, self._tokenizer_model):
            vocab = lib.llama_model_get_vocab(self._tokenizer_model)
            self.vocab = LlamaVocab(lib, vocab, adds_space(header))
            self._content = ContentTokenizer(self.vocab, (self._template or "", *self._probe()))
            tags = "".join((self._thinking.open, self._thinking.close, *self._thinking.dropped))
            self.vocab.shown_controls = self.vocab.control_ids.intersection(self.vocab.encode_special(tags))

    def _probe(self) -> list[str]:
        """Scaffold that the template writes: some build a marker from parts, and show it nowhere whole."""
        rendered = [self._render(messages) for messages in _PROBES]
        return [part.text for one in rendered for part in one.parts if not part.is_content]

    def _load(self, vocab_only: bool) -> int:
        """Load the file. Raises ModelError with llama.cpp's own reason."""
        parameters = lib.llama_model_default_params()
        parameters.vocab_only = vocab_only
        parameters.n_gpu_layers = 0 if vocab_only else _n_gpu_layers(self._options)
        overrides = no_added_space(lib)
        if adds_space(self._header):
            parameters.kv_overrides = overrides

        def work(go_on: Callable[[], bool]) -> int | None:
            progress = lib.llama_progress_callback(lambda fraction, _: go_on())
            parameters.progress_callback = progress
            model: int | None = lib.llama_model_load_from_file(os.fsencode(self._header.path), parameters)
            return model

        model, log = logged(lib, work, lib.llama_model_free)
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
        return assemble(self._render(messages), self.vocab, self._content, self._thinking)

    def _render(self, messages: Sequence[Message]) -> Rendered:
        vocab = self.vocab
        return render_chat(
            self._template,
            messages,
            has_token=vocab.has_token,
            bos_token=vocab.token_text(vocab.bos_id) if vocab.bos_id is not None else "",
            eos_token=vocab.token_text(vocab.eos_id) if vocab.eos_id is not None else "",
            variables=self._options.template_variables,
            now=TEMPLATE_DATE,
            missing=missing_template(self._header),
        )

    def usable_n_ctx(self, wanted: int | None = None, n_seq: int = 1) -> int:
        """See values.Model."""
        self._check_open()
        if wanted is None:
            fitting = largest_n_ctx(self._header, available(), self._context_settings(n_seq))
            wanted = fitting or min(CELL_STEP, self.info.n_ctx_train or CELL_STEP)
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
        context = LlamaContext(lib, self, n_ctx, n_seq, notices)
        self._contexts.append(context)
        return context

    def _context_settings(self, n_seq: int) -> ContextSettings:
        options, n_layers = self._options, _n_gpu_layers(self._options)
        return ContextSettings(
            n_ubatch=self.n_batch,
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
    def n_batch(self) -> int:
        """Tokens of one step."""
        return self._options.n_batch or (_N_BATCH_GPU if _n_gpu_layers(self._options) else _N_BATCH_CPU)

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
