"""Each rung's work on a site → minutes, memory and disk."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from localctx.engine.no_alloc import Measured, WantedContext
from localctx.engine.shape import shape_of
from localctx.forecast.fitting import Fitting
from localctx.forecast.footprint import footprint, held_outside
from localctx.forecast.limits import require_fit
from localctx.forecast.plan import Estimates, Way
from localctx.forecast.reading import Stored
from localctx.forecast.site import Site
from localctx.forecast.work import Work
from localctx.session.ladder import RungName, Step, chosen
from localctx.session.strategy import round_n_ctx

__all__ = ["estimates", "ways_of"]

START_S = 1.5
"""Starting the program and opening documents of ordinary size."""
LOAD_BYTES_PER_S = 1e9
Q8 = "q8_0"


def ways_of(
    site: Site,
    steps: Sequence[Step],
    works: Mapping[RungName, Work],
    stored: Stored,
    program_bytes: int,
) -> tuple[tuple[Way, ...], tuple[str, ...]]:
    """Each rung with its figures, and what is to be said of them. program_bytes: of the program with its
    documents. Raises OutOfMemory where the chosen rung does not fit.
    """
    n_ctx = min(round_n_ctx(works[chosen(tuple(steps)).rung.name].n_ctx), site.limit)
    said = () if site.settings.force else require_fit(site.fit, n_ctx, site.model.info.name)
    names = list(works)
    counted = site.counted([_context(site, name, works[name], stored) for name in names], n_ctx)
    found = dict(zip(names, counted.contexts, strict=False))

    def figures(name: RungName) -> Estimates | None:
        if name not in works:
            return None
        return estimates(site.fit, name, works[name], stored, found.get(name), program_bytes)

    if counted.problem:
        said = (*said, f"{counted.problem}: buffers are estimated from the file's header")
    return tuple(Way(step, figures(step.rung.name)) for step in steps), said


def _context(site: Site, name: RungName, work: Work, stored: Stored) -> WantedContext:
    types = (Q8, Q8) if name == "exact-q8" else site.types
    is_kv = work.is_kv and not stored.refusal and types == ("f16", "f16")
    return WantedContext(round_n_ctx(work.n_ctx), work.n_seq, is_kv, *types)


def estimates(
    fit: Fitting, name: RungName, work: Work, stored: Stored, counted: Measured | None, program_bytes: int
) -> Estimates:
    """One rung's figures. fit: the model under the settings of a run on the machine · counted: what llama.cpp
    says of the context, None: the header's estimate has to do · program_bytes: see ways_of.
    """
    n_ctx = round_n_ctx(work.n_ctx)
    is_kept = work.is_kv and not stored.refusal and stored.limit_bytes is not None
    if name == "exact-q8":
        fit, is_kept = replace(fit, settings=replace(fit.settings, type_k=Q8, type_v=Q8)), False
    is_exact = name in ("exact-f16", "scaled-rope")
    per_token = stored.exact_bytes_per_token if is_exact else stored.bytes_per_token
    held_bytes = 0
    if is_kept:
        f16 = round(shape_of(fit.header).kv_bytes)
        loaded_bytes = round(work.n_loaded * per_token)
        held_bytes = held_outside(
            loaded_bytes, work.n_loaded * f16, work.n_stored * f16, fit.settings.n_ubatch * f16
        )
    seconds = START_S + fit.header.weights_bytes / LOAD_BYTES_PER_S + work.prepare_s + work.answer_s
    return Estimates(
        minutes=seconds / 60,
        answer_seconds=work.answer_s,
        n_ctx=n_ctx,
        disk_bytes=round(work.n_stored * per_token) if is_kept else 0,
        footprint=footprint(fit, n_ctx, counted, program_bytes, held_bytes),
    )
