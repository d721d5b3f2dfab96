"""State blobs of llama.cpp are read as they were written, and what is not understood is named."""

from __future__ import annotations

import gc
import mmap
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_architectures import write_architecture
from hypothesis import given, settings
from hypothesis import strategies as st
from native.llama_kv import Decoder

from localctx._native import KVSource, State
from native import twin

F32 = 0  # ggml_type
TOKENS = [(37 * i) % 211 for i in range(40)]


def blob_of(
    n_tokens: int = 7, k_sizes: tuple[int, ...] = (8, 8), *, seed: int = 0, shuffled: bool = True
) -> twin.Blob:
    random = np.random.default_rng(seed)
    positions = np.sort(random.choice(10_000, n_tokens, replace=False)).astype(np.int32)
    rows = [[random.standard_normal((n_tokens, size)).astype(np.float16) for size in k_sizes] for _ in "KV"]
    order = random.permutation(n_tokens) if shuffled else slice(None)
    return twin.Blob(
        positions[order], [keys[order] for keys in rows[0]], [values[order] for values in rows[1]]
    )


@pytest.fixture
def decoder(tiny_model_path: Path) -> Iterator[Decoder]:
    decoder = Decoder(tiny_model_path)
    yield decoder
    decoder.close()


def check(data: bytes) -> State:
    """The state of the bytes, after it was compared with the twin's."""
    state, expected = State(data), twin.read_blob(data)
    assert state.sections == ("attention",)
    assert state.n_tokens == len(expected.positions)
    assert state.n_layer == len(expected.keys)
    np.testing.assert_array_equal(state.positions, expected.positions)
    assert state.positions.dtype == np.int32
    for layer in range(state.n_layer):
        for got, rows in (
            (state.keys(layer), expected.keys[layer]),
            (state.values(layer), expected.values[layer]),
        ):
            assert got.dtype == np.float16
            np.testing.assert_array_equal(got.view(np.uint16), rows.view(np.uint16))
    return state


@settings(deadline=None, max_examples=50)
@given(st.integers(1, 20), st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(0, 99))
def test_any_plain_blob_is_the_twins(n_tokens: int, sizes: list[int], seed: int) -> None:
    check(twin.write_blob(blob_of(n_tokens, tuple(sizes), seed=seed)))


def test_a_blob_of_llama_cpp(decoder: Decoder) -> None:
    decoder.decode(TOKENS, 0)
    state = check(decoder.export())
    assert state.n_tokens == len(TOKENS)
    assert state.layout == "f16 K 2x32 V 2x32"
    assert isinstance(state, KVSource)


def test_after_eviction_cells_are_not_in_order_of_position(decoder: Decoder) -> None:
    decoder.decode(TOKENS, 0)
    decoder.remove(0, 4, 20)
    decoder.decode(TOKENS[:16], len(TOKENS))
    data = decoder.export()
    cells = np.frombuffer(data, "<i4", 3 * 40, 16).reshape(-1, 3)[:, 0]
    assert (np.diff(cells) < 0).any()
    state = check(data)
    assert state.positions.tolist() == [*range(4), *range(20, 56)]


def test_another_sequence_and_an_empty_one(decoder: Decoder) -> None:
    decoder.decode(TOKENS[:5], 3, sequence=2)
    assert check(decoder.export(2)).positions.tolist() == [3, 4, 5, 6, 7]
    empty = State(decoder.export(1))
    assert (empty.n_tokens, empty.n_layer, empty.sections) == (0, 0, ("attention",))


@pytest.mark.parametrize(
    ("settings_", "reason"),
    [
        ({"kv_type": F32}, "K rows of layer 0 are of ggml type 0, not f16"),
        ({"flash": 0}, r"transposed V \(flash attention is off\)"),
        ({"unified": False}, r"4 streams \(the cache is not unified\)"),
    ],
)
def test_other_caches_of_llama_cpp_are_refused_by_name(
    tiny_model_path: Path, settings_: dict, reason: str
) -> None:
    decoder = Decoder(tiny_model_path, **settings_)
    decoder.decode(TOKENS, 0)
    data = decoder.export()
    decoder.close()
    if "unified" in settings_:  # one sequence is written as one stream even there; the whole cache is not
        data = data[:8] + struct.pack("<I", 4) + data[12:]
    with pytest.raises(ValueError, match=reason):
        State(data)


@pytest.mark.parametrize(
    ("architecture", "sections", "n_tokens"),
    [
        ("gemma3", ("attention", "window"), 40),
        ("lfm2", ("attention", "recurrent"), 40),
        ("mamba", ("recurrent",), 1),
    ],
)
def test_models_of_other_memories_are_seen(
    tmp_path: Path, architecture: str, sections: tuple[str, ...], n_tokens: int
) -> None:
    decoder = Decoder(write_architecture(tmp_path / "model.gguf", architecture))
    decoder.decode(TOKENS, 0)
    state = State(decoder.export())
    decoder.close()
    assert (state.sections, state.n_tokens) == (sections, n_tokens)
    with pytest.raises(ValueError, match="cannot be taken apart"):
        _ = state.layout


@pytest.mark.parametrize(
    ("architecture", "reason"), [("deepseek2", r"no V rows \(MLA\)"), ("qwen2vl", r"\(M-RoPE\)")]
)
def test_models_of_other_layouts_are_refused_by_name(tmp_path: Path, architecture: str, reason: str) -> None:
    decoder = Decoder(write_architecture(tmp_path / "model.gguf", architecture))
    decoder.decode(TOKENS, 0)
    data = decoder.export()
    decoder.close()
    with pytest.raises(ValueError, match=reason):
        State(data)


def test_sections_are_named_and_not_taken_apart() -> None:
    blob = blob_of()
    recurrent = struct.pack("<IiIII", 1, 6, 0, 0, 2) + 4 * (struct.pack("<iQ", 0, 8) + bytes(8))
    window = twin.write_section(blob_of(3, (4,)))
    for data, sections in (
        (twin.write_blob(blob) + window, ("attention", "window")),
        (twin.write_blob(blob) + recurrent, ("attention", "recurrent")),
        (twin.write_blob(blob) + window + recurrent, ("attention", "window", "recurrent")),
        (twin.write_blob(blob)[:8] + recurrent, ("recurrent",)),
    ):
        state = State(data)
        assert state.sections == sections
        for use in (lambda: state.layout, lambda: state.keys(0), lambda: state.values(0)):  # noqa: B023 - used at once
            with pytest.raises(ValueError, match=f"sections {' . '.join(sections)} cannot be taken apart"):
                use()


def test_cells_of_mrope_are_named() -> None:
    with pytest.raises(ValueError, match="M-RoPE"):
        State(struct.pack("<Ii", twin.MAGIC, 0) + twin.write_section(blob_of(), extension=True))


@settings(deadline=None, max_examples=200)
@given(st.data())
def test_damaged_bytes_are_refused_or_read_in_full(data: st.DataObject) -> None:
    whole = twin.write_blob(blob_of(4, (4, 6)))
    damaged = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if damaged:
            damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    try:
        state = State(bytes(damaged))
        for layer in range(state.n_layer):
            assert len(state.keys(layer)) == len(state.values(layer)) == state.n_tokens
    except ValueError as error:
        assert str(error)


def test_the_buffer_lives_as_long_as_the_state(tmp_path: Path) -> None:
    blob = blob_of(50, shuffled=False)
    path = tmp_path / "blob"
    path.write_bytes(twin.write_blob(blob))
    with path.open("rb") as file:
        mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    state = State(mapped)
    with pytest.raises(BufferError):
        mapped.close()
    held = State(bytearray(path.read_bytes()))
    gc.collect()
    for source in (state, held):
        np.testing.assert_array_equal(source.keys(1), blob.keys[1])
    del state, source
    mapped.close()


def test_what_is_no_such_buffer() -> None:
    with pytest.raises(TypeError):
        State("text")
    with pytest.raises(ValueError, match="odd address"):
        State(memoryview(b"?" + twin.write_blob(blob_of()))[1:])
    with pytest.raises(IndexError):
        State(twin.write_blob(blob_of())).keys(2)
    with pytest.raises(IndexError):
        State(twin.write_blob(blob_of())).values(-1)
