"""`eval ruler`: the families of `eval niah` for a user's model and machine, as one object to hand on.

Knows the report of `eval niah`; adds nothing to what it measured. What is handed on names no folder, no host
and no file of the user's.
"""

from __future__ import annotations

import json
import platform
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from localctx.eval.niah import BUILT_IN, Options
from localctx.eval.report import Report
from localctx.settings import Settings

__all__ = ["SCHEMA", "Submission", "command_of", "machine_class"]

SCHEMA = "localctx.eval.ruler/1"
GIB = 1 << 30


@dataclass(frozen=True, slots=True)
class Submission:
    """One report with all that is needed to read it elsewhere. measured_on: the day, UTC."""

    report: Report
    command: str
    measured_on: str

    @classmethod
    def of(cls, report: Report, options: Options, settings: Settings) -> Submission:
        """The submission of a report that was just made."""
        return cls(report, command_of(options, settings), datetime.now(UTC).date().isoformat())

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.ruler/1` (docs/eval.md)."""
        found, model, machine = self.report.to_json(), self.report.model, self.report.machine
        return {
            "schema": SCHEMA,
            "command": self.command,
            "measured_on": self.measured_on,
            "machine": machine_class(machine),
            "versions": {name: machine[name] for name in ("localctx", "llama_cpp_python")}
            | {"python": platform.python_version()},
            "model": {
                "name": model.name,
                "fingerprint": model.fingerprint,
                "description": model.description,
                "architecture": model.architecture,
                "n_layer": model.n_layer,
                "n_ctx_train": model.n_ctx_train,
                "size_bytes": model.size_bytes,
                "kv_bytes_per_token": model.kv_bytes_per_token,
            },
            "result": {
                name: found[name]
                for name in ("seed", "lengths", "languages", "tasks", "n_questions", "modes", "kv")
            }
            | {"haystack": BUILT_IN if found["haystack"] == BUILT_IN else "a text of the user's"}
            | {name: found[name] for name in ("rows", "totals", "documents")},
        }

    @property
    def text(self) -> str:
        """The same as a file of lines that can be compared."""
        return json.dumps(self.to_json(), ensure_ascii=False, indent=1) + "\n"


def machine_class(machine: dict[str, Any]) -> dict[str, Any]:
    """What of a machine decides its speed, and nothing that tells one machine of a class from another."""
    return {
        **{name: machine[name] for name in ("cpu", "n_cores", "n_threads", "simd", "gpus", "load_average")},
        "ram_gib": round(machine["ram_bytes"] / GIB),
        "system": f"{platform.system()} {platform.machine()}",
    }


def command_of(options: Options, settings: Settings) -> str:
    """The command that measures the same with a `--model`, without names of files and folders."""
    wanted = options.wanted
    given: dict[str, object] = {
        "lengths": ",".join(map(str, wanted.lengths)),
        "languages": ",".join(wanted.languages),
        "tasks": ",".join(wanted.tasks),
        "questions": wanted.n_questions,
        "modes": ",".join(options.modes),
        "max-tokens": wanted.n_answer,
        "seed": wanted.seed,
        "kv": settings.kv or None,
        "ctx": settings.ctx,
        "threads": settings.threads,
        "gpu-layers": settings.gpu_layers,
        "haystack": None if options.haystack is None else "FILE",
    }
    words = [f"--{name} {value}" for name, value in given.items() if value is not None]
    return " ".join(["localctx eval ruler", *words])
