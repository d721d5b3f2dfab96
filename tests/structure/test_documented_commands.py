"""Every command that a page prints can be typed: it is there, and so are its options."""

from __future__ import annotations

import importlib.util
import re
import shlex
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import typer

from localctx.cli.main import app

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])
BEGINS = re.compile(r"(?:[A-Z_]+=\S+ )*(?:localctx |python -m localctx\.)")
ENDS = frozenset({"|", ">", ">>", "2>", "<", "&&", "||", ";", "&"})
LEFT_OUT = "…"
"""Of a page, what a reader fills in."""


def commands_on(page: str) -> Iterator[list[str]]:
    """The words of each command in a block of code, which may go on behind a backslash, or between single
    backticks, which may go on in the next line.
    """
    blocks = re.findall(r"^```\w*\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    lines = [line.strip() for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    prose = re.sub(r"^```\w*\n.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    lines += [" ".join(span.split()) for span in re.findall(r"`([^`]+)`", prose)]
    for line in lines:
        if BEGINS.match(line.removeprefix("$ ")):
            yield from typed_in(line.removeprefix("$ "))


def typed_in(line: str) -> Iterator[list[str]]:
    """As a shell would divide it, up to a pipe, without what is set before the command; what follows `--` is
    a command of its own.
    """
    words = shlex.split(line, comments=True)
    end = next((place for place, word in enumerate(words) if word in ENDS), len(words))
    words = [word for word in words[:end] if not re.match(r"[A-Z_]+=", word)]
    cut = words.index("--") if "--" in words else len(words)
    yield from (part for part in (words[:cut], words[cut + 1 :]) if part)


@cache
def program() -> Any:
    """The commands, as the parser knows them."""
    return typer.main.get_command(app)


def unknown_in(words: list[str]) -> str:
    """Why the words cannot be typed; nothing where they can."""
    if words[0] == "python":
        return unknown_in_module(words[2], words[3:])
    command, rest = program(), words[1:]
    while rest and rest[0] in getattr(command, "commands", {}):
        command, rest = command.commands[rest[0]], rest[1:]
    if hasattr(command, "commands") and command is not program():
        return "" if rest in ([], ["--help"]) else f"no command {rest[0]} of {command.name}"
    try:
        command.make_parser(command.context_class(command)).parse_args(args=rest)
    except Exception as error:  # noqa: BLE001  # typer's own copy of click raises what cannot be imported
        return str(error)
    return ""


def unknown_in_module(name: str, words: list[str]) -> str:
    """Options that the source of a module does not name."""
    if LEFT_OUT in name:
        return ""
    found = importlib.util.find_spec(name)
    if found is None or found.origin is None:
        return f"no module {name}"
    source = Path(found.origin).read_text("utf-8")
    options = [word.strip("[]").partition("=")[0] for word in words if re.match(r"\[?--?[a-z]", word)]
    return ", ".join(option for option in options if f'"{option}"' not in source)


@pytest.mark.parametrize("path", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_of_the_page_can_be_typed(path: Path) -> None:
    wrong = {}
    for words in commands_on(path.read_text("utf-8")):
        if reason := unknown_in(words):
            wrong[shlex.join(words)] = reason
    assert not wrong


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("`localctx eval kv --tokns 5`", "No such option: --tokns"),
        ("`localctx eval kvv`", "no command kvv of eval"),
        ("```\nlocalctx bench ask a.txt \\\n  --repeat 3 | head --bogus\n```", "--repeat"),
        ("`python -m localctx.eval.faq FOLDER --mdl x`", "--mdl"),
        ("`python -m localctx.eval.fak FOLDER`", "no module localctx.eval.fak"),
        ("`python -m localctx.eval.results N --\nlocalctx eval niah --length 8k`", "--length"),
        ("```\nA=1 localctx ask a.txt -q 'b --c' > --d  # --e\n```", ""),
        ("`localctx eval niah …`", ""),
    ],
)
def test_what_cannot_be_typed_is_found(page: str, said: str) -> None:
    reasons = [unknown_in(words) for words in commands_on(page)]
    assert reasons
    assert said in "".join(reasons) and bool(said) == any(reasons)
