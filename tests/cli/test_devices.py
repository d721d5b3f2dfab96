"""GPUs as a user asks for them, on a machine that has none: an error, never a quiet run on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]


@pytest.mark.parametrize(
    "words",
    [
        ("--split-mode", "layer"),
        ("-sm", "tensor"),
        ("--split-mode", "none"),
        ("-ts", "3,1"),
        ("--main-gpu", "0"),
        ("--n-cpu-moe", "2"),
        ("-ot", "_exps=CPU"),
        ("-ngl", "all"),
    ],
)
@pytest.mark.parametrize("command", [("ask", "-q", "Who?"), ("summarize",), ("index",)])
def test_a_gpu_that_is_not_there_is_an_error(
    localctx: Run, tiny_moe_path: Path, tmp_path: Path, command: tuple[str, ...], words: tuple[str, ...]
) -> None:
    file = tmp_path / "x.txt"
    file.write_text("The harbour was built in 1871 by Anna Feld. " * 20)
    result = localctx(command[0], str(file), *command[1:], "-m", str(tiny_moe_path), *words)
    assert (result.code, result.out) == (2, "")
    assert "no GPU can be used (devices: CPU" in result.err.replace("accel", "")
    assert result.err.count("\n") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-ot", "expz$=CPU"), "matches"),
        (("-ot", "a=CPU", "-ot", "("), "is not understood"),
        (("-ot", ""), "--override-tensor '' is not understood"),
        (("-ot", "_exps=CPUs"), "did you mean 'CPU'?"),
        (("-ts", "3;1"), "tensor_split = '3;1' is not understood"),
        (("-mg", "-1"), "main_gpu = -1 is out of range"),
        (("--n-cpu-moe", "-1"), "n_cpu_moe = -1 is out of range"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    localctx: Run, tiny_moe_path: Path, words: tuple[str, ...], said: str
) -> None:
    result = localctx("summarize", "-", "-m", str(tiny_moe_path), *words, stdin=b"text")
    assert (result.code, result.out) == (2, "")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_settings_of_a_file_and_of_the_command_line_join(
    localctx: Run, tiny_moe_path: Path, tmp_path: Path
) -> None:
    config = tmp_path / "localctx.toml"
    config.write_text('override_tensor = "_exps=CPU"\n')
    words = ["summarize", "-", "-m", str(tiny_moe_path), "--config", str(config), "-ot", "attn_q=CPU"]
    assert "--override-tensor _exps=CPU,attn_q=CPU: no GPU" in localctx(*words, stdin=b"text").err


def test_what_lies_where_is_told(localctx: Run, tiny_model_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "x.txt"
    file.write_text("The harbour was built in 1871 by Anna Feld. " * 20)
    words = [str(file), "-m", str(tiny_model_path)]
    told = localctx("ask", *words, "-q", "Who?", "-n", "4", "--json").json["model"]["devices"]
    assert [(share["name"], share["layers"]) for share in told] == [("CPU", 2)]
    assert told[0]["weights_bytes"] > 0 and told[0]["kv_bytes"] > 0
    shown = localctx("ask", *words, "-q", "Who?", "-n", "4", "-v")
    assert "  devices: CPU 2 layers, weights " in shown.err
    assert ", KV " in shown.err
    folder = ["--store", str(tmp_path / "other")]
    indexed = localctx("index", *words, "--json", *folder).json["model"]["devices"]
    assert indexed[0]["name"] == "CPU" and indexed[0]["kv_bytes"] > 0
