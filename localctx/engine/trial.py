"""One token from one model, as JSON on stdout; `localctx doctor` runs it in a child, which may die of it.

python -m localctx.engine.trial MODEL.gguf
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from localctx.errors import LocalctxError

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Print what the build is and whether the model gives a token; returns the exit code."""
    from localctx.engine.llama import build_info, trial  # noqa: PLC0415  (its crash is what this process is for)

    report: dict[str, object] = dict(build_info())
    # written first: a crash in the decode below leaves it for the parent
    sys.stdout.write(json.dumps({"build": report}) + "\n")
    sys.stdout.flush()
    try:
        report = trial(Path(arguments[0]))
    except LocalctxError as error:
        report = {"error": error.message, "hint": error.hint}
    sys.stdout.write(json.dumps({"trial": report}) + "\n")
    return 1 if "error" in report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
