"""A run's settings → its model file, its model, its documents. Knows no question and no terminal."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from localctx.errors import InputError, UsageError
from localctx.names import display_name
from localctx.settings import Settings, load_settings
from localctx.small_text import read_small_text, reason_of

if TYPE_CHECKING:
    from localctx.document import Document, Named
    from localctx.document.events import Preview
    from localctx.engine.thinking import ThinkingTags
    from localctx.registry import Manifest
    from localctx.values import Model, Progress

__all__ = [
    "ChosenModel",
    "choose_model",
    "chosen_model",
    "open_document_for",
    "open_model_for",
    "settings_for",
]

ROPE_SETTINGS = {
    **{name: f"rope_{name}" for name in ("scaling", "scale", "freq_base", "freq_scale")},
    **{name: name for name in ("yarn_orig_ctx", "yarn_ext_factor", "yarn_attn_factor")},
    **{name: name for name in ("yarn_beta_fast", "yarn_beta_slow")},
}
"""Names of RopeOptions, and of the settings that fill them."""


LOCAL_SETTINGS = (
    "model", "gpu_layers", "split_mode", "tensor_split", "main_gpu", "n_cpu_moe", "override_tensor",
    "threads", "top_k", "min_p", "lora", "flash_attn", "override_kv", "schema",
    *ROPE_SETTINGS.values(),
)  # fmt: skip
"""Settings that another server would not hear of."""


@dataclass(frozen=True, slots=True)
class ChosenModel:
    """The model file of a run, and what is known of its family."""

    name: str
    path: Path
    manifest: Manifest | None


def settings_for(flags: Mapping[str, object], config: str | None = None) -> Settings:
    """The run's settings without a model's own defaults under them.

    Raises UsageError for a store that is something else than a folder.
    """
    settings = load_settings(flags, config=Path(config) if config else None)
    if settings.store not in (None, "off"):
        place = Path(str(settings.store))
        if os.path.lexists(place) and not place.is_dir():
            raise UsageError(f"store = {display_name(place)} is no folder", "name a folder, or off")
    return settings


def choose_model(
    flags: Mapping[str, object], config: str | None = None, *, may_be_remote: bool = False
) -> tuple[Settings, ChosenModel]:
    """The model that the settings name, and the settings with that model's own defaults under them.

    A file given by path is known by its header. may_be_remote: another server may generate. Raises what
    localctx.errors names for models.
    """
    settings = settings_for(flags, config)
    if settings.backend != "llama":
        _check_remote(settings, may_be_remote=may_be_remote)
        return settings, ChosenModel("", Path(), None)
    chosen = chosen_model(settings)
    if (manifest := chosen.manifest) is not None:
        settings = load_settings(flags, manifest=manifest.settings, config=Path(config) if config else None)
    return settings, chosen


def chosen_model(settings: Settings) -> ChosenModel:
    """The model that final settings name. Raises what localctx.errors names for models."""
    from localctx.engine.gguf import open_model as read_file
    from localctx.registry import match, resolve

    resolved = resolve(settings.model)
    manifest = resolved.manifest or match(read_file(resolved.path).metadata)
    return ChosenModel(resolved.name, resolved.path, manifest)


def open_model_for(settings: Settings, chosen: ChosenModel, *, shares_cpus: bool = False) -> Model:
    """The chosen model under the run's settings: tokenizer now, weights with the first context.

    `shares_cpus`: as EngineOptions has it; a number of threads that the user names stands.
    """
    if settings.backend != "llama":
        from localctx.engine.remote import open_remote

        return open_remote(settings.backend, settings.ctx, offline=settings.offline)
    from localctx.engine import DeviceOptions, EngineOptions, RopeOptions, open_model
    from localctx.registry import resolve_adapters

    manifest = chosen.manifest
    options = EngineOptions(
        name=chosen.name,
        gpu_layers=settings.gpu_layers,
        devices=DeviceOptions(
            split_mode=settings.split_mode,
            tensor_split=settings.tensor_shares,
            main_gpu=settings.main_gpu,
            n_cpu_moe=settings.n_cpu_moe or 0,
            override_tensor=(settings.override_tensor,) if settings.override_tensor else (),
        ),
        n_threads=settings.threads,
        shares_cpus=shares_cpus and settings.threads is None,
        type_k=settings.cache.type_k,
        type_v=settings.cache.type_v,
        flash_attn=settings.flash_attn != "off",
        rope=RopeOptions(**{name: getattr(settings, setting) for name, setting in ROPE_SETTINGS.items()}),
        overrides=settings.overrides,
        force=settings.force,
        template_variables=dict(manifest.template.options) if manifest else None,
        thinking=_thinking(manifest) if manifest else None,
        retrieval_heads=manifest.kv.retrieval_heads if manifest else (),
        adapters=resolve_adapters(settings.lora),
    )
    return open_model(chosen.path, options)


def _check_remote(settings: Settings, *, may_be_remote: bool) -> None:
    """Raises UsageError for a command, or a setting of a local model, that has no meaning there."""
    if not may_be_remote:
        raise UsageError(f"--backend {settings.backend} is for ask and summarize", "--backend llama")
    plain = Settings()
    for name in LOCAL_SETTINGS:
        if getattr(settings, name) != getattr(plain, name):
            raise UsageError(
                f"--{name.replace('_', '-')} is for a local model, not for --backend {settings.backend}"
            )
    if settings.strategy == "stream":
        raise UsageError("--strategy stream is for a local model", "--strategy retrieve, or auto")


def _thinking(manifest: Manifest) -> ThinkingTags | None:
    """The manifest's thinking markers; None leaves them to the file's template."""
    from localctx.engine.thinking import ThinkingTags

    markers = manifest.template.thinking
    return ThinkingTags(markers[0], markers[1], tuple(markers[2:])) if markers else None


def open_document_for(
    source: str | Named,
    settings: Settings,
    pages: tuple[int, int] | None = None,
    on_progress: Progress | None = None,
    on_preview: Callable[[Preview], None] | None = None,
) -> Document:
    """The document at `source` (a path, or - for standard input) under the run's settings."""
    from localctx.document import Limits, open_document

    return open_document(
        source,
        password=_password(settings),
        encoding=settings.encoding,
        pages=pages,
        cache_dir=settings.store_root,
        on_progress=on_progress,
        on_preview=on_preview,
        limits=Limits(ocr=settings.ocr == "auto"),
    )


def _password(settings: Settings) -> str | None:
    """The first line of --password-file."""
    if settings.password_file is None:
        return None
    try:
        lines = read_small_text(Path(settings.password_file)).splitlines()
    except (OSError, ValueError) as error:
        raise InputError(
            f"cannot read the password file {settings.password_file}: {reason_of(error)}",
            "a UTF-8 text file, password on line 1",
        ) from None
    return lines[0] if lines else ""
