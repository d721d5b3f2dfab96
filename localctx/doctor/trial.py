"""Generates one token in a child process, because a wrongly built llama.cpp ends the process it is in.

Knows how to read the child's death, and which build avoids it; imports no llama_cpp.
"""

from __future__ import annotations

import importlib.metadata
import json
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from localctx.doctor.report import Finding

__all__ = ["TRIAL_MODULE", "check_engine", "check_package"]

TRIAL_MODULE = "localctx.engine.trial"
_REBUILD = "make install GPU=cpu"
_DEADLY_BUILDS = (signal.SIGILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)


def check_package() -> Iterator[Finding]:
    """Which llama-cpp-python is installed, and from where."""
    try:
        package = importlib.metadata.distribution("llama-cpp-python")
    except importlib.metadata.PackageNotFoundError:
        yield Finding("llama.cpp", "fail", "llama-cpp-python is not installed", f"run: {_REBUILD}")
        return
    origin = json.loads(package.read_text("direct_url.json") or "{}").get("url", "a package index")
    build = origin.removeprefix("file://").rsplit("/", 2)[-2:]
    yield Finding("llama.cpp", "ok", f"llama-cpp-python {package.version} from {'/'.join(build)}")


def check_engine(path: Path, module: str, timeout_s: float) -> Iterator[Finding]:
    """One token from the model in a child process: that it works, how fast, on what."""
    command = [sys.executable, "-m", module, str(path)]
    try:
        child = subprocess.run(command, capture_output=True, timeout=timeout_s, check=False)
    except subprocess.TimeoutExpired:
        detail = f"no token within {timeout_s:.0f} s"
        yield Finding("trial", "fail", detail, "try fewer threads (--threads), or a smaller model")
        return
    if child.returncode < 0:
        yield _died(-child.returncode)
        return
    answer = _answer(child.stdout)
    if child.returncode != 0 or answer is None:
        yield _failed(child.returncode, answer, child.stderr.decode("utf-8", "replace"))
        return
    yield Finding("trial", "ok", _speed(answer))
    yield _devices(answer)


def _died(number: int) -> Finding:
    """The child was ended by a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number in _DEADLY_BUILDS:
        why = "the CPU lacks an instruction that llama.cpp was built to use, or a library does not fit"
        advice = f"rebuild it with portable flags: {_REBUILD} (CMAKE_ARGS unset or without GGML_NATIVE=ON)"
        return Finding("trial", "fail", f"the trial died by {name}: {why}", advice)
    if number == signal.SIGKILL:
        return Finding("trial", "fail", f"the trial died by {name}", "memory ran out: see the memory finding")
    return Finding("trial", "fail", f"the trial died by {name}", "run localctx doctor again")


def _failed(status: int, answer: Mapping[str, object] | None, errors: str) -> Finding:
    """The child ended by itself, without a token."""
    lines = [line for line in errors.splitlines() if line.strip()]
    said = str((answer or {}).get("error") or (lines[-1] if lines else "nothing"))
    if "llama_cpp" in errors and "Error" in errors:
        return Finding("trial", "fail", f"llama.cpp cannot be loaded: {said}", f"run: {_REBUILD}")
    return Finding(
        "trial",
        "fail",
        f"the trial ended with {status} and said: {said}",
        str((answer or {}).get("hint", "")),
    )


def _answer(output: bytes) -> Mapping[str, object] | None:
    """The JSON object on the last line of the child's output."""
    lines = output.decode("utf-8", "replace").strip().splitlines()
    try:
        value = json.loads(lines[-1])
    except (IndexError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def _speed(answer: Mapping[str, object]) -> str:
    """What the trial measured."""
    speed = answer.get("tokens_per_s")
    text = "one token generated"
    return f"{text}, {speed:.1f} tokens/s" if isinstance(speed, int | float) else text


def _devices(answer: Mapping[str, object]) -> Finding:
    """What llama.cpp was built for and sees."""
    system = str(answer.get("system_info", "")).strip()
    devices = answer.get("devices")
    names = [str(item) for item in devices] if isinstance(devices, list) else []
    built = bool(answer.get("gpu_offload"))
    if built and not names:
        detail = f"llama.cpp was built for a GPU and sees none. {system}"
        return Finding("gpu", "warn", detail, "check the driver and CUDA_VISIBLE_DEVICES")
    if built:
        return Finding("gpu", "ok", f"{', '.join(names)}. {system}")
    return Finding("gpu", "ok", f"CPU only; for a GPU: make install GPU=cuda|hip|vulkan|metal. {system}")
