"""RoPE scaling that was asked for → what llama.cpp is told, and how long a context it provides for.

Pure; knows headers, no llama.cpp. Where no factor is given, a context takes the one that its own length
needs, and none at all within the trained length. Sources: linear, arXiv 2306.15595; NTK-aware and dynamic
NTK as transformers' modeling_rope_utils.py has them; YaRN, arXiv 2309.00071.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from localctx.engine.gguf import GGUFHeader, display
from localctx.engine.model_facts import n_layer, rope_info
from localctx.engine.options import RopeOptions
from localctx.errors import ModelError, UsageError

__all__ = [
    "DEFAULT_METHOD",
    "METHODS",
    "PassedRope",
    "check_rope",
    "longest_context",
    "n_ctx_original",
    "own_scaling",
    "passed_rope",
    "reach",
    "rotary_dimensions",
    "trained_base",
]

METHODS = ("none", "linear", "ntk", "dynamic-ntk", "yarn", "auto")
DEFAULT_METHOD = "yarn"
"""What `auto` is: the best of `localctx eval rope` (docs/rope.md)."""
MEASURED_FACTOR = 4
"""How far contexts go by themselves where a method and no length is given: as far as was measured."""
_BY_POSITION, _BY_BASE = ("linear", "yarn"), ("ntk", "dynamic-ntk")
_YARN_ONLY = ("yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor", "yarn_beta_fast", "yarn_beta_slow")
_RANGES = {
    "scale": (1.0, 1024.0),
    "freq_base": (1.0, 1e12),
    "freq_scale": (1 / 1024, 1.0),
    "yarn_orig_ctx": (1, 1 << 31),
    "yarn_ext_factor": (0.0, 1024.0),
    "yarn_attn_factor": (0.0, 1024.0),
    "yarn_beta_fast": (0.0, 1e6),
    "yarn_beta_slow": (0.0, 1e6),
}


@dataclass(frozen=True, slots=True)
class PassedRope:
    """What llama.cpp is told of rotation; None: nothing, the file's value holds.

    method: the scaling in force, the file's where nothing is told · scaling: llama.cpp's type.
    """

    method: str = "none"
    scaling: str | None = None
    freq_base: float | None = None
    freq_scale: float | None = None
    yarn_orig_ctx: int | None = None
    yarn_ext_factor: float | None = None
    yarn_attn_factor: float | None = None
    yarn_beta_fast: float | None = None
    yarn_beta_slow: float | None = None

    @property
    def is_nothing(self) -> bool:
        """Whether all is as the file says."""
        return self == PassedRope(self.method)

    @property
    def line(self) -> str:
        """All that is passed, in one canonical line."""
        values = {field.name: getattr(self, field.name) for field in fields(self)[1:]}
        return " ".join(f"{name} {_canonical(value)}" for name, value in values.items() if value is not None)


def _canonical(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.9g}"


# --- what the file says -----------------------------------------------------------------------------------


def rotary_dimensions(header: GGUFHeader) -> tuple[int, int]:
    """(dimensions turned, dimensions) of a key head. Raises ModelError for what cannot be."""
    key = header.arch_key
    heads = max(1, *header.per_layer(key("attention.head_count"), n_layer(header)), 1)
    head_dim = header.integer(key("attention.key_length"), header.integer(key("embedding_length")) // heads)
    n_rot = header.integer(key("rope.dimension_count"), head_dim)
    if not 2 <= n_rot <= head_dim or n_rot % 2:
        raise ModelError(
            f"{display(header.path)}: {n_rot} rotary dimensions in heads of {head_dim}", "download it again"
        )
    return n_rot, head_dim


def trained_base(header: GGUFHeader) -> float:
    """The model's own base."""
    base = header.number(header.arch_key("rope.freq_base"), 10000.0)
    alpha = header.number(header.arch_key("rope.scaling.alpha"))
    if header.architecture == "hunyuan_vl" and alpha > 0:
        head_dim = rotary_dimensions(header)[1]
        base *= math.pow(alpha, head_dim / (head_dim - 2))
    return base


def n_ctx_original(header: GGUFHeader) -> int:
    """Tokens the model was trained for before the file's own scaling."""
    return header.integer(header.arch_key("rope.scaling.original_context_length"), _n_ctx_train(header))


def own_scaling(header: GGUFHeader) -> str | None:
    """The scaling that the file brings, in words; None without any."""
    rope, key = rope_info(header), header.arch_key
    names = {tensor.name for tensor in header.tensors}
    if "rope_freqs.weight" in names:
        return "factors of its own (rope_freqs)"
    if "rope_factors_long.weight" in names or rope.scaling == "longrope":
        return "short and long factors"
    if _scales_positions(header):
        return f"{rope.scaling} scaling × {1 / rope.freq_scale:g}"
    return "a scaled base (alpha)" if header.number(key("rope.scaling.alpha")) > 0 else None


def _scales_positions(header: GGUFHeader) -> bool:
    """Whether the file asks for what --rope-scaling none turns off."""
    rope = rope_info(header)
    return rope.scaling in _BY_POSITION and rope.freq_scale != 1.0


def _n_ctx_train(header: GGUFHeader) -> int:
    return header.integer(header.arch_key("context_length"))


# --- what becomes of a wish -------------------------------------------------------------------------------


def passed_rope(header: GGUFHeader, asked: RopeOptions, n_ctx: int) -> PassedRope:
    """What a context of n_ctx tokens is made with. The wish is one that check_rope() let pass."""
    method = _method(asked)
    if method == "none":
        return PassedRope("none", "none" if _scales_positions(header) else None)
    if method is None:
        return _passed_as_is(header, asked)
    factor = _factor(header, asked, n_ctx)
    if factor is None:
        return PassedRope(rope_info(header).scaling)
    if method in _BY_BASE:
        n_rot = rotary_dimensions(header)[0]
        return PassedRope(method, freq_base=trained_base(header) * math.pow(factor, n_rot / (n_rot - 2)))
    yarn = {name: getattr(asked, name) for name in _YARN_ONLY} if method == "yarn" else {}
    return PassedRope(method, method, freq_scale=asked.freq_scale or 1 / factor, **yarn)


def _passed_as_is(header: GGUFHeader, asked: RopeOptions) -> PassedRope:
    """Base and scale alone, under the file's own type of scaling."""
    base = None if _is_own_base(header, asked) else asked.freq_base
    scale = asked.freq_scale or (1 / asked.scale if asked.scale else None)
    yarn = {name: getattr(asked, name) for name in _YARN_ONLY}
    kind = rope_info(header).scaling
    scaling = "linear" if scale is not None and kind == "none" else None
    return PassedRope("base" if base else scaling or kind, scaling, base, scale, **yarn)


def _method(asked: RopeOptions) -> str | None:
    return DEFAULT_METHOD if asked.scaling == "auto" else asked.scaling


def _is_own_base(header: GGUFHeader, asked: RopeOptions) -> bool:
    """Whether the base asked for, if any, is the file's own."""
    return asked.freq_base is None or math.isclose(asked.freq_base, trained_base(header), rel_tol=1e-6)


def _given_factor(asked: RopeOptions) -> float | None:
    """The factor that was given for all contexts; None where each takes its own."""
    if _method(asked) == "dynamic-ntk":
        return None
    return asked.scale or (1 / asked.freq_scale if asked.freq_scale else None)


def _factor(header: GGUFHeader, asked: RopeOptions, n_ctx: int) -> float | None:
    """By what a context of n_ctx tokens is stretched; None where it needs nothing."""
    given = _given_factor(asked)
    if given is not None:
        return given
    trained = _stretched_from(header, asked)
    if not trained or n_ctx <= trained:
        return None
    ratio = n_ctx / trained
    sharper = (asked.scale or 1.0) if _method(asked) == "dynamic-ntk" else 1.0
    return sharper * ratio - (sharper - 1)


def _stretched_from(header: GGUFHeader, asked: RopeOptions) -> int:
    """The length that a factor of 1 stands for: scaled positions take the place of the file's own scaling, a
    larger base comes on top of it.
    """
    if _method(asked) in _BY_BASE:
        return _n_ctx_train(header)
    return asked.yarn_orig_ctx or n_ctx_original(header)


def reach(header: GGUFHeader, asked: RopeOptions) -> int | None:
    """The longest context that training and scaling provide for; None where each context is scaled to its
    length, or the file does not say.
    """
    trained, method = _n_ctx_train(header), _method(asked)
    if not trained:
        return None
    if method == "none":
        return n_ctx_original(header) if _scales_positions(header) else trained
    factor = _given_factor(asked)
    if method is not None and factor is None:
        return None
    if factor is not None:
        return max(1, int(_stretched_from(header, asked) * factor + 1e-6))
    if not _is_own_base(header, asked):
        n_rot = rotary_dimensions(header)[0]
        ratio = (asked.freq_base or 1.0) / trained_base(header)
        return max(trained, int(trained * math.pow(ratio, (n_rot - 2) / n_rot)))
    return trained


def longest_context(header: GGUFHeader, asked: RopeOptions) -> int:
    """How long a context may be where no length is given; 0 when the file does not say."""
    longest = reach(header, asked)
    if longest is None and _n_ctx_train(header):
        return _stretched_from(header, asked) * MEASURED_FACTOR
    return longest or 0


# --- what is refused --------------------------------------------------------------------------------------


def check_rope(header: GGUFHeader, asked: RopeOptions, force: bool) -> None:
    """Raises UsageError, one line, for values out of range, two scalings at once, parameters of a method that
    is not in force, and, unless forced, for scaling what the file scales already.
    """
    if asked == RopeOptions():
        return
    if asked.scaling not in (None, *METHODS):
        raise UsageError(f"RoPE scaling {asked.scaling!r} is not known", f"one of {', '.join(METHODS)}")
    for name, (low, high) in _RANGES.items():
        value = getattr(asked, name)
        if value is not None and not low <= value <= high:
            raise UsageError(f"{_option(name)} {value:g} is out of range", f"from {low:g} to {high:g}")
    _check_together(header, asked)
    _check_yarn(header, asked)
    if rope_info(header).type == "none":
        raise UsageError(
            f"{display(header.path)}: {header.architecture} has no rotary positions to scale",
            "leave the RoPE options out",
        )
    own = own_scaling(header)
    if own and not force and asked.scaling != "none" and not passed_rope(header, asked, 1 << 31).is_nothing:
        raise UsageError(
            f"{display(header.path)} brings {own} already: scaling it again gives nonsense",
            "leave the RoPE options out, or --force",
        )


def _check_together(header: GGUFHeader, asked: RopeOptions) -> None:
    """No two of them stretch at once."""
    method, other_base = _method(asked), not _is_own_base(header, asked)
    given = [name for name in ("scale", "freq_scale") if getattr(asked, name) is not None]
    given += ["freq_base"] if other_base else []
    if method == "none" and given:
        raise UsageError(f"--rope-scaling none and {_option(given[0])} contradict each other", "give one")
    if len(given) > 1:
        raise UsageError(f"{_option(given[0])} and {_option(given[1])} would scale twice", "give one of them")
    if method is not None and other_base:
        raise UsageError(
            f"--rope-scaling {asked.scaling} and --rope-freq-base would scale twice",
            f"one of them; a wrong base in the file: --override-kv {header.arch_key('rope.freq_base')}"
            f"=float:{asked.freq_base:.1f}",
        )
    if method in _BY_BASE and asked.freq_scale is not None:
        raise UsageError(
            f"--rope-scaling {asked.scaling} and --rope-freq-scale would scale twice", "--rope-scale S"
        )


def _check_yarn(header: GGUFHeader, asked: RopeOptions) -> None:
    """YaRN's parameters need YaRN; its attention factor is computed by llama.cpp itself."""
    given = [name for name in _YARN_ONLY if getattr(asked, name) is not None]
    method = _method(asked) or rope_info(header).scaling
    if given and method != "yarn":
        raise UsageError(f"{_option(given[0])} is for YaRN", "--rope-scaling yarn")
    if asked.yarn_attn_factor is not None and asked.yarn_ext_factor != 0:
        raise UsageError(
            "--yarn-attn-factor has no effect: llama.cpp computes it from YaRN's scale",
            "leave it out, or --yarn-ext-factor 0 as well",
        )


def _option(name: str) -> str:
    return f"--{'' if name.startswith('yarn') else 'rope-'}{name.replace('_', '-')}"
