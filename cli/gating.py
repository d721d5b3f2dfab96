"""The quick check of a model whose stored KV was never compared with exact attention here."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from localctx.session.events import Listener
    from localctx.settings import Settings
    from localctx.values import Model

__all__ = ["check_once"]


def check_once(
    model: Model, settings: Settings, say: Callable[[str], None], listen: Listener | None = None
) -> None:
    """Run the quick gate on a model without a verdict, and keep what it finds. `listen`: how far it is.

    Does nothing where no store can be written, or the model cannot be checked: what follows says so.
    """
    from localctx.errors import NotComposable, UsageError
    from localctx.session.events import ignore_progress
    from localctx.session.verdicts import VERDICT_FACT, passes
    from localctx.store import KVStore, StoreUnusable
    from localctx.verify.gate import QUICK, probe_text, run_gate
    from localctx.verify.model import GateModel

    root = settings.store_root
    if root is None or not isinstance(model, GateModel) or model.kv_refusal() is not None:
        return
    try:
        with KVStore.open(root) as store:
            fingerprint = model.info.fingerprint
            if store.is_read_only or passes(store.model_facts(fingerprint)) is not None:
                return
            say(
                f"checking {model.info.name} once: are answers from stored KV as good as exact ones? "
                "(seconds to minutes; the documents come after it)"
            )
            report = run_gate(model, QUICK, probe_text(), _told(listen or ignore_progress))
            store.set_model_fact(fingerprint, VERDICT_FACT, report.verdict)
            does = "passes" if passes({VERDICT_FACT: report.verdict}) else "does not pass"
            say(f"{model.info.name} {does} the quick check; localctx verify measures more")
    except (StoreUnusable, NotComposable, UsageError):
        return


def _told(listen: Listener) -> Callable[[str, int, int], None]:
    """The gate's steps as progress."""
    from localctx.session.events import Progress

    return lambda what, done, total: listen(Progress(f"checking the model, {what}", done, total, "steps"))
