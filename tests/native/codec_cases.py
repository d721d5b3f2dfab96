"""States of random rows to encode, and how runs are compared."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from native.twin import Blob, Rotation, write_blob
from numpy.typing import NDArray

from localctx._native import Rope, Run, State, encode


@dataclass(frozen=True)
class Case:
    """A state of random rows and how its keys are rotated."""

    blob: Blob
    rotation: Rotation
    state: State
    rope: Rope


def make_case(
    n_tokens: int,
    head_dim: int = 64,
    n_heads: int = 3,
    *,
    v_dim: int | None = None,
    n_rot: int | None = None,
    neox: bool = False,
    magnitude: float = 1.0,
    seed: int = 0,
    n_layer: int = 2,
) -> Case:
    random = np.random.default_rng(seed)
    n_pairs = (head_dim if n_rot is None else n_rot) // 2
    frequencies = 1e4 ** -(np.arange(n_pairs) / max(n_pairs, 1))
    # Channels of keys differ in size and offset, as models' do; values have a few large ones.
    spread, offset = random.gamma(1.0, 1.0, n_heads * head_dim), random.normal(0, 3, n_heads * head_dim)
    keys = [random.normal(0, 1, (n_tokens, n_heads * head_dim)) * spread + offset for _ in range(n_layer)]
    values = [random.standard_t(4, (n_tokens, n_heads * (v_dim or head_dim))) for _ in range(n_layer)]
    first = int(random.integers(0, 5000))
    positions = np.arange(first, first + n_tokens, dtype=np.int32)
    blob = Blob(positions, [k.astype(np.float16) for k in keys], [v.astype(np.float16) for v in values])
    return case_of(blob, Rotation(frequencies, head_dim, neox, magnitude))


def case_of(blob: Blob, rotation: Rotation) -> Case:
    rope = Rope(rotation.frequencies, rotation.head_dim, neox=rotation.neox, magnitude=rotation.magnitude)
    return Case(blob, rotation, State(write_blob(blob)), rope)


def encoded(case: Case, codec: str, head_group: int = 1, error_bound: float | None = None) -> bytes:
    n_tokens = len(case.blob.positions)
    return encode(case.state, 0, n_tokens, case.rope, codec, head_group=head_group, error_bound=error_bound)


def rows_of(run: Run) -> list[NDArray[np.float16]]:
    """Keys, then values, of all layers."""
    return [rows(layer) for rows in (run.keys, run.values) for layer in range(run.n_layer)]


def same(a: NDArray[np.float16], b: NDArray[np.float16]) -> bool:
    """Equal bit for bit, all NaN being one."""
    return bool(((a.view(np.uint16) == b.view(np.uint16)) | (np.isnan(a) & np.isnan(b))).all())
