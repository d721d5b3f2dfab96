"""The Python examples of the pages run as they stand."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OPTIONS = doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL


@pytest.mark.model
def test_the_example_of_the_readme_runs(
    smollm2_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`smollm2_path` says what to do when the embedded model is missing."""
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    monkeypatch.chdir(ROOT)
    exec(code, {})
    assert "New Orleans" in capsys.readouterr().out


@pytest.mark.model
@pytest.mark.slow
def test_the_examples_of_the_api_page_run(
    smollm2_path: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    page = ROOT / "docs" / "api.md"
    text = page.read_text("utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    lines = [text[: match.start(1)].count("\n") for match in re.finditer(r"```python\n(.*?)```", text, re.S)]
    at_home(monkeypatch, tmp_path, smollm2_path)
    names: dict[str, object] = {}
    runner, parser, said = doctest.DocTestRunner(optionflags=OPTIONS), doctest.DocTestParser(), list[str]()
    for code, line in zip(blocks, lines, strict=True):
        test = parser.get_doctest(code, names, "api.md", str(page), line)
        assert test.examples, f"line {line}: no example in the block"
        runner.run(test, out=said.append, clear_globs=False)
        names = test.globs
    assert runner.failures == 0, "".join(said)


def at_home(monkeypatch: pytest.MonkeyPatch, folder: Path, model: Path) -> None:
    """Work in an empty folder that is home too, with the embedded model in reach."""
    monkeypatch.setenv("LOCALCTX_MODELS_DIR", str(model.parent))
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(folder / "home"))
    monkeypatch.chdir(folder)
