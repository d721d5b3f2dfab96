"""`KEY=TYPE:VALUE`, metadata of a model file that is replaced: checked against the file before it is loaded.

Knows headers and llama.cpp's structure for it, which it is handed. llama.cpp itself only logs a wrong type
and goes on, ends the process for some values, and takes 128 bytes at most, a NUL among them.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from localctx.engine.gguf import GGUFHeader, LazyArray, Value, display
from localctx.errors import UsageError
from localctx.names import display_name
from localctx.settings import nearest

__all__ = ["Override", "check_applied", "overridden", "override_array", "parse_overrides"]

_MAX_BYTES = 127
_MAX_U32 = (1 << 32) - 1  # llama.cpp reads every whole number into 32 bits
_MAX_F32 = 3.4028235e38
_HINT = "--override-kv KEY=TYPE:VALUE with TYPE one of int, float, bool, str"
_FORM = re.compile(r"(?P<key>[^=]*)=(?P<kind>[^:]*):(?P<value>.*)", re.DOTALL)
_KINDS = ("int", "float", "bool", "str")

_OPTIONAL = {  # keys that llama.cpp reads where a file has them; those of an architecture without its name
    **dict.fromkeys(("rope.freq_base", "rope.scaling.factor", "rope.scaling.attn_factor"), "float"),
    **dict.fromkeys(("rope.scale_linear", "attention.scale", "expert_weights_scale"), "float"),
    **dict.fromkeys(("attn_logit_softcapping", "final_logit_softcapping", "logit_scale"), "float"),
    **dict.fromkeys(("rope.scaling.original_context_length", "attention.sliding_window"), "int"),
    **dict.fromkeys(("context_length", "expert_used_count", "pooling_type"), "int"),
    "rope.scaling.type": "str",
}
_OPTIONAL_ANYWHERE = {
    **dict.fromkeys((f"tokenizer.ggml.{name}_token_id" for name in ("bos", "eos", "eot", "eom")), "int"),
    **dict.fromkeys((f"tokenizer.ggml.{name}_token_id" for name in ("unknown", "padding")), "int"),
    **dict.fromkeys((f"tokenizer.ggml.add_{name}_token" for name in ("bos", "eos", "sep")), "bool"),
    "tokenizer.ggml.add_space_prefix": "bool",
    "tokenizer.ggml.pre": "str",
    "tokenizer.chat_template": "str",
}
_FIXED = (  # they say what the tensors are: another value cannot be true
    "block_count", "embedding_length", "feed_forward_length", "vocab_size", "expert_count",
    "attention.head_count", "attention.head_count_kv", "attention.key_length", "attention.value_length",
    "attention.key_length_mla", "attention.value_length_mla", "attention.kv_lora_rank",
    "attention.q_lora_rank", "expert_feed_forward_length", "rope.dimension_count",
)  # fmt: skip
_FIXED_ANYWHERE = ("general.architecture", "general.type", "general.alignment", "tokenizer.ggml.model")
_READ_HERE = ("tokenizer.chat_template", "tokenizer.ggml.add_space_prefix")
"""Keys that localctx itself reads from the header; llama.cpp need not."""
_SCALINGS = ("none", "linear", "yarn", "longrope")


@dataclass(frozen=True, slots=True)
class Override:
    """One replaced value; `kind` is llama.cpp's name of its type."""

    key: str
    kind: str
    value: int | float | bool | str

    @property
    def line(self) -> str:
        """It as it is typed."""
        shown = str(self.value).lower() if isinstance(self.value, bool) else self.value
        return f"{self.key}={self.kind}:{shown}"


# --- as typed -----------------------------------------------------------------------------------------------


def parse_overrides(texts: Sequence[str]) -> tuple[Override, ...]:
    """The overrides of several options, each KEY=TYPE:VALUE. Raises UsageError, one line, for what has
    another form, does not fit llama.cpp's 127 bytes, or names a key twice.
    """
    found: dict[str, Override] = {}
    for text in texts:
        override = _parse(text)
        if override.key in found:
            raise UsageError(f"--override-kv {_short(override.key)} is given twice", "give it once")
        found[override.key] = override
    return tuple(found.values())


def _parse(text: str) -> Override:
    match = _FORM.fullmatch(text)
    if match is None or not match["key"] or "\0" in text:
        raise UsageError(f"--override-kv {_short(text)!r} is not understood", _HINT)
    key, kind, value = match["key"].strip(), match["kind"].strip(), match["value"]
    n_bytes = len(key.encode("utf-8", "surrogateescape"))
    if n_bytes > _MAX_BYTES:
        raise UsageError(
            f"--override-kv {_short(key)}: a key of {n_bytes} bytes", f"at most {_MAX_BYTES} are read"
        )
    if kind not in _KINDS:
        raise UsageError(
            f"--override-kv {_short(key)}: unknown type {_short(kind)!r}{nearest(kind, _KINDS)}", _HINT
        )
    return Override(key, kind, _value(key, kind, value))


def _value(key: str, kind: str, text: str) -> int | float | bool | str:
    bad = UsageError(f"--override-kv {_short(key)}: {_short(text)!r} is no {kind}", _HINT)
    if kind == "bool":
        if text.lower() not in ("true", "false"):
            raise UsageError(bad.message, "bool:true or bool:false")
        return text.lower() == "true"
    if kind == "str":
        n_bytes = len(text.encode("utf-8", "surrogateescape"))
        if n_bytes > _MAX_BYTES:
            raise UsageError(
                f"--override-kv {_short(key)}: a text of {n_bytes} bytes", f"at most {_MAX_BYTES} are read"
            )
        return text
    if not re.fullmatch(r"[+-]?[0-9]+" if kind == "int" else r"[+-]?[0-9.]+([eE][+-]?[0-9]+)?", text):
        raise bad
    try:
        return int(text) if kind == "int" else float(text)
    except ValueError:
        raise bad from None


# --- against the file ---------------------------------------------------------------------------------------


def overridden(header: GGUFHeader, overrides: Sequence[Override]) -> GGUFHeader:
    """The header as it is with them. Raises UsageError, one line, for a key that neither the file has nor
    llama.cpp looks for (with the nearest name), another type than the file's, a value that cannot be, and for
    what describes the tensors.
    """
    if not overrides:
        return header
    for override in overrides:
        _check(header, override)
    replaced: dict[str, Value] = {override.key: override.value for override in overrides}
    lines = tuple(sorted(override.line for override in overrides))
    return dataclasses.replace(header, metadata={**header.metadata, **replaced}, overrides=lines)


def _check(header: GGUFHeader, override: Override) -> None:
    key, where = override.key, display(header.path)
    if key in _FIXED_ANYWHERE or key.startswith("split.") or key in map(header.arch_key, _FIXED):
        raise UsageError(
            f"--override-kv {_short(key)}: it says what the file's tensors are and cannot be replaced",
            "leave it out",
        )
    optional = {**_OPTIONAL_ANYWHERE, **{header.arch_key(name): kind for name, kind in _OPTIONAL.items()}}
    there = header.metadata.get(key)
    if there is None and key not in optional:
        names = [name for name in {**header.metadata, **optional} if not name.startswith("general.")]
        raise UsageError(
            f"--override-kv: {where} has no key {_short(key)!r}{nearest(key, names)}", "localctx models show"
        )
    if isinstance(there, tuple | LazyArray) and not _is_long_text(key):
        raise UsageError(f"--override-kv {key} is a list in the file", "only single values can be replaced")
    kind = optional[key] if there is None or _is_long_text(key) else _kind(there)
    if override.kind != kind:
        raise UsageError(
            f"--override-kv {key} is of type {kind}, not {override.kind}", f"{key}={kind}:{override.value}"
        )
    _check_range(header, override)


def _is_long_text(key: str) -> bool:
    """Whether what is left in the file is one text."""
    return key == "tokenizer.chat_template"


def _kind(value: Value | None) -> str:
    if isinstance(value, bool):
        return "bool"
    return "int" if isinstance(value, int) else "float" if isinstance(value, float) else "str"


def _check_range(header: GGUFHeader, override: Override) -> None:
    """Raises UsageError for values that llama.cpp would cut, or die of."""
    key, value = override.key, override.value
    low: float = 0
    high: float = _MAX_U32 if override.kind == "int" else _MAX_F32
    if key.endswith("_token_id"):
        high = max(1, header.array_length("tokenizer.ggml.tokens")) - 1
    elif key == header.arch_key("context_length"):
        low, high = 1, (1 << 31) - 1
    elif key == header.arch_key("expert_used_count"):
        low, high = 1, max(1, header.integer(header.arch_key("expert_count")))
    elif key == header.arch_key("rope.freq_base"):
        low = 1.0
    elif override.kind == "float" and ".rope." not in key and not key.endswith("_epsilon"):
        low = -_MAX_F32
    if key == header.arch_key("rope.scaling.type") and value not in _SCALINGS:
        raise UsageError(f"--override-kv {key}: {value!r} is no scaling", f"one of {', '.join(_SCALINGS)}")
    if isinstance(value, str | bool):
        return
    if not (math.isfinite(value) and low <= value <= high):
        raise UsageError(f"--override-kv {key}: {value} is out of range", f"from {low:g} to {high:.10g}")


def _short(text: str) -> str:
    return display_name(text if len(text) <= 60 else f"{text[:57]}…")


# --- for llama.cpp ------------------------------------------------------------------------------------------


def override_array(lib: Any, overrides: Sequence[Override]) -> Any:
    """llama.cpp's list, which an empty element ends."""
    array = (lib.llama_model_kv_override * (len(overrides) + 1))()
    for place, override in zip(array, overrides, strict=False):
        place.tag = getattr(lib, f"LLAMA_KV_OVERRIDE_TYPE_{override.kind.upper()}")
        place.key = override.key.encode("utf-8", "surrogateescape")
        value: Any = override.value
        if override.kind == "str":
            place.value.val_str = value.encode("utf-8", "surrogateescape")
        else:
            name = {"int": "val_i64", "float": "val_f64", "bool": "val_bool"}[override.kind]
            setattr(place.value, name, value)
    return array


def check_applied(overrides: Sequence[Override], log: str) -> None:
    """Raises UsageError for the first override that llama.cpp, by its log of loading, never used."""
    used = set(re.findall(r"Using metadata override \([ \w]+\) '(.*?)' = ", log))
    for override in overrides:
        if override.key not in used and override.key not in _READ_HERE:
            raise UsageError(
                f"--override-kv {override.key} had no effect: this architecture does not read it",
                "leave it out",
            )
