"""What a run can be told, and where each value came from: flags > environment > localctx.toml > manifest.

One dataclass is the only list of settings; names in `localctx.toml` and `LOCALCTX_*` variables follow it.
Knows nothing of terminals or models.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from localctx.byte_sizes import parse_bytes
from localctx.errors import UsageError
from localctx.kv_settings import KVSettings, parse_kv
from localctx.private_files import default_root
from localctx.small_text import read_small_text, reason_of

__all__ = [
    "CONFIG_FILE",
    "DEFAULT_EMBEDDER",
    "DEFAULT_MODEL",
    "STRATEGIES",
    "Settings",
    "load_settings",
    "nearest",
]

CONFIG_FILE = "localctx.toml"
DEFAULT_MODEL = "smollm2-135m"
"""The embedded model."""
DEFAULT_EMBEDDER = "all-minilm-l6-v2"
ENVIRONMENT_PREFIX = "LOCALCTX_"
OTHER_VARIABLES = ("LOCALCTX_DEBUG", "LOCALCTX_MODELS_DIR")
"""Variables of this prefix that are no settings of a run."""
OVERRIDE_EDGE = re.compile(r",(?=[^,=]+=(?:int|float|bool|str):)")
"""Where one override ends and the next begins: texts may hold commas."""
STRATEGIES = ("auto", "exact", "stream", "retrieve", "map-reduce", "condense")


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting of a run that uses a model. None means: decided when the run starts.

    backend: what generates: "llama", or openai:URL[#MODEL] for another server ·
    ctx: cells of the KV cache, in tokens · threads: CPU threads · gpu_layers: layers on the GPU (a number,
    "auto" or "all") · split_mode: none, layer or tensor · tensor_split: what each GPU gets, as 3,1 ·
    main_gpu: number of the one GPU · n_cpu_moe: layers whose experts stay in memory · override_tensor:
    tensors and where they go, RE=DEV,... · temp 0 is greedy · max_tokens: longest answer, in tokens ·
    store: folder of the store and of converted documents, or "off" · store_limit: what its KV may take, as
    "50G" (default: the smaller of 20 GB and a tenth of the free disk) · latency: target for the first token
    of an answer, in seconds · kv: cache settings as KEY=VALUE,... (KVSettings) · lora: LoRA adapters as
    FILE[:SCALE],... · flash_attn: "auto", "on" or "off" · override_kv: metadata of the model file that is
    replaced, KEY=TYPE:VALUE,... · rope_* and yarn_*: RoPE scaling, as the options of these names · embedder:
    name or path of the model whose vectors find passages in other words than the question's, or "off" ·
    reranker: name or path of a cross-encoder that judges the best passages again, or "off" · parallel: how
    many questions are answered side by side at most · schema: file of the JSON schema of the answer, or the
    schema itself.
    """

    model: str = DEFAULT_MODEL
    backend: str = "llama"
    ctx: int | None = None
    threads: int | None = None
    gpu_layers: str = "auto"
    split_mode: str | None = None
    tensor_split: str | None = None
    main_gpu: int | None = None
    n_cpu_moe: int | None = None
    override_tensor: str = ""
    strategy: str = "auto"
    temp: float = 0.0
    top_p: float = 0.95
    top_k: int = 40
    min_p: float = 0.05
    seed: int = 0
    max_tokens: int = 256
    store: str | None = None
    store_limit: str | None = None
    password_file: str | None = None
    encoding: str | None = None
    ocr: str = "auto"
    history: bool = True
    fresh: bool = False
    force: bool = False
    offline: bool = False
    latency: float = 1.0
    kv: str = ""
    lora: str = ""
    flash_attn: str = "auto"
    override_kv: str = ""
    rope_scaling: str | None = None
    rope_scale: float | None = None
    rope_freq_base: float | None = None
    rope_freq_scale: float | None = None
    yarn_orig_ctx: int | None = None
    yarn_ext_factor: float | None = None
    yarn_attn_factor: float | None = None
    yarn_beta_fast: float | None = None
    yarn_beta_slow: float | None = None
    embedder: str = DEFAULT_EMBEDDER
    reranker: str | None = None
    parallel: int | None = None
    schema: str | None = None

    def __post_init__(self) -> None:
        _check_ranges(self)

    @property
    def store_root(self) -> Path | None:
        """The folder of the run's store and of converted documents; None with `off`."""
        if self.store == "off":
            return None
        return Path(self.store) if self.store else default_root()

    @property
    def store_limit_bytes(self) -> int | None:
        """What the store may take; None leaves it to the disk."""
        return None if self.store_limit is None else parse_bytes(self.store_limit, "store_limit")

    @property
    def overrides(self) -> tuple[str, ...]:
        """The replaced metadata, one KEY=TYPE:VALUE each."""
        return tuple(OVERRIDE_EDGE.split(self.override_kv)) if self.override_kv else ()

    @property
    def tensor_shares(self) -> tuple[float, ...]:
        """What each GPU gets, in proportion; empty leaves it to the free memory."""
        try:
            return tuple(map(float, self.tensor_split.split(","))) if self.tensor_split is not None else ()
        except ValueError:
            raise UsageError(
                f"tensor_split = {self.tensor_split!r} is not understood", "numbers with commas, as 3,1"
            ) from None

    @property
    def requested(self) -> dict[str, object]:
        """What of the context's length and rotation was asked for."""
        names = ("ctx", *(name for name in type(self).__slots__ if name.startswith(("rope_", "yarn_"))))
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}

    @property
    def cache(self) -> KVSettings:
        """The cache settings, typed."""
        return parse_kv(self.kv)


def _check_ranges(settings: Settings) -> None:
    """Refuse values outside their range in one line each."""
    if settings.strategy not in STRATEGIES:
        raise UsageError(
            f"unknown strategy {settings.strategy!r}{nearest(settings.strategy, STRATEGIES)}",
            f"one of {', '.join(STRATEGIES)}",
        )
    limits = {
        "ctx": (64, 1 << 30),
        "threads": (1, 1024),
        "temp": (0, 100),
        "top_p": (0, 1),
        "top_k": (0, 1 << 30),
        "min_p": (0, 1),
        "max_tokens": (1, 1 << 24),
        "main_gpu": (0, 255),
        "n_cpu_moe": (0, 1 << 16),
        "latency": (0, 86_400),
        "parallel": (1, 100),
    }
    for name, (low, high) in limits.items():
        value = getattr(settings, name)
        if value is not None and not low <= value <= high:
            raise UsageError(f"{name} = {value} is out of range", f"from {low} to {high}")
    for name in ("model", "store", "password_file", "encoding", "embedder", "reranker", "schema"):
        value = getattr(settings, name)
        if value is not None and (not value or "\0" in value):
            raise UsageError(f"{name} is empty or holds a NUL", "leave it out, or give a value")
    if settings.store_limit is not None:
        parse_bytes(settings.store_limit, "store_limit")
    if settings.gpu_layers not in ("auto", "all") and not settings.gpu_layers.isdecimal():
        raise UsageError(
            f"gpu_layers = {settings.gpu_layers!r} is not understood", 'a number, "auto" or "all"'
        )
    _ = settings.tensor_shares
    if settings.ocr not in ("auto", "off"):
        raise UsageError(f"ocr = {settings.ocr!r} is not understood", '"auto" or "off"')
    if settings.flash_attn not in ("auto", "on", "off"):
        raise UsageError(f"flash_attn = {settings.flash_attn!r} is not understood", '"auto", "on" or "off"')
    if settings.cache.streams and settings.strategy not in ("auto", "stream"):
        raise UsageError(
            f"--kv cache_type=streaming means --strategy stream, not {settings.strategy}", "give one of them"
        )


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name most like `name`, or nothing."""
    close = difflib.get_close_matches(name, list(known), n=1)
    return f"; did you mean {close[0]!r}?" if close else ""


def load_settings(
    flags: Mapping[str, object],
    manifest: Mapping[str, object] | None = None,
    config: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> Settings:
    """Merge the layers; None in `flags` means not given. Of `kv` the layers' keys are merged one by one.

    Raises UsageError for an unknown key or variable (naming the nearest known one), a value of the wrong type
    or out of range, and a named `config` that cannot be read.
    """
    known = {field.name for field in fields(Settings)}
    environ = os.environ if environ is None else environ
    layers: list[tuple[str, Mapping[str, object]]] = [
        ("manifest", dict(manifest or {})),
        _read_config(config),
        ("environment", _from_environment(environ, known)),
        ("command line", {name: value for name, value in flags.items() if value is not None}),
    ]
    merged: dict[str, Any] = {}
    for origin, layer in layers:
        for name, value in layer.items():
            if name not in known:
                raise UsageError(f"unknown setting {name!r} in {origin}{nearest(name, known)}")
            typed = _typed(name, value, origin)
            joins = name in ("kv", "override_kv", "override_tensor") and merged.get(name)
            merged[name] = f"{merged[name]},{typed}" if joins else typed
    settings = replace(Settings(), **merged)
    return replace(settings, strategy="stream") if settings.cache.streams else settings


def _from_environment(environ: Mapping[str, str], known: Iterable[str]) -> dict[str, object]:
    """The settings among the variables; an empty one says nothing."""
    names = {f"{ENVIRONMENT_PREFIX}{name.upper()}": name for name in known}
    given = {name: value for name, value in environ.items() if name.startswith(ENVIRONMENT_PREFIX) and value}
    for name in given:
        if name not in names and name not in OTHER_VARIABLES:
            close = nearest(name, [*names, *OTHER_VARIABLES])
            raise UsageError(f"unknown environment variable {name!r}{close}", "correct or unset it")
    return {names[name]: value for name, value in given.items() if name in names}


def _read_config(config: Path | None) -> tuple[str, dict[str, object]]:
    """The settings file: the named one, else the one in the configuration directory if it exists."""
    path = config
    if path is None:
        import platformdirs

        path = Path(platformdirs.user_config_dir("localctx")) / CONFIG_FILE
        if not os.path.lexists(path):  # also where the folder may not be searched
            return str(path), {}
    try:
        return str(path), tomllib.loads(read_small_text(path))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read {path}: {reason_of(error)}",
            "it is a TOML file of settings, one NAME = VALUE a line",
        ) from error


def _typed(name: str, value: object, origin: str) -> object:
    """`value` as the setting's type; text from the environment is converted."""
    wanted = get_type_hints(Settings)[name]
    kinds = [
        kind for kind in (bool, int, float, str) if kind is wanted or kind in getattr(wanted, "__args__", ())
    ]
    kind = kinds[0]
    try:
        if isinstance(value, bool) is (kind is bool) and isinstance(
            value, (int, float) if kind is float else kind
        ):
            return kind(value)
        if isinstance(value, str) and kind is bool:
            return {"1": True, "true": True, "yes": True, "0": False, "false": False, "no": False}[
                value.lower()
            ]
        if isinstance(value, str) or (kind is str and isinstance(value, int)):
            return kind(value)
    except (KeyError, ValueError):
        pass
    raise UsageError(f"{name} = {value!r} in {origin} is not of type {kind.__name__}")
