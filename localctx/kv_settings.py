"""What `--kv KEY=VALUE,...` may say of the KV cache and the store: one typed value, checked in one place.

Each setting is declared once, with its values and its meaning, which make the page docs/kv.md
(localctx.cli.kv_page). Knows neither models nor stores. Keys of later versions answer "not available yet";
unknown ones name the nearest known key.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from localctx.errors import NotYetAvailable, UsageError
from localctx.kv import MAX_ANCHORS, RECALL_CHUNK_TOKENS, RUN_TOKENS, PrefillPolicy
from localctx.kv_together import check_together
from localctx.kv_values import (
    FUSED,
    STREAMING,
    Layers,
    Parser,
    error_bound,
    layers,
    one_of,
    rank,
    refresh,
    streaming,
    whole,
)
from localctx.values import BlockKind

__all__ = ["CODEC_NAMES", "LATER_KEYS", "KVSettings", "Lazy", "parse_kv", "setting_rows"]

Lazy: TypeAlias = Literal["auto", "on", "off"]
PolicyName: TypeAlias = Literal["exact", "window", "independent"]

CODEC_NAMES = ("f16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "int3", "int2")
TYPE_NAMES = ("f32", "f16", "bf16", "q8_0", "q4_0", "q4_1", "iq4_nl", "q5_0", "q5_1")
LATER_KEYS = ("prune", "entropy", "tier")
ROUTER = "lexical"
"""The rule by which earlier blocks are found: part of what stored KV is named by."""
MOST_ROUTED = 64


# --- the settings -----------------------------------------------------------------------------------------


def _about(parse: Parser, values: str, meaning: str, key: str = "") -> dict[str, Any]:
    """One setting: `values` and `meaning` stand on the page; `key` where it is not the field's name."""
    return {"parse": parse, "values": values, "about": meaning, "key": key}


@dataclass(frozen=True, slots=True)
class KVSettings:
    """How documents are prefilled, kept and put back. docs/kv.md says what each setting means."""

    policy: PolicyName = field(
        default="window",
        metadata=_about(
            one_of("exact", "window", "independent"),
            "`window`, `exact`, `independent`",
            "what a token attends to while its document is prefilled, beside the fixed prefix: the last "
            "`window` tokens, all before it, or its own block",
        ),
    )
    window: int = field(
        default=4096,
        metadata=_about(
            whole(RUN_TOKENS, 1 << 24, RUN_TOKENS),
            f"tokens, a multiple of {RUN_TOKENS}",
            "the window of `policy=window`, less where the context is smaller",
        ),
    )
    sinks: int = field(
        default=0,
        metadata=_about(
            whole(0, 1 << 20, RUN_TOKENS),
            f"tokens, a multiple of {RUN_TOKENS}",
            "the document's first tokens (title, contents, definitions) that stay attended during prefill "
            "when they have left the window; only with `policy=window`, not for passages prefilled lazily",
        ),
    )
    routed: int = field(
        default=0,
        metadata=_about(
            whole(0, MOST_ROUTED),
            f"0 to {MOST_ROUTED}",
            f"blocks of {RUN_TOKENS} tokens that left the window and are attended again, beside it, while "
            f"{RECALL_CHUNK_TOKENS} tokens are prefilled: those that share the rarest tokens with them; only "
            "with `policy=window`, not for passages prefilled lazily",
        ),
    )
    stride: int = field(
        default=0,
        metadata=_about(
            whole(0, 1 << 24, RUN_TOKENS),
            f"tokens, a multiple of {RUN_TOKENS}, or 0",
            f"one block of {RUN_TOKENS} tokens at every `stride` tokens is attended in the same way, "
            f"{MAX_ANCHORS} at most: where there would be more, every second one of them is left out",
        ),
    )
    block: int = field(
        default=128,
        metadata=_about(whole(32, 1024), "32 to 1024", "tokens aimed at in a passage"),
    )
    blocks: BlockKind = field(
        default="fixed",
        metadata=_about(
            one_of("fixed", "adaptive"),
            "`fixed`, `adaptive`",
            "how passages are cut: by size and the best boundary near it, or also where the words around "
            "change most, dense text into smaller passages and sparse text into larger ones, within the same "
            "limits. Neither changes a token, so what is stored serves both",
        ),
    )
    codec: str | None = field(
        default=None,
        metadata=_about(
            one_of(*CODEC_NAMES),
            ", ".join(f"`{name}`" for name in CODEC_NAMES),
            "how stored KV is encoded; by default `int4`, but `f16` (beyond 1 GB `int8`) where the whole "
            "document is attended; KV in another codec than the one given is not used",
        ),
    )
    error_bound: float | None = field(
        default=None,
        metadata=_about(
            error_bound,
            "`none`, or from 1e-6 to 1e6",
            "largest absolute error of a value that is stored now; what would exceed it stays f16. KV that is"
            " stored already serves as it is",
        ),
    )
    head_group: int = field(
        default=1,
        metadata=_about(whole(1, 256), "1 to 256", "KV heads that share a scale, of KV stored now"),
    )
    budget: int | None = field(
        default=None,
        metadata=_about(
            whole(32, 1 << 24),
            "tokens",
            "most document tokens put before a question (`stream`, `condense`), or read for a summary: each "
            "part is cut to its share (at least 160 tokens), its sentences chosen as `localctx truncate` "
            "does, so that a long document is summarised in bounded time",
        ),
    )
    refresh: float | None = field(
        default=None,
        metadata=_about(
            refresh,
            "`auto`, or from `0` to `100%`",
            "share of the restored tokens that is evaluated again in place, first the passage that the "
            "question singles out, then the sentences that it points at; `auto`: as much as `--latency` "
            "allows, at least a third, and all where that is four fifths or more. What was evaluated is kept "
            "with the (first) document while the store has room, 256 MB a question at most: the same "
            "passages and sentences cost nothing the next time. Not where a GPU evaluates sooner than it "
            "is written",
        ),
    )
    lazy: Lazy = field(
        default="auto",
        metadata=_about(
            one_of("auto", "on", "off"),
            "`auto`, `on`, `off`",
            "`on`: only the passages that a question needs are prefilled, and kept; `off`: the whole "
            "document, or, where some of it is indexed, that part alone; refused where `--store-limit` does "
            "not take it all; `auto`: the whole document where that takes less than two minutes",
        ),
    )
    rank: tuple[str, ...] = field(
        default=FUSED,
        metadata=_about(
            rank,
            "`fused`, or some of `lexical`, `dense`, `landmarks`, `maxsim`, `mmr`, `head`, `tail` joined by "
            "`+`",
            "how `stream` and `retrieve` choose passages: `lexical` by words, `dense` by an embedder's "
            "vectors, `landmarks` by the model's own retrieval heads over stored keys (`stream` only; needs "
            "a wholly indexed text and known heads); then `maxsim` looks at the best 16 again, token by "
            "token, `mmr` puts passages that say the same behind others, `head` and `tail` always put the "
            "first and the last passage in. `fused` is `lexical+dense+maxsim`, and compares every passage "
            "token by token where their token vectors are kept. What cannot be done is left out, with a "
            "warning",
        ),
    )
    attn_layers: Layers | None = field(
        default=None,
        metadata=_about(
            layers,
            "a number N, or layers as `8-15+24-24`",
            "the layers whose retrieval heads choose passages: the first N that the heads, best first, stand "
            "in, or those in the ranges (layers count from 0); `rank=lexical+landmarks` where no rank is "
            "given",
        ),
    )
    type_k: str = field(
        default="f16",
        metadata=_about(
            one_of(*TYPE_NAMES),
            ", ".join(f"`{name}`" for name in TYPE_NAMES),
            "ggml type of keys in the context, `-ctk`; checked against flash attention, the size of the "
            "heads, the class of model and the GPU before loading, and tried on one token. Only f16 can be "
            "stored",
        ),
    )
    type_v: str = field(
        default="f16",
        metadata=_about(one_of(*TYPE_NAMES), "the same", "the same of values, `-ctv`"),
    )
    streams: bool = field(
        default=False,
        metadata=_about(
            streaming,
            f"`{STREAMING}`",
            "means `--strategy stream`",
            key="cache_type",
        ),
    )

    @property
    def prefill_policy(self) -> PrefillPolicy:
        """The policy under which whole documents are prefilled."""
        if self.policy != "window":
            return PrefillPolicy(self.policy, self.window)
        router = ROUTER if self.routed else ""
        return PrefillPolicy(self.policy, self.window, self.sinks, self.routed, self.stride, router)

    @property
    def only_for_stream(self) -> tuple[str, ...]:
        """Settings other than the default that only the strategy `stream` looks at, as they are typed."""
        typed = {
            f"lazy={self.lazy}": self.lazy != "auto",
            f"rank={'+'.join(self.rank)}": "landmarks" in self.rank,
            f"refresh={self.refresh or 0:.0%}": self.refresh is not None,
            f"budget={self.budget}": self.budget is not None,
        }
        return tuple(text for text, is_set in typed.items() if is_set)

    @property
    def stored_codec(self) -> str:
        """The codec of documents in the store."""
        return self.codec or "int4"


def setting_rows() -> list[tuple[str, str, str, str]]:
    """(key, values, default, meaning) of every setting, for the page."""
    rows = []
    for one in fields(KVSettings):
        default = "" if one.default is None or one.default is False else str(one.default)
        if isinstance(one.default, tuple):
            default = "+".join(one.default)
        rows.append((_key(one), one.metadata["values"], default, one.metadata["about"]))
    return rows


def _key(one: Any) -> str:
    """The name that is typed."""
    return str(one.metadata["key"] or one.name)


_FIELDS = {_key(one): one for one in fields(KVSettings)}
_KNOWN = ", ".join(_FIELDS)


# --- as typed ---------------------------------------------------------------------------------------------


@lru_cache(maxsize=256)  # settings are asked for their cache settings at every step
def parse_kv(text: str) -> KVSettings:
    """`window=2048,codec=int8` as settings; of a key given twice the last value holds.

    Raises UsageError in one line for what is not understood or out of range, NotYetAvailable for later keys.
    """
    values: dict[str, Any] = {}
    for part in text.split(","):
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise UsageError(f"--kv {part.strip()!r} is not KEY=VALUE", "--kv window=4096,codec=int4")
        one = _field_of(key.replace("-", "_"))
        values[one.name] = one.metadata["parse"](_key(one), value)
    if values.get("attn_layers") is not None:
        values.setdefault("rank", ("lexical", "landmarks"))
    settings = replace(KVSettings(), **values)
    check_together(settings)
    return settings


def _field_of(key: str) -> Any:
    if key in LATER_KEYS:
        raise NotYetAvailable(f"--kv {key} is not available yet in this version", f"known: {_KNOWN}")
    if key not in _FIELDS:
        close = difflib.get_close_matches(key, [*_FIELDS, *LATER_KEYS], n=1)
        raise UsageError(
            f"--kv: unknown key {key!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
            f"known: {_KNOWN}",
        )
    return _FIELDS[key]
