"""One C++ runtime for llama.cpp's libraries and those of Python modules. Knows no llama.cpp."""

from __future__ import annotations

import ctypes
import sys

__all__ = ["share_cxx_runtime"]

_LIBRARY = "libstdc++.so.6"


def share_cxx_runtime() -> bool:
    """Make the system's libstdc++ the one that libraries loaded from now on find; whether it is there.

    Where a CUDA toolchain links a second one into llama.cpp's libraries, some of its symbols are taken from
    there and others from the one that Python modules brought: opening a model then ends in a crash. Only on
    Linux; must come before llama.cpp is loaded.
    """
    if sys.platform != "linux":
        return False
    try:
        ctypes.CDLL(_LIBRARY, mode=ctypes.RTLD_GLOBAL)
    except OSError:  # musl, or a system without it: then llama.cpp brings its own
        return False
    return True
