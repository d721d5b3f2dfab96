"""The KV codec: its NumPy twin writes the same bytes and reads the same values; errors are bounded."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from native.codec_cases import Case, case_of, encoded, make_case, rows_of, same
from native.twin import Blob, Rotation
from numpy.typing import NDArray

from localctx._native import CODECS, Rope, Run, State, compose, encode
from native import codec_twin

QUANTISED = [name for name in CODECS if name != "f16"]
LENGTHS = (1, 17, 127, 128, 200)


def wanted_rows(case: Case) -> list[NDArray[np.float32]]:
    """What rows_of would give without loss."""
    keys = [codec_twin.unrotated(k, case.blob.positions, case.rotation) for k in case.blob.keys]
    return [*keys, *(v.astype(np.float32) for v in case.blob.values)]


def largest_error(wanted: NDArray[np.float32], got: NDArray[np.float16]) -> float:
    with np.errstate(invalid="ignore"):
        return float(np.nanmax(np.append(np.abs(wanted - got.astype(np.float32)), np.float32(0))))


def check_against_twin(case: Case, codec: str, head_group: int, error_bound: float = math.inf) -> Run:
    """The whole contract of one run."""
    data = encoded(case, codec, head_group, None if math.isinf(error_bound) else error_bound)
    assert data == codec_twin.encode(case.blob, case.rotation, codec, head_group, error_bound)
    run = Run(data)
    assert (run.codec, run.n_tokens, run.layout) == (codec, case.state.n_tokens, case.state.layout)
    keys, values = codec_twin.decode(data)
    for got, twin in zip(rows_of(run), [*keys, *values], strict=True):
        assert same(got, codec_twin.halves(twin))
    errors = [largest_error(w, g) for w, g in zip(wanted_rows(case), rows_of(run), strict=True)]
    assert run.max_error == (max(errors[: run.n_layer]), max(errors[run.n_layer :]))
    return run


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("n_tokens", LENGTHS)
def test_the_twin_agrees_for_every_length(codec: str, n_tokens: int) -> None:
    run = check_against_twin(make_case(n_tokens, 16, seed=n_tokens), codec, 1)
    assert run.n_outliers == 0


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize(
    "shape",
    [
        {"head_dim": 64, "n_rot": 32},
        {"head_dim": 80, "n_heads": 2, "n_rot": 32, "neox": True},
        {"head_dim": 96, "n_heads": 4, "magnitude": 1.19},
        {"head_dim": 128, "n_heads": 2, "v_dim": 64, "neox": True},
        {"head_dim": 256, "n_heads": 1},
        {"head_dim": 12, "n_heads": 5, "v_dim": 7, "n_rot": 6},  # rows that fill no whole unit
        {"head_dim": 64, "n_heads": 3, "n_rot": 0},
    ],
    ids=str,
)
def test_the_twin_agrees_for_every_shape(codec: str, shape: dict[str, int]) -> None:
    check_against_twin(make_case(19, seed=5, n_layer=1, **shape), codec, 2)


@given(data=st.data())
@settings(deadline=None, max_examples=25, suppress_health_check=[HealthCheck.too_slow])
def test_the_twin_agrees_whatever_is_asked(data: st.DataObject) -> None:
    draw = data.draw
    head_dim = draw(st.sampled_from([2, 8, 20, 64, 80]))
    case = make_case(
        draw(st.integers(1, 140)),
        head_dim,
        draw(st.integers(1, 5)),
        v_dim=draw(st.sampled_from([1, 8, head_dim])),
        n_rot=2 * draw(st.integers(0, head_dim // 2)),
        neox=draw(st.booleans()),
        magnitude=draw(st.sampled_from([1.0, 1.1386])),
        seed=draw(st.integers(0, 1000)),
        n_layer=1,
    )
    bound = draw(st.sampled_from([math.inf, 0.0, 1e-3, 0.05, 0.3]))
    check_against_twin(case, draw(st.sampled_from(CODECS)), draw(st.integers(1, 6)), bound)


def test_the_names_are_the_twins() -> None:
    assert CODECS == codec_twin.CODECS


@pytest.mark.parametrize("codec", QUANTISED)
@pytest.mark.parametrize("bound", [0.5, 0.1, 0.02, 0.001])
def test_no_value_exceeds_the_error_bound(codec: str, bound: float) -> None:
    case = make_case(150, n_layer=1)
    run = Run(encoded(case, codec, 3, bound))
    for wanted, got in zip(wanted_rows(case), rows_of(run), strict=True):
        # What is kept in f16 may still be off by that format's own rounding.
        rounding = np.abs(wanted - wanted.astype(np.float16).astype(np.float32))
        assert (np.abs(wanted - got.astype(np.float32)) <= np.maximum(bound, rounding)).all()
    assert run.n_outliers > 0 or max(run.max_error) <= bound


def test_a_tight_bound_costs_no_more_than_f16() -> None:
    case = make_case(128)
    whole, bounded = encoded(case, "f16"), encoded(case, "int2", 1, 0.0)
    assert len(bounded) == len(whole)
    assert Run(bounded).n_outliers == 4 * 128 * 192
    assert all(same(a, b) for a, b in zip(rows_of(Run(whole)), rows_of(Run(bounded)), strict=True))


def test_few_outliers_cost_little_and_come_back_exactly() -> None:
    case = make_case(128, n_layer=1, n_rot=0)
    case.blob.values[0][3, 70] = 40.0
    case = case_of(case.blob, case.rotation)
    run = Run(encoded(case, "int4", 1, 1.0))
    assert 0 < run.n_outliers < 200
    assert max(run.max_error) <= 1.0


@pytest.mark.parametrize("codec", CODECS)
def test_what_is_no_number_stays_and_spoils_nothing(codec: str) -> None:
    plain = make_case(130, n_layer=1, n_rot=0)
    strange = {(0, 0): np.nan, (5, 1): np.inf, (129, 191): -np.inf, (64, 64): np.nan}
    blob = Blob(plain.blob.positions, [plain.blob.keys[0].copy()], [plain.blob.values[0].copy()])
    for at, value in strange.items():
        blob.keys[0][at] = blob.values[0][at] = value
    case = case_of(blob, plain.rotation)
    run = check_against_twin(case, codec, 1)
    assert run.n_outliers == (0 if codec == "f16" else 2 * len(strange))
    for got, whole in zip(rows_of(run), rows_of(Run(encoded(plain, codec))), strict=True):
        assert all(same(got[at], np.float16(value)) for at, value in strange.items())
        usual = np.isfinite(got)
        assert usual.sum() == got.size - len(strange)
        assert np.abs(got[usual].astype(np.float32) - whole[usual]).max() < 8  # no channel is lost


def test_rows_of_nothing_but_nan() -> None:
    blob = Blob(
        np.arange(3, dtype=np.int32), [np.full((3, 64), np.nan, np.float16)], [np.zeros((3, 64), np.float16)]
    )
    case = case_of(blob, Rotation(np.array([1.0]), 64, False))
    for codec in CODECS:
        assert np.isnan(check_against_twin(case, codec, 1).keys(0)).all()


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("magnitude", [1.0, 0.25])
def test_extreme_values(codec: str, magnitude: float) -> None:
    """The ends of f16, its smallest numbers and zeros; keys that grow beyond f16 when turned back."""
    random = np.random.default_rng(3)
    ends = np.array([65504, -65504, 6e-8, -6e-8, 0.0, -0.0, 1.0, 6.1e-5], np.float16)
    keys, values = (ends[random.integers(0, 8, (40, 128))] for _ in range(2))
    values[:8] = ends[:, None]  # rows of one value only
    blob = Blob(np.arange(40, dtype=np.int32), [keys], [values])
    run = check_against_twin(case_of(blob, Rotation(np.array([1.0, 0.1]), 64, True, magnitude)), codec, 2)
    assert np.isfinite(run.keys(0)).all()
    assert (run.values(0)[:8] == values[:8]).all() or codec.startswith("fp8")


@pytest.mark.parametrize(
    ("codec", "most"),
    [("f16", 1.01), ("int8", 0.53), ("fp8_e4m3", 0.53), ("int4", 0.28), ("int3", 0.22), ("int2", 0.16)],
)
def test_sizes_for_the_embedded_models_shape(codec: str, most: float) -> None:
    case = make_case(128, n_layer=30)
    assert len(encoded(case, codec)) <= most * 128 * 192 * 30 * 4
    assert len(encoded(case, codec, 3)) <= len(encoded(case, codec))


@pytest.mark.parametrize("codec", CODECS)
def test_a_part_of_the_rows(codec: str) -> None:
    case = make_case(300)
    part = Run(encode(case.state, 40, 140, case.rope, codec))
    blob = Blob(
        case.blob.positions[40:180],
        [k[40:180] for k in case.blob.keys],
        [v[40:180] for v in case.blob.values],
    )
    alone = Run(encoded(case_of(blob, case.rotation), codec))
    assert all(same(a, b) for a, b in zip(rows_of(part), rows_of(alone), strict=True))


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("neox", [False, True])
def test_compose_turns_decoded_keys(codec: str, neox: bool) -> None:
    """A piece of a run, from within its second block, at new positions."""
    case = make_case(200, neox=neox, n_rot=48)
    case.blob.values[1][150, 3] = np.inf
    case = case_of(case.blob, case.rotation)
    run = Run(encoded(case, codec, 1, 0.3))
    positions = np.arange(7, 67, dtype=np.int32)
    state = State(compose(case.state, [(run, 125, 60)], positions, case.rope))
    keys, _ = codec_twin.decode(encoded(case, codec, 1, 0.3))
    for layer in range(2):
        assert same(state.values(layer), run.values(layer)[125:185])
        back = codec_twin.unrotated(state.keys(layer), positions, case.rotation)
        # f16 rounding of both values of a pair, turned back
        np.testing.assert_allclose(
            back, keys[layer][125:185], rtol=0, atol=2.0**-10 * np.abs(keys[layer]).max()
        )


@pytest.mark.parametrize("codec", CODECS)
def test_a_run_can_be_encoded_again(codec: str) -> None:
    case = make_case(130)
    whole = Run(encoded(case, "f16"))
    again = Run(encode(whole, 0, 130, case.rope, codec))
    for a, b in zip(rows_of(again), rows_of(Run(encoded(case, codec))), strict=True):
        assert np.abs(a.astype(np.float32) - b).max() <= 2.1 * max(again.max_error) + 1e-2


def test_any_number_of_threads_gives_the_same_bytes() -> None:
    case = make_case(128, n_layer=5)
    runs = {encode(case.state, 0, 128, case.rope, "int4", error_bound=0.2, n_threads=n) for n in (0, 1, 2, 7)}
    assert len(runs) == 1


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"codec": "int5"}, "int5"),
        ({"n_tokens": 0}, "tokens"),
        ({"n_tokens": 31}, "rows"),
        ({"first": 2**60}, "rows"),
        ({"first": -1}, "first"),
        ({"head_group": 0}, "head_group"),
        ({"head_group": 2**40}, "head_group"),
        ({"error_bound": -0.1}, "error_bound"),
        ({"error_bound": math.nan}, "error_bound"),
        ({"n_threads": -1}, "n_threads"),
        ({"head_dim": 80}, "heads"),
    ],
)
def test_wrong_arguments(wrong: dict[str, Any], says: str) -> None:
    case = make_case(30)
    rope = Rope(np.ones(8), wrong.pop("head_dim", 64), neox=True)
    given = {"state": case.state, "first": 0, "n_tokens": 30, "rope": rope, "codec": "int4", **wrong}
    with pytest.raises(ValueError, match=says):
        encode(**given)
