"""Entry point: commands on one Typer app; every error becomes one line and the exit code of docs/cli.md."""

from __future__ import annotations

import json
import os
import sys
from typing import Any, NoReturn

import typer

from localctx import __version__
from localctx.errors import LocalctxError

from .commands import bench, chunk, doctor, later, models, read
from .options import ReaderGone

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


def _print_version(value: bool) -> None:
    if value:
        print(f"localctx {__version__}")  # noqa: T201  # the command's answer
        raise typer.Exit


@app.callback()
def _top(
    version: bool = typer.Option(
        False, "--version", callback=_print_version, is_eager=True, help="Show the version."
    ),
) -> None:
    """Options of the program itself."""


for group in (read, chunk, later, models, doctor, bench):
    group.register(app)


def run(arguments: list[str] | None = None) -> NoReturn:
    """Run the program on `arguments` (default: the process's own) and exit."""
    arguments = sys.argv[1:] if arguments is None else arguments
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Any = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        status = _main(_with_chat(arguments), as_json="--json" in arguments)
        sys.stdout.flush()
    except (ReaderGone, BrokenPipeError):
        # Python would complain again when it flushes at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        status = 0
    sys.exit(status)


def _with_chat(arguments: list[str]) -> list[str]:
    """`localctx FILE` means `localctx chat FILE`."""
    if not arguments or arguments[0].startswith("-"):
        return arguments
    known = {
        command.name or command.callback.__name__ for command in app.registered_commands if command.callback
    }
    known |= {group.name for group in app.registered_groups if group.name}
    if arguments[0] not in known and os.path.lexists(arguments[0]):
        return ["chat", *arguments]
    return arguments


def _main(arguments: list[str], as_json: bool) -> int:
    """The exit code; errors are told."""
    try:
        status = typer.main.get_command(app).main(arguments, "localctx", standalone_mode=False)
        return status if isinstance(status, int) else 0
    except (ReaderGone, BrokenPipeError):
        raise
    except LocalctxError as error:
        return _tell(error.kind, error.message, error.hint, error.exit_code, as_json)
    except typer.Exit as done:
        return done.exit_code
    except MemoryError:
        return _tell(
            "OutOfMemory", "not enough memory", "a smaller --ctx or model; localctx doctor", 1, as_json
        )
    except ClickError as error:
        hint = "localctx --help" if not arguments else f"localctx {arguments[0]} --help"
        return _tell("UsageError", _first_line(error), hint, 2, as_json)
    except Exception as error:  # the last resort: a user gets one line, never a traceback
        if os.environ.get("LOCALCTX_DEBUG") == "1":
            raise
        what = f"unexpected {type(error).__name__}: {' '.join(str(error).split())}"
        return _tell("InternalError", what, "LOCALCTX_DEBUG=1 shows where; please report it", 1, as_json)


def _first_line(error: Any) -> str:
    return " ".join(error.format_message().split()).rstrip(".")


def _tell(kind: str, message: str, hint: str, exit_code: int, as_json: bool) -> int:
    """One line on standard error, or the error object on standard output with --json."""
    if as_json:
        error = {"type": kind, "message": message, "hint": hint}
        print(json.dumps({"schema": "localctx.error/1", "error": error}, ensure_ascii=False))  # noqa: T201
    else:
        line = f"localctx: {message}" + (f" ({hint})" if hint else "")
        print(" ".join(line.split()), file=sys.stderr)  # noqa: T201  # the one place errors are shown
    return exit_code
