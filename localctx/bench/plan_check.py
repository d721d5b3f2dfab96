"""A plan beside what then really happens: seconds, memory, GPU memory and disk of `localctx ask`.

python -m localctx.bench.plan_check --model FILE --tokens 2000,6000,20000 [--gpu-layers all] [--threads N]
    [--kv KEY=VALUE,...] [--ctx N] [--text FILE] [--max-tokens N] [--limit SECONDS]
    [--no-calibration] [--json]

Each size: the text's first tokens, read whole where they fit the context, else streamed into a new store, in
--limit seconds or given up. The speeds come from `bench prefill` of the same model a moment before, unless
--no-calibration. A row is printed as soon as it is there, with --json as one object a line.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from localctx.bench.inputs import built_in_text
from localctx.bench.meters import SAMPLE_SECONDS, Nvml, read_or_none
from localctx.bench.program import ended, run_as_program
from localctx.bench.repeats import rounded
from localctx.document.isolate import child_environment

__all__ = ["HEADER", "Checked", "main"]

QUESTION = "What is said about the first of these topics?"
CALIBRATION_TOKENS = 4096
LIMIT_S = 570.0
STATUS = ("RssAnon", "RssFile", "RssShmem")
"""Parts of the resident memory as Linux tells them."""
PROGRAM = (sys.executable, "-P", "-c", "from localctx.cli.entry import run; run()")


@dataclass(frozen=True, slots=True)
class Checked:
    """One size: planned and measured, by figure: seconds, ram, vram, disk (bytes). plan, run: what was said
    of the speeds, and of the answer.
    """

    n_tokens: int
    strategy: str
    planned: Mapping[str, float]
    measured: Mapping[str, float]
    plan: Mapping[str, Any] = field(default_factory=dict)
    run: Mapping[str, Any] = field(default_factory=dict)

    def ratio(self, figure: str) -> float | None:
        """Measured by planned; None where none of it was planned."""
        planned = self.planned[figure]
        return rounded(self.measured[figure] / planned) if planned else None

    @property
    def line(self) -> str:
        """A row of the table."""
        cells = [f"{self.n_tokens:,}", self.strategy]
        for figure in self.planned:
            ratio, is_time = self.ratio(figure), figure == "seconds"
            both = (self.planned[figure], self.measured[figure])
            cells += [f"{value:.1f}" if is_time else f"{value / 1e6:,.0f}" for value in both]
            cells.append("–" if ratio is None else f"{ratio:.2f}" if is_time else f"{ratio - 1:+.1%}")
        return f"| {' | '.join(cells)} |"

    def as_json(self) -> dict[str, Any]:
        """The same, and what it was made of."""
        return {
            "tokens": self.n_tokens,
            "strategy": self.strategy,
            "figures": {
                name: {
                    "planned": rounded(self.planned[name]),
                    "measured": rounded(self.measured[name]),
                    "ratio": self.ratio(name),
                }
                for name in self.planned
            },
            "plan": self.plan,
            "run": self.run,
        }


HEADER = (
    "| tokens | strategy | planned s | measured s | × | planned MB | measured MB | off"
    " | planned GPU MB | measured | off | planned disk MB | measured | off |\n" + "|---" * 14 + "|"
)


class _Failed(Exception):
    """A command of one size failed or took too long; the message is what it said."""


def main(arguments: list[str] | None = None) -> int:
    """Print a row, or an object, for each size; returns 1 where one could not be measured."""
    options = _parser().parse_args(arguments)
    sizes = [int(text) for text in options.tokens.split(",")]
    text = built_in_text() if options.text is None else Path(options.text).read_text("utf-8", "replace")
    n_failed = 0
    with tempfile.TemporaryDirectory(prefix="localctx-plan-check-") as name:
        folder = Path(name)
        if not options.no_calibration:
            _calibrate(options, folder, text, max(sizes))
        if not options.json:
            _say(HEADER)
        for size in sizes:
            try:
                checked = _check(options, folder, text, size)
            except _Failed as failed:
                n_failed += 1
                row, line = (
                    {"tokens": size, "failed": str(failed)},
                    f"| {size:,} | failed: {_in_a_cell(str(failed))} |",
                )
            else:
                row, line = checked.as_json(), checked.line
            _say(json.dumps({"schema": "localctx.bench.plan-check/2", **row}) if options.json else line)
    return 1 if n_failed else 0


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m localctx.bench.plan_check")
    parser.add_argument("--model", "-m", required=True)
    parser.add_argument("--tokens", default="2000,6000,20000")
    parser.add_argument("--gpu-layers", default="auto")
    parser.add_argument("--threads")
    parser.add_argument("--kv")
    parser.add_argument("--ctx", help="a smaller context, to stream shorter texts")
    parser.add_argument("--text", help="a UTF-8 text (default: Python's documentation, repeated as needed)")
    parser.add_argument("--max-tokens", default="16")
    parser.add_argument("--calibration-tokens", type=int, default=CALIBRATION_TOKENS)
    parser.add_argument("--store-limit", default="200G")
    parser.add_argument("--limit", type=float, default=LIMIT_S, help="seconds for each size's plan and run")
    parser.add_argument("--no-calibration", action="store_true")
    parser.add_argument("--json", action="store_true")
    return parser


def _run_options(options: argparse.Namespace, store: Path) -> list[str]:
    words = ["--model", options.model, "--gpu-layers", options.gpu_layers, "--store", str(store)]
    words += ["--max-tokens", options.max_tokens, "--store-limit", options.store_limit, "--embedder", "off"]
    for name in ("threads", "kv", "ctx"):
        value = getattr(options, name)
        words += [f"--{name}", value] if value else []
    return words


def _calibrate(options: argparse.Namespace, folder: Path, text: str, n_most: int) -> None:
    """Measure the speeds that the plans will find in each store."""
    n_tokens = max(512, min(options.calibration_tokens, n_most))
    file = _text_file(options, folder, text, n_tokens)
    words = ["bench", "prefill", str(file), "--repeats", "1"]
    try:
        _output([*words, *_run_options(options, folder / "calibration")], options.limit)
    except _Failed as failed:
        raise SystemExit(f"no speeds: {failed}") from None


def _text_file(options: argparse.Namespace, folder: Path, text: str, n_tokens: int) -> Path:
    """The beginning of the text that has about so many tokens."""
    from localctx.engine import EngineOptions, open_model
    from localctx.from_settings import choose_model

    _, chosen = choose_model({"model": options.model})
    with closing(open_model(chosen.path, EngineOptions())) as model:
        sample = text[:40_000]
        n_characters = round(n_tokens * len(sample) / max(1, len(model.tokenize(sample))))
    times = -(-n_characters // max(1, len(text)))
    path = folder / f"{n_tokens}.md"
    path.write_text((text * times)[:n_characters], "utf-8")
    return path


def _check(options: argparse.Namespace, folder: Path, text: str, n_tokens: int) -> Checked:
    """Plan, then run. Raises _Failed."""
    file, store = _text_file(options, folder, text, n_tokens), folder / f"store-{n_tokens}"
    store.mkdir(mode=0o700)
    speeds = folder / "calibration" / "calibration.json"
    if speeds.exists():
        shutil.copy(speeds, store)
    words = _run_options(options, store)
    planned = _output(["plan", *words, str(file)], options.limit)
    if planned["strategy"] != "exact":
        words += ["--strategy", "stream", "--kv", _with(options.kv, "lazy=off")]
        planned = _output(["plan", *words, str(file)], options.limit)
    estimates = planned["estimates"]
    measured, run = _measured([*PROGRAM, "ask", str(file), "-q", QUESTION, "--json", *words], options.limit)
    segments = [path for path in (store / "kv").rglob("*") if path.is_file() and "segments" in path.parts]
    n_stored = sum(path.stat().st_size for path in segments)
    shutil.rmtree(store)
    return Checked(
        n_tokens=planned["tokens"]["total"],
        strategy=planned["strategy"],
        planned={
            "seconds": estimates["minutes"] * 60,
            "ram": estimates["ram_bytes"],
            "vram": estimates["vram_bytes"],
            "disk": estimates["disk_bytes"],
        },
        measured={**measured, "disk": n_stored},
        plan={
            name: value for name, value in planned.items() if name not in ("alternatives", "why", "ladder")
        },
        run=run,
    )


def _with(kv: str | None, more: str) -> str:
    return f"{kv},{more}" if kv else more


def _output(words: list[str], limit_s: float) -> dict[str, Any]:
    """What a command prints as JSON. Raises _Failed."""
    command, pipe = [*PROGRAM, *words, "--json"], subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, env=child_environment()) as child, ended(child):
        try:
            out, err = child.communicate(timeout=limit_s)
        except subprocess.TimeoutExpired:
            raise _Failed(f"{words[0]} took more than {limit_s:g} s") from None
    if child.returncode:
        raise _Failed((out + err).decode("utf-8", "replace").strip())
    found: dict[str, Any] = json.loads(out)
    return found


class _Peaks(threading.Thread):
    """The most GPU memory in use since it began, and the most of each part of a process's resident memory."""

    def __init__(self, pid: int, used: Callable[[], int | None]) -> None:
        super().__init__(name="localctx-peaks", daemon=True)
        self._status, self._used = Path(f"/proc/{pid}/status"), used
        self._before, self._done = used() or 0, threading.Event()
        self.vram, self.resident = 0, dict.fromkeys(STATUS, 0)

    def run(self) -> None:
        """Look until told to end."""
        while not self._done.wait(SAMPLE_SECONDS):
            self.vram = max(self.vram, (self._used() or 0) - self._before)
            lines = (read_or_none(self._status.read_text) or "").splitlines()
            for name, _, value in (line.partition(":") for line in lines):
                if name in self.resident:
                    self.resident[name] = max(self.resident[name], int(value.split()[0]) << 10)

    def end(self) -> None:
        """Wait for the last look."""
        self._done.set()
        self.join()


def _in_a_cell(text: str) -> str:
    """The text as a cell of a table in Markdown."""
    return " ".join(text.replace("|", "/").split())


def _measured(command: list[str], limit_s: float) -> tuple[dict[str, float], dict[str, Any]]:
    """Seconds, peaks of resident and GPU memory of a command, and what it says of itself. Raises _Failed."""
    gpus = read_or_none(Nvml)
    started = time.perf_counter()
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT, env=child_environment()) as child,
        ended(child),
    ):
        peaks = _Peaks(child.pid, lambda: None if gpus is None else read_or_none(gpus.used_bytes))
        peaks.start()
        stop = threading.Timer(limit_s, os.kill, (child.pid, signal.SIGKILL))  # kill() would reap it
        stop.daemon = True  # it holds up nobody who stops this program
        stop.start()
        _, status, usage = os.wait4(child.pid, 0)
        seconds = time.perf_counter() - started
        stop.cancel()
        peaks.end()
        child.returncode = os.waitstatus_to_exitcode(status)
        said.seek(0)
        text = said.read().decode("utf-8", "replace")
    if child.returncode:
        late = f"took more than {limit_s:g} s" if seconds >= limit_s else text.strip()
        raise _Failed(late or f"ended with {child.returncode}")
    answer = json.loads(next(line for line in text.splitlines() if line.startswith("{")))
    run = {name: answer.get(name) for name in ("tokens", "timings", "coverage", "documents", "warnings")}
    measured = {"seconds": seconds, "ram": usage.ru_maxrss * 1024, "vram": peaks.vram}
    return measured, {**run, "resident": peaks.resident, "cpu_seconds": usage.ru_utime + usage.ru_stime}


if __name__ == "__main__":
    run_as_program(main)
