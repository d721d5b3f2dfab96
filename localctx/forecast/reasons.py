"""Why rungs of the ladder are passed over where the document does not fit: in words, with figures."""

from __future__ import annotations

from dataclasses import replace

from localctx.byte_sizes import format_bytes
from localctx.engine.model_facts import rope_info
from localctx.engine.options import RopeOptions
from localctx.engine.rope_scaling import MEASURED_FACTOR, own_scaling, reach
from localctx.forecast.fitting import Fitting
from localctx.forecast.plan import duration
from localctx.forecast.reading import Stored
from localctx.forecast.site import Site
from localctx.session.ladder import Facts, RungName
from localctx.store.folder import MAX_DEFAULT_BYTES, SHARE_OF_FREE_DISK

__all__ = ["notes_of", "store_limit"]


def store_limit(site: Site, stored: Stored) -> int | None:
    """What the store may take; None without a store."""
    if stored.limit_bytes is None:
        return None
    given, machine = site.settings.store_limit_bytes, site.machine
    if machine.is_simulated:
        given = given or min(MAX_DEFAULT_BYTES, round(SHARE_OF_FREE_DISK * machine.disk_bytes))
    return given or stored.limit_bytes


def notes_of(here: Site, stored: Stored, facts: Facts, n_tokens: int, index_s: float) -> dict[RungName, str]:
    """A reason for each rung that is passed over by its size or kind. index_s: seconds of prefilling all of
    the n_tokens that is missing.
    """
    notes: dict[RungName, str] = {}
    exact = _why_not_exact(here, facts)
    if facts.exact != "exact-f16":
        notes["exact-f16"] = exact
    notes[facts.exact] = exact
    if facts.exact != "exact-q8":
        notes["exact-q8"] = _why_not_q8(here, facts)
    if facts.exact != "scaled-rope":
        notes["scaled-rope"] = _why_not_scaled(here, facts)
    obstacle = _why_not_stored(here, stored, n_tokens)
    if obstacle:
        notes["streamed-store"] = notes["lazy-store"] = obstacle
    elif facts.stream is None:
        notes["streamed-store"] = (
            f"not indexed: localctx index FILE takes {duration(index_s)} and"
            f" {format_bytes(n_tokens * stored.bytes_per_token)} first"
        )
    return notes


def _why_not_exact(here: Site, facts: Facts) -> str:
    longest = reach(here.fit.header, here.model.options.rope)
    if longest is not None and facts.n_needed > longest:
        return f"does not fit: {facts.n_needed:,} tokens needed, the model was trained for {longest:,}"
    return f"does not fit: {_memory(here.fit, facts.n_needed)}"


def _memory(fit: Fitting, n_ctx: int) -> str:
    """What a context would take, and what there is."""
    needed = fit.needed(n_ctx, fit.layers(n_ctx))
    return (
        f"a context of {n_ctx:,} tokens takes {format_bytes(needed.unreclaimable)} of memory,"
        f" {format_bytes(fit.ram.ram_bytes)} there"
    )


def _why_not_q8(here: Site, facts: Facts) -> str:
    longest = reach(here.fit.header, here.model.options.rope)
    if longest is not None and facts.n_needed > longest:
        return f"does not fit either: beyond the {longest:,} tokens that the model was trained for"
    fit = replace(here.fit, settings=replace(here.fit.settings, type_k="q8_0", type_v="q8_0"))
    if not fit.fits(facts.n_needed):
        return f"does not fit either: {_memory(fit, facts.n_needed)}"
    return "fits, only where asked for: --kv type_k=q8_0,type_v=q8_0"


def _why_not_scaled(here: Site, facts: Facts) -> str:
    header, trained = here.fit.header, reach(here.fit.header, RopeOptions())
    if rope_info(header).type == "none":
        return "the model has no rotary positions to scale"
    if own := own_scaling(header):
        return f"the file brings {own} already"
    if trained is None or facts.n_needed <= trained:
        return "of no use: the trained length is enough, memory is not"
    if facts.n_needed > trained * MEASURED_FACTOR:
        times = facts.n_needed / trained
        return f"measured up to {MEASURED_FACTOR} times the trained length, {times:,.0f} needed"
    if not here.fit.fits(facts.n_needed):
        return f"does not fit: {_memory(here.fit, facts.n_needed)}"
    return "fits, only where asked for: --rope-scaling auto"


def _why_not_stored(here: Site, stored: Stored, n_tokens: int) -> str:
    """Why stored KV is not taken by itself, beside that nothing is stored yet."""
    if stored.refusal or stored.limit_bytes is None:
        return stored.refusal or "the store is off"
    limit = store_limit(here, stored)
    size_bytes = n_tokens * stored.bytes_per_token
    if limit is not None and size_bytes > limit:
        return (
            f"its KV takes about {format_bytes(size_bytes)} in {stored.codec}, the store may take"
            f" {format_bytes(limit)} (--store-limit)"
        )
    return stored.obstacle
