"""Given tokens evaluated one by one behind what a context holds: the speed of decoding without sampling."""

from __future__ import annotations

import time
from collections.abc import Sequence

import numpy as np

from localctx.engine.batch_context import Stopped
from localctx.engine.llama_context import LlamaContext
from localctx.engine.schedule import Slice
from localctx.errors import Interrupted, UsageError

__all__ = ["step_seconds"]


def step_seconds(context: LlamaContext, tokens: Sequence[int]) -> list[float]:
    """Seconds that each token took, its logits included; the tokens are forgotten afterwards.

    Raises UsageError when they do not fit, Interrupted when cancelled, and ModelError when a step fails.
    """
    n_tokens = context.n_held + len(tokens)
    if n_tokens > context.n_ctx:
        raise UsageError(f"{n_tokens:,} tokens, context of {context.n_ctx:,}: they do not fit")
    wanted, seconds = np.array(tokens, np.int32), []
    with context.appending() as n_held:
        try:
            for place in range(len(wanted)):
                batch = [Slice(0, n_held + place, wanted[place : place + 1], sample=True)]
                started = time.perf_counter()
                context.run_batch(batch)
                seconds.append(time.perf_counter() - started)
        except Stopped:
            raise Interrupted("interrupted") from None
    return seconds
