"""The Python examples of the pages run as they stand."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.model
def test_the_example_of_the_readme_runs(
    smollm2_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`smollm2_path` says what to do when the embedded model is missing."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    monkeypatch.chdir(ROOT)
    exec(code, {})
    assert "New Orleans" in capsys.readouterr().out
