"""The `eval` commands as a user types them, in-process, on the tiny model."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localctx.cli.main import run


@pytest.fixture
def eval_command(
    tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Callable[..., tuple[int, str, str]]:
    """Call with the words behind `eval`; the exit code and both streams."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))

    def call(*words: str) -> tuple[int, str, str]:
        typed = ["eval", *words, "--model", str(tiny_model_path), "--threads", "1"]
        monkeypatch.setattr(sys, "argv", ["localctx", *typed])
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            run(typed)
        out, err = capfd.readouterr()
        assert isinstance(done.value.code, int)
        return done.value.code, out, err

    return call
