"""Copies to a device: the CPU's own memory stands in for a GPU's."""

from __future__ import annotations

import dataclasses

import pytest

from localctx.engine.copying import copy_speed
from localctx.engine.llama import find_devices, libggml
from localctx.errors import ModelError


def test_bytes_are_copied_there_and_back() -> None:
    device = next(device for device in find_devices() if device.kind == "cpu")
    speed = copy_speed(libggml, device, 1 << 20)
    assert (speed.device, speed.memory) == ("CPU", "plain memory")
    assert speed.to_bytes_per_s > 1e6
    assert speed.from_bytes_per_s > 1e6


def test_a_device_without_room_is_told() -> None:
    device = next(device for device in find_devices() if device.kind == "cpu")
    with pytest.raises(ModelError, match="GPU7 has no room for"):
        copy_speed(libggml, dataclasses.replace(device, name="GPU7"), 1 << 60)
