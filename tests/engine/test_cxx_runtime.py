"""llama.cpp and Python's modules take the C++ runtime from one library."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from localctx.engine import cxx_runtime
from localctx.engine.cxx_runtime import share_cxx_runtime

COUT = "_ZSt4cout"
"""std::cout."""


def test_it_is_there_for_all_before_llama_cpp_is_loaded() -> None:
    program = (
        "import ctypes, sys\n"
        "class Watch:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name == 'llama_cpp':\n"
        f"            print(hasattr(ctypes.CDLL(None), {COUT!r}))\n"
        "sys.meta_path.insert(0, Watch())\n"
        "import localctx.engine.llama"
    )
    environment = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    run = subprocess.run(
        [sys.executable, "-P", "-c", program], capture_output=True, text=True, check=True, env=environment
    )
    assert run.stdout.split() == ["True"]


def test_a_system_without_it_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cxx_runtime, "_LIBRARY", "libstdc++.so.999")
    assert not share_cxx_runtime()
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(ctypes, "CDLL", None)
    assert not share_cxx_runtime()
