"""Faults that users would meet, each as its kind: places, limits, and what must never be overwritten."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localctx.errors import InputError, UsageError
from localctx.session.summarize import wanted_points
from localctx.settings import load_settings
from localctx.values import Block

Run = Callable[..., Any]


@pytest.mark.parametrize("through_a_link", [False, True])
def test_an_input_is_never_overwritten(localctx: Run, tmp_path: Path, through_a_link: bool) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The vault code is 7734.")
    out = tmp_path / "link" if through_a_link else path
    if through_a_link:
        out.symlink_to(path)
    result = localctx("summarize", str(path), "-o", str(out))
    assert result.code == 2
    assert "one of the inputs" in result.err
    assert path.read_text() == "The vault code is 7734."


@pytest.mark.parametrize("name", ["utf-16", "utf-32", "utf-16-le"])
def test_encodings_with_a_mark_can_be_named(localctx: Run, tmp_path: Path, name: str) -> None:
    path = tmp_path / "u.txt"
    path.write_bytes("Grüße, 日本語.".encode(name))
    assert localctx("chunk", "--text", str(path), "--encoding", name).out == "Grüße, 日本語."


def test_settings_in_a_folder_that_may_not_be_searched_are_no_settings(tmp_path: Path) -> None:
    """Root ignores modes, so a name that is too long stands in: both make stat() fail."""
    assert load_settings({}, environ={}, config=None).model
    code = "from localctx.settings import load_settings; print(load_settings({}).model)"
    environment = {**os.environ, "XDG_CONFIG_HOME": str(tmp_path / ("x" * 300))}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize(("name", "value"), [("store", ""), ("store", "a\0b"), ("password_file", "\0")])
def test_empty_and_nul_values_are_refused(name: str, value: str) -> None:
    with pytest.raises(UsageError, match=name):
        load_settings({name: value}, environ={})


def test_an_empty_later_option_is_not_ignored(localctx: Run) -> None:
    assert localctx("summarize", "x", "--schema", "").code == 2
    assert localctx("summarize", "x", "--lora", "").code == 2


@pytest.mark.parametrize("option", ["-f", "--password-file", "--config"])
def test_a_device_that_never_ends_is_no_small_file(localctx: Run, tmp_path: Path, option: str) -> None:
    path = tmp_path / "a.pdf"
    path.write_text("text")
    words = {"-f": ["ask"], "--password-file": ["chunk", "--text"], "--config": ["ask", "-q", "?"]}[option]
    result = localctx(*words, str(path), option, "/dev/zero")
    assert result.code in (2, 3)
    assert "it is a device, not a file" in result.err


def test_the_question_can_be_piped(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The vault code is 7734.")
    words = ["ask", str(path), "-f", "-", "--json", "-n", "4", "--model", str(tiny_model_path)]
    assert localctx(*words, stdin=b"What is the code?\n").json["question"] == "What is the code?"


def test_json_that_fails_half_way_is_one_object(
    localctx: Run, tmp_path: Path, tiny_model_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The vault code is 7734. " * 200)

    def breaking(*_: object, **__: object) -> Iterator[Block]:
        yield Block(0, 0, 3, "The", (1,), "limit")
        raise InputError("the file changed")

    monkeypatch.setattr("localctx.blocks.split", breaking)
    result = localctx("chunk", str(path), "--json", "--model", str(tiny_model_path))
    assert (result.code, result.json["error"]["message"]) == (3, "the file changed")


def test_a_length_of_thousands_of_digits_is_refused() -> None:
    with pytest.raises(UsageError, match="not understood"):
        wanted_points("9" * 5000)


def test_a_question_longer_than_the_context_is_named(
    localctx: Run, tmp_path: Path, tiny_model_path: Path
) -> None:
    path = tmp_path / "a.txt"
    path.write_text("The vault code is 7734.")
    result = localctx("ask", str(path), "-q", "why " * 20_000, "--model", str(tiny_model_path))
    assert result.code == 2
    assert "the question and an answer of" in result.err
