"""What a verb needs to work with stored KV: a model that can, its prefix, the runs at hand, measured speed.

A verb makes one for itself and closes it: neither cells nor contexts outlive it. Runs that no store keeps may
be handed on by the caller (`Kept`), under ids that nothing else can have.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, TypeAlias, runtime_checkable

from localctx.assemble import RunOf
from localctx.engine.shape import Shape
from localctx.errors import NotComposable, UsageError
from localctx.kv import RECALL_CHUNK_TOKENS, RUN_TOKENS, KVContext, KVSource, KVSpace, PrefillPolicy
from localctx.session.encoding import Encoding
from localctx.session.frame import Frame, frame_of
from localctx.session.kept import Kept, kept_or_opened
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.session.strategy import round_n_ctx
from localctx.session.token_stream import TokenStream
from localctx.session.verdicts import codec_of
from localctx.values import Model

__all__ = [
    "CHUNK_TOKENS",
    "EXACT",
    "LAZY_WINDOW",
    "PREFIX_CODEC",
    "Cache",
    "KVModel",
    "opened_cache",
    "run_at",
    "run_finder",
    "why_no_cache",
]

LAZY_WINDOW = 1024
"""Tokens of a span that is prefilled on demand, and of the left context that it sees."""
LAZY_GRIDS = 4
"""Grids of such spans: a passage comes at most a quarter of a span behind its left context."""
EXACT = PrefillPolicy("exact", 0)
CHUNK_TOKENS = 1024
"""Room for what is evaluated at a time."""
PREFIX_CODEC = "f16"
PROBE_TOKENS, PROBE_LEAD = 128, 16
"""Evaluated to learn the speed of a model that was never measured here."""
RateKind: TypeAlias = Literal["prompt", "stream"]
EXACT_F16_BYTES = 1 << 30
"""KV of a document up to this size is kept in f16 where the whole of it is attended, else in int8."""


@runtime_checkable
class KVModel(Model, Protocol):
    """A model of which KV can be taken out and put back, or that says why not."""

    @property
    def is_offloaded(self) -> bool:
        """Whether a device of its own computes it, on which a step takes its time whatever is in it."""

    @property
    def shape(self) -> Shape:
        """Operations and bytes of a token."""

    def kv_refusal(self) -> str | None:
        """Why its KV cannot be cut and put together, in words that follow its name; None when it can."""

    def kv_space(self, prefix: Sequence[int]) -> KVSpace:
        """What its stored KV depends on. Raises NotComposable."""

    def open_kv_context(self, n_ctx: int, n_seq: int = 1, *, n_longest: int | None = None) -> KVContext:
        """A context whose KV can be taken out and put back. Raises NotComposable."""


@dataclass(slots=True)
class Cache:
    """`limit`: the largest context, in tokens."""

    run: Run
    model: KVModel
    frame: Frame
    space: KVSpace
    kept: Kept
    limit: int
    _prefix_stream: TokenStream | None = None
    _streams: dict[tuple[int, PrefillPolicy, int], TokenStream] = field(default_factory=dict)

    @property
    def prefix(self) -> tuple[int, ...]:
        """Tokens before every document."""
        return self.frame.prefix

    @property
    def policy(self) -> PrefillPolicy:
        """The policy under which whole documents are prefilled: its window fits the context."""
        return self._policy_within(min(self.run.settings.ctx or self._trained, self._trained))

    @property
    def lazy_policy(self) -> PrefillPolicy:
        """The policy for passages that are prefilled when a question needs them."""
        n_ctx = min(self.run.settings.ctx or self._trained, self._trained)
        window = min(LAZY_WINDOW, self.run.settings.cache.window, self._window_limit(n_ctx, 2))
        return PrefillPolicy("lazy", window)

    @property
    def codec(self) -> str | None:
        """The codec that was asked for: KV in others is not used then."""
        return self.run.settings.cache.codec

    @property
    def _trained(self) -> int:
        return self.model.info.n_ctx_train or self.limit

    def _policy_within(self, n_ctx: int) -> PrefillPolicy:
        policy = self.run.settings.cache.prefill_policy
        if policy.kind != "window":
            return policy
        window = min(policy.window, self._window_limit(n_ctx, 1) - policy.sinks - policy.recalled_tokens)
        return replace(policy, window=max(RUN_TOKENS, window))

    def _window_limit(self, n_ctx: int, n_windows: int) -> int:
        """The largest window, in whole runs, of which n_windows fit beside prefix and chunk."""
        room = n_ctx - len(self.prefix) - min(CHUNK_TOKENS, n_ctx // 4)
        return max(RUN_TOKENS, room // n_windows // RUN_TOKENS * RUN_TOKENS)

    def whole_stream(self, reading: Reading) -> TokenStream:
        """The reading's tokens under the policy for whole documents. A small --ctx allows a small window
        only, but what was prefilled whole with a larger one, or exactly, serves as well.
        """
        wider = [self._policy_within(self._trained)]
        if self.policy.kind == "window" and self.policy.window < reading.n_tokens <= self._trained:
            wider.insert(0, EXACT)
        for policy in wider:
            stream = self.stream_of(reading, policy)
            if policy != self.policy and self.kept.n_leading(stream.ids, self.codec) == stream.n_runs:
                return stream
        return self.stream_of(reading, self.policy)

    def stream_of(self, reading: Reading, policy: PrefillPolicy, offset: int = 0) -> TokenStream:
        """The reading's tokens under a policy."""
        key = (reading.ordinal, policy, offset)
        if key not in self._streams:
            tokens, units = reading.stream, reading.first_tokens
            self._streams[key] = self.kept.streams.get(tokens, self.space, policy, units, offset)
        return self._streams[key]

    def lazy_streams(self, reading: Reading) -> list[TokenStream]:
        """The reading's tokens as they are prefilled on demand, in several grids of cells: in one of them
        little is evaluated for a passage beside its left context (lazy_spans.lazy_plan).
        """
        policy = self.lazy_policy
        step = max(RUN_TOKENS, policy.window // LAZY_GRIDS // RUN_TOKENS * RUN_TOKENS)
        return [self.stream_of(reading, policy, offset) for offset in range(0, policy.window, step)]

    def prefix_stream(self) -> TokenStream:
        """The prefix as a stream of its own."""
        if self._prefix_stream is None:
            bare = KVSpace(self.space.model, self.space.rope, ())
            self._prefix_stream = TokenStream(array("i", self.prefix), bare, EXACT)
        return self._prefix_stream

    def encoding(self, codec: str | None = None) -> Encoding:
        """How runs are written; the codec is that of the settings, else `codec`, else the verdict's."""
        settings = self.run.settings.cache
        found = codec_of(self.kept.facts(self.model.info.fingerprint))
        chosen = settings.codec or codec or found or settings.stored_codec
        return Encoding(chosen, settings.head_group, settings.error_bound)

    def exact_codec(self, n_tokens: int) -> str:
        """The codec of a document that is attended whole."""
        size_bytes = n_tokens * self.model.info.kv_bytes_per_token
        return self.run.settings.cache.codec or ("f16" if size_bytes <= EXACT_F16_BYTES else "int8")

    @contextmanager
    def context(self, n_ctx: int) -> Iterator[KVContext]:
        """A context of its own, closed at the end; its notices become warnings."""
        with_room = min(round_n_ctx(n_ctx), max(self.limit, n_ctx))
        started = time.perf_counter()
        context = self.model.open_kv_context(with_room)
        self.run.timings.load_ms += (time.perf_counter() - started) * 1000
        self.run.warnings.extend(context.notices)
        try:
            yield context
        finally:
            context.close()

    @property
    def has_prefix(self) -> bool:
        """Whether the prefix's KV is ready to be put back."""
        return all(self.kept.run(run_id) is not None for run_id in self.prefix_stream().ids)

    def prefill_n_ctx(self, policy: PrefillPolicy, n_tokens: int) -> int:
        """Cells that prefilling under a policy takes, a few for the prefix alone at least. Raises UsageError
        for more than the model was trained for.
        """
        if policy.kind == "exact" or n_tokens <= policy.attended_tokens:
            local = n_tokens
        elif policy.kind == "lazy":
            local = 2 * policy.window
        else:
            chunk = RECALL_CHUNK_TOKENS if policy.recalled_tokens else min(CHUNK_TOKENS, self.limit // 4)
            local = policy.attended_tokens + chunk
        n_ctx = len(self.prefix) + max(local, RUN_TOKENS)
        if n_ctx > self._trained and not self.run.settings.force:
            raise UsageError(
                f"prefill under --kv policy={policy.kind}{policy.beside_window} takes a context of {n_ctx:,} "
                f"tokens, {self.model.info.name} was trained for {self._trained:,}",
                "policy=window, fewer sinks or routed blocks, or --force",
            )
        return n_ctx

    # --- speed ------------------------------------------------------------------------------------

    def known_rate(self, kind: RateKind = "prompt") -> float | None:
        """What rate() says without a context, if it can."""
        return self.kept.speeds.get(self.model.info.fingerprint, self._machine(kind))

    def rate(self, context: KVContext, kind: RateKind = "prompt") -> float:
        """Tokens a second of this model here, as measured before, else by evaluating a few. prompt: a short
        context is filled · stream: a document is prefilled behind its window.
        """
        if (known := self.known_rate(kind)) is not None:
            return known
        tokens = [*self.prefix, *self.run.readings[0].stream[:PROBE_TOKENS]][: context.n_ctx - 1]
        n_evaluated = context.place(tokens[:PROBE_LEAD], ())  # the first step also touches the weights
        started = time.perf_counter()
        n_timed = context.place(tokens, ())
        rate = n_timed / max(time.perf_counter() - started, 1e-9)
        self.run.n_evaluated += n_evaluated + n_timed
        self.kept.speeds.note(self.model.info.fingerprint, self._machine("prompt"), rate)
        return rate

    def note_rate(self, n_tokens: int, seconds: float, kind: RateKind = "prompt") -> None:
        """Remember a speed that was just seen, if over enough tokens."""
        if n_tokens >= PROBE_TOKENS and seconds > 0:
            self.kept.speeds.note(self.model.info.fingerprint, self._machine(kind), n_tokens / seconds)

    def _machine(self, kind: RateKind) -> str:
        """What the speed depends on beside the model."""
        settings = self.run.settings
        placed = (settings.split_mode, settings.tensor_split, settings.main_gpu, settings.n_cpu_moe)
        facts = [kind, settings.threads or "auto", settings.gpu_layers]
        return "/".join(map(str, [*facts, *(value for value in placed if value is not None)]))


def why_no_cache(model: Model) -> str | None:
    """Why a model's KV cannot be kept, in words; None when it can."""
    if not isinstance(model, KVModel):
        return f"{model.info.name} has no KV that could be kept"
    refusal = model.kv_refusal()
    return None if refusal is None else f"{model.info.name} {refusal}: its KV cannot be stored"


@contextmanager
def opened_cache(run: Run, task: Sequence[str], kept: Kept | None = None) -> Iterator[Cache | str]:
    """The cache of a verb whose task is `task`; or why there is none, in words.

    `kept`: runs at hand that stay open afterwards; default: the store of the settings.
    """
    model, problem = run.model, why_no_cache(run.model)
    if problem is not None or not isinstance(model, KVModel):
        yield problem or ""
        return
    frame = frame_of(model, task, run.turns)
    if frame is None:
        yield f"{model.info.name}: its chat template does not say where documents stand"
        return
    try:
        space = model.kv_space(frame.prefix)
    except NotComposable as error:
        yield error.message
        return
    with kept_or_opened(run, kept) as at_hand:
        at_hand.warn = run.note
        yield Cache(run, model, frame, space, at_hand, run.limit)


def run_finder(cache: Cache, streams: Sequence[Sequence[TokenStream]]) -> RunOf:
    """Runs by document and token, for assemble.apply(): streams[d] are document d's, the preferred first."""
    prefix = cache.prefix_stream()

    def find(document: int | None, token: int) -> tuple[KVSource, int]:
        _, source, row = run_at(cache, (prefix,) if document is None else streams[document], token)
        return source, row

    return find


def run_at(cache: Cache, streams: Sequence[TokenStream], token: int) -> tuple[bytes, KVSource, int]:
    """(id, run, row) of a document's token, from the first of its streams whose run is loaded or is being
    read. Raises LookupError.
    """
    for stream in streams:
        number = stream.run_at(token)
        source = cache.kept.source(stream.ids[number])
        if source is not None:
            return stream.ids[number], source, token - stream.spans[number][0]
    raise LookupError(f"the run of token {token} is not loaded")
