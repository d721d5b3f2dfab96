"""The codec's benchmark: NumPy computes what the core computes, and figures that are no times are true."""

from __future__ import annotations

import numpy as np
import pytest

from localctx import _native
from localctx.bench import numpy_codec
from localctx.bench.codec import SHAPES, Options, measure, shape_named, state_blob
from localctx.errors import UsageError

HEAD_DIM, N_HEADS, N_TOKENS = 32, 2, 128


def rows(seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    n = N_HEADS * HEAD_DIM
    spread, offset = random.gamma(1.0, 1.0, n), random.normal(0, 3, n)
    return (random.normal(0, 1, (N_TOKENS, n)) * spread + offset).astype(np.float16)


@pytest.mark.parametrize("codec", _native.CODECS)
def test_numpy_does_what_the_core_does(codec: str) -> None:
    keys, values = rows(1), rows(2)
    positions = np.arange(N_TOKENS, dtype=np.int32)
    frequencies = 1e4 ** -(np.arange(HEAD_DIM // 2) / (HEAD_DIM // 2))
    rope = _native.Rope(frequencies, HEAD_DIM, neox=False)
    state = _native.State(state_blob(positions, [keys], [values]))
    run = _native.Run(_native.encode(state, 0, N_TOKENS, rope, codec))
    still = numpy_codec.turned(keys, -positions[:, None] * frequencies, HEAD_DIM)
    for is_key, source, mine, most in (
        (True, still, run.keys(0), run.max_error[0]),
        (False, values.astype(np.float32), run.values(0), run.max_error[1]),
    ):
        coded = numpy_codec.encode(source, codec, HEAD_DIM, is_key=is_key)
        decoded = numpy_codec.decode(coded, N_TOKENS, HEAD_DIM, is_key=is_key)
        assert np.abs(decoded - source).max() <= 1.1 * most + 1e-3
        off = np.abs(decoded - mine.astype(np.float32))
        assert np.median(off) <= 0.1 * most + 1e-3  # a few lie between two codes
        assert off.max() <= 2.2 * most + 1e-3


def test_packed_codes_come_back() -> None:
    codes = np.random.default_rng(3).integers(0, 256, (5, 32), dtype=np.uint8)
    for bits in (2, 3, 4, 8):
        low = codes & ((1 << bits) - 1)
        packed = numpy_codec._pack(low.astype(np.uint8), bits)
        assert packed.shape == (5, 4 * bits)
        assert (numpy_codec._unpack(packed, bits, 32) == low).all()


def test_a_state_is_read_as_it_was_made() -> None:
    keys, values = [rows(1), rows(2)], [rows(3), rows(4)]
    state = _native.State(state_blob(np.arange(7, 7 + N_TOKENS, dtype=np.int32), keys, values))
    assert (state.n_layer, state.n_tokens, state.sections) == (2, N_TOKENS, ("attention",))
    assert (state.positions == np.arange(7, 7 + N_TOKENS)).all()
    assert (state.keys(1) == keys[1]).all() and (state.values(0) == values[0]).all()


def test_bytes_and_errors_are_those_of_the_codecs() -> None:
    report = measure(Options(shapes=["2x2x32"], n_tokens=256, n_repeats=2, n_threads=2), lambda text: None)
    shown = report.to_json()
    assert (shown["schema"], shown["n_tokens"], shown["n_threads"]) == ("localctx.bench.codec/1", 256, 2)
    assert shown["machine"]["cpu"] and shown["memcpy"]["one_thread_gb_per_s"]["n"] == 2
    found = {row["codec"]: row for row in shown["codecs"]}
    assert tuple(found) == _native.CODECS
    for row in found.values():
        assert (row["shape"], row["bytes_per_token_f16"]) == ("2x2x32", 2 * 2 * 32 * 4)
        for verb in ("encode", "decode"):
            speeds = row[verb]
            assert {speeds[name]["n"] for name in speeds if name != "by_numpy"} == {2}
            assert min(speeds[name]["lowest"] for name in speeds if name != "by_numpy") > 0
    assert found["f16"]["max_error"]["values"] == 0
    for name, bits in (("f16", 16), ("int8", 8), ("int4", 4), ("int2", 2)):  # and some for scales and headers
        assert 32 * bits < found[name]["bytes_per_token"] / (2 * 2 * 2) * 8 < 32 * (bits + 2)
    by_size = [found[name] for name in ("int8", "int4", "int3", "int2")]
    assert sorted(by_size, key=lambda row: -row["bytes_per_token"]) == by_size
    assert sorted(by_size, key=lambda row: row["max_error"]["keys"]) == by_size
    assert len(report.lines) == 3 + len(_native.CODECS)


def test_only_what_is_asked_for() -> None:
    report = measure(Options(["1x1x2"], ["int4"], n_tokens=128, n_repeats=1, n_threads=1), lambda text: None)
    assert [(row.shape, row.codec) for row in report.rows] == [("1x1x2", "int4")]
    assert set(report.rows[0].encode) == {0, 1}


def test_shapes() -> None:
    assert SHAPES["smollm2-135m"].bytes_per_token == 23_040
    assert shape_named("8b").bytes_per_token == 131_072
    for text in ("", "70b", "2x2", "0x2x32", "2x2x33", "2x2x32x2"):
        with pytest.raises(UsageError, match="--shape"):
            shape_named(text)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(codecs=["int5"]), "did you mean 'int"),
        (Options(n_tokens=100), "--tokens 100"),
        (Options(n_tokens=0), "--tokens 0"),
        (Options(n_repeats=0), "--repeats 0"),
        (Options(n_threads=0), "--threads 0"),
        (Options(shapes=["9999x999x9998"], n_tokens=1280), "too much"),
    ],
)
def test_what_makes_no_sense_is_refused(options: Options, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        measure(options, lambda text: None)
