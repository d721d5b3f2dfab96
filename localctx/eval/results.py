"""Results kept in the repository: what a command printed as JSON, with the command and the class of machine.

    python -m localctx.eval.results NAME -- localctx eval niah --lengths 8k --seed 7
    … --json | python -m localctx.eval.results NAME --command "localctx eval niah --lengths 8k --seed 7"

Writes docs/results/NAME.json. Knows no benchmark. Names of hosts and folders stay out: of a path the last
part is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from localctx.bench.program import ended, run_as_program
from localctx.errors import LocalctxError, UsageError
from localctx.eval.folders import command_without_folders, without_folders

__all__ = ["FOLDER", "SCHEMA", "Result", "machine_class", "read_results", "run_command"]

SCHEMA = "localctx.result/1"
FOLDER = Path("docs/results")
NAME = re.compile(r"[a-z0-9]+(?:-[a-z0-9]+)*")
LARGEST_BYTES = 2_000_000
PROGRAMS = {
    "localctx": (sys.executable, "-c", "from localctx.cli.entry import run; run()"),
    "python": (sys.executable,),
    "python3": (sys.executable,),
}
"""How the first word of a command is run: by the Python and the code that run this."""


@dataclass(frozen=True, slots=True)
class Result:
    """One file of docs/results. note: what a reader has to know of the run; left_out: keys of the command's
    JSON that were too long to keep.
    """

    name: str
    command: str
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    date: str
    result: Mapping[str, Any]
    note: str = ""
    left_out: tuple[str, ...] = ()

    @property
    def schema(self) -> str:
        """Of the command's own JSON, without its version."""
        return str(self.result.get("schema", "")).partition("/")[0]

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.result/1` (docs/results/README.md)."""
        return {
            "schema": SCHEMA,
            "command": self.command,
            "machine": dict(self.machine),
            "versions": dict(self.versions),
            "date": self.date,
            "note": self.note,
            "left_out": list(self.left_out),
            "result": dict(self.result),
        }

    @classmethod
    def of_file(cls, path: Path) -> Result:
        """Raises UsageError for what is no result."""
        try:
            found = json.loads(path.read_text("utf-8"))
            if found["schema"] != SCHEMA or not isinstance(found["result"], dict):
                raise UsageError(f"{path.name} is no result of schema {SCHEMA}", "docs/results/README.md")
            return cls(
                path.stem,
                found["command"],
                found["machine"],
                found["versions"],
                date.fromisoformat(found["date"]).isoformat(),
                found["result"],
                found.get("note", ""),
                tuple(found.get("left_out", ())),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise UsageError(f"{path.name} cannot be read as a result: {error}", SCHEMA) from None


def read_results(folder: Path) -> list[Result]:
    """All results of a folder, by name. Raises UsageError."""
    return [Result.of_file(path) for path in sorted(folder.glob("*.json"))]


def machine_class(facts: Mapping[str, Any]) -> dict[str, Any]:
    """What bench.machine tells, without what names one machine: CPU, cores, memory, GPUs, load."""
    gpus = [
        str(gpu.get("description") or gpu.get("name")) if isinstance(gpu, Mapping) else str(gpu)
        for gpu in facts.get("gpus") or ()
    ]
    return {
        "cpu": facts.get("cpu"),
        "n_cores": facts.get("n_cores"),
        "n_threads": facts.get("n_threads"),
        "simd": facts.get("simd"),
        "ram_gib": round((facts.get("ram_bytes") or 0) / 2**30),
        "gpus": gpus,
        "load_average": facts.get("load_average"),
    }


def wrapped(
    name: str, command: str, printed: Mapping[str, Any], note: str, left_out: Sequence[str]
) -> Result:
    """What a command printed, as it is kept. Raises UsageError for an unknown key to leave out."""
    for key in left_out:
        if key not in printed:
            raise UsageError(f"there is no {key!r} in the result", f"some of {', '.join(printed)}")
    facts = printed.get("machine")
    if not isinstance(facts, Mapping):
        from localctx.bench.machine import machine

        facts = machine()
    kept = {key: value for key, value in printed.items() if key not in ("machine", *left_out)}
    return Result(
        name,
        command_without_folders(command),
        machine_class(facts),
        _versions(facts),
        datetime.now(UTC).date().isoformat(),
        without_folders(kept),
        without_folders(note),
        tuple(left_out),
    )


def _versions(facts: Mapping[str, Any]) -> dict[str, str]:
    import platform

    named = {key: facts.get(key) for key in ("localctx", "llama_cpp_python")}
    return {"python": platform.python_version(), **{key: str(value) for key, value in named.items() if value}}


def run_command(words: Sequence[str]) -> dict[str, Any]:
    """What `localctx …` or `python -m …` prints with --json. Raises UsageError, LocalctxError if it fails."""
    if not words or words[0] not in PROGRAMS:
        raise UsageError(
            "a command begins with localctx or python", "python -m localctx.eval.results NAME -- localctx …"
        )
    typed = [*words, *(() if "--json" in words else ("--json",))]
    program = [*PROGRAMS[typed[0]], *typed[1:]]
    with subprocess.Popen(program, stdout=subprocess.PIPE, encoding="utf-8") as process, ended(process):
        printed, _ = process.communicate()
    if process.returncode:
        raise LocalctxError(f"{shlex.join(typed)} failed with exit code {process.returncode}", _said(printed))
    return parsed(printed)


def _said(printed: str) -> str:
    """What a command that failed says of it."""
    try:
        return str(json.loads(printed)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return "see above"


def parsed(text: str) -> dict[str, Any]:
    """The one JSON object that was printed. Raises UsageError."""
    try:
        found = json.loads(text)
    except ValueError as error:
        raise UsageError(f"what was printed is no JSON object: {error}", "one object, by --json") from None
    if not isinstance(found, dict) or "error" in found or "schema" not in found:
        raise UsageError("what was printed is no result", "one object with a schema, by --json")
    return found


def check_place(name: str, folder: Path) -> None:
    """Raises UsageError for a name that is none, or a folder that cannot be written to."""
    if not NAME.fullmatch(name):
        raise UsageError(f"{name!r} cannot be a result's name", "small letters, digits, hyphens")
    nearest = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not (nearest.is_dir() and os.access(nearest, os.W_OK)):
        raise UsageError(f"{nearest}: no folder that can be written to", "--folder DIR")


def write(result: Result, folder: Path) -> Path:
    """The file. Raises UsageError for what check_place() refuses, or what is too large to keep."""
    check_place(result.name, folder)
    text = json.dumps(result.to_json(), ensure_ascii=False, indent=1, allow_nan=False) + "\n"
    if len(text.encode()) > LARGEST_BYTES:
        raise UsageError(
            f"{result.name}: {len(text):,} characters are too much to keep", "--without KEY leaves a part out"
        )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{result.name}.json"
    path.write_text(text, "utf-8", newline="\n")
    return path


def main(arguments: Sequence[str] | None = None) -> None:
    """Run or read, and write the file. Raises what localctx.errors names."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    cut = given.index("--") if "--" in given else len(given)
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.results", allow_abbrev=False)
    parser.add_argument("name", help="of the file, as compare-smollm2-cpu")
    parser.add_argument("--command", help="what printed the JSON on standard input")
    parser.add_argument("--note", default="", help="what a reader has to know, as: a busy machine")
    parser.add_argument("--without", action="append", default=[], metavar="KEY", help="leave this key out")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    options, words = parser.parse_args(given[:cut]), given[cut + 1 :]
    if bool(options.command) == bool(words):
        parser.error("either -- and a command, or --command and its JSON on standard input")
    check_place(options.name, options.folder)
    printed = run_command(words) if words else parsed(sys.stdin.read())
    command = options.command or shlex.join(words)
    path = write(wrapped(options.name, command, printed, options.note, options.without), options.folder)
    sys.stderr.write(f"{path}\n")


if __name__ == "__main__":
    run_as_program(main)
