"""The text of one models/*.toml → manifests. Knows nothing of folders.

An unknown key is an error that names the nearest known one, so that a typing mistake in a manifest never
becomes a silent default.
"""

from __future__ import annotations

import re
import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, fields
from typing import Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from localctx.errors import ModelError
from localctx.registry.manifest import Manifest
from localctx.settings import nearest

__all__ = ["parse_manifests"]

_HEAD = re.compile(r"\d{1,4}\.\d{1,4}", re.ASCII)
_SETTINGS = frozenset({"temp", "top_p", "top_k", "min_p", "max_tokens"})


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_T = TypeVar("_T", bound=_Dataclass)


def parse_manifests(text: str, origin: str) -> list[Manifest]:
    """The manifests of one TOML file: the top table, then one for each [[models]] entry laid over it.

    Raises ModelError naming `origin` and the key, with the nearest known key where it is not known.
    """
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise ModelError(f"{origin}: {error}") from error
    sizes = table.pop("models", [])
    family = _build(Manifest, table, origin)
    found = [family]
    for number, size in enumerate(sizes, 1):
        entry = f"{origin} models[{number}]"
        merged = _overlay(table, {"family": family.name, "aliases": [], **size})
        found.append(_build(Manifest, merged, entry))
    for manifest in found:
        _check(manifest, origin)
    return found


def _overlay(base: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` laid on `base`; tables are merged key by key."""
    merged = dict(base)
    for key, value in over.items():
        merged[key] = {**base[key], **value} if isinstance(value, dict) and key in base else value
    return merged


def _build(kind: type[_T], table: Mapping[str, Any], origin: str) -> _T:
    """A dataclass from a TOML table; unknown and missing keys and wrong types are errors."""
    hints = get_type_hints(kind)
    known = {item.name: item for item in fields(kind)}
    for key in table:
        if key not in known:
            raise ModelError(f"{origin}: unknown key {key!r}{nearest(key, known)}")
    values: dict[str, Any] = {}
    for key, item in known.items():
        if key in table:
            values[key] = _value(hints[key], table[key], f"{origin}: {key}")
        elif item.default is MISSING and item.default_factory is MISSING:
            raise ModelError(f"{origin}: key {key!r} is missing")
    return kind(**values)


def _value(hint: Any, value: Any, origin: str) -> Any:
    """A TOML value as the type that a field declares."""
    kinds = get_args(hint) if get_origin(hint) in (Union, types.UnionType) else (hint,)
    kind = kinds[0]
    if isinstance(value, dict) and hasattr(kind, "__dataclass_fields__"):
        return _build(kind, value, origin)
    if get_origin(kind) is tuple and isinstance(value, list) and all(isinstance(item, str) for item in value):
        return tuple(value)
    if isinstance(value, dict) and get_origin(kind) not in (None, tuple):
        return dict(value)
    if kind is float and isinstance(value, int | float) and not isinstance(value, bool):
        return float(value)
    if isinstance(kind, type) and type(value) is kind:
        return value
    raise ModelError(f"{origin} has the wrong type ({type(value).__name__})")


def _check(manifest: Manifest, origin: str) -> None:
    """Rules beyond types."""
    unknown = sorted(set(manifest.settings) - _SETTINGS)
    if unknown:
        raise ModelError(f"{origin}: unknown setting {unknown[0]!r}{nearest(unknown[0], _SETTINGS)}")
    if manifest.evidence not in ("run", "documented"):
        raise ModelError(f"{origin}: evidence is {manifest.evidence!r}; it is 'run' or 'documented'")
    if manifest.template.system_role not in ("native", "folded"):
        raise ModelError(f"{origin}: system_role is {manifest.template.system_role!r}")
    if len(manifest.template.thinking) == 1:
        raise ModelError(f"{origin}: thinking needs an opening and a closing marker")
    if not manifest.match.architecture or not manifest.match.names:
        raise ModelError(f"{origin}: match.architecture or match.names is missing")
    for head in manifest.kv.retrieval_heads:
        if not _HEAD.fullmatch(head):
            raise ModelError(f"{origin}: kv.retrieval_heads: {head!r} is not LAYER.HEAD, such as '17.3'")
    if manifest.name != manifest.name.lower():
        raise ModelError(f"{origin}: the name {manifest.name!r} is not in lower case")
