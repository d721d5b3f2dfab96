"""Commands in a process that gives its user up, since root ignores modes.

    python as_user.py < JSON

The JSON names the `user` (a number), the `warm` commands, that bring in every module while they can still be
read, and the `commands`; NAME=VALUE before a command's words goes into the environment. Prints a list with
code, out and err of each command.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import Any


def call(words: list[str]) -> dict[str, Any]:
    """Run one command of the program as typed; both outputs are caught below Python."""
    from localctx.cli.main import run

    while "=" in words[0]:
        name, value = words[0].split("=", 1)
        os.environ[name] = value
        words = words[1:]
    kept = os.dup(1), os.dup(2)
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1)
        os.dup2(err.fileno(), 2)
        code: object = None
        try:
            run(words)
        except SystemExit as done:
            code = done.code
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            for copy, place in zip(kept, (1, 2), strict=True):
                os.dup2(copy, place)
                os.close(copy)
        out.seek(0)
        err.seek(0)
        return {"code": code, "out": out.read().decode(), "err": err.read().decode()}


def main() -> None:
    """Warm up, drop the user, run."""
    wanted = json.load(sys.stdin)
    for words in wanted["warm"]:
        done = call(words)
        if done["code"] != 0:
            sys.exit(f"{words}: {done}")
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(wanted["user"])
        os.setuid(wanted["user"])
    print(json.dumps([call(words) for words in wanted["commands"]]))


if __name__ == "__main__":
    main()
