"""Options of rotation, cache types and replaced metadata, a part of every command that runs a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

__all__ = ["AttentionOptions"]


def _option(*names: str, help: str, metavar: str) -> Any:  # noqa: A002  # named as in Typer
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


@dataclass(frozen=True, kw_only=True)
class AttentionOptions:
    """None means: not given here."""

    rope_scaling: Annotated[
        str | None,
        _option(
            "--rope-scaling",
            metavar="none|linear|ntk|dynamic-ntk|yarn|auto",
            help="How positions beyond training are made to fit.",
        ),
    ] = None
    rope_scale: Annotated[
        float | None,
        _option(
            "--rope-scale", metavar="S", help="Times the trained length (default: what a context needs)."
        ),
    ] = None
    rope_freq_base: Annotated[
        float | None, _option("--rope-freq-base", metavar="F", help="RoPE base instead of the file's.")
    ] = None
    rope_freq_scale: Annotated[
        float | None, _option("--rope-freq-scale", metavar="F", help="1/S, in place of --rope-scale.")
    ] = None
    yarn_orig_ctx: Annotated[
        int | None, _option("--yarn-orig-ctx", metavar="N", help="YaRN: tokens trained for before scaling.")
    ] = None
    yarn_ext_factor: Annotated[
        float | None, _option("--yarn-ext-factor", metavar="F", help="YaRN: 0 interpolates all dimensions.")
    ] = None
    yarn_attn_factor: Annotated[
        float | None, _option("--yarn-attn-factor", metavar="F", help="YaRN: size of what is turned.")
    ] = None
    yarn_beta_slow: Annotated[
        float | None, _option("--yarn-beta-slow", metavar="F", help="YaRN: turns below which all is scaled.")
    ] = None
    yarn_beta_fast: Annotated[
        float | None, _option("--yarn-beta-fast", metavar="F", help="YaRN: turns above which nothing is.")
    ] = None
    override_kv: Annotated[
        list[str] | None,
        _option(
            "--override-kv",
            metavar="KEY=TYPE:VALUE",
            help="Metadata of the model file that is replaced (int, float, bool, str); repeatable.",
        ),
    ] = None
    cache_type_k: Annotated[
        str | None, _option("--cache-type-k", "-ctk", metavar="TYPE", help="As --kv type_k=TYPE.")
    ] = None
    cache_type_v: Annotated[
        str | None, _option("--cache-type-v", "-ctv", metavar="TYPE", help="As --kv type_v=TYPE.")
    ] = None
    flash_attn: Annotated[
        str | None, _option("--flash-attn", "-fa", metavar="on|off|auto", help="Attention in one kernel.")
    ] = None
