"""Predictions beside exact ones: the textbook's sums, whatever the number of rows and threads."""

from __future__ import annotations

import numpy as np
import pytest

from localctx.verify.predictions import Reference, log_softmax


def exact_log_softmax(logits: np.ndarray) -> np.ndarray:
    """In double precision."""
    values = logits.astype(np.float64)
    values -= values.max(axis=1, keepdims=True)
    return values - np.log(np.exp(values).sum(axis=1, keepdims=True))


@pytest.mark.parametrize("n_rows", [0, 1, 16, 50])
def test_divergence_agreement_and_loss_are_those_of_double_precision(n_rows: int) -> None:
    source = np.random.default_rng(3)
    one = (source.standard_normal((n_rows, 300)) * 4).astype(np.float32)
    other = one + source.standard_normal(one.shape).astype(np.float32) / 2
    tokens = source.integers(0, 300, n_rows).tolist()
    p, q = exact_log_softmax(one), exact_log_softmax(other)
    reference = Reference(log_softmax(one.copy()), tokens)
    found = reference.against(0, other.copy())
    at = np.arange(n_rows)
    np.testing.assert_allclose(reference.nll, -p[at, tokens], rtol=1e-5)
    np.testing.assert_allclose(found.kl, (np.exp(p) * (p - q)).sum(axis=1), rtol=1e-4, atol=2e-6)
    np.testing.assert_allclose(found.nll_rise, (p - q)[at, tokens], atol=1e-5)
    assert found.agrees.tolist() == (p.argmax(axis=1) == q.argmax(axis=1)).tolist()


def test_rows_come_in_pieces_and_those_behind_the_last_are_left_out() -> None:
    source = np.random.default_rng(4)
    one = source.standard_normal((40, 30)).astype(np.float32)
    other = source.standard_normal((41, 30)).astype(np.float32)  # the row behind the last token, too
    reference = Reference(log_softmax(one), [1] * 40)
    whole = reference.against(0, other[:40].copy())
    pieces = [reference.against(first, other[first : first + 9].copy()) for first in range(0, 41, 9)]
    np.testing.assert_array_equal(np.concatenate([piece.kl for piece in pieces]), whole.kl)
    assert len(reference.against(40, other[40:].copy()).kl) == 0


def test_the_same_predictions_differ_in_nothing() -> None:
    logits = np.random.default_rng(5).standard_normal((8, 20)).astype(np.float32)
    same = Reference(log_softmax(logits.copy()), [0] * 8).against(0, logits + 7)
    assert np.abs(same.kl).max() < 1e-6
    assert same.agrees.all()
