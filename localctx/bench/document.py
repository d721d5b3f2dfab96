"""How fast documents open and how much memory that takes: a long PDF, a large text, a huge XML file.

Each measurement runs in a process of its own, so that its peak of memory is its own. Knows no models and no
terminals. `python -m localctx.bench.document JOB` is that process; it prints one JSON object.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

from localctx.bench.document_inputs import write_pdf, write_text, write_xml
from localctx.document.isolate import child_environment
from localctx.errors import LocalctxError, UsageError

__all__ = ["BENCHMARKS", "Result", "Sizes", "run"]

MiB, GiB = 1 << 20, 1 << 30
MAX_SCALE = 1000
SPARE_BYTES = 2 * GiB
"""Left free on the disk, whatever sizes are asked for."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the inputs are, and the address space that the XML is read in."""

    pdf_pages: int = 2500
    text_bytes: int = GiB
    xml_bytes: int = 4 * GiB
    xml_memory_bytes: int = GiB

    def scaled(self, scale: float) -> Sizes:
        """The inputs times `scale`, in the same address space."""
        return Sizes(
            max(1, round(self.pdf_pages * scale)),
            max(MiB, round(self.text_bytes * scale)),
            max(MiB, round(self.xml_bytes * scale)),
            self.xml_memory_bytes,
        )


@dataclass(frozen=True, slots=True)
class Result:
    """One measurement: `n_items` counts `unit`; the limits are the aims, None where there is none.

    peak_memory_bytes is the resident peak of the measuring process and, added, that of its largest child.
    """

    name: str
    size_bytes: int
    n_items: int
    unit: str
    seconds: float
    peak_memory_bytes: int
    seconds_limit: float | None = None
    memory_limit_bytes: int | None = None
    note: str = ""

    @property
    def passed(self) -> bool:
        """Whether the aims are met."""
        slow = self.seconds_limit is not None and self.seconds > self.seconds_limit
        large = self.memory_limit_bytes is not None and self.peak_memory_bytes > self.memory_limit_bytes
        return not slow and not large

    @property
    def line(self) -> str:
        """The result for a person, with its aims."""
        aims = [f"aim {self.seconds_limit:g} s"] if self.seconds_limit is not None else []
        if self.memory_limit_bytes is not None:
            aims.append(f"aim {self.memory_limit_bytes / MiB:,.0f} MB")
        remarks = "; ".join([*aims, "met" if self.passed else "MISSED", *filter(None, [self.note])])
        return (
            f"{self.name}: {self.n_items:,} {self.unit} of {self.size_bytes / MiB:,.1f} MB "
            f"in {self.seconds:.2f} s, peak {self.peak_memory_bytes / MiB:,.0f} MB ({remarks})"
        )


# --- the benchmarks ---------------------------------------------------------------------------------


def bench_pdf(sizes: Sizes, folder: Path) -> Result:
    """A PDF of full pages with an outline, extracted through open_document."""
    path = folder / "long.pdf"
    write_pdf(path, sizes.pdf_pages)
    seconds, n_pages, memory = measured("extract", path)
    if n_pages != sizes.pdf_pages:
        raise LocalctxError(f"bench pdf: {n_pages} of {sizes.pdf_pages} pages came out with text")
    return Result("pdf", path.stat().st_size, n_pages, "pages", seconds, memory, seconds_limit=10.0)


def bench_open(sizes: Sizes, folder: Path) -> Result:
    """A large text, from opening to its first block."""
    path = large_text(sizes, folder)
    seconds, n_blocks, memory = measured("first_block", path)
    return Result("open", path.stat().st_size, n_blocks, "blocks", seconds, memory, seconds_limit=1.0)


def bench_stream(sizes: Sizes, folder: Path) -> Result:
    """A large text, streamed through all its blocks with a tokenizer that cuts at white space."""
    path = large_text(sizes, folder)
    seconds, n_blocks, memory = measured("blocks", path)
    return Result(
        "stream", path.stat().st_size, n_blocks, "blocks", seconds, memory, memory_limit_bytes=300 * MiB
    )


def bench_xml(sizes: Sizes, folder: Path) -> Result:
    """A large XML file, converted and read record by record in a limited address space."""
    path = folder / "large.xml"
    size_bytes, note = sizes.xml_bytes, ""
    room_bytes = (shutil.disk_usage(folder).free - SPARE_BYTES) // 2  # the file and its text
    if size_bytes > room_bytes:
        size_bytes, note = max(MiB, room_bytes), "made smaller: the disk has no room for more"
    n_records = write_xml(path, size_bytes)
    seconds, n_read, memory = measured("records", path, sizes.xml_memory_bytes)
    if n_read != n_records:
        raise LocalctxError(f"bench xml: {n_read} of {n_records} records came out")
    return Result(
        "xml", path.stat().st_size, n_read, "records", seconds, memory, None, sizes.xml_memory_bytes, note
    )


BENCHMARKS: dict[str, Callable[[Sizes, Path], Result]] = {
    "pdf": bench_pdf,
    "open": bench_open,
    "stream": bench_stream,
    "xml": bench_xml,
}


def run(
    sizes: Sizes | None = None,
    only: Sequence[str] | None = None,
    folder: Path | None = None,
    scale: float = 1.0,
) -> Iterator[Result]:
    """Run the benchmarks named in `only` (default all) on inputs of `sizes` times `scale`, one by one.

    Inputs lie in a new folder inside `folder` (default: the system's for temporary files) and go at the end.
    Raises UsageError for an unknown name or a scale that makes no sense, LocalctxError where reading fails.
    """
    if not 0 < scale <= MAX_SCALE:  # a NaN compares false
        raise UsageError(f"--scale {scale:g} is out of range", f"more than 0, up to {MAX_SCALE}")
    names = list(only or BENCHMARKS)
    if unknown := [name for name in names if name not in BENCHMARKS]:
        raise UsageError(f"no such benchmark: {', '.join(unknown)}", f"one of {', '.join(BENCHMARKS)}")
    scaled = (sizes or Sizes()).scaled(scale)
    with tempfile.TemporaryDirectory(prefix="localctx-bench-", dir=folder) as name:
        for benchmark in names:
            yield BENCHMARKS[benchmark](scaled, Path(name))


def large_text(sizes: Sizes, folder: Path) -> Path:
    """The text of the benchmarks `open` and `stream`, written once."""
    path = folder / "large.txt"
    if not path.exists():
        if sizes.text_bytes > shutil.disk_usage(folder).free - SPARE_BYTES:
            raise LocalctxError(f"{folder}: no room for {sizes.text_bytes:,} bytes", "ask for a smaller text")
        write_text(path, sizes.text_bytes)
    return path


def measured(job: str, path: Path, memory_bytes: int | None = None) -> tuple[float, int, int]:
    """Seconds, items and peak memory of a job (a function of this module) in a new process."""
    argument = json.dumps({"job": job, "path": str(path), "memory_bytes": memory_bytes})
    done = subprocess.run(
        [sys.executable, "-P", "-m", "localctx.bench.document", argument],
        capture_output=True,
        text=True,
        env=child_environment(),
        check=False,
    )
    if done.returncode != 0:
        reason = (done.stderr.strip() or f"exit status {done.returncode}").splitlines()[-1]
        raise LocalctxError(f"bench {job}: {reason}")
    answer = json.loads(done.stdout)
    return answer["seconds"], answer["n_items"], answer["peak_memory_bytes"]


# --- the measuring process --------------------------------------------------------------------------


def extract(path: Path) -> int:
    """Pages that have text."""
    from localctx.document import open_document

    with open_document(path, cache_dir=None) as document:
        return len(document.pages) - len(document.pages_without_text)


def first_block(path: Path) -> int:
    """One, once the first block is there."""
    return sum(1 for _ in islice(block_lengths(path), 1))


def blocks(path: Path) -> int:
    """The number of blocks."""
    return sum(1 for _ in block_lengths(path))


def block_lengths(path: Path) -> Iterator[int]:
    """Tokens of each block, a token being a word."""
    from localctx.blocks import split
    from localctx.document import open_document

    with open_document(path, cache_dir=None) as document:
        for block in split(document.text, words, pages=document.pages, sections=document.sections):
            yield block.n_tokens


def words(text: str, first: bool) -> Sequence[int]:
    """A tokenizer that cuts at white space."""
    return range(len(text.split()))


def records(path: Path) -> int:
    """The records in the text of the XML file, counted by their subject lines."""
    from localctx.document import open_document

    n_records, tail = 0, ""
    with open_document(path, cache_dir=None) as document:
        for piece in document.text.stream():
            text = tail + piece
            n_records += text.count(" & others")
            tail = text[-len(" & other") :]
    return n_records


JOBS: dict[str, Callable[[Path], int]] = {
    "extract": extract,
    "first_block": first_block,
    "blocks": blocks,
    "records": records,
}


def peak_memory_bytes() -> int:
    """The resident peak of this process and of its largest child; the kernel's own count where it has one."""
    status = Path("/proc/self/status")
    unit = 1 if sys.platform == "darwin" else 1024
    own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
    if status.exists():  # getrusage inherits the peak of the process that started this one
        own = int(status.read_text().split("VmHWM:")[1].split()[0]) * 1024
    return own + resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit


@dataclass(frozen=True, slots=True)
class Answer:
    """What the measuring process prints."""

    seconds: float
    n_items: int
    peak_memory_bytes: int


def main(argument: str) -> None:
    """Run one job and print its figures."""
    job = json.loads(argument)
    if job["memory_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_AS, (job["memory_bytes"], resource.RLIM_INFINITY))
    begin = time.perf_counter()
    n_items = JOBS[job["job"]](Path(job["path"]))
    answer = Answer(time.perf_counter() - begin, n_items, peak_memory_bytes())
    sys.stdout.write(json.dumps(asdict(answer)))


if __name__ == "__main__":
    main(sys.argv[1])
