"""Builds and installs llama-cpp-python for one backend, from a wheel folder keyed by what went into it.

Stand-alone (standard library only), run by make with the Python of the environment it installs into. pip's
own wheel cache ignores CMAKE_ARGS, so a CPU wheel would silently serve a CUDA install; here the folder's name
holds version, Python, platform and a hash of the arguments. Knows nothing of localctx.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

NAME = "llama-cpp-python"
VERSION = "0.3.36"

# GPU=… → CMAKE_ARGS. Portable CPU code everywhere: GGML_NATIVE=ON uses AMX where the CPU advertises it and
# dies on virtual machines that mask it. CUDA code is built for the GPUs of this machine, or it takes an hour.
CMAKE_ARGS = {
    "cpu": "-DGGML_NATIVE=OFF",
    "cuda": "-DGGML_NATIVE=OFF -DGGML_CUDA=ON -DCMAKE_CUDA_ARCHITECTURES=native -DCMAKE_CUDA_STANDARD=17",
    "hip": "-DGGML_NATIVE=OFF -DGGML_HIP=ON",
    "vulkan": "-DGGML_NATIVE=OFF -DGGML_VULKAN=ON",
    "metal": "-DGGML_NATIVE=OFF -DGGML_METAL=ON",
}
NEEDS = {
    "cpu": "",
    "cuda": "CUDA toolkit (nvcc), the GPU visible",
    "hip": "ROCm 6.1 or newer, HIPCXX",
    "vulkan": "Vulkan headers, loader and glslc",
    "metal": "macOS with Xcode's tools",
}
# CPU=all: a CPU backend for each generation of x86-64 (or Arm), chosen when the library is loaded. The one
# with AMX stays out of the wheel: it is chosen by what the CPU advertises, and virtual machines may mask it.
VARIANTS = "-DGGML_BACKEND_DL=ON -DGGML_CPU_ALL_VARIANTS=ON -DCMAKE_INSTALL_BINDIR=llama_cpp/lib"
WITHOUT_AMX = "**/libggml-cpu-sapphirerapids*"
# GGML_NATIVE=OFF turns SSE 4.2, AVX, AVX2, BMI2, FMA and F16C on; an x86-64 CPU without AVX2 needs them off.
WITHOUT_AVX2 = "-DGGML_AVX=OFF -DGGML_AVX2=OFF -DGGML_BMI2=OFF -DGGML_FMA=OFF -DGGML_F16C=OFF"
PROGRESS_S = 15.0
GIB_PER_JOB = 1.5
_STEP = re.compile(r"^\s*\[\s*(?:(?P<done>\d+)/(?P<total>\d+)|(?P<percent>\d+)%)\s*\]")


class BuildError(Exception):
    """The wheel cannot be built or installed; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; a failure is a line or two on stderr and exit code 1."""
    parser = argparse.ArgumentParser(prog="llama_wheel.py", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("command", choices=["install", "build", "path", "table"])
    parser.add_argument("--gpu", default="", help="backend; without it an installed one is kept, else cpu")
    parser.add_argument("--cpu", default="", help="all: CPU code for every generation, chosen at run time")
    parser.add_argument("--wheel-dir", type=Path, help="folder of the built wheels")
    parser.add_argument(
        "--wheel", type=Path, help="take this ready-made wheel for the backend instead of building"
    )
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    folder = (options.wheel_dir or default_wheel_dir()).expanduser().resolve()
    try:
        args = cmake_args(options.gpu, options.cpu)
        if options.command == "table":
            say(table())
        elif options.command == "path":
            say(str(folder / key(args)))
        elif options.command == "build":
            say(str(obtain(folder, args, options.wheel)))
        elif not options.gpu and not options.cpu and not options.wheel and installed_origin() is not None:
            say(f"{NAME} {VERSION} is installed; GPU=… or CPU=all builds it otherwise")
        else:
            install(obtain(folder, args, options.wheel))
    except (BuildError, OSError) as error:
        sys.stderr.write(f"llama_wheel.py: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def say(line: str) -> None:
    """Print at once, so that a long build shows where it is through a pipe too."""
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def table() -> str:
    """The table GPU → CMAKE_ARGS."""
    rows = [("GPU", "needs", "CMAKE_ARGS"), *((name, NEEDS[name], args) for name, args in CMAKE_ARGS.items())]
    width = max(len(needs) for _, needs, _ in rows)
    lines = [f"  {name:7} {needs:{width}}  {args}" for name, needs, args in rows]
    return "\n".join([*lines, f"  CPU=all adds {VARIANTS}"])


def default_wheel_dir() -> Path:
    """`localctx/wheels` in the user's cache folder."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "localctx" / "wheels"


def cmake_args(gpu: str, cpu: str = "") -> str:
    """The backend's arguments, then those of the environment's CMAKE_ARGS, which therefore win."""
    if cpu not in ("", "all"):
        raise BuildError(f"CPU={cpu} is not known; all, or leave it out")
    if (gpu or "cpu") not in CMAKE_ARGS:
        raise BuildError(f"GPU={gpu} is not known; one of {', '.join(CMAKE_ARGS)}")
    parts = [CMAKE_ARGS[gpu or "cpu"]]
    if cpu == "all":
        parts.append(VARIANTS)
    elif lacks_avx2():
        parts.append(WITHOUT_AVX2)
    parts += os.environ.get("CMAKE_ARGS", "").split()
    return " ".join(parts)


def lacks_avx2(cpuinfo: Path = Path("/proc/cpuinfo")) -> bool:
    """Whether this is an x86-64 machine that says that it has no AVX2."""
    if platform.machine().lower() not in ("x86_64", "amd64") or not cpuinfo.is_file():
        return False
    flags = next((line for line in cpuinfo.read_text().splitlines() if line.startswith("flags")), "")
    return bool(flags) and "avx2" not in flags.split()


def key(args: str) -> str:
    """Name of the folder that holds the wheel for these arguments and this Python."""
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    machine = re.sub(r"[^A-Za-z0-9_]", "_", sysconfig.get_platform())
    digest = hashlib.sha256(" ".join(args.split()).encode()).hexdigest()[:12]
    return f"{NAME.replace('-', '_')}-{VERSION}-{python}-{machine}-{digest}"


def obtain(folder: Path, args: str, ready_made: Path | None) -> Path:
    """The wheel for these arguments, built or copied into its folder if it is not there yet.

    Two at once are safe: the second waits for the first; a killed one leaves nothing under the final name.
    """
    target = folder / key(args)
    folder.mkdir(parents=True, exist_ok=True)
    with _lock(folder / f".{target.name}.lock"):
        if not target.is_dir():
            scratch = Path(tempfile.mkdtemp(dir=folder, prefix=".part-"))
            try:
                if ready_made is not None:
                    shutil.copy2(ready_made, scratch)
                else:
                    build(scratch, args, folder / f"{target.name}.log")
                (scratch / "CMAKE_ARGS").write_text(args + "\n")
                scratch.rename(target)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
    wheels = sorted(target.glob("*.whl"))
    if len(wheels) != 1:
        raise BuildError(
            f"{target} holds {len(wheels)} wheels instead of one: remove the folder and run again"
        )
    return wheels[0]


def build(scratch: Path, args: str, log: Path) -> None:
    """pip wheel from the source distribution, with a line of progress now and then."""
    jobs = os.environ.get("CMAKE_BUILD_PARALLEL_LEVEL") or str(parallel_jobs())
    say(f"building {NAME} {VERSION} with {args}\n  {jobs} at a time, once for this machine; log: {log}")
    command = [sys.executable, "-m", "pip", "wheel", "--no-cache-dir", "--no-deps", "--verbose"]
    command += ["--disable-pip-version-check", "--no-binary", NAME, "--wheel-dir", str(scratch)]
    environment = {**os.environ, "CMAKE_ARGS": args, "CMAKE_BUILD_PARALLEL_LEVEL": jobs}
    if "-DGGML_CPU_ALL_VARIANTS=ON" in args:
        environment["SKBUILD_WHEEL_EXCLUDE"] = WITHOUT_AMX
    started = time.monotonic()
    with log.open("w", encoding="utf-8", errors="replace") as out:
        process = subprocess.Popen(
            [*command, f"{NAME}=={VERSION}"],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,
        )
        try:
            _follow(process, out.write, started)
        except BaseException:
            os.killpg(process.pid, signal.SIGTERM)  # the compilers too, which pip would leave running
            raise
        finally:
            status = process.wait()
            if process.stdout is not None:
                process.stdout.close()
    if status:
        tail = "\n".join(log.read_text("utf-8").splitlines()[-12:])
        raise BuildError(f"building {NAME} failed ({status}); the end of {log}:\n{tail}")
    say(f"built in {_clock(time.monotonic() - started)}")


def _follow(process: subprocess.Popen[str], write: Callable[[str], object], started: float) -> None:
    """Copy the build's output to the log and print how far it is."""
    printed = started
    for line in process.stdout or ():
        write(line)
        step = _STEP.match(line)
        now = time.monotonic()
        if step and now - printed >= PROGRESS_S:
            printed = now
            done = f"{step['done']} of {step['total']}" if step["done"] else f"{step['percent']}%"
            say(f"  {done} after {_clock(now - started)}")


def parallel_jobs() -> int:
    """Compilers to run at once: one a usable core, fewer where memory is short."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError, StopIteration):
        lines = Path("/proc/meminfo").read_text().splitlines()
        available = next(line for line in lines if line.startswith("MemAvailable"))
        cores = min(cores, int(int(available.split()[1]) / (1 << 20) / GIB_PER_JOB))
    return max(1, cores)


def installed_origin() -> str | None:
    """Address that llama-cpp-python was installed from, "" from an index; None without this version."""
    try:
        found = importlib.metadata.distribution(NAME)
    except importlib.metadata.PackageNotFoundError:
        return None
    if found.version != VERSION:
        return None
    return str(json.loads(found.read_text("direct_url.json") or "{}").get("url", ""))


def install(wheel: Path) -> None:
    """Install exactly this wheel into the running Python unless it is what is installed."""
    if installed_origin() == wheel.as_uri():
        return
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--no-index",
        "--no-deps",
        "--force-reinstall",
        "--quiet",
    ]
    if subprocess.run([*command, "--disable-pip-version-check", str(wheel)], check=False).returncode:
        raise BuildError(f"pip could not install {wheel}")
    say(f"installed {wheel.parent.name}")


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold an advisory lock that ends with the process."""
    with path.open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another build of {path.name[1:-5]}")
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _clock(seconds: float) -> str:
    """Minutes and seconds."""
    return f"{int(seconds) // 60} min {int(seconds) % 60} s"


if __name__ == "__main__":
    sys.exit(main())
