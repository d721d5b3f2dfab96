"""How a model is opened; None everywhere means: as the file says, or decided from the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localctx.engine.thinking import ThinkingTags

__all__ = ["Adapter", "DeviceOptions", "EngineOptions", "RopeOptions"]


@dataclass(frozen=True, slots=True)
class Adapter:
    """A LoRA adapter's file and how strongly it is applied."""

    path: Path
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class RopeOptions:
    """Rotary settings that were asked for and replace the file's (rope_scaling.py makes use of them).

    scaling: none, linear, ntk, dynamic-ntk, yarn or auto · scale: how many times longer than trained; without
    it a method takes what each context needs · freq_scale 0.25 is scale 4 · yarn_orig_ctx: tokens the model
    was trained for before any scaling · yarn_ext_factor, yarn_attn_factor, yarn_beta_fast, yarn_beta_slow: as
    llama.cpp has them.
    """

    scaling: str | None = None
    scale: float | None = None
    freq_base: float | None = None
    freq_scale: float | None = None
    yarn_orig_ctx: int | None = None
    yarn_ext_factor: float | None = None
    yarn_attn_factor: float | None = None
    yarn_beta_fast: float | None = None
    yarn_beta_slow: float | None = None


@dataclass(frozen=True, slots=True)
class DeviceOptions:
    """How a model is spread over GPUs and what of it stays in memory (placing.py makes use of them).

    split_mode: none (one GPU), layer or tensor (several) · tensor_split: what each GPU gets, in proportion ·
    main_gpu: number of the one GPU · n_cpu_moe: layers, from the first on, whose experts stay in memory ·
    override_tensor: "RE=DEV", tensors by their names and the device that they go to.
    """

    split_mode: str | None = None
    tensor_split: tuple[float, ...] = ()
    main_gpu: int | None = None
    n_cpu_moe: int = 0
    override_tensor: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """Settings of one model and its contexts.

    name: what the model is called in answers and errors, else the file's own name ·
    shares_cpus: this process has other work for the same CPUs; steps take fewer threads than n_threads where
    that costs a third of their time at most ·
    gpu_layers: a number, "all", or "auto" (all where a GPU is usable) · n_batch: tokens of one step, of which
    a device computes n_ubatch at once (default: all) ·
    type_k, type_v: KV cache types by ggml's names · flash_attn: whether attention is computed in one kernel,
    which stored KV and quantised V need · overrides: metadata of the file that is replaced, KEY=TYPE:VALUE ·
    force: a context longer than the model was trained for, or larger than the memory estimate allows ·
    template, thinking: replace what the file says ·
    template_variables: passed to the template, such as enable_thinking ·
    retrieval_heads: "LAYER.HEAD" of query heads that are known to find what a question asks for ·
    adapters: LoRA, laid over the weights in this order · on_log: gets llama.cpp's own lines about loading.
    """

    name: str | None = None
    gpu_layers: str = "auto"
    n_threads: int | None = None
    shares_cpus: bool = False
    n_batch: int | None = None
    n_ubatch: int | None = None
    devices: DeviceOptions = field(default_factory=DeviceOptions)
    type_k: str = "f16"
    type_v: str = "f16"
    flash_attn: bool = True
    rope: RopeOptions = field(default_factory=RopeOptions)
    overrides: tuple[str, ...] = ()
    force: bool = False
    template: str | None = None
    template_variables: Mapping[str, Any] | None = None
    thinking: ThinkingTags | None = None
    retrieval_heads: tuple[str, ...] = ()
    adapters: tuple[Adapter, ...] = ()
    on_log: Callable[[str], None] | None = None
