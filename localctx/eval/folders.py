"""Texts and commands without what names a person or a machine: of a path its last part is kept.

Knows no results. What a path is has to be guessed: where a text begins with one, all of it is taken for it.
"""

from __future__ import annotations

import getpass
import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["command_without_folders", "without_folders"]

HOME = "~"
NOBODY = "user"
GENERAL = frozenset({"admin", "localctx", "root", "runner", "ubuntu", NOBODY})
"""Accounts that name no person."""
LEAST_NAME = 3
"""Shorter ones stand in too many words."""
_START = r"(?:file://|~(?:[A-Za-z_][\w.-]*)?[/\\]|\.\.[/\\]|[A-Za-z]:[/\\]|\\\\|/)"
_END = r"\s\"'`,;()<>"
_WHOLE = re.compile(rf"{_START}[^\n]*")
_QUOTED = re.compile(rf"([\"'`])({_START}[^\"'`\n]*)\1")
_WITHIN = re.compile(rf"(?<![\w.~:/\\]){_START}[^{_END}:]*")
_BARE_WINDOWS = re.compile(r"(?<![\w\"'])[A-Za-z]:\\[^\s\"']+")
_HOMES = re.compile(r"(?:[A-Za-z]:)?[/\\](?:home|Users)[/\\][^/\\]+|/root|~[\w.-]*")


def without_folders(value: Any) -> Any:
    """A JSON value in which paths, but for relative ones below a folder, are their last part, a home folder
    is `~`, and whoever runs this is not named.
    """
    return _without(value, _own_names())


def command_without_folders(command: str) -> str:
    """The same of a command; as it was typed where it names nothing."""
    names = _own_names()
    typed = _BARE_WINDOWS.sub(lambda match: _last(match[0]), command)  # to a shell, \ is no separator
    try:
        words = shlex.split(typed)
    except ValueError:  # no command a shell would take
        return _text(typed, names)
    shown = [_text(word, names) for word in words]
    return typed if shown == words else shlex.join(shown)


def _without(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, str):
        return _text(value, names)
    if isinstance(value, Mapping):
        return {key: _without(one, names) for key, one in value.items()}
    if isinstance(value, list):
        return [_without(one, names) for one in value]
    return value


def _own_names() -> dict[str, str]:
    """Of the home folder and the name of whoever runs this, what stands for it."""
    names = {}
    try:
        home = Path.home()
        if home != home.parent:
            names[str(home)] = HOME
        names |= {name: NOBODY for name in [getpass.getuser()] if _is_name(name)}
    except (ImportError, KeyError, OSError, RuntimeError):  # an account without a folder, or without a name
        return names
    return names


def _is_name(name: str) -> bool:
    return len(name) >= LEAST_NAME and name.casefold() not in GENERAL


def _text(text: str, names: Mapping[str, str]) -> str:
    for name, shown in names.items():
        text = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", shown, text)
    option, equals, value = text.partition("=")
    if equals and option.startswith("-") and _WHOLE.fullmatch(value):
        return f"{option}={_last(value)}"
    if _WHOLE.fullmatch(text):
        return _last(text)
    text = _QUOTED.sub(lambda match: f"{match[1]}{_last(match[2])}{match[1]}", text)
    return _WITHIN.sub(lambda match: _last(match[0]), text)


def _last(path: str) -> str:
    """The last part of a path; as it is where it has but one."""
    bare = path.removeprefix("file://").rstrip("/\\")
    if _HOMES.fullmatch(bare):
        return HOME
    *folders, last = re.split(r"[/\\]+", bare)
    return last if any(folders) else path
