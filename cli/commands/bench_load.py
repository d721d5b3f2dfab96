"""`localctx bench load`: the server under many users, beside the engine it serves with."""

from __future__ import annotations

import re
from contextlib import closing
from typing import TYPE_CHECKING, Annotated

import typer

from localctx.errors import UsageError

from ..options import ParallelOptions, QuietOptions, as_words, with_options

if TYPE_CHECKING:
    from localctx.bench.load_documents import DocumentKind

__all__ = ["add_load"]

DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(s|m|h|)")
LEAST_DOCUMENT = 64
LONGEST_BASELINE_S = 20.0
SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600}


def add_load(group: typer.Typer) -> None:
    """Add the command to the group `bench`."""
    group.command("load")(with_options(load))


def load(
    run: ParallelOptions,
    output: QuietOptions,
    vus: Annotated[int, typer.Option("--vus", metavar="N", help="Virtual users.")] = 100,
    duration: Annotated[str, typer.Option("--duration", metavar="TIME", help="30s, 5m, 1h.")] = "5m",
    tenants: Annotated[int, typer.Option("--tenants", metavar="N", help="Keys, in three classes.")] = 10,
    rate: Annotated[
        float | None, typer.Option("--rate", metavar="N", help="Open loop: N requests a second arrive.")
    ] = None,
    doc_len: Annotated[
        int, typer.Option("--doc-len", metavar="TOKENS", help="Ask about documents of this length; 0: chats.")
    ] = 0,
    docs: Annotated[
        str | None, typer.Option("--docs", metavar="KIND", help="cold (never seen), warm, or mixed.")
    ] = None,
) -> None:
    """Users of `localctx serve` side by side: answers, tokens/s beside the engine's, latencies, memory."""
    from localctx.bench.load import LoadPlan, measure
    from localctx.from_settings import choose_model, open_model_for
    from localctx.serve.service import CHATS

    from ..terminal import note, print_json, print_line, silent
    from .serve import need_libraries

    need_libraries()
    found = DURATION.fullmatch(duration.strip())
    if found is None or not 1 <= tenants <= vus <= 10_000:
        raise UsageError(
            f"--vus {vus} --tenants {tenants} --duration {duration} cannot be", "--vus 100 --duration 5m"
        )
    if rate is not None and not 0 < rate <= 10_000:
        raise UsageError(f"--rate {rate:g} is out of range", "requests a second, such as 2.5")
    seconds, kind = float(found[1]) * SECONDS[found[2]], _kind_of(docs, doc_len)
    settings, chosen = choose_model(run.flags(), run.config)
    plan = LoadPlan(
        n_users=vus,
        seconds=seconds,
        n_tenants=tenants,
        n_parallel=settings.parallel or CHATS,
        baseline_s=min(LONGEST_BASELINE_S, seconds),
        max_tokens=16 if run.max_tokens is None else settings.max_tokens,
        rate=rate,
        document_tokens=doc_len,
        documents=kind,
    )
    config = [] if run.config is None else ["--config", run.config]
    with closing(open_model_for(settings, chosen)) as model:
        words = [*as_words(run), *config]
        report = measure(model, settings, words, plan, silent if output.quiet else note)
    if output.json:
        print_json(report.to_json())
    else:
        for line in report.lines:
            print_line(line)


def _kind_of(docs: str | None, doc_len: int) -> DocumentKind:
    """Raises UsageError for what cannot be."""
    if doc_len and not LEAST_DOCUMENT <= doc_len <= 1 << 24:
        raise UsageError(
            f"--doc-len {doc_len} is out of range", f"{LEAST_DOCUMENT} tokens or more, 0 for chats"
        )
    if docs is not None and not doc_len:
        raise UsageError("--docs needs --doc-len", "--doc-len 8192")
    match docs or "mixed":
        case "cold" | "warm" | "mixed" as kind:
            return kind
    raise UsageError(f"--docs {docs} is not understood", "cold, warm or mixed")
