"""`localctx chat` on a pseudo-terminal: what is typed, pasted, interrupted, resized, and gone on with."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from terminals.pseudo_terminal import LINGERING, LINGERING_PREFILL, PseudoTerminal

pytestmark = pytest.mark.slow

BOOK = (
    "# Rivers\n\nThe river Orle rises near Tannau and is 212 kilometres long.\n\n"
    "# Mines\n\nThe mine was opened in 1742.\n"
)
Chat = Callable[..., PseudoTerminal]
PASTING_ON, PASTING_OFF = "\x1b[?2004h", "\x1b[?2004l"
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


@pytest.fixture
def chat(tmp_path: Path, tiny_model_path: Path) -> Iterator[Chat]:
    """Start a chat on a short book."""
    (tmp_path / "book.md").write_text(BOOK, "utf-8")
    with ExitStack() as stack:

        def call(
            *words: str, n_tokens: int = 12, files: tuple[str, ...] = ("book.md",), before: str = ""
        ) -> PseudoTerminal:
            given = [str(tmp_path / name) for name in files]
            rest = ["--model", str(tiny_model_path), "--store", str(tmp_path / "store")]
            rest += ["--max-tokens", str(n_tokens), *words]
            return stack.enter_context(PseudoTerminal(["chat", *given, *rest], tmp_path, before=before))

        yield call


def test_a_question_is_answered_and_ctrl_d_leaves(chat: Chat) -> None:
    terminal = chat()
    terminal.enter("How long is the river Orle?")
    terminal.wait("support:")
    terminal.ready()
    terminal.type(CTRL_D)
    assert terminal.end() == 0
    assert "kept: localctx chat --continue" in terminal.text
    assert "Traceback" not in terminal.text


def test_every_command(chat: Chat, tmp_path: Path, tiny_qwen3_path: Path) -> None:
    (tmp_path / "other.md").write_text("The river Lom is 90 kilometres long and slow.\n", "utf-8")
    terminal = chat(files=())
    terminal.wait("no document is open")

    def types(line: str, *wanted: str) -> str:
        terminal.enter(line)
        return terminal.wait(*wanted)

    types("What?", "no document is open")
    types("/cite", "has no citations")
    types("/cover", "nothing was answered")
    types("/undo", "nothing to take back")
    types("/retry", "nothing to ask again")
    types("/edit", "nothing to edit")
    types("/save", "nothing was said")
    types(f"/open {tmp_path / 'book.md'}", "opened ", "book.md")
    types(f"/open {tmp_path / 'nothing.md'}", "nothing.md")
    types("How long is the river Orle?", "support:")
    types("/cite", "[1]", "book.md")
    types("/cite 1", "»", "«")
    types("/cite 99", "there is no citation 99")
    types("/cover", "tokens read")
    types(f"/open {tmp_path / 'other.md'}", "other.md")
    types("/docs", "1. ", "book.md", "2. ", "other.md")
    types("/ask-all How long is the river?", "— ", "book.md", "support:", "other.md", "support:")
    types("/close other.md", "closed ", "other.md")
    types("/close other.md", "no open document is called")
    types("/set temp 0.5", "temp = 0.5")
    types("/set threads 2", "is set when the chat is started")
    types("/set tempp 2", "did you mean 'temp'")
    types("/set temp", "temp = 0.0")
    types("/retry", "support:")
    types("/save rivers", "kept as rivers")
    types("/load", "rivers: How long is the river Orle?")
    types("/stats", "1 question")
    types(f"/export {tmp_path / 'talk.md'}", "written to ")
    types(f"/export {tmp_path / 'talk.json'}", "written to ")
    types("/undo", "taken back: How long is the river Orle?")
    types("/clear", "a new conversation")
    types("/load rivers", "going on after 0 questions")
    terminal.enter(f"/model {tiny_qwen3_path}")
    terminal.wait("model tiny-qwen3")
    terminal.wait("tiny-qwen3 ·")
    terminal.type("How long is the river Orle?\r")
    terminal.wait("support:")
    terminal.wait("tiny-qwen3 ·")
    terminal.type("/model nowhere\r")
    terminal.wait("unknown model 'nowhere'")
    terminal.wait("tiny-qwen3 ·")
    terminal.type("/quit\r")
    assert terminal.end() == 0
    assert "## How long is the river Orle?" in (tmp_path / "talk.md").read_text("utf-8")
    assert '"schema": "localctx.chat/1"' in (tmp_path / "talk.json").read_text("utf-8")


def test_a_paste_of_several_lines_is_one_question(chat: Chat) -> None:
    terminal = chat()
    terminal.ready()
    terminal.type("\x1b[200~How long is\nthe river Orle?\x1b[201~")
    terminal.wait("the river Orle?")
    terminal.type("\r")
    terminal.wait("support:")
    terminal.enter("/stats")
    terminal.wait("1 question;")


def test_alt_enter_begins_a_line_and_tab_completes(chat: Chat, tmp_path: Path) -> None:
    terminal = chat()
    terminal.ready()
    terminal.type("How long is\x1b\rthe river Orle?\r")
    terminal.wait("support:")
    terminal.ready()
    terminal.type("/sta\t")
    terminal.wait("/sta", "ts")
    terminal.type("\r")
    terminal.wait("1 question;")
    terminal.ready()
    terminal.type(f"/open {tmp_path}/boo\t")
    terminal.wait("k.md")
    terminal.type("\r")
    terminal.wait("is open already")


def test_a_signal_that_ends_it_leaves_the_terminal_and_the_conversation_whole(chat: Chat) -> None:
    terminal = chat()
    terminal.enter("How long is the river Orle?")
    terminal.wait("support:")
    terminal.ready()
    terminal.type("half a line")
    terminal.wait("half a line")
    terminal.child.kill(signal.SIGTERM)
    assert terminal.end() == 143
    assert "interrupted" in terminal.text
    assert terminal.raw.rindex(PASTING_OFF) > terminal.raw.rindex(PASTING_ON)
    terminal = chat("--continue", n_tokens=1200, before=LINGERING)
    terminal.wait("going on after 1 question")
    terminal.enter("And where does it rise?")
    terminal.painted()
    terminal.child.kill(signal.SIGTERM)
    assert terminal.end() == 143
    assert "stopped" not in terminal.text  # no other prompt
    terminal = chat("--continue")
    terminal.wait("going on after 2 questions")
    terminal.ready()
    terminal.child.kill(signal.SIGHUP)
    assert terminal.end() == 129


def test_ctrl_c_stops_an_answer_and_keeps_the_conversation(chat: Chat) -> None:
    terminal = chat(n_tokens=1200, before=LINGERING)
    terminal.enter("How long is the river Orle?")
    terminal.painted()
    terminal.type(CTRL_C)
    terminal.wait("stopped")
    terminal.enter("/stats")
    terminal.wait("1 question;")
    terminal.enter("/set max_tokens 8")
    terminal.wait("max_tokens = 8")
    terminal.enter("And where does it rise?")
    terminal.wait("support:")
    terminal.enter("/stats")
    terminal.wait("2 questions;")
    terminal.enter("/quit")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


def test_ctrl_c_empties_a_line_and_leaves_at_an_empty_one(chat: Chat) -> None:
    terminal = chat()
    terminal.ready()
    terminal.type("never asked")
    terminal.wait("never asked")
    terminal.type(CTRL_C)
    terminal.type("/stats\r")
    terminal.wait("0 questions;")
    terminal.ready()
    terminal.type(CTRL_C)
    assert terminal.end() == 0


def test_lines_of_an_earlier_chat_come_back_and_it_goes_on(chat: Chat) -> None:
    first = chat()
    first.enter("How long is the river Orle?")
    first.wait("support:")
    first.enter("/quit")
    assert first.end() == 0
    second = chat("--continue")
    second.wait("going on after 1 question")
    second.ready()
    second.type(UP + UP + "\r")
    second.wait("How long is the river Orle?")
    second.wait("support:")
    second.enter("/stats")
    second.wait("2 questions;")


def test_edit_brings_the_last_question_back(chat: Chat) -> None:
    terminal = chat()
    terminal.enter("How long is the river Orle?")
    terminal.wait("support:")
    terminal.enter("/edit")
    terminal.wait("How long is the river Orle?")
    terminal.ready()
    terminal.type(" In miles?\r")
    terminal.wait("support:")
    terminal.enter("/stats")
    terminal.wait("1 question;")


def test_a_terminal_that_changes_its_size(chat: Chat) -> None:
    terminal = chat(n_tokens=60)
    terminal.enter("How long is the river Orle?")
    terminal.child.setwinsize(20, 44)
    terminal.wait("support:")
    terminal.ready()
    terminal.child.setwinsize(50, 132)
    terminal.type("/docs\r")
    terminal.wait("book.md (markdown")
    terminal.enter("/quit")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


def test_ctrl_c_stops_a_prefill_too(chat: Chat, tmp_path: Path) -> None:
    (tmp_path / "long.md").write_text(
        "".join(f"Line {n} tells of salt and rope.\n\n" for n in range(9000)), "utf-8"
    )
    terminal = chat("--strategy", "stream", "--kv", "lazy=off", files=("long.md",), before=LINGERING_PREFILL)
    terminal.enter("What is told of salt?")
    terminal.wait("prefill")
    terminal.type(CTRL_C)
    terminal.wait("stopped")
    terminal.enter("/stats")
    terminal.wait("1 question;")
    terminal.enter("/quit")
    assert terminal.end() == 0
    assert "Traceback" not in terminal.text


def test_a_document_from_a_pipe_is_asked_from_the_terminal(tmp_path: Path, tiny_model_path: Path) -> None:
    (tmp_path / "book.md").write_text(BOOK, "utf-8")
    words = ["chat", "-", "--model", str(tiny_model_path), "--store", "off", "--max-tokens", "8"]
    with PseudoTerminal(words, tmp_path, piped=tmp_path / "book.md") as terminal:
        terminal.enter("How long is the river Orle?")
        terminal.wait("support:")
        terminal.ready()
        terminal.type(CTRL_D)
        assert terminal.end() == 0
