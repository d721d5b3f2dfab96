"""What the `localctx` script calls: quiet under Ctrl-C from the first import on."""

from __future__ import annotations

import os

__all__ = ["run"]


def run() -> None:
    """Run the program; Ctrl-C before it has started, or while it ends, is one line and exit code 130."""
    from localctx.end_signals import exit_code, watch_end_signals

    try:
        watch_end_signals()
        from .main import run as run_program

        run_program()
    except KeyboardInterrupt:
        os.write(2, b"localctx: interrupted\n")
        os._exit(exit_code(130))
