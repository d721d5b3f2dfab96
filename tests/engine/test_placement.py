"""What lies where is what llama.cpp says."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx.engine.llama import open_model
from localctx.engine.placement import device_shares
from localctx.values import DeviceShare

MIB = 1 << 20
LOADED = """load_tensors: layer   0 assigned to device CPU, is_swa = 0
load_tensors: layer   1 assigned to device CUDA0, is_swa = 0
load_tensors: layer   2 assigned to device CUDA1, is_swa = 0
load_tensors: layer   3 assigned to device CUDA1, is_swa = 0
load_tensors:   CPU_Mapped model buffer size =   250.50 MiB
load_tensors:    CUDA_Host model buffer size =     1.50 MiB
load_tensors:        CUDA0 model buffer size =  1024.00 MiB
load_tensors:        CUDA1 model buffer size =   512.00 MiB
"""
CONTEXT = """llama_kv_cache:        CPU KV buffer size =     8.00 MiB
llama_kv_cache:      CUDA0 KV buffer size =    16.25 MiB
llama_kv_cache:      CUDA1 KV buffer size =     4.00 MiB
llama_memory_recurrent:      CUDA1 RS buffer size =     0.50 MiB
sched_reserve:      CUDA0 compute buffer size =   300.00 MiB
"""


def test_layers_weights_and_cache_are_summed_by_device() -> None:
    assert device_shares(LOADED, CONTEXT, ["CUDA0", "CUDA1", "CPU"], 3) == (
        DeviceShare("CUDA0", 1, 1024 * MIB, 65 * MIB // 4),
        DeviceShare("CUDA1", 1, 512 * MIB, 9 * MIB // 2),
        DeviceShare("CPU", 1, 252 * MIB, 8 * MIB),
    )
    assert device_shares("", "", ["CUDA0", "CPU"], 3) == ()


def test_what_several_gpus_share_has_a_name_of_its_own() -> None:
    log = "llama_kv_cache: Meta(CUDA0,CUDA1) KV buffer size =    32.00 MiB\n"
    (both,) = device_shares("", log, ["CUDA0", "CUDA1", "CPU"], 3)
    assert both == DeviceShare("Meta(CUDA0,CUDA1)", 0, 0, 32 * MIB)


def test_a_model_tells_what_lies_where_once_it_is_loaded(tiny_model_path: Path) -> None:
    with open_model(tiny_model_path) as model:
        assert model.info.devices == ()
        model.open_context(512)
        (small,) = model.info.devices
        model.open_context(1024)
        (large,) = model.info.devices
    assert (small.name, small.layers) == ("CPU", 2)
    assert small.weights_bytes == large.weights_bytes == pytest.approx(model.info.size_bytes, rel=0.2)
    assert small.kv_bytes == pytest.approx(512 * model.info.kv_bytes_per_token, abs=0.01 * MIB)
    assert large.kv_bytes == pytest.approx(2 * small.kv_bytes, abs=0.02 * MIB)
