"""What lies on which device, read off what llama.cpp says of the weights and of a context. Pure."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from localctx.values import DeviceShare

__all__ = ["device_shares"]

_LAYER = re.compile(r"layer +(\d+) assigned to device ([^,\n]+)")
_BUFFER = r" (\S+) +{} buffer size = +([\d.]+) MiB"
_MIB = 1 << 20


def device_shares(
    load_log: str, context_log: str, names: Sequence[str], n_layer: int
) -> tuple[DeviceShare, ...]:
    """The devices, of those with these names, that hold anything, in this order; n_layer: of the model.

    A buffer is called after its device, or after one and a kind of host memory (CUDA_Host, CPU_Mapped), which
    is the CPU's. What several share (--split-mode tensor) has a name of its own and comes last.
    """
    layers = Counter(device for number, device in _LAYER.findall(load_log) if int(number) < n_layer)
    weights = _buffers(load_log, "model", names)
    cache = _buffers(context_log, "(?:KV|RS)", names)
    found = [*names, *sorted({*layers, *weights, *cache} - {*names})]
    shares = (DeviceShare(name, layers[name], weights[name], cache[name]) for name in found)
    return tuple(share for share in shares if share.layers or share.weights_bytes or share.kv_bytes)


def _buffers(log: str, kind: str, names: Sequence[str]) -> Counter[str]:
    """Bytes of the buffers of a kind, by device."""
    sizes: Counter[str] = Counter()
    for name, mib in re.findall(_BUFFER.format(kind), log):
        device = name if name in names or name.startswith("Meta(") else "CPU"
        sizes[device] += round(float(mib) * _MIB)
    return sizes
