"""How a model turns its keys, from its header and the options in force, as llama.cpp computes it.

After llama-context.cpp, ggml's rope and the architectures' hparams; knows no llama.cpp. Angles are float64,
the constants are rounded to float32 where llama.cpp rounds them.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import xxhash
from numpy.typing import NDArray

from localctx.engine.gguf import GGUFHeader, TensorInfo, display
from localctx.engine.gguf_reader import RawHeader
from localctx.engine.model_facts import rope_info
from localctx.engine.options import RopeOptions
from localctx.engine.rope_scaling import (
    PassedRope,
    n_ctx_original,
    passed_rope,
    rotary_dimensions,
    trained_base,
)
from localctx.errors import ModelError

__all__ = ["RopeTable", "longest_short_context", "rope_table"]

_TYPES = {"norm": False, "neox": True}  # name: whether the pairs are halves of the head
_FACTOR_TYPES = {"f32": "<f4", "f16": "<f2"}
_MAX_FACTORS = 4096
_READS_YARN = {  # architectures that read these keys from the file; others keep llama.cpp's constants
    "grok": ("ext_factor", "attn_factor", "beta_fast", "beta_slow"),
    "mistral3": ("beta_fast", "beta_slow"),
}
_READS_LOG_MULTIPLIER = frozenset(("mistral3",))
_YARN_DEFAULTS = {"ext_factor": -1.0, "attn_factor": 1.0, "beta_fast": 32.0, "beta_slow": 1.0}


@dataclass(frozen=True, slots=True, eq=False)
class RopeTable:
    """The rotation of a model's keys: see _native.Rope. `line` names all that it depends on."""

    frequencies: NDArray[np.float64]
    head_dim: int
    neox: bool
    magnitude: float
    freq_base: float
    freq_scale: float
    line: str


@dataclass(frozen=True, slots=True)
class _Yarn:
    """llama.cpp's YaRN parameters in force."""

    ext_factor: float
    magnitude: float
    beta_fast: float
    beta_slow: float
    n_ctx_orig: int


def _f32(value: float) -> float:
    return float(np.float32(value))


def longest_short_context(header: GGUFHeader) -> int | None:
    """The longest context, in cells, that takes the file's short factors; None where the length does not
    matter or the model was not trained for more.
    """
    names = {tensor.name for tensor in header.tensors}
    if "rope_factors_long.weight" not in names or not _takes_long(header):
        return None
    n_orig = n_ctx_original(header)
    return n_orig if header.integer(header.arch_key("context_length")) > n_orig else None


def rope_table(header: GGUFHeader, options: RopeOptions, n_ctx: int) -> RopeTable:
    """The rotation in a context of n_ctx cells (as llama.cpp rounded them).

    Raises ModelError for an architecture that does not turn whole rows by one table, or damaged factors.
    """
    info = rope_info(header)
    if info.type not in _TYPES:
        raise ModelError(f"{display(header.path)}: rotary positions of type {info.type!r}")
    n_rot, head_dim = rotary_dimensions(header)
    passed = passed_rope(header, options, n_ctx)
    base = _f32(passed.freq_base if passed.freq_base is not None else trained_base(header))
    scaling, scale = _scaling(header, passed)
    yarn = _yarn(header, passed, scaling, scale)
    factors = _factors(header, n_rot // 2, n_ctx)
    turns = _f32(math.pow(base, -2.0 / n_rot)) ** np.arange(n_rot // 2, dtype=np.float64)
    extrapolated = turns / factors if factors is not None else turns
    frequencies = extrapolated * scale
    if yarn.ext_factor:
        mix = _ramp(yarn, n_rot, base) * yarn.ext_factor
        frequencies = frequencies * (1 - mix) + extrapolated * mix
    return RopeTable(
        frequencies,
        head_dim,
        _TYPES[info.type],
        yarn.magnitude,
        base,
        scale,
        _line(info.type, (n_rot, head_dim), (base, scale), yarn, factors),
    )


def _line(
    kind: str,
    dimensions: tuple[int, int],
    base_and_scale: tuple[float, float],
    yarn: _Yarn,
    factors: NDArray[np.float64] | None,
) -> str:
    """Inputs only, so that the last bit of a power or logarithm makes no other identity."""
    parts = [
        f"{kind} {dimensions[0]}/{dimensions[1]}",
        f"base {base_and_scale[0]:.9g}",
        f"scale {base_and_scale[1]:.9g}",
    ]
    if yarn.ext_factor:
        parts.append(
            f"yarn {yarn.ext_factor:.9g} {yarn.beta_fast:.9g} {yarn.beta_slow:.9g} of {yarn.n_ctx_orig}"
        )
    if yarn.magnitude != 1.0:
        parts.append(f"magnitude {yarn.magnitude:.6g}")
    if factors is not None:
        parts.append(f"factors {xxhash.xxh3_64_hexdigest(factors.tobytes())}")
    return ", ".join(parts)


def _scaling(header: GGUFHeader, passed: PassedRope) -> tuple[str, float]:
    """(kind, scale of positions) in force."""
    key = header.arch_key
    kind = passed.scaling or header.text(key("rope.scaling.type"), "linear")
    old_factor = header.number(key("rope.scale_linear"))
    factor = _f32(header.number(key("rope.scaling.factor"), old_factor))
    scale = passed.freq_scale or (1.0 / factor if factor else 1.0)
    return kind, 1.0 if kind == "none" else _f32(scale)


def _yarn(header: GGUFHeader, passed: PassedRope, scaling: str, scale: float) -> _Yarn:
    key = header.arch_key
    values = {
        name: header.number(key(f"rope.scaling.yarn_{name}"), default)
        if name in _READS_YARN.get(header.architecture, ())
        else default
        for name, default in _YARN_DEFAULTS.items()
    }
    told = {name: getattr(passed, f"yarn_{name}") for name in values}
    values |= {name: value for name, value in told.items() if value is not None}
    ext = values["ext_factor"]
    if ext < 0:
        ext = 1.0 if scaling == "yarn" else 0.0
    magnitude = values["attn_factor"]
    if ext:
        magnitude = _yarn_magnitude(header, 1.0 / scale)
    magnitude *= header.number(key("rope.scaling.attn_factor"), 1.0)
    return _Yarn(
        ext,
        magnitude,
        values["beta_fast"],
        values["beta_slow"],
        passed.yarn_orig_ctx or n_ctx_original(header) or header.integer(key("context_length")),
    )


def _yarn_magnitude(header: GGUFHeader, factor: float) -> float:
    """What lengths are multiplied by. llama.cpp divides its factor by what ggml multiplies with again."""

    def correction(multiplier: float) -> float:
        return 1.0 if factor <= 1.0 else 0.1 * multiplier * math.log(factor) + 1.0

    multiplier = 0.0
    if header.architecture in _READS_LOG_MULTIPLIER:
        multiplier = header.number(header.arch_key("rope.scaling.yarn_log_multiplier"))
    return correction(1.0) / (correction(multiplier) if multiplier else 1.0)


def _ramp(yarn: _Yarn, n_rot: int, base: float) -> NDArray[np.float64]:
    """How far each pair keeps its own frequency: 1 for the fast ones, 0 for the slow ones."""

    def dimension(n_turns: float) -> float:
        return n_rot * math.log(yarn.n_ctx_orig / (n_turns * 2 * math.pi)) / (2 * math.log(base))

    low = max(0.0, math.floor(dimension(yarn.beta_fast)))
    high = min(n_rot - 1.0, math.ceil(dimension(yarn.beta_slow)))
    at = (np.arange(n_rot // 2, dtype=np.float64) - low) / max(0.001, high - low)
    return 1.0 - np.clip(at, 0.0, 1.0)


# --- factors stored as tensors --------------------------------------------------------------------------


def _takes_long(header: GGUFHeader) -> bool:
    """Whether llama.cpp looks at short and long factors, or at rope_freqs."""
    if header.architecture in ("phi3", "phimoe", "minicpm3"):
        return True
    return header.text(header.arch_key("rope.scaling.type")) == "longrope"


def _factors(header: GGUFHeader, n_pairs: int, n_ctx: int) -> NDArray[np.float64] | None:
    """What each pair's frequency is divided by; None without factors."""
    name = "rope_freqs.weight"
    if _takes_long(header):
        name = f"rope_factors_{'long' if n_ctx > n_ctx_original(header) else 'short'}.weight"
    for file in header.files:
        for tensor in file.tensors:
            if tensor.name == name:
                return _read_factors(header, file, tensor, n_pairs)
    return None


def _read_factors(
    header: GGUFHeader, file: RawHeader, tensor: TensorInfo, n_pairs: int
) -> NDArray[np.float64]:
    layout = _FACTOR_TYPES.get(tensor.type_name)
    if (
        layout is None
        or tensor.shape[:1] != (n_pairs,)
        or tensor.size_bytes is None
        or n_pairs > _MAX_FACTORS
    ):
        raise ModelError(f"{display(header.path)}: {tensor.name}: {tensor.type_name} {tensor.shape}")
    with file.path.open("rb") as stream:
        stream.seek(file.data_offset + tensor.offset)
        data = stream.read(tensor.size_bytes)
    factors = np.frombuffer(data, layout, n_pairs).astype(np.float64)
    if not (np.isfinite(factors).all() and (factors > 0).all()):
        raise ModelError(f"{display(header.path)}: {tensor.name} holds values that cannot be factors")
    return factors
