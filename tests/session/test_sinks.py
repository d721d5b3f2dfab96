"""`--kv sinks=N`: a document's first tokens stay attended; runs made with them are runs of their own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from session.test_kept_kv import LONG, Place, chapters

from localctx.kv import PrefillPolicy
from localctx.session.kept import Kept
from localctx.store import KVStore

SINKS, WITH = "window=256,sinks=256,codec=f16", PrefillPolicy("window", 256, 256)


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


def values(place: Place, policy: PrefillPolicy) -> np.ndarray:
    """The last layer's values of all tokens of the longest document under a policy."""
    with KVStore.open(place.store) as store:
        found = [document for document in store.documents() if document.identity.policy == policy]
        document = max(found, key=lambda document: document.identity.n_tokens)
        ids = [row[0] for row in store.catalogue.query(
            "SELECT document_runs.id FROM document_runs JOIN documents USING (document) WHERE key = ?"
            " ORDER BY ordinal", [document.key])]  # fmt: skip
    kept = Kept(place.store, lambda text: None)
    assert kept.load(ids) == set(ids)
    runs = [run for run in map(kept.run, ids) if run is not None]
    rows = np.concatenate([run.values(run.n_layer - 1) for run in runs]).astype(np.float32)
    kept.close()
    return rows


def test_they_are_part_of_the_policy_and_answers_come_from_them(place: Place) -> None:
    file = place.write(LONG)
    row, _ = place.index(file, kv=SINKS)
    with KVStore.open(place.store) as store:
        (document,) = store.documents()
    assert document.identity.policy == WITH
    assert place.index(file, kv=SINKS)[0].tokens_stored_before == row.tokens_total
    answer = place.ask(file, strategy="stream", kv=f"{SINKS},refresh=0")
    assert answer.tokens.evaluated < 200
    assert place.index(file, kv="window=256")[0].tokens_stored_before == 0
    assert place.index(file, kv="window=256,sinks=128")[0].tokens_stored_before == 0
    assert place.index(file, kv="window=256,sinks=0")[0].tokens_stored_before == row.tokens_total


def test_an_appended_text_attends_to_them_as_one_that_was_prefilled_at_once(
    place: Place, tmp_path_factory: pytest.TempPathFactory
) -> None:
    whole = LONG + chapters(6, seed=2)
    place.index(place.write(LONG), kv=SINKS)
    row, _ = place.index(place.write(whole), kv=SINKS)
    assert 0 < row.tokens_evaluated < row.tokens_total // 2
    other = Place(tmp_path_factory.mktemp("at_once"), place.model)
    other.index(other.write(whole), kv=SINKS)
    one, two = values(place, WITH), values(other, WITH)
    assert len(one) == row.tokens_total
    assert np.abs(one - two).max() < 0.02 * two.std()
    other.index(other.write(whole), kv="window=256,codec=f16")
    without = values(other, PrefillPolicy("window", 256))
    assert np.abs(one[-128:] - without[-128:]).max() > 0.02 * two.std()


def test_they_take_room_from_the_window_in_a_small_context(place: Place) -> None:
    row, _ = place.index(place.write(LONG), kv="sinks=256", ctx=1024)
    assert row.tokens_stored == row.tokens_total
    with KVStore.open(place.store) as store:
        policy = store.documents()[0].identity.policy
    assert policy.sinks == 256
    assert 128 <= policy.window <= 512


def test_an_exported_document_keeps_them(place: Place, tmp_path: Path) -> None:
    place.index(place.write(LONG), kv=SINKS)
    with KVStore.open(place.store) as store, KVStore.open(tmp_path / "other") as other:
        (document,) = store.documents()
        store.export(document.key, tmp_path / "one.lctx")
        assert other.import_(tmp_path / "one.lctx").identity.policy == document.identity.policy
