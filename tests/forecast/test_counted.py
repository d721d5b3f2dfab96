"""What llama.cpp counts without allocating is what it then takes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from engine.conftest import buffer_mib
from engine.tiny_architectures import ARCHITECTURES, write_architecture

from localctx.engine.llama import open_model
from localctx.engine.no_alloc import Wanted, WantedContext
from localctx.engine.options import EngineOptions
from localctx.forecast.buffers import count


def real(path: Path, context: WantedContext) -> tuple[float, float]:
    """(MiB of cache, MiB of buffers) that llama.cpp reports of a context that is made."""
    lines: list[str] = []
    options = EngineOptions(on_log=lines.append, type_k=context.type_k, type_v=context.type_v)
    with open_model(path, options) as model:
        model.open_context(256)  # loads the weights
        lines.clear()
        if context.is_kv:
            model.open_kv_context(context.n_ctx)
        else:
            model.open_context(context.n_ctx, context.n_seq)
    kv = sum(buffer_mib(line) for line in lines if re.search("(KV|RS) buffer", line))
    return kv, sum(buffer_mib(line) for line in lines if re.search("(compute|output) buffer", line))


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_buffers_of_every_architecture(architecture: str, tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", architecture)
    wanted = (WantedContext(512), WantedContext(1024, 3))
    counted = count(Wanted(str(path), 0, wanted))
    assert counted.problem == ""
    for context, found in zip(wanted, counted.contexts, strict=True):
        kv, buffers = real(path, context)
        assert found.error == ""
        assert found.device_bytes == 0
        assert found.kv_bytes / 2**20 == pytest.approx(kv, abs=0.02)
        assert found.host_bytes / 2**20 == pytest.approx(buffers, abs=0.1)


def test_contexts_for_stored_kv_and_of_other_types(tiny_model_path: Path) -> None:
    wanted = (WantedContext(512, is_kv=True), WantedContext(512, type_k="q8_0", type_v="q8_0"))
    kept, quantised = count(Wanted(str(tiny_model_path), 0, wanted)).contexts
    assert kept.host_bytes / 2**20 == pytest.approx(real(tiny_model_path, wanted[0])[1], abs=0.2)
    assert "blocks of 32 values do not divide" in quantised.error
    assert (quantised.kv_bytes, quantised.host_bytes) == (0, 0)


def test_what_cannot_be_counted_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    assert str(broken) in count(Wanted(str(broken), 0, (WantedContext(512),))).problem
    (tmp_path / "dying.py").write_text("import os; os.abort()")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    died = count(Wanted("", 0, ()), module="dying")
    assert died.problem == "llama.cpp ended while it counted the buffers"
    assert died.contexts == ()


def test_without_contexts_nothing_is_opened() -> None:
    counted = count(Wanted("nowhere.gguf", 0, ()))
    assert (counted.contexts, counted.problem) == ((), "")
