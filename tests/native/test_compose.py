"""Composed blobs are the twin's, bit for bit, and llama.cpp goes on from them as if it had decoded them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_architectures import write_architecture
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf
from hypothesis import given, settings
from hypothesis import strategies as st
from native.llama_kv import Decoder, frequencies, rope

from localctx._native import Rope, Run, State, compose, encode, set_threads, simd_level, state_size
from native import twin

BASE = 50_000.0
HEAD_DIM = 16
TOKENS = [(41 * i) % 223 for i in range(90)]
TABLE = frequencies(HEAD_DIM, BASE)


def blob_of(n_tokens: int, seed: int, *, sizes: tuple[int, ...] = (32, 16)) -> twin.Blob:
    random = np.random.default_rng(seed)
    positions = np.sort(random.choice(3 * n_tokens, n_tokens, replace=False)).astype(np.int32)
    keys, values = (
        [(3 * random.standard_normal((n_tokens, size))).astype(np.float16) for size in sizes] for _ in "KV"
    )
    return twin.Blob(positions, keys, values, sequence=seed)


def ascending(n: int, seed: int) -> np.ndarray:
    return np.sort(np.random.default_rng(seed).choice(5 * n + 5, n, replace=False)).astype(np.int32)


@settings(deadline=None, max_examples=50)
@given(st.data())
def test_states_compose_as_the_twins_do(data: st.DataObject) -> None:
    blobs = [blob_of(data.draw(st.integers(1, 300)), seed) for seed in range(data.draw(st.integers(1, 3)))]
    states = [State(twin.write_blob(blob)) for blob in blobs]
    chosen = []
    for _ in range(data.draw(st.integers(1, 4))):
        index = data.draw(st.integers(0, len(blobs) - 1))
        first = data.draw(st.integers(0, states[index].n_tokens - 1))
        chosen.append((index, first, data.draw(st.integers(0, states[index].n_tokens - first))))
    positions = ascending(sum(n for _, _, n in chosen), data.draw(st.integers(0, 99)))
    neox, magnitude = data.draw(st.booleans()), data.draw(st.sampled_from([1.0, 1.1386]))
    out = compose(
        states[0],
        [(states[index], first, n) for index, first, n in chosen],
        positions,
        Rope(TABLE, HEAD_DIM, neox=neox, magnitude=magnitude),
        n_threads=data.draw(st.integers(0, 3)),
    )
    if len(positions):
        rotation = twin.Rotation(TABLE, HEAD_DIM, neox)
        expected = twin.compose([(blobs[index], first, n) for index, first, n in chosen], positions, rotation)
        assert out.tobytes() == expected
    assert out.nbytes == state_size(states[0], len(positions))


def test_runs_stand_where_they_are_put() -> None:
    blob = blob_of(200, 1, sizes=(32, 32))
    state = State(twin.write_blob(blob))
    rotation = Rope(TABLE, HEAD_DIM, neox=True, magnitude=1.25)
    runs = [Run(encode(state, first, n, rotation, "int8")) for first, n in ((0, 128), (128, 72))]
    positions = np.arange(1000, 1190, dtype=np.int32)
    parts = [(runs[0], 5, 123), (state, 10, 0), (runs[1], 0, 67)]
    composed = State(compose(state, parts, positions, rotation))
    np.testing.assert_array_equal(composed.positions, positions)
    for layer in range(2):
        plain = np.concatenate([runs[0].keys(layer)[5:], runs[1].keys(layer)[:67]])
        np.testing.assert_allclose(
            composed.keys(layer).astype(np.float32),
            rotation.turn(plain, positions).astype(np.float32),
            rtol=2.0**-8,
            atol=2.0**-8,
        )
        values = np.concatenate([runs[0].values(layer)[5:], runs[1].values(layer)[:67]])
        np.testing.assert_array_equal(composed.values(layer), values)


def models(folder: Path) -> dict[str, tuple[Path, Rope]]:
    factors = np.linspace(1.0, 9.0, HEAD_DIM // 2, dtype=np.float32)
    made = {
        kind: (
            write_tiny_gguf(
                folder / f"{kind}.gguf", bpe_vocabulary(), architecture=kind, rope_freq_base=BASE
            ),
            rope(HEAD_DIM, BASE, neox=kind != "llama"),
        )
        for kind in ("llama", "qwen2", "qwen3")
    }
    made["factors"] = (
        write_architecture(
            folder / "factors.gguf",
            "llama",
            keys={"rope.freq_base": BASE},
            extra={"rope_freqs.weight": factors},
        ),
        rope(HEAD_DIM, BASE, neox=False, factors=factors),
    )
    return made


@pytest.fixture(scope="module", params=["llama", "qwen2", "qwen3", "factors"])
def decoder_and_rope(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Decoder, Rope]]:
    path, rotation = models(tmp_path_factory.mktemp("compose"))[request.param]
    decoder = Decoder(path)
    yield decoder, rotation
    decoder.close()


def logits_after(decoder: Decoder, position: int) -> np.ndarray:
    return decoder.decode([7, 100, 33], position)


def test_a_context_goes_on_from_a_composed_blob(decoder_and_rope: tuple[Decoder, Rope]) -> None:
    """Two pieces, each decoded alone and far away, against the same decoded where they are to stand."""
    decoder, rotation = decoder_and_rope
    decoder.remove()
    decoder.decode(TOKENS[:50], 0)
    expected_first = State(decoder.export())
    decoder.remove()
    decoder.decode(TOKENS[50:], 50)
    expected_second = State(decoder.export())
    decoder.remove()
    positions = np.arange(90, dtype=np.int32)
    plain = compose(expected_first, [(expected_first, 0, 50), (expected_second, 0, 40)], positions, rotation)
    assert decoder.restore(plain) == plain.nbytes
    expected = logits_after(decoder, 90)

    decoder.remove()
    decoder.decode(TOKENS[:50], 700)
    first = State(decoder.export())
    decoder.remove()
    decoder.decode(TOKENS[50:], 1500)
    second = State(decoder.export())
    decoder.remove()
    moved = compose(first, [(first, 0, 50), (second, 0, 40)], positions, rotation)
    assert decoder.restore(moved) == moved.nbytes
    got = logits_after(decoder, 90)
    noise = np.abs(got - expected).max() / expected.std()
    assert noise < 0.02
    assert (got.argmax(axis=1) == expected.argmax(axis=1)).all()

    decoder.remove()
    unturned = compose(
        first, [(first, 0, 50), (second, 0, 40)], positions, Rope(0 * TABLE, HEAD_DIM, neox=False)
    )
    decoder.restore(unturned)
    assert np.abs(logits_after(decoder, 90) - expected).max() / expected.std() > 10 * noise  # keys mattered


def test_a_blob_put_back_unmoved_changes_nothing(decoder_and_rope: tuple[Decoder, Rope]) -> None:
    decoder, rotation = decoder_and_rope
    decoder.remove()
    decoder.decode(TOKENS, 0)
    data = decoder.export()
    state = State(data)
    expected = logits_after(decoder, 90)
    decoder.remove()
    again = compose(state, [(state, 0, 33), (state, 33, 57)], np.arange(90, dtype=np.int32), rotation)
    assert again.tobytes() == data
    decoder.restore(again)
    np.testing.assert_array_equal(logits_after(decoder, 90), expected)


def test_a_blob_without_rows_is_one_without_cells(decoder_and_rope: tuple[Decoder, Rope]) -> None:
    decoder, rotation = decoder_and_rope
    decoder.remove()
    empty = decoder.export()
    decoder.decode(TOKENS, 0)
    nothing = compose(State(decoder.export()), [], np.array([], np.int32), rotation)
    assert nothing.tobytes() == empty
    assert decoder.restore(nothing) == nothing.nbytes
    with pytest.raises(ValueError, match="without cells"):
        state_size(State(nothing), 3)


def test_out_is_written_to_and_returned() -> None:
    state = State(twin.write_blob(blob_of(150, 2)))
    rotation = Rope(TABLE, HEAD_DIM, neox=True)
    expected = compose(state, [(state, 0, 150)], ascending(150, 3), rotation)
    out = np.full(state_size(state, 150) + 4, 0xAA, np.uint8)
    part = out[2:-2]
    given_back = compose(state, [(state, 0, 150)], ascending(150, 3), rotation, out=part)
    assert given_back is part
    np.testing.assert_array_equal(part, expected)
    assert out[[0, 1, -2, -1]].tolist() == [0xAA] * 4
    for wrong, error in (
        (out, ValueError),
        (out[1:-3], ValueError),
        (part[::2], TypeError),
        (bytes(part), TypeError),
    ):
        with pytest.raises(error):
            compose(state, [(state, 0, 150)], ascending(150, 3), rotation, out=wrong)
    frozen = part.copy()
    frozen.flags.writeable = False
    with pytest.raises(TypeError):
        compose(state, [(state, 0, 150)], ascending(150, 3), rotation, out=frozen)


def test_what_does_not_fit_is_refused() -> None:
    state, other = (
        State(twin.write_blob(blob_of(9, 2))),
        State(twin.write_blob(blob_of(9, 2, sizes=(32, 32)))),
    )
    rotation = Rope(TABLE, HEAD_DIM, neox=True)
    positions = np.arange(3, dtype=np.int32)
    for parts, where, message in (
        ([(other, 0, 3)], positions, "part 0: layout f16 K 2x32 V 2x32 is not f16 K 32,16 V 32,16"),
        ([(state, 0, 2), (state, 7, 3)], ascending(5, 0), r"part 1: rows \[7, \+3\) of 9"),
        ([(state, -1, 3)], positions, "first must not be negative"),
        ([(state, 0, 2**62)], positions, "rows"),
        ([(state, 0, 2)], positions, "3 positions for 2 rows"),
        ([(state, 0, 3)], positions[::-1].copy(), "do not ascend"),
        ([(state, 0, 3)], positions - 1, "do not ascend"),
    ):
        with pytest.raises(ValueError, match=message):
            compose(state, parts, where, rotation)
    for parts in ([(state, 0)], [("text", 0, 3)], [(None, 0, 3)], [(state, 0.5, 3)], [3]):
        with pytest.raises(TypeError):
            compose(state, parts, positions, rotation)
    with pytest.raises(TypeError):
        compose(state, [(state, 0, 3)], positions.astype(np.int64), rotation)
    with pytest.raises(ValueError, match="heads of 24"):
        compose(state, [(state, 0, 3)], positions, Rope(np.ones(12), 24, neox=True))
    with pytest.raises(ValueError, match="negative"):
        state_size(state, -1)
    with pytest.raises(ValueError, match="do not fit"):
        state_size(state, 2**40)
    with pytest.raises(ValueError, match="at least 1"):
        set_threads(0)


def test_many_threads_compose_at_once() -> None:
    state = State(twin.write_blob(blob_of(300, 4)))
    rotation = Rope(TABLE, HEAD_DIM, neox=True)
    positions = ascending(300, 5)
    expected = compose(state, [(state, 0, 300)], positions, rotation, n_threads=1)
    wrong: list[int] = []

    def work() -> None:
        for _ in range(20):
            if not np.array_equal(compose(state, [(state, 0, 300)], positions, rotation), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


REPEAT = """
import sys
import numpy as np
from localctx._native import Rope, State, compose, simd_level
state = State(sys.stdin.buffer.read())
positions = np.arange(7, 7 + 3 * state.n_tokens, 3, dtype=np.int32)
for neox in (False, True):
    rope = Rope(0.9 ** np.arange(7.0), 16, neox=neox, magnitude=1.1)
    sys.stdout.buffer.write(compose(state, [(state, 0, state.n_tokens)], positions, rope).tobytes())
sys.stderr.write(simd_level())
"""


def test_all_instructions_give_the_same_bytes() -> None:
    data = twin.write_blob(blob_of(40, 6))
    outputs = {}
    for level in ("scalar", ""):
        child = subprocess.run(
            [sys.executable, "-c", REPEAT],
            input=data,
            env={**os.environ, "LOCALCTX_SIMD": level},
            capture_output=True,
            check=True,
        )
        outputs[child.stderr.decode()] = child.stdout
    assert set(outputs) == {"scalar", simd_level()} or os.environ.get("LOCALCTX_SIMD")
    assert len(set(outputs.values())) == 1
