"""A batch of many jobs, stopped by force again and again: what a test needs for it.

    python killed.py [N_JOBS] [N_DOCUMENTS] [N_KILLS] [SEED] [WORDS...]

runs it alone and prints what happened.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

PROGRAM = """
import contextlib, pathlib, time
from localctx.batch.results import Results
from localctx.cli.entry import run

append = Results.append

def is_held():
    # While the file `hold` says so, no line behind that number is written: the batch cannot end meanwhile.
    with contextlib.suppress(FileNotFoundError):
        most = int(pathlib.Path("hold").read_text())
        return pathlib.Path("out.jsonl").read_bytes().count(b"\\n") >= most
    return False

def held(results, row):
    while is_held():
        time.sleep(0.002)
    append(results, row)

Results.append = held
run()
"""
WORDS = ("salt", "rope", "news", "glass", "shells", "crabs", "stones", "bread", "wine", "paper")
TIMEOUT_S = 600


@dataclass
class Batch:
    """The folder of a batch: documents, jobs of which some are bad, a tiny random model."""

    folder: Path
    n_jobs: int
    n_documents: int
    words: tuple[str, ...] = ()
    bad: set[int] = field(default_factory=set)
    kept: list[bytes] = field(default_factory=list)

    @property
    def out(self) -> Path:
        return self.folder / "out.jsonl"

    def write(self, random_: random.Random) -> None:
        """Write it all; one row in ten is bad, in one of four ways."""
        write_tiny_gguf(self.folder / "tiny.gguf", bpe_vocabulary())
        for n in range(self.n_documents):
            text = " ".join(f"Ship {n} brought {random_.choice(WORDS)} in {1800 + i}." for i in range(30))
            (self.folder / f"{n}.txt").write_text(text)
        self.bad = set(range(5, self.n_jobs, 10))
        lines = []
        for n in range(self.n_jobs):
            document = f"{n % self.n_documents}.txt"
            row = {"id": n, "documents": [document], "question": f"What came in the year {1800 + n}?"}
            if n in self.bad:
                broken = [
                    f'{{"id": {n}, "docum',
                    json.dumps([n]),
                    json.dumps({**row, "documents": ["lost.txt"]}),
                ]
                lines.append([*broken, json.dumps({**row, "question": ""})][n // 10 % 4])
            else:
                lines.append(json.dumps(row))
        (self.folder / "jobs.jsonl").write_text("\n".join(lines) + "\n")

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start the command, or start it again."""
        command = [
            sys.executable,
            "-c",
            PROGRAM,
            "batch",
            "jobs.jsonl",
            "-o",
            "out.jsonl",
            "--model",
            "tiny.gguf",
        ]
        command += ["--embedder", "off", "--max-tokens", "4", "--threads", "1", *self.words, *words]
        places = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), str(self.folder / "home"))
        return subprocess.Popen(
            command, cwd=self.folder, env={**os.environ, **places}, stderr=subprocess.PIPE, text=True
        )

    def finish(self, process: subprocess.Popen[str]) -> str:
        """What it said on standard error until its end; it does not outlive the test."""
        try:
            return process.communicate(timeout=TIMEOUT_S)[1]
        finally:
            process.kill()

    def hold_at(self, n_lines: int | None) -> None:
        """From now on no more than so many lines are written; None: all."""
        hold = self.folder / "hold"
        if n_lines is None:
            hold.unlink(missing_ok=True)
            return
        new = self.folder / "hold.new"
        new.write_text(str(n_lines))
        new.replace(hold)

    def n_lines(self) -> int:
        """Whole lines that are written."""
        return self.out.read_bytes().count(b"\n") if self.out.exists() else 0

    def wait_for(self, n_lines: int, process: subprocess.Popen[str]) -> bool:
        """Wait until so many are there; False when the process has ended before."""
        deadline = time.monotonic() + TIMEOUT_S
        while self.n_lines() < n_lines:
            if process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def kill_at(self, n_lines: int, delay_s: float) -> bool:
        """Run until so many lines are there and a moment more, then `kill -9`; whether it came to that.

        It gets no further than five lines more, so that there is something to kill on a quick machine too.
        """
        self.hold_at(min(n_lines + 5, self.n_jobs - 1))
        process = self.start()
        came = self.wait_for(n_lines, process)
        if came:
            time.sleep(delay_s)
            came = process.poll() is None
            process.send_signal(signal.SIGKILL)
        process.communicate()
        self.hold_at(None)
        data = self.out.read_bytes() if self.out.exists() else b""
        self.kept.append(data[: data.rfind(b"\n") + 1])
        return came

    def check(self) -> Counter[str]:
        """Every job has one line, what was written before a kill is still there; counts of the schemas."""
        data = self.out.read_bytes()
        for before in self.kept:
            assert data.startswith(before)
        rows: list[dict[str, Any]] = [json.loads(line) for line in data.splitlines()]
        assert Counter(row["line"] for row in rows) == Counter(range(1, self.n_jobs + 1))
        assert len({row["key"] for row in rows}) == self.n_jobs
        failed = {row["line"] - 1 for row in rows if row["schema"] == "localctx.error/1"}
        assert failed == self.bad
        assert all(row["tokens"]["generated"] for row in rows if "tokens" in row)
        return Counter(row["schema"] for row in rows)


def run_killed(batch: Batch, n_kills: int, random_: random.Random) -> int:
    """Kill it at random places, then let it end; how often it was killed in mid-work."""
    n_killed = 0
    for n in range(n_kills):
        there = batch.n_lines()
        left = batch.n_jobs - there
        n_more = random_.randint(0, max(1, 2 * left // (n_kills - n + 1)))
        n_killed += batch.kill_at(min(there + n_more, batch.n_jobs - 1), random_.random() * 0.05)
    process = batch.start()
    errors = batch.finish(process)
    assert process.returncode == 4, errors
    return n_killed


def main() -> None:
    """See above."""
    numbers = [int(word) for word in sys.argv[1:5]]
    n_jobs, n_documents, n_kills, seed = [*numbers, *(200, 20, 10, 1)[len(numbers) :]]
    random_ = random.Random(seed)
    with tempfile.TemporaryDirectory() as folder:
        batch = Batch(Path(folder), n_jobs, n_documents, tuple(sys.argv[5:]))
        batch.write(random_)
        began = time.monotonic()
        n_killed = run_killed(batch, n_kills, random_)
        counts = batch.check()
        sizes = [data.count(b"\n") for data in batch.kept]
        seconds = time.monotonic() - began
        print(f"{n_jobs} jobs over {n_documents} documents, killed {n_killed} times at lines {sizes}")
        print(dict(counts))
        process = batch.start()
        _, errors = process.communicate()
        print(f"{seconds:.0f} s; again: exit code {process.returncode}, {errors.splitlines()[0]}")
        batch.check()


if __name__ == "__main__":
    main()
