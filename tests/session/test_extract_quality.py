"""How many generated records the embedded model finds, and how many of those it finds are right."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from session.payments import SCHEMA, payments

import localctx


@pytest.mark.model
@pytest.mark.proof
@pytest.mark.parametrize("seed", [4, 5])
def test_payments_in_prose_are_found(smollm2_path: Path, tmp_path: Path, seed: int) -> None:
    text, wanted = payments(seed, 40)
    (tmp_path / "prose.txt").write_text(text)
    with localctx.open(
        tmp_path / "prose.txt", model=str(smollm2_path), store="off", embedder="off", max_tokens=96
    ) as doc:
        found = [json.dumps(dict(record.value)) for record in doc.extract(SCHEMA)]
        assert doc.extraction is not None
        passed = doc.extraction.passed
    n_right = len(set(found) & {json.dumps(record) for record in wanted})
    print(f"seed {seed}: precision {n_right / len(found):.3f}, recall {n_right / len(wanted):.3f}, {passed}")
    assert n_right >= 0.9 * len(found)
    assert n_right >= 0.9 * len(wanted)
    assert passed.n_read < passed.n_units
