"""Decoding behind KV that was put together from the store, and the store beside llama.cpp's own state files.

One text is evaluated once, as tokens 0, 1 … of a plain context. Saved: from the cells of a context until it
is forced to the disk. Loaded: from files that were just written (the system still has them in memory) until a
context holds the cells; the store's runs are checked on the way. Decoding evaluates the text's next tokens
one by one, logits included, in both contexts the same.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from localctx._native import State
from localctx.bench.calibrate import calibration
from localctx.bench.decode_report import Decoding, Keeping, Report
from localctx.bench.inputs import temporary_store, tokens_of
from localctx.bench.machine import machine
from localctx.bench.repeats import check_repeats, in_turns
from localctx.engine.kv_context import LlamaKVContext
from localctx.engine.llama import LlamaModel
from localctx.engine.llama_context import LlamaContext
from localctx.engine.state_files import retyped_context
from localctx.engine.stepping import step_seconds
from localctx.errors import Interrupted, ModelError, UsageError
from localctx.kv import KVChunk, KVPart
from localctx.session.cache import EXACT
from localctx.session.encoding import Encoder, Encoding
from localctx.session.kept import Kept
from localctx.session.strategy import round_n_ctx
from localctx.session.token_stream import TokenStream
from localctx.settings import Settings
from localctx.store import DocumentIdentity, StoreUnusable
from localctx.values import Model

__all__ = ["CODECS", "KV_TYPES", "Sizes", "measure"]

CODECS = ("f16", "int8", "int4")
KV_TYPES = ("f16", "q8_0", "q4_0")

Say = Callable[[str], None]
Act = Callable[[str], tuple[float, int]]
"""Keeps or loads in a codec or KV type; seconds and bytes."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """Cells that are attended, tokens decoded behind them each time, and how often everything is done."""

    n_tokens: int = 2048
    n_steps: int = 32
    n_repeats: int = 3

    def check(self) -> None:
        """Raises UsageError for sizes that make no sense."""
        check_repeats(self.n_repeats)
        if self.n_tokens < 128:
            raise UsageError(f"--tokens {self.n_tokens} is out of range", "128 or more")
        if self.n_steps < 1:
            raise UsageError(f"--steps {self.n_steps} is out of range", "1 or more")


@dataclass(slots=True)
class _Contexts:
    """Contexts that hold the same tokens: `plain` by evaluating them, `assembled` from the store; `typed` of
    other KV types, or why there is none.
    """

    plain: LlamaContext
    assembled: LlamaKVContext
    typed: dict[str, LlamaContext | str] = field(default_factory=dict)


def measure(model: Model, settings: Settings, source: str | None, sizes: Sizes, say: Say) -> Report:
    """Everything, by turns; `say` is told what is done. source None: the built-in text.

    Raises UsageError for a text that is too short or a context that cannot be, NotComposable, StoreUnusable.
    """
    sizes.check()
    if not isinstance(model, LlamaModel):
        raise UsageError("this backend keeps no KV", "a GGUF model")
    n_ctx = sizes.n_tokens + sizes.n_steps
    limit = model.usable_n_ctx(settings.ctx)
    if n_ctx > limit:
        raise UsageError(
            f"{sizes.n_tokens:,} tokens and {sizes.n_steps} more do not fit a context of {limit:,}",
            "fewer --tokens, or a larger --ctx",
        )
    facts = machine(settings.threads)
    with temporary_store(settings) as (own, folder):
        tokens = tokens_of(source, own, model, n_ctx)
        held, more = tokens[: sizes.n_tokens], tokens[sizes.n_tokens :]
        with _contexts(model, min(round_n_ctx(n_ctx), limit), held, say) as contexts:
            kept = _Keeper(model, own, contexts, held, folder)
            say("saving and loading")
            rows = _keep(kept, sizes.n_repeats)
            say("decoding")
            kept.load_store(own.cache.stored_codec)
            found = _decode(contexts, more, sizes.n_repeats)
    plain = [
        (float(sizes.n_tokens), rate) for one in found if one.way == "plain" for rate in one.tokens_per_s
    ]
    speeds, codec = calibration(model, decode=plain), own.cache.stored_codec
    return Report(model.info, facts, sizes.n_tokens, sizes.n_steps, codec, found, rows, speeds)


@contextmanager
def _contexts(model: LlamaModel, n_ctx: int, tokens: list[int], say: Say) -> Iterator[_Contexts]:
    """All contexts; those of llama.cpp's own hold the tokens."""
    with ExitStack() as stack:

        def opened(context: LlamaContext) -> LlamaContext:
            stack.callback(context.close)
            say(f"evaluating {len(tokens):,} tokens, KV type {context.kv_types[0]}")
            if context.snapshot(tokens) is None:
                raise Interrupted("interrupted")
            return context

        assembled = model.open_kv_context(n_ctx)
        stack.callback(assembled.close)
        contexts = _Contexts(opened(model.open_context(n_ctx)), assembled)
        for kv_type in KV_TYPES[1:]:
            try:
                contexts.typed[kv_type] = opened(retyped_context(contexts.plain, kv_type))
            except ModelError as error:
                contexts.typed[kv_type] = error.message
        contexts.typed = {KV_TYPES[0]: contexts.plain, **contexts.typed}
        yield contexts


class _Keeper:
    """Saves what contexts hold, in stores and llama.cpp's files, and loads it; tells seconds and bytes."""

    def __init__(
        self, model: LlamaModel, settings: Settings, contexts: _Contexts, tokens: list[int], folder: Path
    ) -> None:
        from array import array

        self.contexts = contexts
        self._tokens = tokens
        self._folder = folder
        self._cache = settings.cache
        self._stream = TokenStream(array("i", tokens), model.kv_space(()), EXACT)
        self._identity = DocumentIdentity(
            self._stream.space, EXACT, "benchmark", len(tokens), "benchmark", model=model.info.name
        )
        self._n_stores = 0
        self._stores: dict[str, Path] = {}

    def save_store(self, codec: str) -> tuple[float, int]:
        """The cells of the plain context, exported, un-rotated, encoded and committed to a new store."""
        self._n_stores += 1
        self._stores[codec] = self._folder / f"store-{self._n_stores}"
        kept, stream = Kept(self._stores[codec], _ignore), self._stream
        encoding = Encoding(codec, self._cache.head_group, self._cache.error_bound)
        started = time.perf_counter()
        state = State(self.contexts.plain.cells.export(0))
        with kept.keeping(self._identity, stream) as keep, Encoder(stream, encoding, keep) as encoder:
            encoder.on_chunk(KVChunk(0, stream.n_tokens, state, self.contexts.assembled.rope_table))
        seconds = time.perf_counter() - started
        failure, n_bytes = kept.failure, sum(run.size_bytes for run in kept.stored(stream.ids))
        kept.close()
        if failure is not None:
            raise failure
        return seconds, n_bytes

    def load_store(self, codec: str) -> tuple[float, int]:
        """The last store of the codec opened, its runs read, checked, decoded, rotated and put in."""
        if codec not in self._stores:
            self.save_store(codec)
        started = time.perf_counter()
        kept = Kept(self._stores[codec], _ignore)
        try:
            if len(kept.load(self._stream.ids, codec)) != self._stream.n_runs:
                raise StoreUnusable("what was just stored cannot be read", "localctx doctor")
            self.contexts.assembled.place(self._tokens, list(self._parts(kept)))
            return time.perf_counter() - started, 0
        finally:
            kept.close()

    def _parts(self, kept: Kept) -> Iterator[KVPart]:
        for run_id, (first, end) in zip(self._stream.ids, self._stream.spans, strict=True):
            run = kept.run(run_id)
            if run is not None:
                yield KVPart(run, 0, end - first, first)

    def save_file(self, kv_type: str) -> tuple[float, int]:
        """llama_state_seq_save_file(), and the file forced to the disk as a store's are."""
        path, started = self._file(kv_type), time.perf_counter()
        n_bytes = self._typed(kv_type).save_file(path, self._tokens)
        with path.open("rb") as file:
            os.fsync(file.fileno())
        return time.perf_counter() - started, n_bytes

    def load_file(self, kv_type: str) -> tuple[float, int]:
        """llama_state_seq_load_file()."""
        path, started = self._file(kv_type), time.perf_counter()
        self._typed(kv_type).load_file(path, self._tokens)
        return time.perf_counter() - started, 0

    def _file(self, kv_type: str) -> Path:
        return self._folder / f"state-{kv_type}.bin"

    def _typed(self, kv_type: str) -> LlamaContext:
        context = self.contexts.typed[kv_type]
        if isinstance(context, str):
            raise ModelError(context)
        return context


def _ignore(_: str) -> None:
    """A failure of the store is raised instead."""


def _keep(kept: _Keeper, n_repeats: int) -> tuple[Keeping, ...]:
    """A row for each way of keeping."""
    there = [name for name, context in kept.contexts.typed.items() if not isinstance(context, str)]
    ways = [("store", codec) for codec in CODECS] + [("llama.cpp", kv_type) for kv_type in there]

    def done(by_store: Act, by_file: Act) -> Mapping[tuple[str, str], list[tuple[float, int]]]:
        acts = {"store": by_store, "llama.cpp": by_file}
        return in_turns({(by, form): partial(acts[by], form) for by, form in ways}, n_repeats)

    saved, loaded = done(kept.save_store, kept.save_file), done(kept.load_store, kept.load_file)
    rows = [
        Keeping(
            by,
            form,
            saved[by, form][0][1],
            tuple(s for s, _ in saved[by, form]),
            tuple(s for s, _ in loaded[by, form]),
        )
        for by, form in ways
    ]
    missing = [
        Keeping("llama.cpp", name, 0, (), (), problem)
        for name, problem in kept.contexts.typed.items()
        if isinstance(problem, str)
    ]
    return (*rows, *missing)


def _decode(contexts: _Contexts, tokens: list[int], n_repeats: int) -> tuple[Decoding, ...]:
    """Tokens a second of each repeat, after one that does not count."""
    both: dict[str, LlamaContext] = {"assembled": contexts.assembled, "plain": contexts.plain}

    def step(context: LlamaContext) -> Callable[[], float]:
        return lambda: len(tokens) / sum(step_seconds(context, tokens))

    ways = {name: step(context) for name, context in both.items()}
    in_turns(ways, 1)
    return tuple(Decoding(name, tuple(rates)) for name, rates in in_turns(ways, n_repeats).items())
