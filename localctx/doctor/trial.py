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
from dataclasses import replace
from pathlib import Path
from typing import Any

from localctx.byte_sizes import format_bytes
from localctx.doctor.report import Finding
from localctx.document.isolate import child_environment

__all__ = ["TRIAL_MODULE", "check_engine", "check_package"]

TRIAL_MODULE = "localctx.engine.trial"
_REBUILD = "make install GPU=cpu"
_DEATHS_BY_BUILD = (signal.SIGILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGBUS, signal.SIGFPE)


def check_package() -> Iterator[Finding]:
    """Which llama-cpp-python is installed, and from which wheel."""
    try:
        package = importlib.metadata.distribution("llama-cpp-python")
    except importlib.metadata.PackageNotFoundError:
        yield Finding("llama.cpp", "fail", "llama-cpp-python is not installed", f"run: {_REBUILD}")
        return
    origin = json.loads(package.read_text("direct_url.json") or "{}").get("url", "a package index")
    wheel = "/".join(str(origin).rsplit("/", 2)[-2:])
    yield Finding("llama.cpp", "ok", f"llama-cpp-python {package.version} from {wheel}")


def check_engine(path: Path, module: str, timeout_s: float) -> Iterator[Finding]:
    """One token from the model in a child process: how the library was built, what it sees, that it works.
    Where there are GPUs, one from each of them and from the CPU too, in a child of its own.

    A child prints JSON objects, a line each; together they say how it was built, then what came of it.
    """
    said, finding = _try(path, module, timeout_s)
    if "system_info" in said:
        yield _gpu(said)
    yield finding
    gpus = [str(name) for name in said.get("gpu_names", [])]
    for argument, name in (
        [*zip(map(str, range(len(gpus))), gpus, strict=True), ("cpu", "CPU")] if gpus else []
    ):
        told, finding = _try(path, module, timeout_s, argument)
        yield replace(finding, name=f"trial {name}")
        copy = told.get("copy")
        if isinstance(copy, dict):
            yield _copied(name, copy)


def _try(path: Path, module: str, timeout_s: float, *where: str) -> tuple[dict[str, Any], Finding]:
    """What the child said, and what came of it."""
    # -P: nothing is imported from this folder
    command = [sys.executable, "-P", "-m", module, str(path), *where]
    try:
        child = subprocess.run(
            command, capture_output=True, timeout=timeout_s, check=False, env=child_environment()
        )
    except subprocess.TimeoutExpired:
        return {}, Finding("trial", "fail", f"no token within {timeout_s:.0f} s", "try a smaller model")
    said = _objects(child.stdout)
    if child.returncode < 0:
        return said, _died(-child.returncode, str(said.get("system_info", "")))
    if child.returncode or "error" in said or "token" not in said:
        return said, _failed(child.returncode, said, child.stderr.decode("utf-8", "replace"))
    if not said.get("finite", True):
        detail = "llama.cpp computes numbers that are none (NaN or infinity)"
        return said, Finding("trial", "fail", detail, f"rebuild it with portable flags: {_REBUILD}")
    speed = said.get("tokens_per_s")
    if not isinstance(speed, int | float):
        return said, Finding("trial", "ok", f"{said.get('model', 'the model')} gave a token")
    detail = f"{said.get('model', 'the model')} gave a token, {speed:.1f} tokens/s"
    return said, Finding("trial", "ok", detail, measured={"tokens_per_s": float(speed)})


def _copied(name: str, copy: Mapping[str, Any]) -> Finding:
    """How fast KV gets to a GPU and back."""
    to, back = float(copy["to_bytes_per_s"]), float(copy["from_bytes_per_s"])
    detail = f"{format_bytes(to)}/s to {name} from {copy['memory']}, {format_bytes(back)}/s back"
    measured = {"to_bytes_per_s": round(to), "from_bytes_per_s": round(back)}
    if copy["memory"] == "page-locked":
        return Finding(f"copy {name}", "ok", detail, measured=measured)
    advice = "page-locked memory would be several times faster: raise ulimit -l, unset GGML_CUDA_NO_PINNED"
    return Finding(f"copy {name}", "warn", detail, advice, measured)


def _died(number: int, system: str) -> Finding:
    """The child was ended by a signal."""
    try:
        name = signal.Signals(number).name
    except ValueError:
        name = f"signal {number}"
    if number in _DEATHS_BY_BUILD:
        why = (
            "llama.cpp was built for instructions that this machine lacks or masks, or a library does not fit"
        )
        built = f" (built with {system})" if system else ""
        advice = f"rebuild it with portable flags: {_REBUILD}, without GGML_NATIVE=ON in CMAKE_ARGS"
        return Finding("trial", "fail", f"the trial died by {name}: {why}{built}", advice)
    if number == signal.SIGKILL:
        return Finding("trial", "fail", f"the trial died by {name}", "memory ran out: see the memory finding")
    return Finding("trial", "fail", f"the trial died by {name}", "run localctx doctor again")


def _failed(status: int, said: Mapping[str, Any], errors: str) -> Finding:
    """The child ended by itself, without a token."""
    if "error" in said:
        return Finding("trial", "fail", str(said["error"]), str(said.get("hint", "")))
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    last = lines[-1] if lines else "nothing"
    advice = f"run: {_REBUILD}" if "llama_cpp" in errors else "please report it, with all that doctor says"
    return Finding("trial", "fail", f"the trial ended with {status} and said: {last}", advice)


def _objects(output: bytes) -> dict[str, Any]:
    """The JSON objects among the child's lines as one; later keys win."""
    merged: dict[str, Any] = {}
    for line in output.decode("utf-8", "replace").splitlines():
        try:
            value = json.loads(line)
        except ValueError:
            continue
        if isinstance(value, dict):
            merged |= value
    return merged


def _gpu(said: Mapping[str, Any]) -> Finding:
    """What llama.cpp was built for, and what it sees of it."""
    backends = ", ".join(map(str, said.get("backends", []))) or "none named"
    system = f"ggml {said.get('ggml', '?')}, backends {backends}; {said['system_info']}"
    names = [str(item) for item in said.get("devices", [])]
    if names:
        return Finding("gpu", "ok", f"{', '.join(names)}. {system}")
    if said.get("gpu_offload"):
        advice = "check the driver and CUDA_VISIBLE_DEVICES"
        return Finding("gpu", "warn", f"llama.cpp is built for a GPU and sees none. {system}", advice)
    return Finding("gpu", "ok", f"CPU only; for a GPU: make install GPU=cuda|hip|vulkan|metal. {system}")
