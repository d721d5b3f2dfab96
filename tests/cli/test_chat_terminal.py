"""`localctx chat` on a pseudo-terminal: what is typed, pasted, interrupted, resized, and gone on with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from cli.pseudo_terminal import PseudoTerminal

pytestmark = pytest.mark.slow

BOOK = (
    "# Rivers\n\nThe river Orle rises near Tannau and is 212 kilometres long.\n\n"
    "# Mines\n\nThe mine was opened in 1742.\n"
)
Chat = Callable[..., PseudoTerminal]
CTRL_C, CTRL_D, UP = "\x03", "\x04", "\x1b[A"


@pytest.fixture
def chat(tmp_path: Path, tiny_model_path: Path) -> Iterator[Chat]:
    """Start a chat on a short book."""
    (tmp_path / "book.md").write_text(BOOK, "utf-8")
    with ExitStack() as stack:

        def call(*words: str, n_tokens: int = 12, files: tuple[str, ...] = ("book.md",)) -> PseudoTerminal:
            given = [str(tmp_path / name) for name in files]
            rest = ["--model", str(tiny_model_path), "--store", str(tmp_path / "store")]
            rest += ["--max-tokens", str(n_tokens), *words]
            return stack.enter_context(PseudoTerminal(["chat", *given, *rest], tmp_path))

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
