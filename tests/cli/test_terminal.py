"""What a terminal gets and what a pipe gets; streams that cannot be written."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx.cli.citations import citation_lines
from localctx.cli.render import Reporter
from localctx.selection import Statement
from localctx.selection.support import Verdict
from localctx.session.answer import Answer
from localctx.session.events import Finished, Overview, Replaced, Text
from localctx.session.provenance import Citation, Coverage
from localctx.values import ModelInfo, RopeInfo, Section

PROGRAM = [sys.executable, "-c", "from localctx.cli.main import run; run()"]
EVIL = "Re\x1b]0;owned\x07port \x9b31mred\r\n\tThe code is 7734\x08.\n"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("model")
    return str(write_tiny_gguf(folder / "tiny.gguf", bpe_vocabulary(), n_ctx_train=8192))


def on_a_terminal(words: Sequence[str], **environment: str) -> str:
    """What the program writes to a terminal, on both streams."""
    controller, terminal = pty.openpty()
    child = subprocess.Popen(
        [*PROGRAM, *words],
        stdout=terminal,
        stderr=terminal,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "TERM": "xterm", **environment},
    )
    os.close(terminal)
    data = b""
    try:
        while piece := os.read(controller, 4096):
            data += piece
    except OSError:  # how Linux says that the other side is closed
        pass
    os.close(controller)
    assert child.wait(120) == 0, data
    return data.decode().replace("\r\n", "\n")


def test_a_terminal_gets_no_control_characters(tmp_path: Path) -> None:
    path = tmp_path / "evil.txt"
    path.write_text(EVIL, newline="")
    assert on_a_terminal(["chunk", "--text", str(path)]) == (
        "Re\ufffd]0;owned\ufffdport \ufffd31mred\n\tThe code is 7734\ufffd.\n"
    )
    piped = subprocess.run([*PROGRAM, "chunk", "--text", str(path)], capture_output=True, check=True)
    assert piped.stdout.decode() == EVIL


@pytest.mark.parametrize("words", [["summarize"], ["ask", "-q", "What is the code?"], ["chunk", "--json"]])
def test_nothing_of_a_document_reaches_the_terminal_raw(model: str, tmp_path: Path, words: list[str]) -> None:
    path = tmp_path / "evil.md"
    path.write_text(f"# {EVIL}", newline="")
    more = [] if "chunk" in words else ["-n", "8"]
    shown = on_a_terminal([*words, str(path), "--model", model, *more])
    assert "evil.md" in shown
    for raw in ("\x1b]0;", "\x07", "\x9b", "\x08"):
        assert raw not in shown


@pytest.mark.parametrize("form", ["--json", "--jsonl", "--quiet"])
def test_no_record_reaches_the_terminal_raw(model: str, tmp_path: Path, form: str) -> None:
    path = tmp_path / "evil.csv"
    path.write_text("id,name\n7,\x9b31mred\u202e\x1b]0;x\x07\n", encoding="utf-8")
    schema = '{"properties": {"id": {"type": "integer"}, "name": {"type": "string"}}, "required": ["id"]}'
    shown = on_a_terminal(["extract", str(path), "--schema", schema, "--model", model, form])
    assert "evil.csv" in shown
    assert not {"\x9b", "\u202e", "\x07"} & set(shown)
    assert "\x1b]0;" not in shown


def test_a_terminal_shows_letters_in_the_order_in_which_they_stand(tmp_path: Path) -> None:
    path = tmp_path / "turned.csv"
    path.write_text("paid,\u202e0001\n\u05e9\u05dc\u200f,2\n", encoding="utf-8")
    assert on_a_terminal(["chunk", "--text", str(path)]) == "paid,\ufffd0001\n\u05e9\u05dc\u200f,2\n"


def test_marks_link_to_files_on_a_terminal_only(model: str, tmp_path: Path) -> None:
    path = tmp_path / "with space#é.txt"
    path.write_text("The vault code is 7734.\n")
    words = ["summarize", str(path), "--model", model, "-n", "8"]
    link = f"\x1b]8;;file://{quote(os.fsencode(path))}\x1b\\[1]\x1b]8;;\x1b\\ {path}"
    assert link in on_a_terminal(words)
    assert "\x1b]8" not in on_a_terminal(words, TERM="dumb")
    piped = subprocess.run([*PROGRAM, *words], capture_output=True, check=True).stdout.decode()
    assert "\x1b" not in piped
    assert piped.endswith(f"\n\n[1] {path}\n")  # the point is the quote


def test_colour_is_not_used_where_it_is_not_wanted(model: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("Filler sentence number one two three. " * 400)
    words = ["summarize", str(path), "--model", model, "-n", "8"]
    colour = re.compile(r"\x1b\[[0-9;]*[34][0-7](;[0-9;]*)?m|\x1b\[38;")
    assert not colour.search(on_a_terminal(words, NO_COLOR="1"))


def answer(command: str, text: str, *quotes: str) -> Answer:
    info = ModelInfo("m", "m.gguf", "f", "llama", 8192, 2, 100, 1, 1, RopeInfo("norm"))
    return Answer(
        command=command,  # type: ignore[arg-type]  # one of the two
        text=text,
        strategy="exact",
        support="supported",
        finish_reason="stop",
        model=info,
        n_ctx=8192,
        coverage=Coverage(1200, 1100, 1000, 100, 30, (3, 7), 2),
        citations=tuple(Citation("a.pdf", 0, 1, quote, 1.0, 12, "x") for quote in quotes),
    )


def test_a_quote_is_shown_unless_the_point_is_the_quote() -> None:
    summary = answer(
        "summarize", "## A\n- The code is 7734. (p. x) [1]\n- Short. [2]", "The code\nis 7734.", "Long."
    )
    assert citation_lines(summary) == [
        "[1] a.pdf p. x (page 12 of the file)",
        "[2] a.pdf p. x (page 12 of the file) “Long.”",
    ]
    assert citation_lines(answer("ask", "Yes.", "Yes.")) == ["[1] a.pdf p. x (page 12 of the file) “Yes.”"]


def test_an_answer_that_is_partial_as_a_whole_says_why(capsys: pytest.CaptureFixture[str]) -> None:
    partial = replace(
        answer("ask", "Yes.", "Yes."), support="partial", statements=(Statement(0, 4, "partial"),)
    )
    named = replace(partial, statements=(Statement(0, 1, "none"), Statement(1, 4, "partial")))
    for one, says in ((partial, True), (named, False)):
        with reporter() as shown:
            shown.event(Finished(one))
        said = capsys.readouterr().err
        assert "support: partial" in said
        assert ("no one place that was read says all of it" in said) is says


def reporter(verbose: bool = False, shows_answer: bool = True) -> Reporter:
    return Reporter(as_json=False, quiet=False, verbose=verbose, shows_answer=shows_answer)


def test_the_footer_says_what_was_read(capsys: pytest.CaptureFixture[str]) -> None:
    from localctx.session.events import Finished, Text

    with reporter() as shown:
        shown.event(Text("Yes."))
        shown.event(Finished(answer("ask", "Yes.", "Yes, it is.")))
    out, err = capsys.readouterr()
    assert out == "Yes.\n\n[1] a.pdf p. x (page 12 of the file) “Yes, it is.”\n"
    assert err == (
        "— exact: 30 pages, 1,100 of 1,200 tokens read, 1,000 attended, 100 not read; support: supported\n"
        "  pages without text: 3, 7\n"
        "  characters replaced: 2\n"
    )
    with reporter(verbose=True, shows_answer=False) as shown:
        shown.event(Finished(answer("ask", "Yes.")))
    out, err = capsys.readouterr()
    assert out == ""
    assert "model m: n_ctx 8,192 of 8,192 trained; rope norm" in err


def test_an_overview_is_shown_once_and_of_its_highest_level(capsys: pytest.CaptureFixture[str]) -> None:
    sections = tuple(Section(2 if n % 100 else 1, f"S{n}", n, n + 1) for n in range(8000))
    overview = Overview("a.pdf", "pdf", 3, 1000, "en", sections)
    with reporter() as shown:
        shown.preview(overview, "plan: probably exact")
        shown.event(overview)
        shown.event(Overview("b.txt", "text", 0, 10, None, ()))
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "a.pdf: pdf, 3 pages, about 1,000 tokens, language en"
    assert lines[1:3] == ["  S0", "  S100"]
    assert lines[13:] == ["  … and 68 more sections", "plan: probably exact", "b.txt: text, about 10 tokens"]


def shell(line: str) -> subprocess.CompletedProcess[str]:
    program = f"env -u PYTHONUNBUFFERED '{sys.executable}' -c 'from localctx.cli.main import run; run()'"
    return subprocess.run(
        line.replace("localctx", program), shell=True, capture_output=True, text=True, check=False,
        executable="/bin/bash",
    )  # fmt: skip


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(
    "words", ["--help", "--version", "chunk --text '{}'", "models ls --json", "nonsense --json"]
)
def test_a_full_disk_is_one_plain_line(tmp_path: Path, words: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One two three.")
    done = shell(f"localctx {words.format(path)} > /dev/full")
    assert done.returncode == 1
    assert "no space left on device" in done.stderr
    assert "report" not in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("closing", [">&-", "2>&-", "<&-", "2>/dev/full"])
def test_closed_streams_are_no_traceback(tmp_path: Path, closing: str) -> None:
    path = tmp_path / "a.txt"
    path.write_text("One two three.")
    done = shell(f"localctx chunk --text '{path}' {closing}")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ("" if closing == ">&-" else "One two three.")
    failing = shell(f"localctx chunk --text '{path}.no' {closing}")
    assert failing.returncode == 3
    assert "Traceback" not in failing.stderr
    assert failing.stdout == ""


def test_a_redirected_answer_holds_only_what_stands(capfd: pytest.CaptureFixture[str]) -> None:
    reporter = Reporter(as_json=False, quiet=True, verbose=False, shows_answer=True)
    for event in (Text("Napoleon did."), Replaced("The document does not answer this question.")):
        reporter.event(event)
    reporter.event(Finished(answer("ask", "The document does not answer this question.")))
    assert capfd.readouterr().out == "The document does not answer this question.\n"


def test_statements_without_support_are_named_under_the_answer() -> None:
    text = "Anna Feld opened it. Two dragons guarded it. It rained."
    verdicts: tuple[Verdict, ...] = ("supported", "none", "partial")
    spans = ((0, 20), (21, 44), (45, 55))
    statements = tuple(Statement(*span, one) for span, one in zip(spans, verdicts, strict=True))
    marked = replace(answer("ask", text, "Anna Feld."), statements=statements)
    assert citation_lines(marked)[1:] == [
        "[?] not supported: “Two dragons guarded it.”",
        "[?] supported in part only: “It rained.”",
    ]
    alone = replace(marked, statements=(Statement(0, 20, "partial"),))
    assert citation_lines(alone) == ["[1] a.pdf p. x (page 12 of the file) “Anna Feld.”"]
