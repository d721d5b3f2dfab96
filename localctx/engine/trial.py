"""One token from one model, as a JSON object on stdout; `localctx doctor` runs it in a child, which may die.

python -m localctx.engine.trial MODEL.gguf
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from localctx.errors import LocalctxError

__all__ = ["main"]


def main(arguments: list[str]) -> int:
    """Print what was built, and the token or {"error", "hint"}; returns the exit code."""
    from localctx.engine.llama import build_info, trial

    report = build_info()
    try:
        report |= trial(Path(arguments[0]))
    except LocalctxError as error:
        report |= {"error": error.message, "hint": error.hint}
    sys.stdout.write(json.dumps(report) + "\n")
    return 1 if "error" in report else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
