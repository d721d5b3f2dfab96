"""Documents, a model's header and a machine → the plan: which rung of the ladder, and what it takes.

The choice is the session's own ladder, so that a plan says what a run will do. Loads no weights.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from localctx.document import Document
from localctx.engine.ggml_types import row_bytes
from localctx.engine.llama import LlamaModel
from localctx.engine.model_facts import kv_shape
from localctx.forecast.figures import ways_of
from localctx.forecast.machine import Sizes
from localctx.forecast.plan import Plan, PlannedModel, PlannedTokens
from localctx.forecast.reading import Stored, make_run, n_around, stored_of
from localctx.forecast.reasons import notes_of, store_limit
from localctx.forecast.site import Site, site_of
from localctx.forecast.speed import Forecast
from localctx.forecast.work import Task, Work, work_of
from localctx.session.events import Listener, ignore_progress
from localctx.session.ladder import STRATEGIES_OF, Facts, RungName, ladder
from localctx.session.run import Run
from localctx.session.strategy import check_strategy, round_n_ctx
from localctx.session.summarize import LENGTHS, N_SEQ, PartPlan, plan_parts
from localctx.session.supply import EAGER_SECONDS, LAZY_TOKENS
from localctx.settings import Settings

__all__ = ["Asked", "make_plan"]

QUANTISED_BLOCK = 32


@dataclass(frozen=True, slots=True)
class Asked:
    """What the plan is for: a command, on which machine; a summary in so many points."""

    command: str = "ask"
    sizes: Sizes = field(default_factory=Sizes)
    n_points: int = LENGTHS["medium"]

    @property
    def is_summary(self) -> bool:
        """Whether it is `summarize`."""
        return self.command == "summarize"


def make_plan(
    documents: Sequence[Document],
    model: LlamaModel,
    path: Path,
    settings: Settings,
    asked: Asked,
    listen: Listener = ignore_progress,
) -> Plan:
    """Plan one command on the documents. The settings are those of the run.

    Raises UsageError for sizes and strategies that cannot be, OutOfMemory for a model or context that does
    not fit the machine, NotComposable where stored KV was asked for and cannot be, and what the documents
    raise.
    """
    check_strategy(settings.strategy, asked.command)
    site = site_of(model, path, settings, asked.sizes, N_SEQ if asked.is_summary else 1)
    run = make_run(documents, model, settings, listen, site.limit)
    parts = plan_parts(run, "auto", None, asked.n_points) if asked.is_summary else None
    n_beside = n_around(run)
    n_needed = parts.n_needed if parts else run.n_tokens + n_beside + settings.max_tokens
    stored = stored_of(run, fits=n_needed <= site.limit or asked.is_summary)
    program_bytes = int(
        psutil.Process().memory_info().rss
    )  # as a run has it here; the speed test comes later
    if parts is not None and parts.choice.strategy == "exact":
        parts = plan_parts(run, "map-reduce", None, asked.n_points)
    forecast = site.forecast(round_n_ctx(min(n_needed, site.limit)))
    task = _task(run, stored, n_beside, parts)
    steps = ladder(asked.command, settings.strategy, _facts(site, task, stored, forecast, n_needed))
    works = {
        step.rung.name: work_of(step.rung.name, task, forecast.rates, for_summary=asked.is_summary)
        for step in steps
        if step.rung.strategy in STRATEGIES_OF[asked.command]
        and not (stored.refusal and step.rung.strategy == "stream")
        and not (asked.is_summary and step.rung.name == "lazy-store")
    }
    ways, said = ways_of(site, steps, works, stored, program_bytes)
    return Plan(
        command=asked.command,
        ways=ways,
        model=_model(site, stored),
        tokens=PlannedTokens(
            run.n_tokens, n_needed, stored.n_stored, site.limit, stored.window, task.n_selected
        ),
        machine=site.machine,
        speed=forecast,
        eager_pays_after=_pays_after(works),
        warnings=tuple(dict.fromkeys([*run.warnings, *said])),
    )


def _facts(site: Site, task: Task, stored: Stored, forecast: Forecast, n_needed: int) -> Facts:
    """What the ladder is climbed by; with notes where the document does not fit."""
    facts = Facts(
        n_needed,
        site.limit,
        stored.reason,
        exact=_exact_rung(site, n_needed),
        stored=_stored_rung(site, task, stored, forecast),
    )
    if facts.fits:
        return facts
    index_s = forecast.rates.streamed(task.n_missing, task.held)
    return replace(facts, notes=notes_of(site, stored, facts, task.n_tokens, index_s))


def _exact_rung(site: Site, n_needed: int) -> RungName:
    """What exact attention is under these settings."""
    trained = site.model.info.n_ctx_train
    if 0 < trained < n_needed and not site.model.rope_for(n_needed).is_nothing:
        return "scaled-rope"
    return "exact-f16" if site.types == ("f16", "f16") else "exact-q8"


def _stored_rung(site: Site, task: Task, stored: Stored, forecast: Forecast) -> RungName:
    """What stored KV is under these settings, as session.supply chooses."""
    lazy = site.settings.cache.lazy
    if lazy == "off" or not task.n_missing or task.n_parts:
        return "streamed-store"
    is_quick = forecast.rates.streamed(task.n_missing, task.held) <= EAGER_SECONDS
    is_short = task.n_missing <= 1.5 * LAZY_TOKENS
    limit = store_limit(site, stored)
    is_kept = limit is not None and task.n_tokens * stored.bytes_per_token <= limit
    return "streamed-store" if lazy == "auto" and is_kept and (is_quick or is_short) else "lazy-store"


def _task(run: Run, stored: Stored, n_beside: int, parts: PartPlan | None) -> Task:
    """The work to be done, as far as it can be told before passages are chosen."""
    settings, cache = run.settings, run.settings.cache
    return Task(
        n_tokens=run.n_tokens,
        n_missing=run.n_tokens - stored.n_stored,
        n_missing_exact=run.n_tokens - stored.n_exact,
        n_around=n_beside,
        max_tokens=settings.max_tokens,
        held=stored.held,
        prefill_n_ctx=stored.n_ctx,
        block=cache.block,
        budget=cache.budget,
        refresh=cache.refresh,
        latency=settings.latency,
        kv_bytes_per_token=run.model.info.kv_bytes_per_token,
        part_tokens=parts.part_tokens if parts else 0,
        n_parts=math.ceil(run.n_tokens / parts.part_tokens) if parts else 0,
        n_seq=parts.n_seq if parts else 1,
        part_around=parts.n_around if parts else 0,
    )


def _model(site: Site, stored: Stored) -> PlannedModel:
    shape = kv_shape(site.header)
    rows = [*shape.k_elements, *shape.v_elements]
    per_token = {
        name: float(sum(row_bytes(name, n - n % QUANTISED_BLOCK) for n in rows)) for name in ("q8_0", "q4_0")
    }
    return PlannedModel(
        info=site.model.info,
        weights_bytes=site.header.weights_bytes,
        n_layer=site.n_layer,
        kv_bytes_per_token={"f16": float(sum(row_bytes("f16", n) for n in rows)), **per_token},
        store=not stored.refusal,
        why_no_store=stored.refusal,
    )


def _pays_after(works: Mapping[RungName, Work]) -> int | None:
    """Questions from which indexing everything first costs less than prefilling what each needs."""
    eager, lazy = works.get("streamed-store"), works.get("lazy-store")
    if eager is None or lazy is None or not eager.prepare_s:
        return None
    saved = lazy.answer_s - eager.answer_s
    return math.ceil(eager.prepare_s / saved) if saved > 0 else None
