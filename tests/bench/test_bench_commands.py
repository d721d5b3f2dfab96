"""The commands as a user types them: one JSON object or lines for a person, errors in one line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from localctx.cli.main import run

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bench(
    tiny_model_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """Exit code and both streams of `localctx bench …`, on the tiny model where there is one."""
    for name in ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path / "home"))

    def call(*words: str) -> tuple[int, str, str]:
        more = () if words[0] == "codec" else ("--model", str(tiny_model_path), "--threads", "1")
        monkeypatch.setattr(sys, "argv", ["localctx"])
        capfd.readouterr()
        with pytest.raises(SystemExit) as done:
            run(["bench", *words, *more])
        out, err = capfd.readouterr()
        assert isinstance(done.value.code, int)
        return done.value.code, out, err

    return call


@pytest.mark.parametrize(
    "words",
    [
        ("prefill", "--tokens", "400", "--kv", "window=128"),
        ("ask", "--tokens", "600", "--questions", "1", "--max-tokens", "8"),
        ("decode", "--tokens", "200", "--steps", "2"),
        ("codec", "--shape", "1x1x32", "--tokens", "128", "--codec", "int4"),
    ],
)
def test_one_object_or_lines(bench: Run, words: tuple[str, ...], tmp_path: Path) -> None:
    code, out, err = bench(*words, "--repeats", "1", "--json")
    shown = json.loads(out)
    assert (code, err, shown["schema"]) == (0, "", f"localctx.bench.{words[0]}/1")
    assert {"cpu", "n_cores", "n_threads", "ram_bytes", "gpus"} <= set(shown["machine"])
    code, out, err = bench(*words, "--repeats", "1", "--quiet")
    assert (code, err) == (0, "")
    assert len(out.splitlines()) >= 3
    assert not [path for path in tmp_path.rglob("*") if path.name.startswith("localctx-bench-")]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("prefill", "--tokens", "9000000"), "are needed"),
        (("ask", "--ctx", "4096"), "trained for"),
        (("decode", "--tokens", "5000"), "do not fit"),
        (("codec", "--shape", "7b"), "not understood"),
        (("prefill", "nowhere.txt"), "nowhere.txt"),
        (("decode", "--strategy", "exact"), "--strategy is not for bench decode"),
        (("ask", "--schema", "x"), "cannot read the schema x"),
    ],
)
def test_errors_are_one_line(bench: Run, words: tuple[str, ...], said: str) -> None:
    code, out, err = bench(*words, "--quiet")
    assert code in (1, 2, 3)
    assert said in err and err.count("\n") == 1 and out == ""
