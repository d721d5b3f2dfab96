"""Ways of prefilling a long text with a small window, and what can be measured behind each of them.

Holds all runs of one text in f16.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol, Self, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx import _native
from localctx.kv import RUN_TOKENS, KVChunk, KVContext, KVPart, PrefillPolicy
from localctx.selection import LexicalRouter, recalled_runs
from localctx.selection.routing import Router
from localctx.session.cache import KVModel
from localctx.verify.compare import check_done

__all__ = [
    "ARMS",
    "Arm",
    "Embed",
    "ScoredContext",
    "ScoredKVModel",
    "Streamed",
    "arms_of",
    "rows_behind",
    "text_of",
]

RouterName: TypeAlias = Literal["", "lexical", "vectors", "keys", "random"]
Rows: TypeAlias = NDArray[np.float32]
Embed: TypeAlias = Callable[[Sequence[str]], NDArray[np.float32]]
"""Texts to vectors of length 1, [n_texts, dim]."""


class _Pieces(Protocol):
    def piece(self, token: int) -> bytes:
        """The token's text."""


class ScoredContext(KVContext, Protocol):
    def score(self, tokens: Sequence[int], on_rows: Callable[[int, Rows], None]) -> int:
        """Evaluate tokens behind what is held; on_rows gets (index of the first row, logits)."""


@runtime_checkable
class ScoredKVModel(KVModel, Protocol):
    """A model whose KV can be put back, and whose contexts hand out logits."""

    vocab: _Pieces

    def open_kv_context(
        self, n_ctx: int, n_seq: int = 1, *, n_outputs: int = 0, n_longest: int | None = None
    ) -> ScoredContext:
        """A context for score()."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way: a name, what is attended, and how earlier runs are found."""

    name: str
    policy: PrefillPolicy
    router: RouterName = ""


ARMS = (
    "window", "wider window", "strided", "routed", "routed, strided", "by vectors", "by keys", "at random",
    "exact",
)  # fmt: skip


def arms_of(names: Sequence[str], window: int, routed: int, stride: int) -> list[Arm]:
    """The named arms. The wider window attends to as many tokens as window and routed runs together."""
    narrow = PrefillPolicy("window", window)
    by = replace(narrow, routed=routed)
    every = (
        Arm("window", narrow),
        Arm("wider window", PrefillPolicy("window", window + routed * RUN_TOKENS)),
        Arm("strided", replace(narrow, stride=stride)),
        Arm("routed", by, "lexical"),
        Arm("routed, strided", replace(by, stride=stride), "lexical"),
        Arm("by vectors", by, "vectors"),
        Arm("by keys", by, "keys"),
        Arm("at random", by, "random"),
        Arm("exact", PrefillPolicy("exact", 0)),
    )
    return [arm for arm in every if arm.name in names]


@dataclass(slots=True)
class Streamed:
    """One text prefilled in one way: its runs, and what is attended behind any of its chunks."""

    arm: Arm
    tokens: tuple[int, ...]
    text_of: Callable[[Sequence[int]], str]
    embed: Embed | None = None
    seed: int = 0
    runs: list[_native.Run] = field(default_factory=list)
    _vectors: dict[int, NDArray[np.float32]] = field(default_factory=dict)

    def prefill(self, context: KVContext, prefix: Sequence[int]) -> None:
        """Make the runs."""
        router = self._router(self.tokens)
        policy = self.arm.policy

        def route(first: int, keep_from: int, start: int, end: int) -> list[KVPart]:
            return self.parts(recalled_runs(policy, router, first, keep_from, start, end))

        context.stream(
            prefix, self.tokens, policy, lambda chunk: self.runs.extend(_runs_of(chunk)), route=route
        )

    def parts(self, numbers: Sequence[int]) -> list[KVPart]:
        """Whole runs."""
        return [KVPart(self.runs[number], 0, self.runs[number].n_tokens, 0) for number in numbers]

    def attended(self, start: int, chunk: Sequence[int]) -> list[int]:
        """Runs that `chunk`, which stands at `start`, a multiple of RECALL_CHUNK_TOKENS, attends to."""
        policy, all_before = self.arm.policy, start // RUN_TOKENS
        if policy.kind == "exact":
            return list(range(all_before))
        keep_from = max(0, start - policy.window)
        router = self._router([*self.tokens[:start], *chunk])
        found = recalled_runs(policy, router, 0, keep_from, start, start + len(chunk))
        return [*found, *range(keep_from // RUN_TOKENS, all_before)]

    def _router(self, tokens: Sequence[int]) -> Router | None:
        match self.arm.router:
            case "lexical":
                return LexicalRouter(tokens)
            case "vectors":
                return _ByVectors(self, tokens)
            case "keys":
                return _ByKeys(self)
            case "random":
                return _AtRandom(self.seed)
            case "":
                return None


@dataclass(frozen=True, slots=True)
class _ByVectors:
    """Cosine of an embedder's vectors of the texts."""

    streamed: Streamed
    tokens: Sequence[int]

    def scores(self, start: int, end: int, n_runs: int) -> NDArray[np.float64]:
        one = self.streamed
        if one.embed is None:
            raise ValueError("no embedder")
        known = one._vectors
        missing = [run for run in range(n_runs) if run not in known]
        texts = [one.text_of(self.tokens[run * RUN_TOKENS : (run + 1) * RUN_TOKENS]) for run in missing]
        vectors = one.embed([*texts, one.text_of(self.tokens[start:end])])
        known.update(zip(missing, vectors[:-1], strict=True))
        return np.array([max(1e-6, float(known[run] @ vectors[-1])) for run in range(n_runs)])


@dataclass(frozen=True, slots=True)
class _ByKeys:
    """Cosine of mean keys of all layers to those of the run before the chunk: its own are not there yet."""

    streamed: Streamed

    def scores(self, start: int, end: int, n_runs: int) -> NDArray[np.float64]:
        one = self.streamed
        known = one._vectors
        last = start // RUN_TOKENS - 1
        for run in (*range(n_runs), last):
            if run not in known:
                kept = one.runs[run]
                means = [kept.keys(layer).astype(np.float32).mean(axis=0) for layer in range(kept.n_layer)]
                known[run] = np.concatenate([mean / np.linalg.norm(mean) for mean in means])
        return np.array(
            [1.0 + float(known[run] @ known[last]) / one.runs[0].n_layer for run in range(n_runs)]
        )


@dataclass(frozen=True, slots=True)
class _AtRandom:
    """Any runs, the same each time."""

    seed: int

    def scores(self, start: int, end: int, n_runs: int) -> NDArray[np.float64]:
        source = random.Random(f"{self.seed} {start}")  # noqa: S311  # a draw that anyone can repeat
        return np.array([source.random() + 1e-6 for _ in range(n_runs)])


def text_of(model: ScoredKVModel, tokens: Sequence[int]) -> str:
    """The tokens' text."""
    return b"".join(model.vocab.piece(token) for token in tokens).decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Prefix:
    """The tokens before every text, and their KV."""

    tokens: tuple[int, ...]
    runs: tuple[_native.Run, ...]

    @classmethod
    def of(cls, context: KVContext, tokens: Sequence[int]) -> Self:
        """Evaluate them once."""
        runs: list[_native.Run] = []
        context.stream((), tokens, PrefillPolicy("exact", 0), lambda chunk: runs.extend(_runs_of(chunk)))
        return cls(tuple(tokens), tuple(runs))


def rows_behind(
    context: ScoredContext,
    prefix: Prefix,
    streamed: Streamed,
    runs: Sequence[int],
    asked: Sequence[int],
    target: Sequence[int],
) -> Rows:
    """The logits that predict each token of `target` behind prefix, runs and `asked`, [n, n_vocab].

    All but the runs and the prefix is evaluated.
    """
    held, parts = list[int](), list[KVPart]()
    tokens = [prefix.tokens[n : n + RUN_TOKENS] for n in range(0, len(prefix.tokens), RUN_TOKENS)]
    sources = list(zip(prefix.runs, tokens, strict=True))
    sources += [(streamed.runs[n], streamed.tokens[n * RUN_TOKENS : (n + 1) * RUN_TOKENS]) for n in runs]
    for run, of_run in sources:
        parts.append(KVPart(run, 0, run.n_tokens, len(held)))
        held += of_run
    if not asked:  # the last token is evaluated with the target
        parts[-1] = replace(parts[-1], n_tokens=parts[-1].n_tokens - 1)
    held += asked
    context.place(held[:-1], parts)
    found: list[Rows] = []
    n_done = context.score([held[-1], *target[:-1]], lambda first, rows: found.append(rows.copy()))
    check_done(n_done, len(target))
    return np.concatenate(found)


def _runs_of(chunk: KVChunk) -> Iterator[_native.Run]:
    """The chunk in runs of f16."""
    for row in range(0, chunk.n_tokens, RUN_TOKENS):
        n = min(RUN_TOKENS, chunk.n_tokens - row)
        yield _native.Run(_native.encode(chunk.state, row, n, chunk.rope, "f16"))
