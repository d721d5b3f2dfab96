"""Whole states of a context: what their names must say, and whether they can be put back at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from engine.conftest import ask, collect, text_of
from engine.kv_tools import document
from engine.tiny_architectures import ARCHITECTURES, write_architecture

from localctx.engine.llama import open_model
from localctx.engine.llama_state import CellStates
from localctx.engine.options import EngineOptions
from localctx.engine.rope import RopeOptions
from localctx.errors import NotComposable


def space(path: Path, n_ctx: int = 256, **options: object) -> str:
    """What states of such a context depend on."""
    with open_model(path, EngineOptions(**options)) as model:  # type: ignore[arg-type]  # as EngineOptions has them
        return model.open_context(n_ctx).state_space


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_every_architectures_state_comes_back(architecture: str, tmp_path: Path) -> None:
    with open_model(write_architecture(tmp_path / "m.gguf", architecture)) as model:
        context = model.open_context(256)
        request = ask(model, "The harbour", max_tokens=8)
        before = text_of(collect(context, [request])[0])
        context.check_snapshots()
        assert text_of(collect(context, [request])[0]) == before


def test_a_state_that_is_another_one_is_found_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_model(write_architecture(tmp_path / "m.gguf", "llama")) as model:
        context = model.open_context(256)
        other = context.snapshot(document(model, 32))
        restore = CellStates.restore
        monkeypatch.setattr(
            CellStates, "restore", lambda cells, sequence, blob: restore(cells, sequence, other)
        )
        with pytest.raises(NotComposable, match="answers differently from a state that was put back"):
            context.check_snapshots()
        assert not len(context._scheduler.held)


def test_the_name_says_what_a_state_depends_on(tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "llama")
    usual = space(path)
    assert space(path) == space(path, n_ctx=512) == usual  # cells do not count
    others = [
        space(path, rope=RopeOptions(freq_base=20000.0)),
        space(path, rope=RopeOptions(scaling="linear", freq_scale=0.5)),
        space(path, n_batch=64),
        space(path, type_k="bf16"),
    ]
    assert len({usual, *others}) == 5


def test_cells_count_where_factors_depend_on_them(tmp_path: Path) -> None:
    factors = np.linspace(1, 9, 8).astype(np.float32)
    extra = {f"rope_factors_{kind}.weight": factors for kind in ("long", "short")}
    path = write_architecture(tmp_path / "m.gguf", "phi3", extra=extra)
    assert space(path, n_ctx=256) != space(path, n_ctx=1024)


def test_a_state_that_is_not_wanted_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_model(write_architecture(tmp_path / "m.gguf", "mamba")) as model:
        context, tokens, asked = model.open_context(256), document(model, 100), list[int]()
        monkeypatch.setattr(CellStates, "export", lambda *words: pytest.fail("copied"))
        blob = context.snapshot(tokens, is_wanted=lambda n_bytes: bool(asked.append(n_bytes)))
        assert blob is not None
        assert len(blob) == 0
        assert asked == [context.cells.export_size(0)]
        assert list(context._scheduler.held) == list(tokens)
