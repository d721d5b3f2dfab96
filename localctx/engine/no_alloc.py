"""What contexts of a model would take, counted by llama.cpp without allocating them: a child's work.

python -m localctx.engine.no_alloc < JSON of a Wanted; one JSON object on stdout. In a child, since llama.cpp
ends the process where such a load is not foreseen. Loads the vocabulary, no weights.
"""

from __future__ import annotations

import dataclasses
import json
import re
import sys
from pathlib import Path
from typing import Any

from localctx.engine.options import EngineOptions, RopeOptions
from localctx.errors import LocalctxError

__all__ = ["Measured", "Wanted", "WantedContext", "main", "measure", "wanted_json"]

_BUFFER = re.compile(r"(\S+) (compute|output|KV) buffer size = +([0-9.]+) MiB")
_KV_SIZE = re.compile(r"(?:kv_cache|memory_recurrent|rs_cache)\w*: size = +([0-9.]+) MiB")
_MIB = 1 << 20


@dataclasses.dataclass(frozen=True, slots=True)
class WantedContext:
    """A context: its sizes as new_context.ContextSizes has them, and its cache types. `is_kv`: of those for
    stored KV, which have spare sequences.
    """

    n_ctx: int
    n_seq: int = 1
    is_kv: bool = False
    type_k: str = "f16"
    type_v: str = "f16"


@dataclasses.dataclass(frozen=True, slots=True)
class Wanted:
    """A model file under options, and the contexts to measure; without any the file is not looked at.
    gpu_layers: a number of layers.
    """

    path: str
    gpu_layers: int
    contexts: tuple[WantedContext, ...]
    n_threads: int | None = None
    n_batch: int | None = None
    flash_attn: bool = True
    overrides: tuple[str, ...] = ()
    rope: RopeOptions = dataclasses.field(default_factory=RopeOptions)


@dataclasses.dataclass(frozen=True, slots=True)
class Measured:
    """One context's buffers. host_bytes, device_bytes: graph buffers and logits · kv_bytes: all of the cache,
    wherever it lies · error: why llama.cpp makes none, in words; the sizes are 0 then.
    """

    host_bytes: int = 0
    device_bytes: int = 0
    kv_bytes: int = 0
    error: str = ""


def wanted_json(wanted: Wanted) -> bytes:
    """What main() reads."""
    return json.dumps(dataclasses.asdict(wanted)).encode()


def _read(text: str) -> Wanted:
    value = json.loads(text)
    contexts = tuple(WantedContext(**one) for one in value.pop("contexts"))
    rope, overrides = RopeOptions(**value.pop("rope")), tuple(value.pop("overrides"))
    return Wanted(**value, contexts=contexts, rope=rope, overrides=overrides)


def _options(wanted: Wanted, context: WantedContext | None = None) -> EngineOptions:
    types = context or WantedContext(0)
    return EngineOptions(
        gpu_layers=str(wanted.gpu_layers),
        n_threads=wanted.n_threads,
        n_batch=wanted.n_batch,
        flash_attn=wanted.flash_attn,
        overrides=wanted.overrides,
        rope=wanted.rope,
        force=True,
        type_k=types.type_k,
        type_v=types.type_v,
    )


def measure(wanted: Wanted) -> list[Measured]:
    """Each context, in one simulated model. Raises what opening a model raises."""
    if not wanted.contexts:
        return []
    from localctx.engine.llama import find_devices, library, open_model
    from localctx.engine.load_options import check_options
    from localctx.engine.loading import load_file
    from localctx.engine.simulated import SimulatedModel

    lib = library()
    with open_model(Path(wanted.path), _options(wanted)) as model:
        weights, _ = load_file(lib, model.header, model.options, model.show, model.placing, allocates=False)
        found = []
        try:
            for context in wanted.contexts:
                options = _options(wanted, context)
                try:
                    check_options(lib, model.header, options, find_devices)
                    log = SimulatedModel(model, options, weights).try_context(lib, context)
                except LocalctxError as error:
                    found.append(Measured(error=error.message))
                else:
                    found.append(_sizes(log))
        finally:
            lib.llama_model_free(weights)
    return found


def _sizes(log: str) -> Measured:
    host = device = 0
    for name, kind, size in _BUFFER.findall(log):
        if kind == "KV":
            continue
        n_bytes = round(float(size) * _MIB)
        if name.startswith("CPU") or "Host" in name:
            host += n_bytes
        else:
            device += n_bytes
    kv = sum(round(float(size) * _MIB) for size in _KV_SIZE.findall(log))
    return Measured(host, device, kv)


def main() -> int:
    """Measure what stdin wants and name the GPUs, or say {"error"}; returns the exit code."""
    from localctx.engine.llama import find_devices

    try:
        measured = measure(_read(sys.stdin.read()))
        gpus = [(one.description, one.free_bytes) for one in find_devices() if one.is_gpu]
        report: dict[str, Any] = {"contexts": [dataclasses.asdict(one) for one in measured], "gpus": gpus}
    except LocalctxError as error:
        report = {"error": error.message, "hint": error.hint}
    sys.stdout.write(json.dumps(report) + "\n")
    return 1 if "error" in report else 0


if __name__ == "__main__":
    sys.exit(main())
