"""Entry point: commands on one Typer app; every error becomes one line and the exit code of docs/cli.md."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

import typer

from localctx import __version__
from localctx.end_signals import exit_code
from localctx.errors import LocalctxError

from .commands import (
    batch,
    bench,
    chat,
    chunk,
    compare,
    doctor,
    extract,
    index,
    log,
    models,
    plan,
    read,
    serve,
    store,
    truncate,
    verify,
)
from .commands import eval as evaluate
from .options import ReaderGone
from .terminal import (
    DISK_FULL,
    OutputFailed,
    discard_output,
    flush_errors,
    flush_output,
    json_text,
    note,
    prepare_streams,
    print_line,
    write_as_is,
)

__all__ = ["app", "run"]

app = typer.Typer(
    name="localctx",
    help="Read long documents locally: the whole text, answers with pages, and what was read.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=False,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)

ClickError: type[Exception] = typer.BadParameter.__mro__[2]
"""The base class of Typer's own usage errors, which has format_message()."""
HELP_WANTED = "NoArgsIsHelpError"
"""Typer's error of a group without a command, which Typer does not export; its message is the help."""


def _print_version(value: bool) -> None:
    if value:
        print_line(f"localctx {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options of the program itself."""


GROUPS = (
    read, extract, compare, chat, batch, index, chunk, truncate, plan, serve, log,
    models, store, verify, doctor, bench, evaluate,
)  # fmt: skip
for group in GROUPS:
    group.register(app)


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the program on `arguments` (default: the process's own) and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    prepare_streams()
    try:
        status = _main(_with_chat(arguments), as_json="--json" in arguments)
        flush_output()
    except (ReaderGone, BrokenPipeError):
        discard_output()
        status = 0
    except OutputFailed as error:
        discard_output()
        status = _tell(error.kind, error.message, error.hint, error.exit_code, as_json=False)
    flush_errors()
    sys.exit(exit_code(status))


def _with_chat(arguments: list[str]) -> list[str]:
    """`localctx FILE` means `localctx chat FILE`."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] != "-"):
        return arguments
    is_input = arguments[0] == "-" or os.path.lexists(arguments[0])
    return ["chat", *arguments] if is_input and arguments[0] not in _commands() else arguments


def _commands() -> set[str]:
    """The names of all commands and groups."""
    names = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    return names | {group.name for group in app.registered_groups if group.name}


def _main(arguments: list[str], as_json: bool) -> int:
    """The exit code; errors are told."""
    try:
        status = typer.main.get_command(app).main(arguments, "localctx", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except (ReaderGone, BrokenPipeError, OutputFailed):
        raise
    except SystemExit:  # Typer's way out when the reader of its help has gone
        raise ReaderGone from None
    except LocalctxError as error:
        return _tell(error.kind, error.message, error.hint, error.exit_code, as_json)
    except typer.Exit as done:
        return done.exit_code
    except MemoryError:
        return _tell(
            "OutOfMemory", "not enough memory", "a smaller --ctx or model; localctx doctor", 1, as_json
        )
    except ClickError as error:
        return _tell_usage(error, as_json)
    except OSError as error:
        if error.filename is None and error.errno in DISK_FULL:
            raise OutputFailed(f"cannot write: {(error.strerror or '').lower()}", "free some space") from None
        return _tell_unexpected(error, as_json)
    except Exception as error:  # noqa: BLE001  # the last resort: a user gets one line, never a traceback
        return _tell_unexpected(error, as_json)


def _tell_unexpected(error: Exception, as_json: bool) -> int:
    """One line about a bug; with LOCALCTX_DEBUG=1 the traceback."""
    if os.environ.get("LOCALCTX_DEBUG") == "1":
        raise error
    what = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
    return _tell("InternalError", what, "LOCALCTX_DEBUG=1 shows where; please report it", 1, as_json)


def _tell_usage(error: Any, as_json: bool) -> int:
    """Typer's own error in one line; a group without a command shows its help as it is."""
    if type(error).__name__ == HELP_WANTED:
        note(error.format_message())
        return 2
    where = getattr(error, "ctx", None)
    path = "localctx" if where is None else where.command_path
    return _tell("UsageError", _first_line(error), f"{path} --help", 2, as_json)


def _first_line(error: Any) -> str:
    return " ".join(error.format_message().split()).rstrip(".")


def _tell(kind: str, message: str, hint: str, exit_code: int, as_json: bool) -> int:
    """One line on standard error, or the error object on standard output with --json."""
    if as_json:
        error = {"type": kind, "message": message, "hint": hint}
        write_as_is(json_text({"schema": "localctx.error/1", "error": error}) + "\n")
    else:
        line = f"localctx: {message}" + (f" ({hint})" if hint else "")
        note(" ".join(line.split()))
    return exit_code
