"""What a benchmark measured, as speeds that plans are made from (localctx.forecast.calibration)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from localctx.engine.limits import usable_cpus
from localctx.engine.llama import LlamaModel, find_devices
from localctx.engine.llama_context import LlamaContext
from localctx.engine.model_facts import n_layer
from localctx.engine.shape import shape_of
from localctx.engine.stepping import step_seconds
from localctx.forecast.calibration import Calibration, Place
from localctx.forecast.machine import cpu_name
from localctx.forecast.speed import cpu_place, gpu_place
from localctx.values import Context, Model

__all__ = ["calibration", "decode_points", "depth_points", "n_unfinished"]

DECODED = 12
"""Tokens decoded behind a prefill, to learn their speed."""
LEAST_TOKENS = 32
"""Between two marks that tell a speed."""


def depth_points(marks: Sequence[tuple[float, int]]) -> tuple[tuple[float, float], ...]:
    """(depth, tokens a second) between marks of (seconds, tokens done)."""
    points, (since, done) = [], marks[0]
    for seconds, n_tokens in marks[1:]:
        if n_tokens - done >= LEAST_TOKENS and seconds > since:
            points.append(((done + n_tokens) / 2, (n_tokens - done) / (seconds - since)))
            since, done = seconds, n_tokens
    return tuple(points)


def n_unfinished(model: Model, context: Context) -> int:
    """Tokens that a GPU may still be at work on, although their step has returned."""
    if isinstance(model, LlamaModel) and model.is_offloaded and isinstance(context, LlamaContext):
        return context.decoder.n_unwaited
    return 0


def decode_points(context: Context, tokens: Sequence[int]) -> tuple[tuple[float, float], ...]:
    """(depth, tokens a second) of a few tokens behind what the context holds; nothing where it has no room
    for them.
    """
    if not isinstance(context, LlamaContext):
        return ()
    depth = context.n_held
    wanted = list(tokens[: min(DECODED, context.n_ctx - depth)])
    if not depth or len(wanted) < 2:
        return ()
    seconds = step_seconds(context, wanted)[1:]  # the first one also warms up
    return ((float(depth), len(seconds) / sum(seconds)),)


def calibration(
    model: Model,
    prefill: Iterable[tuple[float, float]] = (),
    stream: Iterable[tuple[float, float]] = (),
    decode: Iterable[tuple[float, float]] = (),
) -> Calibration | None:
    """The speeds as (depth, tokens a second) in the place where the model ran; None where its layers are
    divided, or it is no model of llama.cpp.
    """
    if not isinstance(model, LlamaModel):
        return None
    place = _place(model)
    if place is None:
        return None
    return Calibration(
        fingerprint=model.info.fingerprint,
        model=model.info.name,
        place=place,
        shape=shape_of(model.header),
        prefill=tuple(sorted(prefill)),
        stream=tuple(sorted(stream)),
        decode=tuple(sorted(decode)),
    )


def _place(model: LlamaModel) -> Place | None:
    """All on the processor, or all on the GPUs."""
    gpus = [device.description for device in find_devices() if device.is_gpu]
    wanted = model.options.gpu_layers
    if not model.is_offloaded or not gpus:
        return cpu_place(cpu_name(), model.options.n_threads or usable_cpus())
    if wanted in ("auto", "all") or int(wanted) > n_layer(model.header):
        return gpu_place(", ".join(gpus))
    return None
