"""Runs a generator in a child Python process and streams its items back. Knows nothing of file formats.

`isolated("package.module:generator", {"name": value}, limits)` yields what the generator yields. Arguments
and items are JSON values in length-prefixed frames on the child's standard input and output. When the parent
dies, standard input ends and so does the child: at once, or as soon as a library that keeps Python's lock
gives it back, at the latest at the CPU limit. What libraries print there goes nowhere (with LOCALCTX_DEBUG=1:
to standard error). POSIX only.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import selectors
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Literal

from localctx import errors
from localctx.names import display_name

__all__ = ["ChildFailed", "IsolationLimits", "child_environment", "isolated"]

FRAME = struct.Struct("<I")
READ_BYTES = 1 << 16
MAX_FRAME_BYTES = 64 << 20
"""Of one item as JSON: the parent holds it in memory."""
ROOT = str(Path(__file__).resolve().parents[2])
Reason = Literal["crash", "cpu", "error", "memory", "time"]


@dataclass(frozen=True, slots=True)
class IsolationLimits:
    """Caps on a child: seconds for the first item and for each later one, CPU seconds, address space."""

    first_item_seconds: float = 120.0
    item_seconds: float = 30.0
    cpu_seconds: int = 3600
    memory_bytes: int = 2 << 30


class ChildFailed(Exception):
    """The child ended before its generator did; `n_items` had come by then, `detail` is for a person."""

    def __init__(self, reason: Reason, detail: str, n_items: int) -> None:
        super().__init__(detail)
        self.reason: Reason = reason
        self.detail = detail
        self.n_items = n_items


# --- the parent -------------------------------------------------------------------------------------


def isolated(
    target: str, arguments: Mapping[str, object], limits: IsolationLimits | None = None
) -> Generator[Any, None, None]:
    """The items of `target` ("module:generator"), called with keyword `arguments` in a child process.

    Closing the generator, or any exception in it (Ctrl-C), kills the child at once. Raises ChildFailed;
    a localctx error raised by the target is raised here again.
    """
    limits = limits or IsolationLimits()
    with spawned() as child:
        job = {
            "target": target,
            "arguments": dict(arguments),
            "cpu_seconds": limits.cpu_seconds,
            "memory_bytes": limits.memory_bytes,
        }
        assert child.stdin is not None and child.stdout is not None  # noqa: S101 - both are pipes
        with contextlib.suppress(BrokenPipeError):  # a child that is gone already is reported below
            child.stdin.write(frame(job))
            child.stdin.flush()
        reader = FrameReader(child.stdout.fileno())
        n_items = 0
        while True:
            seconds = limits.item_seconds if n_items else limits.first_item_seconds
            try:
                message = reader.next(seconds)
            except TimeoutError:
                raise ChildFailed("time", f"made no progress in {seconds:g} s", n_items) from None
            except FrameTooLarge as error:
                raise ChildFailed("memory", str(error), n_items) from None
            if message is None:
                raise death(child, n_items)
            if "item" in message:
                n_items += 1
                yield message["item"]
            elif "error" in message:
                raise remote_error(message["error"], n_items)
            else:
                return


@contextlib.contextmanager
def spawned() -> Iterator[subprocess.Popen[bytes]]:
    """A child waiting for its job; killed and waited for on the way out, whatever happened."""
    debug = os.environ.get("LOCALCTX_DEBUG") == "1"
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", "localctx.document.isolate"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=None if debug else subprocess.DEVNULL,
        env=child_environment(),
    )
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):  # unsent bytes of a job that nobody will read
                    pipe.close()


def child_environment() -> dict[str, str]:
    """The environment in which `python -P` finds this package, and nothing by accident.

    -P keeps the working directory out of the import path; an empty entry of PYTHONPATH would bring it back.
    """
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return os.environ | {"PYTHONPATH": os.pathsep.join([*filter(None, given), ROOT])}


class FrameTooLarge(Exception):
    """The child announced more than MAX_FRAME_BYTES."""


class FrameReader:
    """Reads frames from a pipe with a time limit on each."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.buffer = bytearray()

    def next(self, seconds: float) -> dict[str, Any] | None:
        """The next frame, None at the end of the pipe. Raises TimeoutError, FrameTooLarge."""
        header = self.take(FRAME.size, time.monotonic() + seconds)
        if header is None:
            return None
        n_bytes = FRAME.unpack(header)[0]
        if n_bytes > MAX_FRAME_BYTES:
            raise FrameTooLarge(f"sent more than {MAX_FRAME_BYTES:,} bytes at once")
        body = self.take(n_bytes, time.monotonic() + seconds)
        return None if body is None else json.loads(body)

    def take(self, n_bytes: int, deadline: float) -> bytes | None:
        """Exactly `n_bytes`, None where the pipe ends before them."""
        if len(self.buffer) < n_bytes and not self.fill(n_bytes, deadline):
            return None
        taken = bytes(self.buffer[:n_bytes])
        del self.buffer[:n_bytes]
        return taken

    def fill(self, n_bytes: int, deadline: float) -> bool:
        """Read until the buffer holds `n_bytes`; False where the pipe ends before. Raises TimeoutError."""
        with selectors.DefaultSelector() as selector:  # select() takes no descriptor above 1023
            selector.register(self.descriptor, selectors.EVENT_READ)
            while len(self.buffer) < n_bytes:
                if not selector.select(max(0.0, deadline - time.monotonic())):
                    raise TimeoutError
                piece = os.read(self.descriptor, READ_BYTES)
                if not piece:
                    return False
                self.buffer += piece
        return True


def death(child: subprocess.Popen[bytes], n_items: int) -> ChildFailed:
    """Why the child's output ended early, from its exit status."""
    code = child.wait()
    if code == -getattr(signal, "SIGXCPU", 0):
        return ChildFailed("cpu", "used up its processor time", n_items)
    if code == -signal.SIGKILL:
        return ChildFailed("memory", "was killed, most likely for want of memory", n_items)
    what = signal.Signals(-code).name if code < 0 else f"exit status {code}"
    return ChildFailed("crash", f"crashed ({what})", n_items)


def remote_error(error: dict[str, str], n_items: int) -> Exception:
    """The exception that stands here for the one raised in the child."""
    if error["type"] in errors.__all__:
        kind: type[errors.LocalctxError] = getattr(errors, error["type"])
        return kind(error["message"], error["hint"])
    if error["type"] == "MemoryError":
        return ChildFailed("memory", "reached its memory limit", n_items)
    message = display_name(error["message"])  # it may quote the file
    return ChildFailed("error", f"failed ({error['type']}: {message})", n_items)


def frame(message: object) -> bytes:
    """A JSON value with its length before it; ASCII, so that lone surrogates of file names survive."""
    body = json.dumps(message, separators=(",", ":")).encode("ascii")
    return FRAME.pack(len(body)) + body


# --- the child --------------------------------------------------------------------------------------


def main() -> None:
    """Run the job that standard input holds, sending its items to the original standard output."""
    for name in ("SIGINT", "SIGTERM", "SIGHUP"):  # the parent's business, though all of a group may get them
        if hasattr(signal, name):
            signal.signal(getattr(signal, name), signal.SIG_IGN)
    output = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what libraries print must not end up among the frames
    source = os.fdopen(os.dup(0), "rb", buffering=0)
    job = json.loads(read_exactly(source, FRAME.unpack(read_exactly(source, FRAME.size))[0]))
    threading.Thread(target=exit_at_end_of, args=(source,), daemon=True).start()
    limit_resources(job["cpu_seconds"], job["memory_bytes"])
    try:
        module, _, name = job["target"].partition(":")
        for item in getattr(importlib.import_module(module), name)(**job["arguments"]):
            send(output, {"item": item})
        send(output, {"end": True})
    except BrokenPipeError:  # nobody reads any more
        os._exit(1)
    except Exception as error:  # noqa: BLE001 - the parent raises it again
        hint = error.hint if isinstance(error, errors.LocalctxError) else ""
        send(output, {"error": {"type": type(error).__name__, "message": str(error), "hint": hint}})
    os._exit(0)  # native libraries may crash while being torn down


def send(output: BinaryIO, message: object) -> None:
    """Write one frame."""
    output.write(frame(message))
    output.flush()


def read_exactly(source: Any, n_bytes: int) -> bytes:
    """`n_bytes` from an unbuffered file; the process ends where the file does."""
    data = b""
    while len(data) < n_bytes:
        piece = source.read(n_bytes - len(data))
        if not piece:
            os._exit(1)
        data += piece
    return data


def exit_at_end_of(source: Any) -> None:
    """Wait for the end of standard input, which is the end of the parent, and leave."""
    source.read()
    os._exit(1)


def limit_resources(cpu_seconds: int, memory_bytes: int) -> None:
    """Lower the limits of this process where the platform has them (macOS ignores the one on memory)."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for limit, value in ((resource.RLIMIT_CPU, cpu_seconds), (resource.RLIMIT_AS, memory_bytes)):
        hard = resource.getrlimit(limit)[1]
        soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
        with contextlib.suppress(ValueError, OSError):  # macOS refuses RLIMIT_AS
            resource.setrlimit(limit, (soft, hard))


if __name__ == "__main__":
    main()
