"""What a line that begins with / does. Each is a function over the chat; the table names all."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, fields

from localctx.errors import LocalctxError, UsageError
from localctx.settings import Settings, nearest

from ..answer_lines import counted
from ..citations import citation_lines
from ..terminal import print_line
from .chat import Chat
from .export import export
from .facts import coverage_lines, passage_lines, stats_lines

__all__ = ["COMMANDS", "SETTABLE", "Command", "Edit", "Quit", "is_question", "obey"]

SETTABLE = ("ctx", "strategy", "temp", "top_p", "top_k", "min_p", "seed", "max_tokens", "latency", "kv")
"""Settings that change for the next question; others are part of how the model was opened."""


class Quit(Exception):  # no error: the user is done
    """Raised by /quit."""


class Edit(Exception):  # no error: the line editor is wanted
    """Raised by /edit: the text to begin the next line with."""


@dataclass(frozen=True, slots=True)
class Command:
    """What is typed after the name (`usage`), what it does in a line, and does it."""

    usage: str
    help: str
    run: Callable[[Chat, str], None]


def is_question(line: str) -> bool:
    """Whether a line is no command; // begins a question with /."""
    return not line.startswith("/") or line.startswith("//")


def obey(chat: Chat, line: str) -> bool:
    """Do what the line says: a command, or a question; False after /quit. // begins a question with /.

    Raises UsageError for an unknown command, and what commands and questions raise.
    """
    if is_question(line):
        chat.ask(line.removeprefix("/") if line.startswith("//") else line)
        return True
    name, _, rest = line[1:].partition(" ")
    if name not in COMMANDS:
        raise UsageError(
            f"there is no /{name}{nearest(name, COMMANDS)}", "/help lists commands; // asks a line with /"
        )
    try:
        COMMANDS[name].run(chat, rest.strip())
    except Quit:
        return False
    return True


def _open(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("/open names no file", "/open FILE")
    for document in chat.open(rest):
        print_line(f"opened {document.source}")


def _close(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("/close names no document", "/close NAME, or its number in /docs")
    print_line(f"closed {chat.close_document(rest).source}")


def _docs(chat: Chat, rest: str) -> None:
    if not chat.library.documents:
        print_line("no document is open; /open FILE")
    for number, document in enumerate(chat.library.documents, 1):
        pages = f", {counted(len(document.pages), 'page')}" if document.pages else ""
        print_line(
            f"{number}. {document.source} ({document.format}{pages}, "
            f"{document.text.n_code_points:,} characters)"
        )


def _ask_all(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("/ask-all asks nothing", "/ask-all QUESTION")
    chat.ask_each(rest)


def _cite(chat: Chat, rest: str) -> None:
    """All citations of the last answer, or one in its context."""
    answer = chat.last
    if answer is None or not answer.citations:
        raise UsageError("the last answer has no citations", "ask something first")
    if not rest:
        print_line("\n".join(citation_lines(answer)))
        return
    if not rest.isdecimal() or not 1 <= int(rest) <= len(answer.citations):
        raise UsageError(f"there is no citation {rest}", f"/cite 1 to /cite {len(answer.citations)}")
    print_line("\n".join(passage_lines(chat.library.documents, answer.citations[int(rest) - 1])))


def _cover(chat: Chat, rest: str) -> None:
    if chat.last is None:
        raise UsageError("nothing was answered yet", "ask something first")
    print_line("\n".join(coverage_lines(chat.last)))


def _model(chat: Chat, rest: str) -> None:
    if rest:
        chat.use_model(rest)
    info = chat.conversation.model.info
    print_line(f"model {info.name}: {info.description or info.architecture}, {info.n_ctx_train:,} tokens")


def _set(chat: Chat, rest: str) -> None:
    """Show the settings, or change one: /set temp 0.7, /set temp=0.7; /set temp alone goes back."""
    if not rest:
        for name in SETTABLE:
            value = getattr(chat.settings, name)
            print_line(f"{name} = {'(default)' if value in (None, '') else value}")
        return
    name = re.split(r"[\s=]", rest, maxsplit=1)[0]
    value = rest[len(name) :].lstrip(" =")
    name = name.strip("-").replace("-", "_")
    if name not in SETTABLE:
        known = name in {field.name for field in fields(Settings)}
        why = "is set when the chat is started" if known else f"is no setting{nearest(name, SETTABLE)}"
        raise UsageError(f"{name} {why}", f"one of {', '.join(SETTABLE)}")
    chat.set(name, value.strip() or None)
    print_line(f"{name} = {getattr(chat.settings, name)}")


def _undo(chat: Chat, rest: str) -> None:
    turn = chat.conversation.undo()
    if turn is None:
        raise UsageError("there is nothing to take back")
    chat.last = None
    chat.keep()
    print_line(f"taken back: {turn.question}")


def _retry(chat: Chat, rest: str) -> None:
    """The last question once more; with a temperature, by another seed."""
    turn = chat.conversation.undo()
    if turn is None:
        raise UsageError("there is nothing to ask again", "ask something first")
    if chat.settings.temp > 0:
        chat.set("seed", str(chat.settings.seed + 1))
    try:
        chat.ask(turn.question)
    except LocalctxError:
        chat.conversation.turns.append(turn)  # what was answered stands
        raise


def _edit(chat: Chat, rest: str) -> None:
    turn = chat.conversation.undo()
    if turn is None:
        raise UsageError("there is nothing to edit", "ask something first")
    chat.keep()
    raise Edit(turn.question)


def _save(chat: Chat, rest: str) -> None:
    """Name the conversation, which is kept under a number anyway."""
    saved = chat.saved
    if saved is None:
        raise UsageError(
            "conversations are not kept here", "not with --store off; /export FILE writes this one"
        )
    if rest:
        other = saved.named(rest)
        if other is not None and other.id != chat.kept.id:
            raise UsageError(f"another conversation is called {rest}", "/save with another name")
        chat.kept.name = rest
    if not chat.conversation.turns:
        raise UsageError("nothing was said yet", "ask something first")
    chat.keep()
    print_line(f"kept as {chat.kept.name or chat.kept.id}; /load {chat.kept.name or chat.kept.id}")


def _load(chat: Chat, rest: str) -> None:
    """Go on with a kept conversation; without a name, list them."""
    saved = chat.saved
    if saved is None:
        raise UsageError("conversations are not kept here", "not with --store off")
    if not rest:
        for one in saved.all():
            names = ", ".join(path.rpartition("/")[2] for path, _ in one.documents)
            print_line(
                f"{one.name or one.id}: {saved.first_question(one.id or 0)} ({names or 'no document'})"
            )
        return
    found = saved.named(rest)
    if found is None:
        raise UsageError(f"there is no conversation {rest}", "/load lists them")
    chat.load(found)
    print_line(f"going on after {counted(len(found.turns), 'question')}")


def _export(chat: Chat, rest: str) -> None:
    if not rest:
        raise UsageError("/export names no file", "/export FILE.md or FILE.json")
    export(chat, rest)
    print_line(f"written to {rest}")


def _clear(chat: Chat, rest: str) -> None:
    chat.begin_anew()
    print_line("a new conversation on the same documents")


def _stats(chat: Chat, rest: str) -> None:
    print_line("\n".join(stats_lines(chat)))


def _help(chat: Chat, rest: str) -> None:
    width = max(len(f"/{name} {command.usage}") for name, command in COMMANDS.items()) + 2
    for name, command in COMMANDS.items():
        print_line(f"{f'/{name} {command.usage}':<{width}}{command.help}")
    print_line("Anything else is a question; // begins one with /. Ctrl-C stops an answer, Ctrl-D leaves.")


def _quit(chat: Chat, rest: str) -> None:
    raise Quit


COMMANDS: dict[str, Command] = {
    "open": Command("FILE", "read another document, or a folder's", _open),
    "close": Command("NAME", "let go of a document", _close),
    "docs": Command("", "the documents that are open", _docs),
    "ask-all": Command("QUESTION", "put it to each document by itself", _ask_all),
    "cite": Command("[N]", "the last answer's citations, or one in its context", _cite),
    "cover": Command("", "what was read for the last answer", _cover),
    "model": Command("[NAME]", "which model answers; go on with another", _model),
    "set": Command("[NAME VALUE]", "show or change settings, as /set temp 0.7", _set),
    "undo": Command("", "take the last question and answer back", _undo),
    "retry": Command("", "answer the last question again", _retry),
    "edit": Command("", "change the last question and ask again", _edit),
    "save": Command("[NAME]", "name this conversation; it is kept anyway", _save),
    "load": Command("[NAME]", "list kept conversations, or go on with one", _load),
    "export": Command("FILE", "write it as Markdown, or JSON for .json", _export),
    "clear": Command("", "begin anew with the same documents", _clear),
    "stats": Command("", "tokens, speed and context so far", _stats),
    "help": Command("", "this list", _help),
    "quit": Command("", "leave; --continue goes on later", _quit),
}
