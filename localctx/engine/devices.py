"""The compute devices that ggml sees, and which backends it was built with. Is handed libggml.

libggml: a library whose functions are those that llama.cpp itself calls: a second ggml knows other devices.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localctx.engine.memory import format_bytes

__all__ = ["Device", "backends", "build_facts", "devices", "function", "load_backends", "usable_gpus"]

_KINDS = ("cpu", "gpu", "igpu", "accelerator", "meta")  # enum ggml_backend_dev_type


@dataclass(frozen=True, slots=True)
class Device:
    """One compute device; memory in bytes (0 where the backend does not say). buffer_type: address of the
    kind of memory that its tensors lie in.
    """

    name: str
    description: str
    kind: str
    free_bytes: int
    total_bytes: int
    buffer_type: int = 0

    @property
    def is_gpu(self) -> bool:
        """Whether layers can be put on it."""
        return self.kind in ("gpu", "igpu")


def function(libggml: Any, name: str, result: Any, *arguments: Any) -> Any:
    """A function of ggml's, by its types."""
    found = getattr(libggml, name)
    found.restype, found.argtypes = result, arguments
    return found


def _text(value: bytes | None) -> str:
    return (value or b"").decode("utf-8", "replace")


def devices(libggml: Any) -> list[Device]:
    """All devices, the CPU among them."""
    get = function(libggml, "ggml_backend_dev_get", ctypes.c_void_p, ctypes.c_size_t)
    name = function(libggml, "ggml_backend_dev_name", ctypes.c_char_p, ctypes.c_void_p)
    description = function(libggml, "ggml_backend_dev_description", ctypes.c_char_p, ctypes.c_void_p)
    kind = function(libggml, "ggml_backend_dev_type", ctypes.c_int, ctypes.c_void_p)
    size = ctypes.POINTER(ctypes.c_size_t)
    memory = function(libggml, "ggml_backend_dev_memory", None, ctypes.c_void_p, size, size)
    buffers = function(libggml, "ggml_backend_dev_buffer_type", ctypes.c_void_p, ctypes.c_void_p)
    found = []
    for index in range(function(libggml, "ggml_backend_dev_count", ctypes.c_size_t)()):
        device, free, total = get(index), ctypes.c_size_t(), ctypes.c_size_t()
        memory(device, ctypes.byref(free), ctypes.byref(total))
        number = kind(device)
        named = _KINDS[number] if 0 <= number < len(_KINDS) else "unknown"
        told, buffer_type = (_text(name(device)), _text(description(device))), buffers(device) or 0
        found.append(Device(*told, named, free.value, total.value, buffer_type))
    return found


def usable_gpus(found: Sequence[Device]) -> list[Device]:
    """The GPUs that llama.cpp puts layers on, in its order: integrated ones only without others."""
    return [device for device in found if device.kind == "gpu"] or [
        device for device in found if device.kind == "igpu"
    ]


def load_backends(libggml: Any, folder: Path) -> None:
    """Load the backends of a build that keeps them apart (GGML_BACKEND_DL), from that folder and no other.

    llama.cpp would otherwise look for them in the current folder too.
    """
    if function(libggml, "ggml_backend_reg_count", ctypes.c_size_t)() == 0:
        load = function(libggml, "ggml_backend_load_all_from_path", None, ctypes.c_char_p)
        load(os.fsencode(folder.resolve()))


def backends(libggml: Any) -> list[str]:
    """Names of the backends in the build (CPU, CUDA, …), whether or not a device is there."""
    get = function(libggml, "ggml_backend_reg_get", ctypes.c_void_p, ctypes.c_size_t)
    name = function(libggml, "ggml_backend_reg_name", ctypes.c_char_p, ctypes.c_void_p)
    n = function(libggml, "ggml_backend_reg_count", ctypes.c_size_t)()
    return [_text(name(get(index))) for index in range(n)]


def build_facts(lib: Any, libggml: Any) -> dict[str, object]:
    """CPU features, backends and GPUs of the build, as JSON values."""
    built = backends(libggml)
    return {
        "system_info": _text(lib.llama_print_system_info()).strip(),
        "backends": built,
        "gpu_offload": any(name not in ("CPU", "BLAS", "RPC") for name in built),
        "supports_gpu": bool(lib.llama_supports_gpu_offload()),
        "ggml": _text(function(libggml, "ggml_version", ctypes.c_char_p)()),
        "gpu_names": [device.name for device in usable_gpus(devices(libggml))],
        "devices": [
            f"{device.name} ({device.description}, {format_bytes(device.total_bytes)})"
            for device in devices(libggml)
            if device.is_gpu
        ],
    }
