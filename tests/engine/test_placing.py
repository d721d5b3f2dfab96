"""Where tensors go: several GPUs, experts and single tensors in memory, and what is refused beforehand.

No GPU is needed: devices are made up for what is decided here, and llama.cpp itself places on the CPU.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest

from localctx.engine import llama
from localctx.engine.devices import Device, load_backends, usable_gpus
from localctx.engine.estimate import ContextSettings, estimate
from localctx.engine.gguf import GGUFHeader
from localctx.engine.gguf import open_model as open_header
from localctx.engine.llama import find_devices, open_model
from localctx.engine.options import DeviceOptions, EngineOptions
from localctx.engine.placing import Placing, check_moved, place
from localctx.errors import LocalctxError, OutOfMemory, UsageError

GIB = 1 << 30
CPU = Device("CPU", "a CPU", "cpu", 64 * GIB, 64 * GIB)
CUDA = tuple(Device(f"CUDA{i}", "a GPU", "gpu", (24 - 8 * i) * GIB, 24 * GIB) for i in range(2))
TWO = (*CUDA, CPU)
IGPU = Device("Vulkan0", "part of the CPU", "igpu", 2 * GIB, 4 * GIB)


@pytest.fixture
def moe(tiny_moe_path: Path) -> GGUFHeader:
    return open_header(tiny_moe_path)


def placed(
    header: GGUFHeader, devices: tuple[Device, ...] = TWO, layers: str = "auto", **wanted: object
) -> Placing:
    options = EngineOptions(gpu_layers=layers, devices=DeviceOptions(**wanted))  # type: ignore[arg-type]  # of tests
    return place(header, options, devices, can_offload=bool(usable_gpus(devices)))


def test_nothing_is_told_unless_asked(moe: GGUFHeader) -> None:
    assert placed(moe) == Placing(-1, gpus=CUDA)
    assert placed(moe, layers="7") == Placing(7, gpus=CUDA)
    assert placed(moe, layers="0") == placed(moe, (CPU,)) == Placing()


def test_layers_go_to_several_gpus_or_one(moe: GGUFHeader) -> None:
    assert placed(moe, split_mode="layer").split_mode == "layer"
    assert placed(moe, split_mode="tensor", tensor_split=(3.0, 1.0)).shares == (3.0, 1.0)
    assert placed(moe, tensor_split=(1.0,)).shares == (1.0, 0.0)
    one = placed(moe, main_gpu=1)
    assert (one.split_mode, one.main_gpu, one.gpus) == ("none", 1, CUDA[1:])
    assert placed(moe, split_mode="none").gpus == CUDA[:1]


def test_integrated_gpus_serve_only_without_others() -> None:
    assert usable_gpus([IGPU, *TWO]) == list(CUDA)
    assert usable_gpus([IGPU, CPU]) == [IGPU]


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"split_mode": "layer"}, "--split-mode layer"),
        ({"split_mode": "none"}, "--split-mode none"),
        ({"tensor_split": (3.0, 1.0)}, "--tensor-split 3,1"),
        ({"main_gpu": 0}, "--main-gpu 0"),
        ({"n_cpu_moe": 2}, "--n-cpu-moe 2"),
        ({"override_tensor": ("_exps=CPU",)}, "--override-tensor _exps=CPU"),
        ({"layers": "99"}, "--gpu-layers 99"),
    ],
)
def test_every_option_that_wants_a_gpu_fails_without_one(
    moe: GGUFHeader, wanted: dict[str, object], said: str
) -> None:
    with pytest.raises(UsageError, match=rf"^{said}: no GPU can be used \(devices: CPU\)") as caught:
        placed(moe, (CPU,), **wanted)  # type: ignore[arg-type]  # layers among them
    assert "make install GPU=" in caught.value.hint
    if "layers" not in wanted:
        with pytest.raises(UsageError, match=f"^{said} with --gpu-layers 0: nothing is on a GPU"):
            placed(moe, layers="0", **wanted)


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"split_mode": "row"}, "--split-mode row is not known; did you mean|--split-mode row is not known"),
        ({"split_mode": "tensr"}, "did you mean 'tensor'"),
        ({"main_gpu": 2}, "--main-gpu 2: there is no such GPU"),
        ({"main_gpu": 0, "split_mode": "layer"}, "--main-gpu is for one GPU"),
        ({"tensor_split": (1.0, 1.0), "split_mode": "none"}, "--tensor-split is for several"),
        ({"tensor_split": (1.0, 1.0, 1.0)}, "3 shares for 2 GPUs"),
        ({"tensor_split": (0.0, 0.0)}, "not all 0"),
        ({"tensor_split": (1.0, -1.0)}, "numbers from 0"),
        ({"tensor_split": (1.0, float("nan"))}, "numbers from 0"),
    ],
)
def test_bad_splits_are_one_line(moe: GGUFHeader, wanted: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        placed(moe, **wanted)  # type: ignore[arg-type]  # of tests
    assert "\n" not in caught.value.message + caught.value.hint


@pytest.mark.parametrize("mode", ["layer", "tensor"])
def test_a_split_over_one_gpu_is_refused(moe: GGUFHeader, mode: str) -> None:
    with pytest.raises(UsageError, match="needs two GPUs: CUDA0 is the only one"):
        placed(moe, (CUDA[0], CPU), split_mode=mode)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ffn_(=CPU", "bad regular expression"),
        ("exps=GPU7", "no device is called 'GPU7'"),
        ("exps=CUDA9", "did you mean 'CUDA"),
        ("ffn_gate_expz=CPU", "no tensor of .*tiny-moe.gguf matches; the nearest is 'ffn_gate_exps'"),
        (r"blk\.9\.ffn_up_exps\.weight=CPU", r"the nearest is 'blk\.\d\.ffn_up_exps\.weight'"),
        ("exps", "is not understood"),
        ("=CPU", "is not understood"),
        ("exps=", "is not understood"),
        ("exps=CPU,attn_q", "is not understood"),
        ("exps=CPU,exps=CUDA0", "those before it have moved all"),
    ],
)
def test_bad_overrides_name_what_is_wrong(moe: GGUFHeader, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        placed(moe, override_tensor=(text,))
    assert "\n" not in caught.value.message + caught.value.hint


def test_a_tensor_on_a_gpu_that_does_not_compute_is_refused(moe: GGUFHeader) -> None:
    with pytest.raises(UsageError, match="CUDA1 is not used, CUDA0 is"):
        placed(moe, main_gpu=0, override_tensor=("_exps=CUDA1",))
    with pytest.raises(UsageError, match="splits every tensor"):
        placed(moe, split_mode="tensor", override_tensor=("_exps=CUDA1",))
    assert placed(moe, override_tensor=("_exps=CUDA1",)).moves[0].device == CUDA[1]


def test_patterns_may_hold_commas_and_several_come_in_one_text(moe: GGUFHeader) -> None:
    moves = placed(moe, override_tensor=(r"blk\.[0-9]{1,2}\.attn_q=CUDA1,_exps=CPU",)).moves
    assert [(move.pattern, move.device.name) for move in moves] == [
        (r"blk\.[0-9]{1,2}\.attn_q", "CUDA1"),
        ("_exps", "CPU"),
    ]
    assert len(moves[0].names) == 3
    assert len(moves[1].names) == 9


def test_experts_of_the_first_layers_stay_in_memory(moe: GGUFHeader, tiny_model_path: Path) -> None:
    (move,) = placed(moe, n_cpu_moe=2).moves
    assert {name.split(".")[1] for name in move.names} == {"0", "1"}
    assert all("_exps." in name for name in move.names) and len(move.names) == 6
    assert len(placed(moe, n_cpu_moe=99).moves[0].names) == 9
    with pytest.raises(UsageError, match="no mixture of experts"):
        placed(open_header(tiny_model_path), n_cpu_moe=1)


def test_what_stays_in_memory_takes_none_of_the_gpu(moe: GGUFHeader) -> None:
    plain = estimate(moe, 256, ContextSettings(n_gpu_layers=99))
    moved = placed(moe, n_cpu_moe=99).moved
    spared = estimate(moe, 256, ContextSettings(n_gpu_layers=99, moved=moved))
    experts = sum(tensor.size_bytes or 0 for tensor in moe.tensors if "_exps" in tensor.name)
    assert plain.vram_bytes - spared.vram_bytes == spared.weights_bytes - plain.weights_bytes == experts > 0
    onto = placed(moe, layers="1", override_tensor=("_exps=CUDA0",)).moved
    assert estimate(moe, 256, ContextSettings(n_gpu_layers=1, moved=onto)).vram_bytes > experts


def test_the_fullest_gpu_decides_what_fits(moe: GGUFHeader) -> None:
    assert placed(moe).gpu_bytes(TWO) == 40 * GIB
    assert placed(moe, main_gpu=1).gpu_bytes(TWO) == 16 * GIB
    assert placed(moe, tensor_split=(1.0, 1.0)).gpu_bytes(TWO) == 32 * GIB
    assert placed(moe, tensor_split=(0.0, 1.0)).gpu_bytes(TWO) == 16 * GIB
    assert placed(moe, (CPU,)).gpu_bytes(TWO) == 0


def test_batch_sizes_follow_the_device(moe: GGUFHeader) -> None:
    small = Device("CUDA0", "a small GPU", "gpu", 3 * GIB, 4 * GIB)
    silent = Device("MTL0", "a GPU that does not tell", "gpu", 0, 0)
    sizes = [placed(moe, (gpu, CPU)).n_batch for gpu in (CUDA[0], small, IGPU, silent)]
    assert sizes == [1024, 512, 512, 1024]
    assert placed(moe, layers="0").n_batch == placed(moe, (CPU,)).n_batch == 512


def test_a_device_computes_at_most_a_step_at_once(tiny_model_path: Path) -> None:
    for n_ubatch, wanted in ((64, "64"), (None, "256"), (4096, "256")):
        lines: list[str] = []
        options = EngineOptions(n_batch=256, n_ubatch=n_ubatch, on_log=lines.append)
        with open_model(tiny_model_path, options) as model:
            model.open_context(512)
        (line,) = (line for line in lines if "n_ubatch" in line)
        assert line.split()[-1] == wanted


@pytest.fixture
def as_if_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """llama.cpp says that it could offload; what it has is the CPU."""
    monkeypatch.setattr(llama.lib, "llama_supports_gpu_offload", lambda: True)


@pytest.mark.usefixtures("as_if_gpu")
def test_llama_cpp_moves_what_was_meant_and_answers_the_same(tiny_moe_path: Path) -> None:
    lines: list[str] = []
    wanted = DeviceOptions(n_cpu_moe=2, override_tensor=(r"blk\.2\..*_exps=CPU", "attn_q=CPU"))
    with (
        open_model(tiny_moe_path) as plain,
        open_model(tiny_moe_path, EngineOptions(devices=wanted, on_log=lines.append)) as model,
    ):
        tokens = plain.tokenize("The harbour of the old town")
        rows = []
        for one in (plain, model):
            context = one.open_context(256, n_outputs=8)
            context.score(tokens, lambda first, logits: rows.append(logits.copy()))
        assert (rows[0] == rows[-1]).all()
    assert sum("buffer type overridden to CPU" in line for line in lines) == 9 + 3


@pytest.mark.usefixtures("as_if_gpu")
def test_a_pattern_that_cpp_reads_otherwise_is_found_out(tiny_moe_path: Path) -> None:
    wanted = DeviceOptions(override_tensor=(r"\Ablk\.0=CPU",))  # C++ knows no \A
    with (
        open_model(tiny_moe_path, EngineOptions(devices=wanted)) as model,
        pytest.raises(LocalctxError) as caught,
    ):
        model.open_context(256)
    assert "\n" not in caught.value.message
    other = placed(open_header(tiny_moe_path), override_tensor=("attn_q=CPU",)).moves
    with pytest.raises(UsageError, match="--override-tensor attn_q=CPU had no effect"):
        check_moved(other, "")
    told = "tensor blk.0.attn_q.weight (0 MiB f32) buffer type overridden to CPU\n"
    check_moved(other, told)
    with pytest.raises(UsageError, match="another one"):
        check_moved(other, told + told.replace("attn_q", "attn_k"))


def test_too_little_memory_on_the_one_gpu_is_told(
    tiny_moe_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    little = Device("CUDA1", "a GPU", "gpu", 1 << 20, GIB)
    monkeypatch.setattr(llama, "find_devices", lambda: [CUDA[0], little, CPU])
    monkeypatch.setattr(llama.lib, "llama_supports_gpu_offload", lambda: True)
    with (
        open_model(tiny_moe_path, EngineOptions(devices=DeviceOptions(main_gpu=1))) as model,
        pytest.raises(OutOfMemory, match=r"1\.00 MiB free") as caught,
    ):
        model.open_context(2048)
    assert "--n-cpu-moe" in caught.value.hint


def test_devices_tell_where_their_tensors_lie() -> None:
    assert all(device.buffer_type for device in find_devices())


def test_devices_are_those_of_the_ggml_that_llama_cpp_uses() -> None:
    code = (
        "import ctypes\n"
        "from localctx.engine import llama\n"
        "ours, theirs = (ctypes.cast(one.ggml_backend_reg_count, ctypes.c_void_p).value\n"
        "                for one in (llama.libggml, llama.lib._lib))\n"
        "assert ours == theirs\n"
        "assert sum('libggml.so' in line and 'r-xp' in line for line in open('/proc/self/maps')) == 1\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_backends_that_are_kept_apart_are_loaded_from_one_folder() -> None:
    asked: list[bytes] = []

    for n_backends in (0, 1):
        ggml = SimpleNamespace(
            ggml_backend_reg_count=Typed(lambda n=n_backends: n),
            ggml_backend_load_all_from_path=Typed(asked.append),
        )
        load_backends(ggml, Path("relative"))
    assert asked == [os.fsencode(Path("relative").resolve())]


class Typed:
    """A function that may be given types, as those of ctypes."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._function = function

    def __call__(self, *arguments: object) -> object:
        return self._function(*arguments)
