"""llama.cpp through its C API: the library, models with their tokenizer. The only importer of llama_cpp.

A model frees its contexts (llama_context.py) first. What C calls back while decoding is C.
"""

from __future__ import annotations

import dataclasses
import os
import threading
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from localctx.engine.chat import Chat
from localctx.engine.copying import CopySpeed, copy_speed
from localctx.engine.cxx_runtime import share_cxx_runtime
from localctx.engine.devices import Device, build_facts, devices, load_backends, usable_gpus
from localctx.engine.gguf import GGUFHeader, chat_template, missing_template
from localctx.engine.gguf import open_model as open_header
from localctx.engine.host_buffers import HostBuffers
from localctx.engine.kv_context import LlamaKVContext, n_spare
from localctx.engine.limits import check_context_size, spin_count, usable_cpus
from localctx.engine.llama_context import LlamaContext
from localctx.engine.llama_log import LoadLog, silence
from localctx.engine.llama_vocab import LlamaVocab, adds_space
from localctx.engine.load_options import check_options
from localctx.engine.loading import load_file
from localctx.engine.lora import Adapters, with_adapters
from localctx.engine.model_facts import kv_shape, model_facts
from localctx.engine.model_kv import ModelKV
from localctx.engine.model_memory import ModelMemory
from localctx.engine.new_context import ContextSizes, freed_on_error
from localctx.engine.options import EngineOptions
from localctx.engine.options_trial import try_options
from localctx.engine.overrides import overridden, parse_overrides
from localctx.engine.placement import device_shares
from localctx.engine.placing import Placing
from localctx.engine.prompt import ContentTokenizer, assemble
from localctx.engine.query_capture import QueryReader
from localctx.engine.rope_scaling import PassedRope, passed_rope, reach
from localctx.engine.shape import shape_of
from localctx.engine.thinking import ThinkingTags, detect
from localctx.errors import LocalctxError
from localctx.kv import KVSpace
from localctx.values import Message, ModelInfo, Prompt

# libgomp reads this when it is loaded, which the next import does.
os.environ.setdefault("GOMP_SPINCOUNT", str(spin_count(os.getloadavg()[0], os.cpu_count() or 1)))
share_cxx_runtime()

import llama_cpp  # noqa: E402  # what is to be shared with it is loaded before
import llama_cpp.llama_cpp as lib  # noqa: E402  # as above

__all__ = ["LlamaModel", "build_info", "device_copy_speed", "find_devices", "library", "open_model"]


@cache
def library() -> Any:
    """llama_cpp, its backends initialised: for the modules that are handed it."""
    lib.llama_backend_init()
    return lib


silence(lib)  # importing llama_cpp installs a Python callback
libggml: Any = lib._lib  # finds ggml's functions where libllama does; llama_cpp._ggml loads a second ggml
load_backends(libggml, Path(lib._base_path))


def find_devices() -> list[Device]:
    """The devices that this build can compute on."""
    library()
    return devices(libggml)


def device_copy_speed(gpu: int) -> CopySpeed:
    """How fast bytes get to the GPU of that number and back. Raises ModelError."""
    library()
    return copy_speed(libggml, usable_gpus(devices(libggml))[gpu])


def build_info() -> dict[str, object]:
    """Version, CPU features, backends and GPUs of the installed llama.cpp, as JSON values."""
    facts = build_facts(library(), libggml)
    return {"llama_cpp_python": llama_cpp.__version__, "n_threads": usable_cpus(), **facts}


def open_model(path: Path, options: EngineOptions | None = None) -> LlamaModel:
    """Check the file, load tokenizer and template; weights come with the first context.

    Raises ModelError for a file that is no complete language model, UsageError for options that cannot be.
    """
    options = options or EngineOptions()
    header = open_header(path)
    header = overridden(header, parse_overrides(options.overrides))
    placing = check_options(lib, header, options, find_devices)
    library()
    return LlamaModel(header, options, placing)


class LlamaModel:
    """A values.Model. `vocab` serves as long as the model is open · header: of its file, overrides in it ·
    placing: what lies where · shape: what a token costs.
    """

    def __init__(self, header: GGUFHeader, options: EngineOptions, placing: Placing) -> None:
        """The header comes from gguf.open_model(); loads the vocabulary only."""
        facts = with_adapters(model_facts(header), header, options.adapters)
        self.info: ModelInfo = dataclasses.replace(facts, name=options.name or facts.name)
        self.header, self.shape = header, shape_of(header)
        self._options = options
        self.placing = placing
        self._memory = ModelMemory(header, options, placing, self.n_ubatch, find_devices)
        template = options.template or chat_template(header)
        self._chat = Chat(template, missing_template(header), options.template_variables)
        self._thinking = options.thinking or detect(template)
        self._contexts: list[LlamaContext] = []
        self._weights: int | None = None
        self._load_log = ""
        self._tried: set[str] = set()
        self._kv = ModelKV(header, options)
        self.adapters = Adapters(options.adapters)
        self.buffers = HostBuffers(libggml)
        self.queries = QueryReader(lib, libggml, self, self._kv, header, self._prepare)
        self._lock = threading.Lock()
        self._closed = False
        self._tokenizer_model, _ = load_file(lib, header, options, self.show)
        with freed_on_error(lib.llama_model_free, self._tokenizer_model):
            vocab = lib.llama_model_get_vocab(self._tokenizer_model)
            self.vocab = LlamaVocab(lib, vocab, adds_space(header))
            scaffold = self._chat.scaffold(self.vocab)
            self._content = ContentTokenizer(self.vocab, (self.template or "", *scaffold))
            tags = "".join((self._thinking.open, self._thinking.close, *self._thinking.dropped))
            self.vocab.shown_controls = self.vocab.control_ids.intersection(self.vocab.encode_special(tags))

    def show(self, log: LoadLog) -> None:
        """Hand llama.cpp's lines to options.on_log."""
        if self._options.on_log is not None:
            for line in log.text.splitlines():
                self._options.on_log(line)

    @property
    def template(self) -> str | None:
        """The chat template in use."""
        return self._chat.template

    def tokenize(self, text: str, first: bool = True) -> list[int]:
        """Token ids of content: no control token, whatever the text says."""
        self._check_open()
        return self._content(text, first)

    def text(self, tokens: Sequence[int]) -> str:
        """What content tokens stand for, without a character at the end that is not whole."""
        self._check_open()
        return b"".join(map(self.vocab.piece, tokens)).decode("utf-8", "ignore")

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """The chat template rendered round the messages, content kept apart from scaffold."""
        self._check_open()
        return assemble(self._chat.render(messages, self.vocab), self.vocab, self._content, self._thinking)

    def usable_n_ctx(self, wanted: int | None = None, n_seq: int = 1) -> int:
        """See values.Model."""
        self._check_open()
        wanted = self._memory.longest(n_seq) if wanted is None else wanted
        self._check_size(wanted, n_seq)
        self._require_memory(ContextSizes(wanted, n_seq))
        return wanted

    def _check_size(self, n_ctx: int, n_seq: int) -> None:
        options = self._options
        check_context_size(self.info, n_ctx, n_seq, reach(self.header, options.rope), force=options.force)

    def open_context(
        self, n_ctx: int, n_seq: int = 1, *, n_outputs: int = 0, n_longest: int | None = None
    ) -> LlamaContext:
        """`n_outputs`: rows of logits of one step · n_longest: see values.Model. Raises UsageError beyond the
        trained length, OutOfMemory before anything is allocated, ModelError with llama.cpp's reason.
        """
        sizes = ContextSizes(n_ctx, n_seq, n_outputs=n_outputs, n_longest=n_longest)
        context = LlamaContext(lib, self, sizes, self._prepare(sizes))
        self._add(context)
        return context

    def _add(self, context: LlamaContext) -> None:
        self._contexts.append(context)
        names = [device.name for device in find_devices()]
        lying = device_shares(self._load_log, context.log, names, self.info.n_layer)
        self.info = dataclasses.replace(self.info, rope=context.rope, devices=lying)

    def kv_refusal(self) -> str | None:
        """Why its KV cannot be stored in runs, in words that follow its name; None: a context tries it."""
        return self._kv.refusal

    def kv_space(self, prefix: Sequence[int]) -> KVSpace:
        """What stored KV behind `prefix` depends on. Raises NotComposable, ModelError for damaged factors."""
        return KVSpace(self.info.fingerprint, self._kv.table(self.info.name).line, tuple(prefix))

    def open_kv_context(
        self, n_ctx: int, n_seq: int = 1, *, n_outputs: int = 0, n_longest: int | None = None
    ) -> LlamaKVContext:
        """open_context() for KV that is exported and put back; with more cells than asked for where a short
        context turns keys differently. Raises NotComposable as well, by name or because a trial failed.
        """
        table = self._kv.table(self.info.name)
        spare, n_ctx = n_spare(self.n_batch, n_seq), self._kv.least_n_ctx(n_ctx)
        sizes = ContextSizes(n_ctx, n_seq, spare, n_outputs, n_longest)
        self._kv.check_size(sizes.n_reach, self.info.name)
        context = LlamaKVContext(lib, self, sizes, table, self._prepare(sizes))
        with freed_on_error(lambda _: context.close(), 0):
            self._add(context)
            self._kv.check(context, self.info.name)
        return context

    def _prepare(self, sizes: ContextSizes) -> tuple[str, ...]:
        """Check the sizes, load the weights; returns notices."""
        self._check_open()
        self._check_size(sizes.n_reach, sizes.n_ids)
        notices = self._require_memory(sizes)
        with self._lock:
            if self._weights is None:
                loaded = load_file(lib, self.header, self._options, self.show, self.placing)
                self._weights, self._load_log = loaded
            self.adapters.load(lib, self._weights)
            try_options(lib, self, self.rope_for(sizes.n_reach), self._tried)
        return notices

    def rope_for(self, n_ctx: int) -> PassedRope:
        """See new_context.ModelHandle."""
        return passed_rope(self.header, self._options.rope, n_ctx)

    def _require_memory(self, sizes: ContextSizes) -> tuple[str, ...]:
        return self._memory.require(sizes, self.info.name, is_loaded=self._weights is not None)

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
        return self._options.n_batch or self.placing.n_batch

    @property
    def n_ubatch(self) -> int:
        """Tokens of a step that a device computes at once."""
        return min(self.n_batch, self._options.n_ubatch or self.n_batch)

    @property
    def options(self) -> EngineOptions:
        """The settings it was opened with."""
        return self._options

    @property
    def is_offloaded(self) -> bool:
        """Whether a GPU computes it."""
        return self.placing.n_gpu_layers != 0

    @property
    def thinking(self) -> ThinkingTags:
        """What marks thinking in this model's output."""
        return self._thinking

    @property
    def can_reuse(self) -> bool:
        """Whether cached tokens can be cut at any position and shared."""
        return kv_shape(self.header).is_plain

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
