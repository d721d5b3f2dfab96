"""As many questions side by side as are worth it: on a processor each looks at the cells of all."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx.document import open_document
from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.engine.shape import n_worth
from localctx.session.events import Finished
from localctx.session.side_by_side import SideBySide
from localctx.settings import Settings

TEXT = "The meeting was in spring. " * 20
N_WANTED = 64


def test_more_places_than_are_worth_it_are_not_opened(tiny_model_path: Path, tmp_path: Path) -> None:
    (tmp_path / "note.md").write_text(TEXT, "utf-8")
    settings = Settings(store=str(tmp_path / "store"), threads=1, max_tokens=8)
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        open_document(str(tmp_path / "note.md"), cache_dir=None) as document,
        SideBySide(model, settings, n_parallel=N_WANTED) as asking,
    ):
        for number in range(3):
            asking.submit([document], f"When was meeting {number}?")
        answers = [event.answer for _, event in asking if isinstance(event, Finished)]
        n_places = asking.n_parallel
        assert n_worth(model.shape, 1000) <= n_places <= n_worth(model.shape, 1)
    said = f"{n_places} questions side by side, not {N_WANTED}: "
    assert n_places < N_WANTED
    assert len(answers) == 3
    assert any(text.startswith(said) for answer in answers for text in answer.warnings)


def test_a_gpu_takes_as_many_as_were_asked_for(
    tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "note.md").write_text(TEXT, "utf-8")
    settings = Settings(store=str(tmp_path / "store"), threads=1, max_tokens=8)
    with (
        open_model(tiny_model_path, EngineOptions(n_threads=1)) as model,
        open_document(str(tmp_path / "note.md"), cache_dir=None) as document,
    ):
        monkeypatch.setattr(LlamaModel, "is_offloaded", property(lambda model: True))
        with SideBySide(model, settings, n_parallel=N_WANTED) as asking:
            asking.submit([document], "When was the meeting?")
            assert any(isinstance(event, Finished) for _, event in asking)
            assert asking.n_parallel == N_WANTED
