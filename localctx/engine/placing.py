"""Where the tensors of a model go: layers on GPUs, several GPUs, tensors kept elsewhere. Pure; loads nothing.

Every option here asks for a GPU. Without one that can be used it is an error: a run on the CPU instead would
be taken for what was asked for.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from localctx.engine.devices import Device, usable_gpus
from localctx.engine.gguf import GGUFHeader, display
from localctx.engine.model_facts import n_layer
from localctx.engine.options import DeviceOptions, EngineOptions
from localctx.errors import UsageError
from localctx.names import display_name
from localctx.settings import nearest

__all__ = ["SPLIT_MODES", "Move", "Placing", "check_moved", "n_gpu_layers", "place"]

SPLIT_MODES = ("none", "layer", "tensor")
_EXPERTS = r"\.ffn_(up|down|gate|gate_up)_(ch|)exps"
_OVERRIDE = re.compile(r"(?P<pattern>.+?)=(?P<device>[\w .:()-]+?)(?:,|$)")
"""One of several with commas between them: a pattern may hold commas too, a device's name cannot."""
_OVERRIDE_HINT = "RE=DEV, for example --override-tensor 'ffn_.*_exps=CPU'"
_SMALL_GPU_BYTES = 8 << 30
_N_BATCH_CPU, _N_BATCH_GPU = 512, 1024


@dataclass(frozen=True, slots=True)
class Move:
    """Tensors that go to a named device, wherever their layers are. option: as it was asked for · pattern: as
    llama.cpp searches names for it · names: those of the file that it finds.
    """

    option: str
    pattern: str
    device: Device
    names: frozenset[str]


@dataclass(frozen=True, slots=True)
class Placing:
    """What llama.cpp is told. n_gpu_layers: negative for all · split_mode: None leaves it to llama.cpp ·
    gpus: those that layers may lie on · shares: of each of them, empty for the free memory's proportion.
    """

    n_gpu_layers: int = 0
    split_mode: str | None = None
    main_gpu: int = 0
    gpus: tuple[Device, ...] = ()
    shares: tuple[float, ...] = ()
    moves: tuple[Move, ...] = ()

    @property
    def moved(self) -> Mapping[str, bool]:
        """Name of a moved tensor → whether it is on a GPU then; the first move that finds it counts."""
        return {name: move.device.is_gpu for move in reversed(self.moves) for name in move.names}

    @property
    def n_batch(self) -> int:
        """Tokens of one step: more keep a GPU busy, and cost one with little memory room for the cache."""
        if not self.n_gpu_layers or not self.gpus:
            return _N_BATCH_GPU if self.n_gpu_layers else _N_BATCH_CPU
        is_small = any(gpu.kind == "igpu" or 0 < gpu.total_bytes < _SMALL_GPU_BYTES for gpu in self.gpus)
        return _N_BATCH_CPU if is_small else _N_BATCH_GPU

    def gpu_bytes(self, devices: Sequence[Device]) -> int:
        """What can lie on the GPUs together before the first is full, by the devices as they are now; 0 where
        that is not known.
        """
        free = {device.name: device.free_bytes for device in devices}
        left = [free.get(gpu.name, 0) for gpu in self.gpus]
        if not self.shares:
            return sum(left)
        total = sum(self.shares)
        return min(
            (int(n_bytes * total / share) for n_bytes, share in zip(left, self.shares, strict=True) if share),
            default=0,
        )


def place(
    header: GGUFHeader, options: EngineOptions, devices: Sequence[Device], *, can_offload: bool
) -> Placing:
    """What the options come to on these devices. Raises UsageError, one line, for what is not understood, not
    there, finds nothing, or contradicts.
    """
    wanted = options.devices
    moves = _moves(header, wanted, devices)
    n_layers = n_gpu_layers(options, devices, can_offload=can_offload)
    asked = _asked(wanted)
    if not asked:
        return Placing(n_layers, gpus=tuple(usable_gpus(devices)) if n_layers else ())
    if not can_offload:
        raise _no_gpu(asked, devices)
    if not n_layers:
        raise UsageError(f"{asked} with --gpu-layers 0: nothing is on a GPU", "leave one of them out")
    gpus = usable_gpus(devices)
    _check_split(wanted, gpus)
    mode = wanted.split_mode or ("none" if wanted.main_gpu is not None else None)
    number = wanted.main_gpu or 0
    used = tuple(gpus[number : number + 1] if mode == "none" else gpus)
    _check_reached(moves, mode, used)
    shares = (*wanted.tensor_split, *(0.0,) * (len(gpus) - len(wanted.tensor_split)))
    return Placing(n_layers, mode, number, used, shares if wanted.tensor_split else (), moves)


def n_gpu_layers(options: EngineOptions, devices: Sequence[Device], *, can_offload: bool) -> int:
    """llama.cpp's number: negative for all."""
    if options.gpu_layers not in ("auto", "0") and not can_offload:
        raise _no_gpu(f"--gpu-layers {options.gpu_layers}", devices)
    if options.gpu_layers in ("auto", "all"):
        return -1 if can_offload else 0
    return int(options.gpu_layers)


def _no_gpu(asked: str, devices: Sequence[Device]) -> UsageError:
    return UsageError(
        f"{asked}: no GPU can be used (devices: {', '.join(device.name for device in devices)})",
        "leave it out, or install a GPU build: make install GPU=cuda",
    )


def _asked(wanted: DeviceOptions) -> str:
    """The first of the options that was given, as typed."""
    given = {
        "--split-mode": wanted.split_mode,
        "--tensor-split": ",".join(f"{share:g}" for share in wanted.tensor_split),
        "--main-gpu": wanted.main_gpu,
        "--n-cpu-moe": wanted.n_cpu_moe or None,
        "--override-tensor": ",".join(wanted.override_tensor),
    }
    return next((f"{name} {value}" for name, value in given.items() if value not in (None, "")), "")


# --- several GPUs -------------------------------------------------------------------------------------------


def _check_split(wanted: DeviceOptions, gpus: Sequence[Device]) -> None:
    """Against each other, and against the GPUs that there are."""
    names = ", ".join(gpu.name for gpu in gpus)
    mode, shares, main = wanted.split_mode, wanted.tensor_split, wanted.main_gpu
    if mode is not None and mode not in SPLIT_MODES:
        raise UsageError(
            f"--split-mode {display_name(mode)} is not known{nearest(mode, SPLIT_MODES)}",
            f"one of {', '.join(SPLIT_MODES)}",
        )
    if mode in ("layer", "tensor") and len(gpus) < 2:
        raise UsageError(f"--split-mode {mode} needs two GPUs: {names} is the only one", "leave it out")
    if main is not None and mode in ("layer", "tensor"):
        raise UsageError(
            f"--main-gpu is for one GPU, --split-mode {mode} for several", "leave one of them out"
        )
    if main is not None and not 0 <= main < len(gpus):
        raise UsageError(f"--main-gpu {main}: there is no such GPU", f"0 to {len(gpus) - 1}: {names}")
    if shares and (mode == "none" or main is not None):
        raise UsageError("--tensor-split is for several GPUs, not for one", "leave it out")
    if len(shares) > len(gpus):
        raise UsageError(f"--tensor-split has {len(shares)} shares for {len(gpus)} GPUs ({names})")
    if shares and not (all(math.isfinite(share) and share >= 0 for share in shares) and sum(shares) > 0):
        raise UsageError("--tensor-split: shares are numbers from 0, not all 0", "for example 3,1")


# --- tensors that go elsewhere ------------------------------------------------------------------------------


def _moves(header: GGUFHeader, wanted: DeviceOptions, devices: Sequence[Device]) -> tuple[Move, ...]:
    """What --override-tensor and then --n-cpu-moe ask for."""
    moves = [_move(text, header, devices) for text in _split(wanted.override_tensor)]
    if wanted.n_cpu_moe:
        moves.append(_experts(header, wanted.n_cpu_moe, devices))
    taken: set[str] = set()
    for move in moves:
        if move.names <= taken:
            raise UsageError(f"{move.option}: those before it have moved all of its tensors", "leave it out")
        taken |= move.names
    return tuple(moves)


def _split(texts: Sequence[str]) -> list[tuple[str, str]]:
    """(pattern, device) of each of them. Raises UsageError for another form."""
    found: list[tuple[str, str]] = []
    for text in texts:
        pairs = [(match["pattern"], match["device"]) for match in _OVERRIDE.finditer(text)]
        if not text or "\0" in text or len(",".join(map("=".join, pairs))) != len(text):
            raise UsageError(f"--override-tensor {display_name(text)!r} is not understood", _OVERRIDE_HINT)
        found += pairs
    return found


def _move(asked: tuple[str, str], header: GGUFHeader, devices: Sequence[Device]) -> Move:
    pattern, name = asked
    option = f"--override-tensor {display_name(pattern)}={name}"
    device = next((device for device in devices if device.name == name), None)
    if device is None:
        known = [device.name for device in devices]
        raise UsageError(f"{option}: no device is called {name!r}{nearest(name, known)}", ", ".join(known))
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise UsageError(f"{option}: bad regular expression: {error}", _OVERRIDE_HINT) from None
    names = [tensor.name for tensor in header.tensors]
    found = frozenset(filter(compiled.search, names))
    if not found:
        plain = re.sub(r"[\\^$*+?()|\[\]]", "", pattern)
        kinds = {re.sub(r"^blk\.\d+\.|\.weight$", "", name) for name in names}
        close = difflib.get_close_matches(plain, [*sorted(kinds), *names], n=1, cutoff=0.4)
        hint = f"; the nearest is {close[0]!r}" if close else ""
        raise UsageError(f"{option}: no tensor of {display(header.path)} matches{hint}", _OVERRIDE_HINT)
    return Move(option, pattern, device, found)


def _experts(header: GGUFHeader, n_layers: int, devices: Sequence[Device]) -> Move:
    """The experts of the first layers, in memory."""
    option, where = f"--n-cpu-moe {n_layers}", display(header.path)
    if n_layers < 0:
        raise UsageError(f"{option} is out of range", "from 0")
    numbers = "|".join(map(str, range(min(n_layers, n_layer(header)))))
    every = re.compile(rf"^blk\.(\d+){_EXPERTS}")
    matches = [match for tensor in header.tensors if (match := every.search(tensor.name))]
    found = frozenset(match.string for match in matches if int(match[1]) < n_layers)
    if not matches:
        raise UsageError(
            f"{option}: {where} is no mixture of experts", "--gpu-layers N keeps whole layers out"
        )
    if not found:
        first = min(int(match[1]) for match in matches)
        raise UsageError(f"{option}: the experts of {where} begin with layer {first}", f"more than {first}")
    memory = next((device for device in devices if device.kind == "cpu"), None)
    if memory is None:
        raise UsageError(f"{option}: this build of llama.cpp has no CPU device", "localctx doctor")
    return Move(option, rf"^blk\.({numbers}){_EXPERTS}", memory, found)


def _check_reached(moves: Sequence[Move], mode: str | None, used: Sequence[Device]) -> None:
    """llama.cpp ends the process over a tensor on a device that it does not compute on."""
    for move in moves:
        if mode == "tensor" and move.device.kind != "cpu":
            raise UsageError(f"{move.option}: --split-mode tensor splits every tensor over all GPUs", "=CPU")
        if move.device.kind != "cpu" and move.device not in used:
            names = ", ".join(device.name for device in used)
            raise UsageError(f"{move.option}: {move.device.name} is not used, {names} is", "another device")


def check_moved(moves: Sequence[Move], log: str) -> None:
    """Raises UsageError for the first move that llama.cpp, by its log of loading, did not make as meant."""
    there = set(re.findall(r"tensor (\S+) \(.*?\) buffer type overridden to ", log))
    meant = frozenset[str]().union(*(move.names for move in moves))
    for move in moves:
        if not move.names & there or not there <= meant:
            raise UsageError(
                f"{move.option} had no effect, or another one: llama.cpp reads the pattern as C++ does",
                "a simpler pattern",
            )
