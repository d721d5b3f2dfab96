"""The child that counts what contexts would take (engine/no_alloc.py), and what it said."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass

from localctx.document.isolate import child_environment
from localctx.engine.no_alloc import Measured, Wanted, wanted_json

__all__ = ["CHILD_MODULE", "Counted", "count"]

CHILD_MODULE = "localctx.engine.no_alloc"
TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Counted:
    """contexts: as wanted, or empty where it could not be counted, `problem` then says why · gpus: (name,
    free bytes) of each graphics processor here.
    """

    contexts: tuple[Measured, ...] = ()
    gpus: tuple[tuple[str, int], ...] = ()
    problem: str = ""


def count(wanted: Wanted, module: str = CHILD_MODULE) -> Counted:
    """Have the contexts counted. Raises nothing: where the child dies, the header's estimate has to do."""
    command = [sys.executable, "-P", "-m", module]
    try:
        child = subprocess.run(
            command,
            input=wanted_json(wanted),
            capture_output=True,
            timeout=TIMEOUT_S,
            check=False,
            env=child_environment(),
        )
        said = json.loads(child.stdout)
    except subprocess.TimeoutExpired:
        return Counted(problem=f"llama.cpp did not count the buffers within {TIMEOUT_S:.0f} s")
    except ValueError:
        return Counted(problem="llama.cpp ended while it counted the buffers")
    if "error" in said:
        return Counted(problem=str(said["error"]))
    gpus = tuple((str(name), int(free)) for name, free in said["gpus"])
    return Counted(tuple(Measured(**one) for one in said["contexts"]), gpus)
