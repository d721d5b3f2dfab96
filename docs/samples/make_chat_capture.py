"""Makes chat.svg: a chat on a real terminal (tmux), as it looked, and chat.txt, its text.

    python docs/samples/make_chat_capture.py docs/samples/chat.svg [MODEL]

Needs tmux, and the model (default: the embedded one). What is asked stands below.
"""

from __future__ import annotations

import io
import os
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from rich.console import Console
from rich.text import Text

COLUMNS, LINES = 100, 34
SECONDS = 180
BOOK = """# Rivers

The river Orle rises near Tannau and is 212 kilometres long. It carries timber in spring.

# Mines

The silver mine of Quarz was opened in 1742 by Anna Feld. It was never flooded.

# Railways

The railway from Tannau to Quarz was finished in 1871. It cost 4.5 million crowns.
"""
TYPED = (
    ("When was the silver mine of Quarz opened?", "support:"),
    ("And by whom?", "support:"),
    ("/cite 1", "»"),
    ("/stats", "kept in"),
)


def main(target: Path, model: str) -> None:
    """Run the chat, type, and write what the terminal shows."""
    with tempfile.TemporaryDirectory(prefix="localctx-capture-") as folder:
        (Path(folder) / "valley.md").write_text(BOOK, "utf-8")
        words = [sys.executable, "-c", "from localctx.cli.entry import run; run()", "chat", "valley.md"]
        words += ["--model", model, "--store", "store", "--embedder", "off"]
        socket = str(Path(folder) / "tmux")

        def tmux(*arguments: str) -> str:
            command = ["tmux", "-S", socket, "-f", os.devnull, *arguments]
            return subprocess.run(command, check=True, capture_output=True, text=True).stdout

        size = ["-x", str(COLUMNS), "-y", str(LINES)]
        tmux("new-session", "-d", "-s", "chat", "-c", folder, *size, shlex.join(words))
        try:
            wait(tmux, "1 document", 1)
            for line, wanted in TYPED:
                seen = tmux("capture-pane", "-p", "-S", "-", "-t", "chat").count(wanted)
                tmux("send-keys", "-t", "chat", line, "Enter")
                wait(tmux, wanted, seen + 1)
                time.sleep(1.0)
            shown = tmux("capture-pane", "-p", "-e", "-t", "chat").rstrip("\n")
        finally:
            tmux("kill-server")
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True)
    text = Text.from_ansi(shown)
    console.print(text)
    target.write_text(console.export_svg(title="localctx chat valley.md"), "utf-8")
    target.with_suffix(".txt").write_text(text.plain.rstrip() + "\n", "utf-8")


def wait(tmux: Callable[..., str], wanted: str, n_times: int) -> None:
    """Until the terminal has shown the text so often."""
    until = time.monotonic() + SECONDS
    while tmux("capture-pane", "-p", "-S", "-", "-t", "chat").count(wanted) < n_times:
        if time.monotonic() > until:
            raise SystemExit(f"waited {SECONDS} s for {wanted!r}")
        time.sleep(0.5)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else "smollm2-135m")
