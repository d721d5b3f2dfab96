"""Options of GPUs, a part of every command that runs a model: how many layers, which GPUs, what stays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

import typer

__all__ = ["DeviceOptions"]


def _option(*names: str, help: str, metavar: str) -> Any:  # noqa: A002  # named as in Typer
    return typer.Option(*names, help=help, metavar=metavar, show_default=False)


@dataclass(frozen=True, kw_only=True)
class DeviceOptions:
    """None means: not given here."""

    gpu_layers: Annotated[
        str | None,
        _option("--gpu-layers", "-ngl", "--n-gpu-layers", metavar="N|auto|all", help="Layers on the GPU."),
    ] = None
    split_mode: Annotated[
        str | None,
        _option(
            "--split-mode",
            "-sm",
            metavar="none|layer|tensor",
            help="One GPU, or several: by layers, or every tensor over all.",
        ),
    ] = None
    tensor_split: Annotated[
        str | None,
        _option("--tensor-split", "-ts", metavar="A,B", help="What each GPU gets, in proportion."),
    ] = None
    main_gpu: Annotated[
        int | None, _option("--main-gpu", "-mg", metavar="I", help="Use this GPU alone, from 0.")
    ] = None
    n_cpu_moe: Annotated[
        int | None,
        _option(
            "--n-cpu-moe", "-ncmoe", metavar="N", help="Keep the experts of the first N layers in memory."
        ),
    ] = None
    override_tensor: Annotated[
        list[str] | None,
        _option(
            "--override-tensor",
            "-ot",
            metavar="RE=DEV",
            help="Tensors whose names match go to this device; repeatable.",
        ),
    ] = None
