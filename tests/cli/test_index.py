"""`localctx index` as typed: what it prints, the background, and what it refuses."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from session.test_kept_kv import LONG, SHORT, chapters

from localctx.engine import open_model
from localctx.session.verdicts import VERDICT_FACT
from localctx.store import KVStore

Run = Callable[..., Any]
HELD = """
import pathlib, time
from localctx.session.encoding import Encoder
from localctx.store import writing
from localctx.cli.entry import run

encode, writing.FULL_BYTES = Encoder._encode, 30_000  # a few runs: many commits

def held(encoder, chunk):
    # While the file `hold` is there, nothing behind this token is stored: the command cannot end meanwhile.
    while chunk.first >= 16_384 and pathlib.Path("hold").exists():
        time.sleep(0.005)
    encode(encoder, chunk)

Encoder._encode = held
run()
"""


@pytest.fixture
def words(tmp_path: Path, tiny_model_path: Path) -> list[str]:
    """Model and store of every command."""
    return ["-m", str(tiny_model_path), "--store", str(tmp_path / "store"), "-t", "1"]


def write(tmp_path: Path, text: str, name: str = "book.md") -> str:
    (tmp_path / name).write_text(text, "utf-8")
    return str(tmp_path / name)


def test_index_then_ask(localctx: Run, words: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, LONG)
    first = localctx("index", file, *words, "--json")
    assert first.code == 0
    assert first.json["schema"] == "localctx.index/1"
    row = first.json["documents"][0]
    assert list(row) == [
        "source", "tokens_total", "tokens_stored_before", "tokens_evaluated", "tokens_stored", "size_bytes",
        "seconds", "policy", "codec", "tokens_per_s",
    ]  # fmt: skip
    assert row["tokens_stored"] == row["tokens_total"] == first.json["tokens_total"] > 0
    again = localctx("index", file, *words)
    assert "0 evaluated" in again.out
    asked = localctx(
        "ask", file, "-q", "code of gate 7?", *words, "--strategy", "stream", "--kv", "refresh=0", "-n", "8",
        "--json",
    )  # fmt: skip
    assert asked.code == 0
    assert asked.json["tokens"]["evaluated"] < 200 < asked.json["coverage"]["tokens_read"]
    assert asked.json["tokens"]["restored"] > 100


def test_summaries_made_while_indexing_are_merged(localctx: Run, words: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, LONG)
    first = localctx("index", file, *words, "--summaries", "--kv", "window=512")
    assert first.code == 0
    summary = localctx("summarize", file, *words, "--length", "long", "--kv", "window=512", "--json")
    assert summary.code == 0
    assert (summary.json["strategy"], summary.json["tokens"]["evaluated"]) == ("stream", 0)
    assert summary.json["coverage"]["tokens_dropped"] == 0


def test_the_background_goes_on_by_itself(localctx: Run, words: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, SHORT)
    result = localctx("index", file, *words, "--background", "--json", "--kv", "codec=int8")
    assert result.code == 0
    assert result.json["schema"] == "localctx.job/1"
    log = Path(result.json["log"])
    assert log.stat().st_mode & 0o777 == 0o600
    deadline = time.monotonic() + 120
    while '"localctx.index/1"' not in log.read_text("utf-8"):
        assert time.monotonic() < deadline, log.read_text("utf-8")
        time.sleep(0.1)
    again = localctx("index", file, *words, "--kv", "codec=int8", "--json")
    assert again.json["tokens_evaluated"] == 0


def test_a_background_that_fails_at_once_says_so(localctx: Run, words: list[str], tmp_path: Path) -> None:
    result = localctx("index", str(tmp_path / "nowhere.md"), *words, "--background")
    if result.code == 0:  # the machine was too busy for it to fail in time: its log has it
        log = Path(result.out.split("log: ")[1].splitlines()[0])
        deadline = time.monotonic() + 120
        while "nowhere.md" not in log.read_text("utf-8"):
            assert time.monotonic() < deadline
            time.sleep(0.1)
    else:
        assert "nowhere.md" in result.err


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--store", "off"], "keeps nothing"),
        (["--store", "off", "--background"], "keeps nothing"),
        (["--strategy", "retrieve"], "is not for index"),
        (["--kv", "windw=3"], "did you mean 'window'?"),
        (["--kv", "window=100"], "a multiple of 128"),
        (["--kv", "refresh=101"], "from 0 to 100%"),
        (["--kv", "tier=4"], "not available yet"),
        (["--kv", "routed=4,policy=exact"], "no text leaves the window"),
        (["--latency", "-1"], "out of range"),
    ],
)
def test_what_cannot_be_is_one_line(
    localctx: Run, words: list[str], tmp_path: Path, more: list[str], said: str
) -> None:
    result = localctx("index", write(tmp_path, SHORT), *words, *more, "--quiet")
    assert result.code == 2
    assert said in result.err
    assert result.err.count("\n") == 1


def test_standard_input_cannot_go_to_the_background(localctx: Run, words: list[str]) -> None:
    result = localctx("index", "-", *words, "--background")
    assert (result.code, "standard input" in result.err) == (2, True)


def test_the_spelling_of_an_article_means_stream(localctx: Run, words: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, LONG)
    result = localctx(
        "ask",
        file,
        "-q",
        "code of gate 7?",
        *words,
        "--kv-overrides",
        "cache_type=streaming",
        "--json",
        "-n",
        "4",
    )
    assert result.json["strategy"] == "stream"
    clash = localctx("ask", file, "-q", "?", *words, "--kv", "cache_type=streaming", "--strategy", "exact")
    assert (clash.code, "means --strategy stream" in clash.err) == (2, True)


def test_a_model_is_checked_once(localctx: Run, words: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, SHORT)
    assert "are answers from stored KV as good as exact ones?" in localctx("index", file, *words).err
    assert "as good as exact ones?" not in localctx("index", file, *words).err


def test_the_codec_is_that_of_what_is_stored(localctx: Run, words: list[str], tmp_path: Path) -> None:
    file = write(tmp_path, LONG)
    stream = ("--strategy", "stream")
    assert "as int4" in localctx("index", file, *words, *stream, "--kv", "codec=int4").out
    model, store = words[1], words[3]
    with open_model(Path(model)) as opened, KVStore.open(Path(store)) as kv:  # by now only f16 is good enough
        verdict = {"stream": {"passes": True, "codec": "f16"}}
        kv.set_model_fact(opened.info.fingerprint, VERDICT_FACT, verdict)
    again = localctx("index", file, *words, *stream).out
    assert ("0 evaluated" in again, "as int4" in again) == (True, True)


@pytest.mark.slow
@pytest.mark.parametrize(("how", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_that_ends_it_keeps_what_is_done(
    localctx: Run, words: list[str], tmp_path: Path, how: signal.Signals, code: int
) -> None:
    text = chapters(300)
    file = write(tmp_path, text)
    (tmp_path / "hold").touch()
    child = subprocess.Popen(
        [sys.executable, "-c", HELD, "index", file, *words], stderr=subprocess.PIPE, text=True, cwd=tmp_path
    )
    deadline = time.monotonic() + 120
    while len(list((tmp_path / "store").glob("kv/segments/*.seg"))) < 3:  # the first one is the prefix's
        assert child.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.05)
    child.send_signal(how)
    (tmp_path / "hold").unlink()
    _, said = child.communicate(timeout=120)
    assert child.returncode == code, said
    assert said.rstrip().endswith("interrupted")
    assert localctx("store", "verify", *words[2:4]).code == 0
    row = localctx("index", write(tmp_path, text), *words, "--json").json["documents"][0]
    assert 0 < row["tokens_stored_before"] < row["tokens_total"] == row["tokens_stored"]


def test_what_the_store_could_not_take_is_refused_before_it_is_prefilled(
    localctx: Run, words: list[str], tmp_path: Path
) -> None:
    book = write(tmp_path, LONG)
    found = localctx("index", book, *words, "--store-limit", "10k", "--json")
    assert found.code == 1
    assert "the store may take 10.0 kB" in found.json["error"]["message"]
    assert "--store-limit" in found.json["error"]["hint"]
    asked = localctx(
        "ask", book, "-q", "code of gate 7?", *words, "--store-limit", "10k", "--strategy", "stream",
        "-n", "8", "--json",
    )  # fmt: skip
    assert any("only what the question needs is prefilled" in warning for warning in asked.json["warnings"])
    assert localctx("index", book, *words, "--store-limit", "1G").code == 0
