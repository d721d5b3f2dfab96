"""A module of measurements as a program: what localctx.errors names is one line and an exit code."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import NoReturn

from localctx.errors import Interrupted, LocalctxError

__all__ = ["run_as_program"]


def run_as_program(main: Callable[[], int | None]) -> NoReturn:
    """Call it and exit, with the code that it returns; Ctrl-C is told as any other error is."""
    try:
        sys.exit(main() or 0)
    except KeyboardInterrupt:
        sys.exit(_told(Interrupted("interrupted")))
    except LocalctxError as error:
        sys.exit(_told(error))


def _told(error: LocalctxError) -> int:
    hint = f" ({error.hint})" if error.hint else ""
    sys.stderr.write(" ".join(f"localctx: {error.message}{hint}".split()) + "\n")
    return error.exit_code
