"""What `--kv KEY=VALUE,...` may say of the KV cache and the store: one typed value, checked in one place.

Knows neither models nor stores. Keys of later versions answer "not available yet"; unknown ones name the
nearest known key.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from localctx.errors import NotYetAvailable, UsageError
from localctx.kv import RUN_TOKENS, PrefillPolicy
from localctx.values import BlockKind

__all__ = ["CODEC_NAMES", "LATER_KEYS", "KVSettings", "Lazy", "parse_kv"]

Lazy: TypeAlias = Literal["auto", "on", "off"]
PolicyName: TypeAlias = Literal["exact", "window", "independent"]

SELECTORS = ("lexical", "dense", "landmarks")
SECOND_LOOKS = ("maxsim", "mmr", "head", "tail")
FUSED = ("lexical", "dense", "maxsim")
"""What `rank=fused` stands for."""

CODEC_NAMES = ("f16", "fp8_e4m3", "fp8_e5m2", "int8", "int4", "int3", "int2")
LATER_KEYS = (
    "type_k", "type_v", "stride", "routed", "attn_layers", "prune", "entropy", "tier",
)  # fmt: skip
STREAMING = "streaming"
"""The value of cache_type that means `--strategy stream`."""


@dataclass(frozen=True, slots=True)
class KVSettings:
    """How documents are prefilled, kept and put back.

    policy, window, sinks: what a token attends to while its document is prefilled (the last `window` tokens
    and, policy=window, the document's first `sinks`; multiples of 128) · block: tokens aimed at in a
    passage · blocks: whether passages are cut by size alone or where the topic changes · codec: how stored KV
    is encoded; None: int4, but f16 where a whole document is attended ·
    error_bound: largest absolute error of a stored value, others stay f16 · head_group: KV heads that share a
    scale · budget: most document tokens put before a question, or
    read for a summary · refresh: share of the restored tokens that is
    evaluated again, in [0, 1]; None: by the latency target · lazy: whether only the spans a question needs
    are prefilled · rank: what chooses passages: words, an embedder's vectors, the model's own retrieval heads
    over stored keys, or several of them; then what looks at the best again: maxsim, token by token,
    mmr for variety, head and tail, which always put the first and the last passage in ·
    streams: cache_type=streaming was given.
    """

    policy: PolicyName = "window"
    window: int = 4096
    sinks: int = 0
    block: int = 128
    blocks: BlockKind = "fixed"
    codec: str | None = None
    error_bound: float | None = None
    head_group: int = 1
    budget: int | None = None
    refresh: float | None = None
    lazy: Lazy = "auto"
    rank: tuple[str, ...] = FUSED
    streams: bool = False

    @property
    def prefill_policy(self) -> PrefillPolicy:
        """The policy under which whole documents are prefilled."""
        return PrefillPolicy(self.policy, self.window, self.sinks if self.policy == "window" else 0)

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


def parse_kv(text: str) -> KVSettings:
    """`window=2048,codec=int8` as settings; of a key given twice the last value holds.

    Raises UsageError in one line for what is not understood or out of range, NotYetAvailable for later keys.
    """
    settings = KVSettings()
    for part in text.split(","):
        if not part.strip():
            continue
        key, equals, value = (piece.strip() for piece in part.partition("="))
        if not equals or not value:
            raise UsageError(f"--kv {part.strip()!r} is not KEY=VALUE", "--kv window=4096,codec=int4")
        settings = replace(settings, **_parsed(key.replace("-", "_"), value))
    if settings.sinks and settings.policy == "independent":
        raise UsageError("--kv sinks: with policy=independent nothing else is attended", "policy=window")
    return settings


def _parsed(key: str, value: str) -> dict[str, Any]:
    """The fields that one key sets."""
    if key == "cache_type":
        if value != STREAMING:
            raise NotYetAvailable(f"--kv cache_type={value} is not available yet", "cache_type=streaming")
        return {"streams": True}
    if key in LATER_KEYS:
        raise NotYetAvailable(f"--kv {key} is not available yet in this version", f"known: {_KNOWN}")
    if key not in _PARSERS:
        close = difflib.get_close_matches(key, [*_PARSERS, *LATER_KEYS, "cache_type"], n=1)
        raise UsageError(
            f"--kv: unknown key {key!r}" + (f"; did you mean {close[0]!r}?" if close else ""),
            f"known: {_KNOWN}",
        )
    return {key: _PARSERS[key](key, value)}


def _one_of(*names: str) -> Callable[[str, str], str]:
    def parse(key: str, value: str) -> str:
        if value.lower() not in names:
            close = difflib.get_close_matches(value.lower(), names, n=1)
            raise UsageError(
                f"--kv {key}={value} is not understood" + (f"; did you mean {close[0]!r}?" if close else ""),
                f"one of {', '.join(names)}",
            )
        return value.lower()

    return parse


def _whole(low: int, high: int, step: int = 1) -> Callable[[str, str], int]:
    def parse(key: str, value: str) -> int:
        digits = value.replace("_", "")
        number = int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 16 else -1
        if not low <= number <= high or number % step:
            multiple = f", a multiple of {step}" if step > 1 else ""
            raise UsageError(f"--kv {key}={value} is out of range", f"from {low} to {high}{multiple}")
        return number

    return parse


def _rank(key: str, value: str) -> tuple[str, ...]:
    names = value.lower().replace("fused", "+".join(FUSED)).split("+")
    known = (*SELECTORS, *SECOND_LOOKS)
    for name in names:
        if name not in known:
            close = difflib.get_close_matches(name, (*known, "fused"), n=1)
            raise UsageError(
                f"--kv {key}={value} is not understood" + (f"; did you mean {close[0]!r}?" if close else ""),
                f"fused, or some of {', '.join(known)} joined by +",
            )
    if not set(names) & set(SELECTORS):
        raise UsageError(
            f"--kv {key}={value} looks at what others found, so it needs another",
            f"{key}=fused+{value}",
        )
    return tuple(name for name in known if name in names)


def _error_bound(key: str, value: str) -> float | None:
    if value.lower() == "none":
        return None
    number = _number(key, value)
    if not 1e-6 <= number <= 1e6:
        raise UsageError(f"--kv {key}={value} is out of range", "from 1e-6 to 1e6, or none")
    return number


def _refresh(key: str, value: str) -> float | None:
    if value.lower() == "auto":
        return None
    number = _number(key, value.removesuffix("%"))
    if not 0 <= number <= 100:
        raise UsageError(f"--kv {key}={value} is out of range", "auto, or from 0 to 100%")
    return number / 100


def _number(key: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"--kv {key}={value} is no number") from None


_PARSERS: dict[str, Callable[[str, str], object]] = {
    "policy": _one_of("exact", "window", "independent"),
    "window": _whole(RUN_TOKENS, 1 << 24, RUN_TOKENS),
    "sinks": _whole(0, 1 << 20, RUN_TOKENS),
    "block": _whole(32, 1024),
    "blocks": _one_of("fixed", "adaptive"),
    "codec": _one_of(*CODEC_NAMES),
    "error_bound": _error_bound,
    "head_group": _whole(1, 256),
    "budget": _whole(32, 1 << 24),
    "refresh": _refresh,
    "lazy": _one_of("auto", "on", "off"),
    "rank": _rank,
}
_KNOWN = ", ".join([*_PARSERS, "cache_type"])
