"""`eval ruler`: the families of `eval niah` for a user's model and machine, and the file to hand on.

Knows the report of `eval niah`; adds nothing to what it measured. What is handed on names no folder, no host
and no file of the user's.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from localctx.engine.embedder import EmbedderFile
from localctx.engine.gguf import fingerprint, open_embedding_model
from localctx.eval.niah import BUILT_IN, Options
from localctx.eval.report import Report
from localctx.eval.results import machine_class, wrapped
from localctx.settings import Settings

__all__ = ["SCHEMA", "Submission", "command_of"]

SCHEMA = "localctx.eval.ruler/1"
ASKED = ("seed", "lengths", "languages", "tasks", "n_questions", "modes", "kv")
_SOURCE = re.compile(r"[a-z]{2,}:")
"""Before the name of a model that is no path, as hf:."""
FOUND = ("rows", "totals", "documents")


@dataclass(frozen=True, slots=True)
class Submission:
    """One report with all that is needed to read it elsewhere."""

    report: Report
    command: str
    embedder: Mapping[str, str] | None = None

    @classmethod
    def of(
        cls,
        report: Report,
        options: Options,
        settings: Settings,
        embedder: EmbedderFile | str | None = None,
    ) -> Submission:
        """The submission of a report that was just made. embedder: what chose passages, or why nothing did.

        Raises ModelError for an embedder that is gone.
        """
        return cls(report, command_of(options, settings), _embedder_json(embedder))

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.ruler/1` (docs/eval.md)."""
        found, model = self.report.to_json(), self.report.model
        own_text = found["haystack"] != BUILT_IN
        return {
            "schema": SCHEMA,
            "command": self.command,
            **{name: found[name] for name in ASKED},
            "haystack": "a text of the user's" if own_text else BUILT_IN,
            "machine": machine_class(self.report.machine),
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
            "embedder": self.embedder,
            **{name: found[name] for name in FOUND},
        }

    @property
    def file_text(self) -> str:
        """The file of schema `localctx.result/1`, in lines that can be compared."""
        printed = {**self.to_json(), "machine": self.report.machine}
        value = wrapped("", self.command, printed, "", ()).to_json()
        return json.dumps(value, ensure_ascii=False, indent=1, allow_nan=False) + "\n"


def _embedder_json(embedder: EmbedderFile | str | None) -> dict[str, str] | None:
    if embedder is None or isinstance(embedder, str):
        return None
    return {
        "name": embedder.path.name,
        "fingerprint": fingerprint(open_embedding_model(embedder.path)),
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
        "embedder": _without_folder(settings.embedder),
        "haystack": None if options.haystack is None else "FILE",
    }
    words = [f"--{name} {shlex.quote(str(value))}" for name, value in given.items() if value is not None]
    return " ".join(["localctx eval ruler", *words])


def _without_folder(name: str) -> str:
    """A model as it is named: of a path the last part, of a repository all."""
    return name if _SOURCE.match(name) else re.split(r"[/\\]", name)[-1]
