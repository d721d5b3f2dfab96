"""Rotation agrees with NumPy, bit for bit, and undoes what llama.cpp did to keys."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from engine.tiny_architectures import write_architecture
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf
from hypothesis import given, settings
from hypothesis import strategies as st
from native.llama_kv import Decoder, frequencies, rope
from native.twin import Rotation

from localctx._native import Rope, State

BASE = 50_000.0
HEAD_DIM = 16
TOKENS = [(37 * i) % 211 for i in range(48)]


@settings(deadline=None, max_examples=60)
@given(
    st.integers(1, 40),
    st.integers(0, 40),
    st.booleans(),
    st.sampled_from([1.0, 1.1386, 0.25]),
    st.booleans(),
    st.integers(0, 2**32 - 1),
)
def test_turn_is_the_twins(
    n_pairs: int, n_still: int, neox: bool, magnitude: float, inverse: bool, seed: int
) -> None:
    random = np.random.default_rng(seed)
    head_dim = 2 * n_pairs + n_still
    table = 10_000.0 ** -random.random(n_pairs)
    keys = random.standard_normal((5, 3 * head_dim)).astype(np.float16)
    positions = random.integers(0, 1_000_000, 5, dtype=np.int32)
    turned = Rope(table, head_dim, neox=neox, magnitude=magnitude).turn(keys, positions, inverse=inverse)
    twin = Rotation(table, head_dim, neox)
    expected = (
        twin.turn(keys, -positions, 1.0 / magnitude) if inverse else twin.turn(keys, positions, magnitude)
    )
    np.testing.assert_array_equal(turned.view(np.uint16), expected.view(np.uint16))


def test_what_is_no_rotation_is_refused() -> None:
    table = np.ones(4)
    for wrong in (
        {"head_dim": 7},
        {"head_dim": 0},
        {"head_dim": 8, "magnitude": 0.0},
        {"head_dim": 8, "magnitude": float("nan")},
    ):
        with pytest.raises(ValueError, match=r"rotated dimensions|magnitude"):
            Rope(table, neox=True, **wrong)
    with pytest.raises(ValueError, match="not finite"):
        Rope(np.array([1.0, np.inf]), 8, neox=True)
    turn = Rope(table, 8, neox=True).turn
    for rows, positions in (((3, 12), 3), ((3, 16), 2)):
        with pytest.raises(ValueError, match="n_heads"):
            turn(np.zeros(rows, np.float16), np.zeros(positions, np.int32))
    for keys in (
        np.zeros((3, 16), np.float32),
        np.zeros((3, 32), np.float16)[:, ::2],
        np.zeros(16, np.float16),
    ):
        with pytest.raises(TypeError):
            turn(keys, np.zeros(3, np.int32))


@pytest.fixture(scope="module", params=["llama", "qwen2", "qwen3", "factors"])
def keys_at(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Rope, dict[int, State]]]:
    """The rotation of a model, and the states of the same tokens decoded at several positions."""
    folder = tmp_path_factory.mktemp("rope")
    factors = None
    if request.param == "factors":
        factors = np.linspace(1.0, 9.0, HEAD_DIM // 2, dtype=np.float32)
        path = write_architecture(
            folder / "factors.gguf",
            "llama",
            keys={"rope.freq_base": BASE},
            extra={"rope_freqs.weight": factors},
        )
    else:
        path = write_tiny_gguf(
            folder / "plain.gguf", bpe_vocabulary(), architecture=request.param, rope_freq_base=BASE
        )
    decoder = Decoder(path)
    states = {}
    for position in (0, 100, 1900):
        decoder.decode(TOKENS, position)
        states[position] = State(decoder.export())
        decoder.remove()
    decoder.close()
    yield rope(HEAD_DIM, BASE, neox=request.param.startswith("qwen"), factors=factors), states


def test_unrotated_keys_do_not_depend_on_the_position(keys_at: tuple[Rope, dict[int, State]]) -> None:
    rotation, states = keys_at
    for layer in range(2):
        plain = {
            position: rotation.turn(state.keys(layer), state.positions, inverse=True).astype(np.float32)
            for position, state in states.items()
        }
        scale = np.abs(plain[0]).max()
        assert scale > 1
        for position in (100, 1900):  # two roundings to f16, and llama.cpp's angles in f32
            assert np.abs(plain[position] - plain[0]).max() < scale * 2.0**-9
        moved = states[1900].keys(layer).astype(np.float32)
        assert np.abs(moved - plain[0]).max() > scale / 2  # rotation was there to be undone


def test_another_base_or_pairing_is_seen(
    keys_at: tuple[Rope, dict[int, State]], request: pytest.FixtureRequest
) -> None:
    _, states = keys_at
    kind = request.node.callspec.params["keys_at"]
    neox = kind.startswith("qwen")
    for wrong in (rope(HEAD_DIM, BASE, neox=not neox), rope(HEAD_DIM, BASE * 1.1, neox=neox)):
        a, b = (
            wrong.turn(states[position].keys(0), states[position].positions, inverse=True).astype(np.float32)
            for position in (0, 1900)
        )
        assert np.abs(a - b).max() > 0.1
    if kind == "factors":
        plain = Rope(frequencies(HEAD_DIM, BASE), HEAD_DIM, neox=False)
        a, b = (
            plain.turn(states[position].keys(0), states[position].positions, inverse=True).astype(np.float32)
            for position in (0, 1900)
        )
        assert np.abs(a - b).max() > 0.1
