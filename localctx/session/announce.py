"""What a prefill will take, said before it begins where that is much, with a way out."""

from __future__ import annotations

from collections.abc import Generator

from localctx.byte_sizes import format_bytes
from localctx.session.cache import Cache
from localctx.session.encoding import Encoding
from localctx.session.events import Event
from localctx.session.reading import Reading
from localctx.session.token_stream import TokenStream

__all__ = ["announce", "minutes", "note_others", "stored_bytes", "too_much_for_the_store"]

MUCH_BYTES = 5 * 10**9
MUCH_SECONDS = 600.0
SHARE_OF_F16 = {
    "f16": 1.0, "fp8_e4m3": 0.52, "fp8_e5m2": 0.52, "int8": 0.54, "int4": 0.29, "int3": 0.23, "int2": 0.17,
}  # fmt: skip
"""Bytes of an encoded run by those of its f16 values, scales included; outliers are not."""


def stored_bytes(cache: Cache, n_tokens: int, codec: str) -> int:
    """About what so many tokens take on disk."""
    return round(n_tokens * cache.model.info.kv_bytes_per_token * SHARE_OF_F16[codec])


def too_much_for_the_store(cache: Cache, n_tokens: int, codec: str) -> str | None:
    """Why the store could not take the KV of so many tokens, even when empty; None where it can."""
    store = cache.kept.store
    size_bytes = stored_bytes(cache, n_tokens, codec)
    if store is None or size_bytes <= store.limit_bytes:
        return None
    return (
        f"the KV of {n_tokens:,} tokens takes about {format_bytes(size_bytes)} in {codec}, "
        f"the store may take {format_bytes(store.limit_bytes)}"
    )


def minutes(seconds: float) -> str:
    """A duration for people."""
    if seconds < 90:
        return f"about {max(1, round(seconds))} s"
    return f"about {round(seconds / 60):,} min" if seconds < 5400 else f"about {seconds / 3600:,.1f} h"


def note_others(cache: Cache, reading: Reading, stream: TokenStream) -> None:
    """Note why KV of the same text that is stored does not serve: another codec, model, policy or setting."""
    kept, name = cache.kept, reading.document.source
    stored = kept.has(stream.ids)
    if cache.codec is not None and len(stored) > len(kept.has(stream.ids, cache.codec)):
        cache.run.note(f"{name}: its KV is stored in another codec than {cache.codec}, which was asked for")
    elif not stored and (others := kept.others(reading.document.content_hash, stream)):
        cache.run.note(f"{name}: stored KV does not serve here: {'; '.join(others)}")


def announce(cache: Cache, n_tokens: int, rate: float, encoding: Encoding) -> Generator[Event, None, None]:
    """A notice where a prefill takes more than ten minutes or 5 GB."""
    seconds = n_tokens / rate
    size_bytes = stored_bytes(cache, n_tokens, encoding.codec)
    if seconds > MUCH_SECONDS or size_bytes > MUCH_BYTES:
        yield cache.run.warn(
            f"prefilling {n_tokens:,} tokens takes {minutes(seconds)} and {format_bytes(size_bytes)} of "
            "disk; Ctrl-C keeps what is done, --kv lazy=on prefills only what questions need, "
            "--store off none"
        )
