"""A chat on a terminal: the line editor, Ctrl-C and Ctrl-D. Knows prompt_toolkit; no model."""

from __future__ import annotations

import asyncio
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

from localctx.end_signals import check_end_signals
from localctx.errors import LocalctxError
from localctx.session.private_database import folder_of
from localctx.small_text import reason_of

from ..terminal import note, print_line
from .chat import Chat
from .commands import Edit, obey
from .completion import ChatCompleter
from .facts import status_line

if TYPE_CHECKING:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import History
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

__all__ = ["talk"]

PROMPT = "> "
IMPATIENT_SECONDS = 1.0
"""A second Ctrl-C so soon was meant for the answer too."""
LOOK_SECONDS = 0.2


def talk(chat: Chat) -> None:
    """Read lines and answer them until Ctrl-D, /quit, or Ctrl-C at an empty line."""
    session = _session(chat)
    if not chat.library.documents:
        print_line("no document is open: /open FILE, /help")
    text, stopped_at = "", float("-inf")
    while True:
        try:
            line = session.prompt(PROMPT, default=text, pre_run=_end_when_asked).strip()
        except EOFError:
            break
        except KeyboardInterrupt:
            check_end_signals()
            if text or time.monotonic() - stopped_at < IMPATIENT_SECONDS:
                text = ""
                continue
            break
        text = ""
        if not line:
            continue
        try:
            if not obey(chat, line):
                break
        except Edit as edit:
            text = str(edit)
        except KeyboardInterrupt:
            chat.reporter.stop()
            check_end_signals()
            note("stopped")
            stopped_at = time.monotonic()
        except LocalctxError as error:
            hint = f" ({error.hint})" if error.hint else ""
            note(f"{error.message}{hint}")
    if chat.kept.id is not None:
        note("kept: localctx chat --continue goes on")


def _end_when_asked() -> None:
    """Have the editor that begins end once a signal came: one that comes while it begins would be lost."""
    from prompt_toolkit.application import get_app

    app = get_app()

    async def look() -> None:
        while not app.is_done:
            try:
                check_end_signals()
            except KeyboardInterrupt:
                app.exit(exception=KeyboardInterrupt, style="class:aborting")
                return
            await asyncio.sleep(LOOK_SECONDS)

    app.create_background_task(look())


def _session(chat: Chat) -> PromptSession[str]:
    from prompt_toolkit import PromptSession
    from prompt_toolkit.input.defaults import create_input

    return PromptSession(
        multiline=True,
        history=_history(chat),
        completer=ChatCompleter(chat),
        complete_while_typing=False,
        key_bindings=_keys(),
        bottom_toolbar=lambda: f" {status_line(chat)} ",
        prompt_continuation="… ",
        enable_open_in_editor=True,
        input=create_input(always_prefer_tty=True),
        mouse_support=False,
    )


def _keys() -> KeyBindings:
    """Enter ends a line unless it is pasted, Alt-Enter goes to a new one, Ctrl-C empties a line."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    @keys.add("c-j")  # what was typed before the editor had the terminal ends in one
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt, style="class:aborting")

    return keys


def _history(chat: Chat) -> History:
    """Lines typed earlier, in a file beside the conversations; in memory where there is none."""
    from prompt_toolkit.history import FileHistory, InMemoryHistory

    folder = folder_of(chat.settings)
    if folder is None or chat.saved is None:
        return InMemoryHistory()
    path: Path = folder / "lines"
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600))
    except OSError as error:
        note(f"warning: typed lines are not kept: {reason_of(error)}")
        return InMemoryHistory()
    return FileHistory(str(path))
