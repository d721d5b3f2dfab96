"""LoRA adapters for the tiny models, and the same weights merged by hand."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gguf
import numpy as np
from engine import tiny_gguf

RANK, ALPHA = 4, 8.0
PLACES = ("blk.0.attn_q.weight", "blk.1.attn_v.weight", "blk.1.ffn_down.weight")


def matrices(seed: int = 11, places: Sequence[str] = PLACES) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """A [rank, columns] and B [rows, rank] of each place in a tiny llama."""
    random = np.random.default_rng(seed)
    shapes = {"attn_q": (64, 64), "attn_v": (32, 64), "ffn_down": (64, 96)}
    found = {}
    for place in places:
        rows, columns = shapes[place.split(".")[2]]
        a, b = random.standard_normal((RANK, columns)), random.standard_normal((rows, RANK))
        found[place] = ((a * 0.2).astype(np.float32), (b * 0.2).astype(np.float32))
    return found


def write_lora(
    path: Path,
    pairs: dict[str, tuple[np.ndarray, np.ndarray]] | None = None,
    architecture: str = "llama",
    **other: Any,
) -> Path:
    """Write an adapter; `other` adds or replaces metadata (a dot is written as two underscores)."""
    writer = gguf.GGUFWriter(path, architecture)
    metadata: dict[str, Any] = {"general__type": "adapter", "adapter__type": "lora", **other}
    for key, value in metadata.items():
        if value is not None:
            writer.add_string(key.replace("__", "."), value)
    writer.add_float32("adapter.lora.alpha", ALPHA)
    for place, (a, b) in (matrices() if pairs is None else pairs).items():
        writer.add_tensor(f"{place}.lora_a", a)
        writer.add_tensor(f"{place}.lora_b", b)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_merged(path: Path, scale: float) -> Path:
    """The tiny model with the adapter's product added to its weights."""
    weights = tiny_gguf._weights

    def merged(*given: Any) -> dict[str, np.ndarray]:
        tensors = weights(*given)
        for place, (a, b) in matrices().items():
            tensors[place] = tensors[place] + np.float32(scale * ALPHA / RANK) * (b @ a)
        return tensors

    tiny_gguf._weights = merged
    try:
        return tiny_gguf.write_tiny_gguf(path, tiny_gguf.bpe_vocabulary())
    finally:
        tiny_gguf._weights = weights
