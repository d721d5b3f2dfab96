"""llama.cpp through its C API: tokenizer, models, contexts. The only importer of llama_cpp.

A context holds its model; a model frees its contexts first. llama.cpp's log is caught while loading only,
in a worker thread: Python code called back from C on the main thread would meet a Ctrl-C there, as a stray
traceback. Everything else that C calls back is C.
"""

from __future__ import annotations

import ctypes
import dataclasses
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localctx._native import AbortFlag
from localctx.engine.estimate import ContextSettings, estimate, largest_n_ctx, require
from localctx.engine.generation import BatchContext
from localctx.engine.gguf import GGUFHeader, chat_template, display
from localctx.engine.gguf import open_model as open_header
from localctx.engine.limits import check_context_size, usable_cpus
from localctx.engine.memory import available, format_bytes
from localctx.engine.model_facts import kv_shape, model_facts
from localctx.engine.options import EngineOptions
from localctx.engine.prompt import ContentTokenizer, assemble, encode_joined
from localctx.engine.schedule import Scheduler, Slice
from localctx.engine.template import render_chat
from localctx.engine.thinking import ThinkingSplitter, ThinkingTags, detect
from localctx.errors import LocalctxError, ModelError, OutOfMemory, UsageError
from localctx.values import Message, ModelInfo, Prompt, RopeInfo, Sampling

# Read when libgomp is loaded: its threads would spin for milliseconds at each barrier, and on a machine that
# has other work to do, decoding becomes ten times slower.
os.environ.setdefault("GOMP_SPINCOUNT", "10000")

import llama_cpp  # noqa: E402  (after the line above)
import llama_cpp.llama_cpp as lib  # noqa: E402
import numpy as np  # noqa: E402
from llama_cpp._ggml import libggml  # noqa: E402

__all__ = ["Device", "LlamaContext", "LlamaModel", "build_info", "devices", "open_model", "trial"]

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
_LONG_STEP_S, _SHORT_STEP_S = 0.7, 0.25
_LOG_ERROR, _LOG_CONTINUED = 3, 5
_ABORTED = 2


# --- the library: log, devices ----------------------------------------------------------------------


def _silence() -> None:
    """Send llama.cpp's log to a C function that ignores it."""
    ignore = ctypes.cast(lib._lib.llama_max_devices, lib.llama_log_callback)
    lib.llama_log_set(ignore, ctypes.c_void_p(0))


@cache
def _start_library() -> None:
    """Initialise the backends once."""
    _silence()
    lib.llama_backend_init()


_silence()  # importing llama_cpp installs a Python callback
_log_lock = threading.Lock()


class _LoadLog:
    """llama.cpp's lines during one operation."""

    def __init__(self) -> None:
        self.lines: list[tuple[int, str]] = []
        self.callback = lib.llama_log_callback(self._keep)

    def _keep(self, level: int, text: bytes | None, _: object) -> None:
        line = (text or b"").decode("utf-8", "replace")
        if level == _LOG_CONTINUED and self.lines:
            self.lines[-1] = (self.lines[-1][0], self.lines[-1][1] + line)
        else:
            self.lines.append((level, line))

    @property
    def text(self) -> str:
        return "".join(line for _, line in self.lines)

    def error(self) -> str:
        """The line that says most about a failure: the first error, without the C function's name."""
        errors = [line.strip() for level, line in self.lines if level == _LOG_ERROR and line.strip()]
        return re.sub(r"^\w+: (error loading model: )?", "", errors[0]) if errors else "no reason given"


def _logged(work: Callable[[Callable[[], bool]], int | None]) -> tuple[int | None, _LoadLog]:
    """Run `work(go_on)` in a worker thread with the log caught. On Ctrl-C go_on() turns False and, when the
    work has ended, the exception goes on; a result made meanwhile is lost, so work frees it when not go_on().
    """
    log, stop, results, errors = _LoadLog(), threading.Event(), [], []

    def run() -> None:
        try:
            results.append(work(lambda: not stop.is_set()))
        except BaseException as error:  # noqa: BLE001  (raised again in the caller's thread)
            errors.append(error)

    with _log_lock:
        lib.llama_log_set(log.callback, ctypes.c_void_p(0))
        thread = threading.Thread(target=run, name="llama.cpp", daemon=True)
        try:
            thread.start()
            thread.join()
        finally:
            stop.set()
            thread.join()
            _silence()
    if errors:
        raise errors[0]
    return results[0], log


@dataclass(frozen=True, slots=True)
class Device:
    """One compute device of this build; memory in bytes (0 where the backend does not say)."""

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int


_DEVICE_KINDS = ("cpu", "gpu", "igpu", "accelerator", "meta")


def _ggml(name: str, result: Any, *arguments: Any) -> Any:
    function = getattr(libggml, name)
    function.restype, function.argtypes = result, arguments
    return function


def devices() -> list[Device]:
    """The devices that ggml sees."""
    _start_library()
    get = _ggml("ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
    name = _ggml("ggml_backend_dev_name", ctypes.c_char_p, ctypes.c_void_p)
    description = _ggml("ggml_backend_dev_description", ctypes.c_char_p, ctypes.c_void_p)
    kind = _ggml("ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
    size = ctypes.POINTER(ctypes.c_size_t)
    memory = _ggml("ggml_backend_dev_memory", None, ctypes.c_void_p, size, size)
    found = []
    for index in range(_ggml("ggml_backend_dev_count", ctypes.c_size_t)()):
        device, free, total = get(index), ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        label = (name(device) or b"").decode("utf-8", "replace")
        about = (description(device) or b"").decode("utf-8", "replace")
        number = kind(device)
        named = _DEVICE_KINDS[number] if number < len(_DEVICE_KINDS) else "unknown"
        found.append(Device(label, about, named, free.value, total.value))
    return found


def build_info() -> dict[str, object]:
    """Version, CPU features compiled in, devices, and whether a GPU can be used."""
    _start_library()
    return {
        "llama_cpp_python": llama_cpp.__version__,
        "system_info": (lib.llama_print_system_info() or b"").decode("utf-8", "replace").strip(),
        "supports_gpu": bool(lib.llama_supports_gpu_offload()),
        "devices": [
            {"name": d.name, "kind": d.kind, "description": d.description, "total_bytes": d.total_bytes}
            for d in devices()
        ],
    }


# --- the tokenizer ------------------------------------------------------------------------------------

_SAFE_CUT = re.compile(r"(?<=\S) (?=\S)|(?<=\n)(?=\S)")
_CUT_AFTER, _CUT_BEFORE = 1 << 16, 1 << 24  # characters


def bounded_pieces(text: str) -> Iterator[str]:
    """The text in pieces of bounded size, cut where no tokenizer joins: before one space, after a newline."""
    start = 0
    while len(text) - start > _CUT_AFTER:
        match = _SAFE_CUT.search(text, start + _CUT_AFTER, start + _CUT_BEFORE)
        end = match.start() if match else min(len(text), start + _CUT_BEFORE)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


class LlamaVocab:
    """The tokenizer of a loaded model, as prompt.Vocabulary wants it; valid as long as the model is."""

    def __init__(self, handle: int, adds_space: bool) -> None:
        """`adds_space`: each call of llama.cpp's tokenizer puts a space before the text."""
        self._handle = handle
        self._pieces: dict[int, bytes] = {}
        self.adds_space = adds_space
        self.n_tokens = int(lib.llama_vocab_n_tokens(handle))
        bos = int(lib.llama_vocab_bos(handle))
        self.bos_id = bos if bos >= 0 else None
        eos = int(lib.llama_vocab_eos(handle))
        self.eos_id = eos if eos >= 0 else None
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(handle))

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """Tokens that are never text."""
        return frozenset(self._with_attribute(lib.LLAMA_TOKEN_ATTR_CONTROL))

    @cached_property
    def user_defined(self) -> dict[int, str]:
        """Added tokens that the tokenizer finds in any text, and their text."""
        return {
            token: self.token_text(token) for token in self._with_attribute(lib.LLAMA_TOKEN_ATTR_USER_DEFINED)
        }

    def _with_attribute(self, mask: int) -> Iterator[int]:
        attribute, handle = lib.llama_vocab_get_attr, self._handle
        return (token for token in range(self.n_tokens) if attribute(handle, token) & mask)

    def encode_special(self, text: str) -> list[int]:
        """Token ids; markers of control tokens become those. No BOS."""
        return self._tokenize(text, special=True)

    def encode_plain(self, text: str) -> list[int]:
        """Token ids without control tokens, in time linear in the text. No BOS."""
        tokens: list[int] = []
        for index, piece in enumerate(bounded_pieces(text)):
            tokens += encode_joined(self, self._tokenize, piece, first=index == 0)
        return tokens

    def _tokenize(self, text: str, special: bool = False) -> list[int]:
        data = text.encode("utf-8", "replace")
        n_room = len(data) + 16
        while True:
            buffer = (ctypes.c_int32 * n_room)()
            n = lib.llama_tokenize(self._handle, data, len(data), buffer, n_room, False, special)
            if n >= 0:
                return buffer[:n]
            n_room = -n

    def has_token(self, text: str) -> bool:
        """Whether the text is one special token."""
        return len(self.encode_special(text)) == 1

    def piece(self, token: int) -> bytes:
        """The token's text, control tokens written out; may be part of a character."""
        known = self._pieces.get(token)
        if known is None:
            n_room, n = 0, -64
            while n < 0:
                n_room = -n
                buffer = ctypes.create_string_buffer(n_room)
                n = lib.llama_token_to_piece(self._handle, token, buffer, n_room, 0, True)
            known = self._pieces[token] = buffer.raw[:n]
        return known

    def token_text(self, token: int) -> str:
        """The token as the vocabulary spells it."""
        return (lib.llama_vocab_get_text(self._handle, token) or b"").decode("utf-8", "replace")

    def is_control(self, token: int) -> bool:
        """Whether the id stands for no text."""
        return bool(lib.llama_vocab_is_control(self._handle, token))

    def is_end(self, token: int) -> bool:
        """Whether the id ends an answer."""
        return bool(lib.llama_vocab_is_eog(self._handle, token))


def _adds_space(header: GGUFHeader) -> bool:
    """Whether the tokenizer puts a space first: SentencePiece-style ones do unless the file says no."""
    kind = header.text("tokenizer.ggml.model")
    return header.flag("tokenizer.ggml.add_space_prefix", kind in ("llama", "t5")) is True and kind != "gpt2"


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
    if options.gpu_layers not in ("auto", "all", "0") and not lib.llama_supports_gpu_offload():
        raise UsageError(
            f"--gpu-layers {options.gpu_layers}: no GPU can be used"
            f" (devices: {', '.join(device.name for device in devices())})",
            "--gpu-layers auto, or install a GPU build: make install GPU=cuda",
        )


def _n_gpu_layers(options: EngineOptions) -> int:
    """llama.cpp's number: negative for all."""
    if options.gpu_layers in ("auto", "all"):
        return -1 if lib.llama_supports_gpu_offload() else 0
    return int(options.gpu_layers)


class LlamaModel:
    """A values.Model. `vocab` serves as long as the model is open."""

    def __init__(self, header: GGUFHeader, options: EngineOptions) -> None:
        """The header comes from gguf.open_model(); loads the vocabulary only."""
        self.info: ModelInfo = model_facts(header)
        self._header = header
        self._options = options
        self._template = options.template or chat_template(header)
        self._thinking = options.thinking or detect(self._template)
        self._contexts: list[LlamaContext] = []
        self._weights: int | None = None
        self._lock = threading.Lock()
        self._closed = False
        self._tokenizer_model = self._load(vocab_only=True)
        self.vocab = LlamaVocab(lib.llama_model_get_vocab(self._tokenizer_model), _adds_space(header))
        self._content = ContentTokenizer(self.vocab, self._template)

    def _load(self, vocab_only: bool) -> int:
        """Load the file. Raises ModelError with llama.cpp's own reason."""
        parameters = lib.llama_model_default_params()
        parameters.vocab_only = vocab_only
        parameters.n_gpu_layers = 0 if vocab_only else _n_gpu_layers(self._options)

        def work(go_on: Callable[[], bool]) -> int | None:
            progress = lib.llama_progress_callback(lambda fraction, _: go_on())
            parameters.progress_callback = progress
            model = lib.llama_model_load_from_file(os.fsencode(self._header.path), parameters)
            if model and not go_on():
                lib.llama_model_free(model)
                return None
            return model  # type: ignore[no-any-return]  # ctypes

        model, log = _logged(work)
        self._show(log)
        if not model:
            raise ModelError(f"{display(self._header.path)}: llama.cpp cannot load it: {log.error()}")
        return model

    def _show(self, log: _LoadLog) -> None:
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
        )
        return assemble(rendered, vocab, self._content, self._thinking)

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

    def _require_memory(self, n_ctx: int, n_seq: int) -> tuple[str, ...]:
        options, n_layers = self._options, _n_gpu_layers(self._options)
        if options.force:
            return ()
        settings = ContextSettings(
            n_ubatch=_n_batch(options),
            n_seq=n_seq,
            type_k=options.type_k,
            type_v=options.type_v,
            n_gpu_layers=n_layers if n_layers >= 0 else self.info.n_layer + 1,
        )
        free, needed = available(), estimate(self._header, n_ctx, settings)
        gpu_free = sum(device.free_bytes for device in devices() if device.kind in ("gpu", "igpu"))
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


# --- the context --------------------------------------------------------------------------------------


def _n_batch(options: EngineOptions) -> int:
    return options.n_batch or (_N_BATCH_GPU if _n_gpu_layers(options) else _N_BATCH_CPU)


class LlamaContext(BatchContext):
    """A values.Context on llama.cpp. `n_ctx_effective`: cells as llama.cpp rounded them; `rope`: in force."""

    def __init__(self, model: LlamaModel, n_ctx: int, n_seq: int, notices: tuple[str, ...] = ()) -> None:
        stop = AbortFlag()
        handle, log = _new_context(model, n_ctx, n_seq, stop)
        self._model = model
        self.notices = notices
        self.n_ctx_requested = n_ctx
        self.n_ctx_effective = int(lib.llama_n_ctx(handle))
        self.rope = _rope_in_force(model, log.text)
        decoder = _LlamaDecoder(handle, model.vocab, stop, model.thinking, _n_batch(model.options))
        self.decoder = decoder
        tags = model.thinking
        super().__init__(
            decoder,
            Scheduler(min(n_ctx, self.n_ctx_effective), n_seq, reuse=model.can_reuse),
            stop,
            lambda is_open: ThinkingSplitter(tags.open, tags.close, is_open, tags.dropped),
        )

    def close(self) -> None:
        """Free the cache; again is harmless."""
        if not self._closed:
            super().close()
            self._model.forget(self)


def _new_context(model: LlamaModel, n_ctx: int, n_seq: int, stop: AbortFlag) -> tuple[int, _LoadLog]:
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

    handle, log = _logged(work)
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


class _LlamaDecoder:
    """The cache, its batch arrays and one sampler chain per running sequence."""

    def __init__(
        self, handle: int, vocab: LlamaVocab, stop: AbortFlag, tags: ThinkingTags, n_batch: int
    ) -> None:
        self._handle = handle
        self._memory = lib.llama_get_memory(handle)
        self._vocab = vocab
        self._stop = stop  # llama.cpp holds its address
        self._tag_texts = (tags.open, tags.close, *tags.dropped)
        self._samplers: dict[int, int] = {}
        self._pace = _Pace(n_batch, adapts=bool(lib.llama_supports_gpu_offload()))
        self._tokens = np.zeros(n_batch, np.int32)
        self._positions = np.zeros(n_batch, np.int32)
        self._sequences = np.zeros(n_batch, np.int32)
        self._wanted = np.zeros(n_batch, np.int8)
        self._batch = self._new_batch(n_batch)

    def _new_batch(self, n_batch: int) -> Any:
        """llama.cpp's view of the arrays: one sequence id per token."""
        self._n_sequences = np.ones(n_batch, np.int32)
        item = ctypes.POINTER(ctypes.c_int32)
        first, step = self._sequences.ctypes.data, self._sequences.itemsize
        addresses = (ctypes.c_void_p * n_batch)(*range(first, first + n_batch * step, step))
        self._sequence_pointers = addresses
        return lib.llama_batch(
            n_tokens=0,
            token=self._tokens.ctypes.data_as(item),
            embd=None,
            pos=self._positions.ctypes.data_as(item),
            n_seq_id=self._n_sequences.ctypes.data_as(item),
            seq_id=ctypes.cast(addresses, ctypes.POINTER(item)),
            logits=self._wanted.ctypes.data_as(ctypes.POINTER(ctypes.c_int8)),
        )

    @property
    def n_batch(self) -> int:
        return self._pace.n_batch

    def evaluate(self, batch: Sequence[Slice]) -> bool:
        n = 0
        for part in batch:
            end = n + len(part.tokens)
            self._tokens[n:end] = part.tokens
            self._positions[n:end] = np.arange(part.start, part.start + len(part.tokens))
            self._sequences[n:end] = part.sequence
            self._wanted[n:end] = 0
            self._wanted[end - 1] = part.sample
            n = end
        self._batch.n_tokens = n
        with self._pace.step(n):
            status = lib.llama_decode(self._handle, self._batch)
            lib.llama_synchronize(self._handle)
        if status == 0:
            return True
        for part in batch:  # what was processed before the stop stays in the cache otherwise
            self.drop(part.sequence, part.start)
        if status == _ABORTED:
            return False
        reason = "no room in the KV cache" if status == 1 else f"llama_decode gave {status}"
        raise ModelError(f"evaluating {n} tokens failed: {reason}", "localctx doctor tries the model alone")

    def copy(self, source: int, sequence: int, n_tokens: int) -> None:
        lib.llama_memory_seq_cp(self._memory, source, sequence, 0, n_tokens)

    def drop(self, sequence: int, start: int) -> None:
        if not lib.llama_memory_seq_rm(self._memory, sequence, start, -1):
            lib.llama_memory_seq_rm(self._memory, sequence, -1, -1)

    def begin(self, sequence: int, sampling: Sampling) -> None:
        self.end(sequence)
        chain = lib.llama_sampler_chain_init(lib.llama_sampler_chain_default_params())
        for part in _sampler_parts(sampling):
            lib.llama_sampler_chain_add(chain, part)
        self._samplers[sequence] = chain

    def end(self, sequence: int) -> None:
        chain = self._samplers.pop(sequence, None)
        if chain is not None:
            lib.llama_sampler_free(chain)

    def sample(self, sequence: int, row: int) -> int | None:
        token = int(lib.llama_sampler_sample(self._samplers[sequence], self._handle, row))
        return None if self._vocab.is_end(token) else token

    def logits(self, row: int) -> Any:
        """A copy of the logits at a row that asked for them, float32 [n_vocab]."""
        values = lib.llama_get_logits_ith(self._handle, row)
        return np.ctypeslib.as_array(values, (self._vocab.n_tokens,)).copy()

    def piece(self, token: int) -> bytes:
        data = self._vocab.piece(token)
        if self._vocab.is_control(token):
            text = data.decode("utf-8", "replace")
            return data if any(text in tag for tag in self._tag_texts) else b""
        return data

    def close(self) -> None:
        for sequence in list(self._samplers):
            self.end(sequence)
        lib.llama_free(self._handle)


def _sampler_parts(sampling: Sampling) -> Iterator[int]:
    """The links of a sampler chain, in llama.cpp's usual order; a grammar would come first."""
    if sampling.temperature <= 0:
        yield lib.llama_sampler_init_greedy()
        return
    if sampling.top_k > 0:
        yield lib.llama_sampler_init_top_k(sampling.top_k)
    if sampling.top_p < 1:
        yield lib.llama_sampler_init_top_p(sampling.top_p, 1)
    if sampling.min_p > 0:
        yield lib.llama_sampler_init_min_p(sampling.min_p, 1)
    yield lib.llama_sampler_init_temp(sampling.temperature)
    yield lib.llama_sampler_init_dist(sampling.seed & 0xFFFFFFFF)


class _Pace:
    """Tokens of the next step: on a GPU, where a running step cannot be stopped, it is kept under a second."""

    def __init__(self, n_batch: int, adapts: bool) -> None:
        self._limit = n_batch
        self._adapts = adapts
        self.n_batch = min(n_batch, _N_BATCH_CPU) if adapts else n_batch

    @contextmanager
    def step(self, n_tokens: int) -> Iterator[None]:
        """Times one step of n_tokens."""
        started = time.monotonic()
        yield
        if self._adapts and n_tokens >= self.n_batch:
            took_s = time.monotonic() - started
            if took_s > _LONG_STEP_S:
                self.n_batch = max(32, self.n_batch // 2)
            elif took_s < _SHORT_STEP_S:
                self.n_batch = min(self._limit, self.n_batch * 2)


def trial(path: Path, options: EngineOptions | None = None) -> dict[str, object]:
    """Decode one token: {"token", "text", "finite" (all logits are numbers), "prefill_ms", "rope"}."""
    with open_model(path, options) as model:
        context = model.open_context(min(256, model.info.n_ctx_train or 256))
        tokens = np.array(model.prompt([Message("user", ("Say yes.",))]).tokens, np.int32)
        decoder = context.decoder
        started = time.monotonic()
        decoder.evaluate([Slice(0, 0, tokens, True)])
        took_ms = (time.monotonic() - started) * 1000
        logits = decoder.logits(len(tokens) - 1)
        token = int(logits.argmax())
        return {
            "model": model.info.name,
            "token": token,
            "text": model.vocab.piece(token).decode("utf-8", "replace"),
            "finite": bool(np.isfinite(logits).all()),
            "prefill_ms": round(took_ms, 1),
            "rope": dataclasses.asdict(context.rope),
        }
