"""Options that name a file to be read: what is no file, or far too much, is one line, at once."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localctx.errors import UsageError
from localctx.given_files import open_given
from localctx.serve.keys import read_keys
from localctx.small_text import MAX_BYTES

Run = Callable[..., Any]
OPTIONS = {
    "schema": ("ask", "TEXT", "-q", "Who?", "--schema", "FILE"),
    "config": ("ask", "TEXT", "-q", "Who?", "--config", "FILE"),
    "password": ("ask", "TEXT", "-q", "Who?", "--password-file", "FILE"),
    "question": ("ask", "TEXT", "-f", "FILE"),
    "keys": ("serve", "--api-key-file", "FILE"),
    "questions": ("bench", "compare", "TEXT", "--questions", "FILE"),
    "lora": ("ask", "TEXT", "-q", "Who?", "--lora", "FILE"),
    "embedder": ("ask", "TEXT", "-q", "Who?", "--embedder", "FILE"),
    "jobs": ("batch", "FILE"),
    "import": ("store", "import", "FILE"),
    "text": ("verify", "--text", "FILE"),
    "document": ("summarize", "FILE"),
}
SMALL = ("schema", "config", "password", "question", "keys", "questions")


@pytest.fixture
def irregular(tmp_path: Path) -> Iterator[dict[str, str]]:
    """Names of what is no file. The pipe's writer comes whenever somebody reads, and says nothing."""
    fifo, is_over = tmp_path / "fifo", threading.Event()
    os.mkfifo(fifo)

    def come_and_go() -> None:
        while not is_over.is_set():
            os.close(os.open(fifo, os.O_WRONLY))

    writer = threading.Thread(target=come_and_go)
    writer.start()
    master, slave = os.openpty()
    names = {"pipe": str(fifo), "terminal": os.ttyname(slave), "folder": str(tmp_path), "device": "/dev/zero"}
    os.write(master, b"\x04" * 99)  # whoever reads the terminal all the same comes to an end
    yield names
    for descriptor in (master, slave):
        os.close(descriptor)
    is_over.set()
    released = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer.join()
    os.close(released)


@pytest.mark.parametrize("option", OPTIONS)
def test_what_is_no_file_is_one_line(
    localctx: Run, tiny_model_path: Path, tmp_path: Path, irregular: dict[str, str], option: str
) -> None:
    text = tmp_path / "text.md"
    text.write_text("The river Orle is 12 km long.\n")
    for kind, name in irregular.items():
        if kind == "folder" and option in ("document", "embedder"):
            continue  # those are walked, or hold a model
        words = [{"TEXT": str(text), "FILE": name}.get(word, word) for word in OPTIONS[option]]
        if option != "import":
            words += ["--model", str(tiny_model_path)]
        result = localctx(*words)
        assert result.code in (1, 2, 3), (kind, result)
        assert (result.out, result.err.count("\n")) == ("", 1), (kind, result)
        assert not result.err.startswith("localctx: unexpected"), (kind, result)
        wanted = {"pipe": "pipe", "folder": "director", "terminal": "device", "device": "device"}[kind]
        assert wanted in result.err or "a regular file" in result.err or "folder" in result.err, result
        assert name in result.err, result


@pytest.mark.parametrize("option", SMALL)
@pytest.mark.parametrize("kind", ["huge", "binary", "a loop", "gone"])
def test_small_files_are_small_text(
    localctx: Run, tiny_model_path: Path, tmp_path: Path, option: str, kind: str
) -> None:
    text, given = tmp_path / "text.md", tmp_path / "given"
    text.write_text("The river Orle is 12 km long.\n")
    if kind == "huge":
        with given.open("wb") as file:
            file.truncate(MAX_BYTES + 1)
    elif kind == "binary":
        given.write_bytes(b"\x89PNG\xff\x00\xfe")
    elif kind == "a loop":
        given.symlink_to(given)  # nobody can open it, whoever runs the test
    words = [{"TEXT": str(text), "FILE": str(given)}.get(word, word) for word in OPTIONS[option]]
    result = localctx(*words, "--model", str(tiny_model_path))
    said = {"huge": "file too large", "binary": "not UTF-8", "gone": "no such file"}.get(
        kind, "symbolic links"
    )
    assert result.code in (2, 3)
    assert (result.out, result.err.count("\n"), said in result.err) == ("", 1, True), result


def test_a_name_that_no_file_can_have() -> None:
    with pytest.raises(UsageError, match="null"):
        read_keys(Path("a\0b"))


def test_a_question_that_is_piped_in_is_not_cut_short(localctx: Run, tmp_path: Path) -> None:
    text = tmp_path / "text.md"
    text.write_text("The river Orle is 12 km long.\n")
    result = localctx("ask", str(text), "-f", "-", stdin=b"Who? " * MAX_BYTES)
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert "file too large" in result.err
    assert "not UTF-8" in localctx("ask", str(text), "-f", "-", stdin=b"Wer f\xfchrt?").err


def test_open_pipes_and_the_null_device_are_read(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    os.write(writer, b"of a pipe")
    os.close(writer)
    with open_given(f"/dev/fd/{reader}") as file:
        assert file.read() == b"of a pipe"
    os.close(reader)
    with open_given(os.devnull) as file:
        assert file.read() == b""
    code = "from localctx.given_files import open_given; print(open_given('/dev/stdin').read())"
    (tmp_path / "a").write_bytes(b"of a file")
    with (tmp_path / "a").open("rb") as regular:
        done = subprocess.run([sys.executable, "-c", code], stdin=regular, capture_output=True, check=True)
    assert done.stdout == b"b'of a file'\n"
