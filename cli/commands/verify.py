"""`localctx verify`: the correctness gate of a model, stored KV beside exact attention."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Annotated, Any

import typer

from localctx.errors import UsageError

from ..options import QuietOptions, RunOptions, with_options

if TYPE_CHECKING:
    from collections.abc import Callable

    from localctx.settings import Settings
    from localctx.verify.gate import Gate, Report
    from localctx.verify.heads import HeadReport
    from localctx.verify.model import GateModel

__all__ = ["register"]


def register(app: typer.Typer) -> None:
    """Add the command to the app."""
    app.command("verify")(with_options(verify))


def verify(
    run: RunOptions,
    output: QuietOptions,
    quick: Annotated[
        bool, typer.Option("--quick", help="A short look, without questions; index does it by itself.")
    ] = False,
    text: Annotated[
        str | None, typer.Option("--text", metavar="FILE", help="Prose to measure on (default: technical).")
    ] = None,
) -> None:
    """Compare answers from stored KV with exact ones; the verdict is kept with the model."""
    from localctx.from_settings import choose_model, open_model_for
    from localctx.verify.gate import FULL, QUICK
    from localctx.verify.model import GateModel

    from ..terminal import print_json

    if run.strategy is not None:
        raise UsageError("--strategy is not for verify", "it compares all ways of keeping KV")
    settings, chosen = choose_model(run.flags(), run.config)
    with closing(open_model_for(settings, chosen)) as model:
        if not isinstance(model, GateModel):
            raise UsageError("this backend keeps no KV", "a GGUF model")
        report, heads = _measured(model, settings, QUICK if quick else FULL, text, output)
    if output.json:
        print_json({**report.to_json(), "retrieval_heads": None if heads is None else heads.to_json()})
    else:
        _print(report)
        if heads is not None:
            _print_heads(heads)


def _measured(
    model: GateModel, settings: Settings, gate: Gate, text: str | None, output: QuietOptions
) -> tuple[Report, HeadReport | None]:
    """The gate's report and, from the long look, the retrieval heads; with progress on a terminal. Each is
    kept as soon as it is there.
    """
    from localctx.from_settings import open_document_for
    from localctx.session.landmarks import HEADS_FACT
    from localctx.session.verdicts import VERDICT_FACT
    from localctx.verify.gate import probe_text, run_gate

    from ..terminal import note, silent

    if text is None:
        prose = probe_text()
    else:
        with open_document_for(text, settings) as document:
            prose = document.read(0, document.text.n_code_points)
    say = silent if output.quiet or output.json else note

    def tell(what: str, done: int, total: int) -> None:
        say(f"{what}: {done} of {total}")

    report = run_gate(model, gate, prose, tell)
    _keep(settings, report.fingerprint, VERDICT_FACT, report.verdict)
    heads = _heads(model, prose, tell) if gate.n_documents and report.refusal is None else None
    if heads is not None and heads.heads:  # none found leaves those that came with the model
        _keep(settings, report.fingerprint, HEADS_FACT, heads.fact)
    return report, heads


def _heads(model: GateModel, prose: str, tell: Callable[[str, int, int], None]) -> HeadReport | None:
    """The model's retrieval heads; None where they cannot be looked for."""
    from localctx.errors import ModelError
    from localctx.verify.heads import HeadModel, find_heads

    from ..terminal import note

    if not isinstance(model, HeadModel):
        return None
    try:
        return find_heads(model, prose, tell=tell)
    except (ModelError, ValueError) as error:
        note(f"warning: retrieval heads were not looked for: {error}")
        return None


def _keep(settings: Settings, fingerprint: str, name: str, fact: dict[str, Any]) -> None:
    """Put what was found out about the model into the store; without one it is only shown."""
    from localctx.store import KVStore, StoreUnusable

    from ..terminal import note

    root = settings.store_root
    if root is None:
        return
    try:
        with KVStore.open(root) as store:
            store.set_model_fact(fingerprint, name, fact)
    except StoreUnusable as error:
        note(f"warning: {error.message}; what was measured is not kept")


def _print(report: Report) -> None:
    """A line a setting, a line a mode, and the verdict."""
    from ..terminal import print_line

    if report.refusal is not None:
        print_line(f"{report.model}: {report.refusal}; answered by exact attention or from retrieved text")
        return
    print_line(f"{'kept as':<22}{'B/token':>9}{'KL':>9}{'top-1':>8}{'perplexity':>16}{'verdict':>9}")
    for row in report.settings:
        rise = f"{row['perplexity_rise']:+.2%} ± {row['perplexity_rise_error']:.2%}"
        verdict = "passes" if row["passes"] else "fails"
        figures = f"{row['bytes_per_token']:>9,.0f}{row['kl']:>9.4f}{row['top1']:>8.1%}{rise:>16}"
        print_line(f"{row['name']:<22}{figures}{verdict:>9}")
    if report.questions:
        print_line(f"{'confusable passages':<28}{'right':>9}{'evaluated':>11}")
    for row in report.questions:
        right = f"{row['n_right']} of {row['n']}"
        print_line(f"{row['name']:<28}{right:>9}{row['n_evaluated'] / max(1, row['n']):>11,.0f}")
    stream = report.verdict["stream"]
    codec = f", kept as {stream['codec']}" if stream.get("codec") else ""
    print_line(f"answers from stored KV: {'pass' if stream['passes'] else 'fail'}{codec}")


def _print_heads(heads: HeadReport) -> None:
    """What was found, and the recall of the right passage by words, by heads and by both."""
    from ..terminal import print_line

    print_line(
        f"{'right passage of ' + str(heads.n_passages):<36}{'in the words asked':>20}{'paraphrased':>14}"
    )
    for name, by_kind in heads.recall.items():
        asked, paraphrased = (f"{found[0]:.0%} / {found[1]:.0%}" for found in by_kind.values())
        print_line(f"{name + ', first / first 4':<36}{asked:>20}{paraphrased:>14}")
    names = " ".join(f"{layer}.{head}" for layer, head in heads.heads)
    found = f"retrieval heads: {names}, {heads.bytes_per_token} bytes a token"
    print_line(found if names else "no retrieval heads were found")
