"""A plan beside what then really happens: minutes, memory, GPU memory and disk of `localctx ask`.

python -m localctx.bench.plan_check --model FILE --tokens 2000,6000,20000 [--gpu-layers all] [--threads N]
    [--kv KEY=VALUE,...] [--ctx N] [--text FILE] [--max-tokens N] [--no-calibration] [--json]

Each size: the text's first tokens, read whole where they fit the context, else streamed into a new store. The
speeds come from `bench prefill` of the same model a moment before, unless --no-calibration.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from localctx.bench.inputs import built_in_text
from localctx.document.isolate import child_environment

__all__ = ["Checked", "main"]

QUESTION = "What is said about the first of these topics?"
CALIBRATION_TOKENS = 4096
POLL_S = 0.05
PROGRAM = (sys.executable, "-P", "-c", "from localctx.cli.entry import run; run()")


@dataclass(frozen=True, slots=True)
class Checked:
    """One size: planned and measured. peaks in bytes; vram 0 without nvidia-smi."""

    n_tokens: int
    strategy: str
    planned_s: float
    measured_s: float
    planned_ram: int
    measured_ram: int
    planned_vram: int
    measured_vram: int
    planned_disk: int
    measured_disk: int

    @property
    def line(self) -> str:
        """A row of the table."""
        times = self.measured_s / max(self.planned_s, 1e-9)
        memory = self.measured_ram / max(self.planned_ram, 1) - 1
        vram = f"{self.measured_vram / self.planned_vram - 1:+.1%}" if self.planned_vram else "–"
        return (
            f"| {self.n_tokens:,} | {self.strategy} | {self.planned_s:.1f} | {self.measured_s:.1f}"
            f" | {times:.2f}"
            f" | {_mb(self.planned_ram)} | {_mb(self.measured_ram)} | {memory:+.1%}"
            f" | {_mb(self.planned_vram)} | {_mb(self.measured_vram)} | {vram}"
            f" | {_mb(self.planned_disk)} | {_mb(self.measured_disk)} |"
        )


HEADER = (
    "| tokens | strategy | planned s | measured s | × | planned MB | measured MB | off"
    " | planned GPU MB | measured | off | planned disk MB | measured |\n" + "|---" * 13 + "|"
)


def _mb(n_bytes: int) -> str:
    return f"{n_bytes / 1e6:,.0f}"


def main(arguments: list[str] | None = None) -> int:
    """Print the table, or JSON; returns the exit code."""
    options = _parser().parse_args(arguments)
    sizes = [int(text) for text in options.tokens.split(",")]
    text = built_in_text() if options.text is None else Path(options.text).read_text("utf-8", "replace")
    with tempfile.TemporaryDirectory(prefix="localctx-plan-check-") as name:
        folder = Path(name)
        if not options.no_calibration:
            _calibrate(options, folder, text, max(sizes))
        checked: list[Checked] = []
        for size in sizes:
            checked.append(_check(options, folder, text, size))
            if not options.json:
                _say(checked[-1].line if len(checked) > 1 else f"{HEADER}\n{checked[-1].line}")
    if options.json:
        rows = [asdict(one) for one in checked]
        _say(json.dumps({"schema": "localctx.bench.plan-check/1", "sizes": rows}))
    return 0


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
    words = ["bench", "prefill", str(file), "--repeats", "1", "--json"]
    store = folder / "calibration"
    done = subprocess.run(
        [*PROGRAM, *words, *_run_options(options, store)],
        capture_output=True,
        check=False,
        env=_environment(),
    )
    if done.returncode:
        raise SystemExit(done.stdout.decode() + done.stderr.decode())


def _environment() -> dict[str, str]:
    return child_environment()


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
    """Plan, then run."""
    file, store = _text_file(options, folder, text, n_tokens), folder / f"store-{n_tokens}"
    store.mkdir(mode=0o700)
    speeds = folder / "calibration" / "calibration.json"
    if speeds.exists():
        shutil.copy(speeds, store)
    words = _run_options(options, store)
    planned = _planned([*words, str(file)])
    if planned["strategy"] != "exact":
        words += ["--strategy", "stream", "--kv", "lazy=off"]
        planned = _planned([*words, str(file)])
    estimates = planned["estimates"]
    before = _gpu_used()
    seconds, ram, vram = _measured([*PROGRAM, "ask", str(file), "-q", QUESTION, "--json", *words])
    segments = [path for path in (store / "kv").rglob("*") if path.is_file() and "segments" in path.parts]
    return Checked(
        n_tokens=planned["tokens"]["total"],
        strategy=planned["strategy"],
        planned_s=estimates["minutes"] * 60,
        measured_s=seconds,
        planned_ram=estimates["ram_bytes"],
        measured_ram=ram,
        planned_vram=estimates["vram_bytes"],
        measured_vram=max(0, vram - before),
        planned_disk=estimates["disk_bytes"],
        measured_disk=sum(path.stat().st_size for path in segments),
    )


def _planned(words: list[str]) -> dict[str, Any]:
    done = subprocess.run(
        [*PROGRAM, "plan", *words, "--json"], capture_output=True, check=False, env=_environment()
    )
    if done.returncode:
        raise SystemExit(done.stdout.decode() + done.stderr.decode())
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _measured(command: list[str]) -> tuple[float, int, int]:
    """Seconds, peak of resident memory and of GPU memory of a command; ends where it fails."""
    vram, started = 0, time.perf_counter()
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(command, stdout=said, stderr=said, env=_environment()) as child,
    ):
        while True:
            pid, status, usage = os.wait4(child.pid, os.WNOHANG)
            if pid:
                break
            vram = max(vram, _gpu_used())
            time.sleep(POLL_S)
        seconds = time.perf_counter() - started
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode:
            said.seek(0)
            raise SystemExit(said.read().decode())
    return seconds, usage.ru_maxrss * 1024, vram


def _gpu_used() -> int:
    """Bytes of GPU memory in use on all devices; 0 where nvidia-smi is not there."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return 0
    query = [program, "--query-gpu=memory.used", "--format=csv,noheader,nounits"]
    done = subprocess.run(query, capture_output=True, text=True, check=False)
    return sum(int(line) << 20 for line in done.stdout.split() if line.isdecimal())


if __name__ == "__main__":
    sys.exit(main())
