"""The memory, disk and devices that a plan is made for: this machine's, or sizes that were given instead.

Devices are looked at in a child process, since a GPU's own library takes memory that a plan has no use for.
"""

from __future__ import annotations

import platform
import shutil
from dataclasses import dataclass
from pathlib import Path

from localctx.byte_sizes import parse_bytes
from localctx.engine.memory import Available, available
from localctx.package_version import package_version
from localctx.private_files import default_root

__all__ = ["Machine", "Sizes", "build_name", "cpu_name", "machine_of"]


@dataclass(frozen=True, slots=True)
class Sizes:
    """--vram, --ram and --disk as they were typed; None: this machine's."""

    vram: str | None = None
    ram: str | None = None
    disk: str | None = None

    def check(self) -> None:
        """Raises UsageError for a size that is none."""
        for name, size in (("--vram", self.vram), ("--ram", self.ram), ("--disk", self.disk)):
            if size is not None:
                _size(size, name)

    @property
    def are_given(self) -> bool:
        """Whether another machine is meant."""
        return any(size is not None for size in (self.vram, self.ram, self.disk))


@dataclass(frozen=True, slots=True)
class Machine:
    """What may be taken, in bytes. gpu: the graphics processors' names; empty where there is none here, also
    when vram_bytes was given.
    """

    vram_bytes: int
    ram: Available
    disk_bytes: int
    cpu: str
    gpu: str
    is_simulated: bool


def machine_of(sizes: Sizes, gpus: tuple[tuple[str, int], ...], store: Path | None) -> Machine:
    """The machine, with `gpus` as (name, free bytes), and the store in that folder. Raises UsageError for a
    size that is none.
    """
    vram = sum(free for _, free in gpus) if sizes.vram is None else _size(sizes.vram, "--vram")
    ram = available()
    if sizes.ram is not None:
        ram = Available(_size(sizes.ram, "--ram"), None, "--ram")
    return Machine(
        vram_bytes=vram,
        ram=ram,
        disk_bytes=_size(sizes.disk, "--disk") if sizes.disk is not None else _free_disk(store),
        cpu=cpu_name(),
        gpu=", ".join(name for name, _ in gpus),
        is_simulated=sizes.are_given,
    )


def _size(text: str, name: str) -> int:
    """Bytes; a plain 0 is one of them here."""
    return 0 if text.strip() == "0" else parse_bytes(text, name)


def _free_disk(store: Path | None) -> int:
    """What is free where the store lies or will lie."""
    place = (store or default_root()).absolute()
    there = next((folder for folder in (place, *place.parents) if folder.exists()), Path("/"))
    return shutil.disk_usage(there).free


def cpu_name(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as Linux tells it, elsewhere its architecture."""
    try:
        text = cpuinfo.read_text("utf-8", errors="replace")
    except OSError:
        text = ""
    lines = (line.partition(":") for line in text.splitlines())
    named = (value.strip() for key, _, value in lines if key.strip() == "model name")
    return next(named, "") or platform.processor() or platform.machine()


def build_name() -> str:
    """The build of llama.cpp that speeds hold for."""
    return package_version("llama-cpp-python") or "none"
