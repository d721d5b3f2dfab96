"""`--kv routed=K,stride=S`: earlier blocks attended again, put back from what is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from session.test_kept_kv import LONG, Place, chapters
from session.test_sinks import values

from localctx.errors import UsageError
from localctx.kv import PrefillPolicy
from localctx.session import recalling
from localctx.store import KVStore, writing

ROUTED, WITH = "window=128,routed=2,stride=512,codec=f16", PrefillPolicy("window", 128, 0, 2, 512, "lexical")
WINDOW = PrefillPolicy("window", 128)


@pytest.fixture
def place(tmp_path: Path, tiny_model_path: Path) -> Place:
    return Place(tmp_path, tiny_model_path)


def test_they_are_part_of_the_policy_and_answers_come_from_them(place: Place) -> None:
    file = place.write(LONG)
    row, _ = place.index(file, kv=ROUTED)
    with KVStore.open(place.store) as store:
        (document,) = store.documents()
    assert document.identity.policy == WITH
    assert row.tokens_stored == row.tokens_total
    assert place.index(file, kv=ROUTED)[0].tokens_stored_before == row.tokens_total
    answer = place.ask(file, strategy="stream", kv=f"{ROUTED},refresh=0")
    assert answer.tokens.evaluated < 200
    for other in ("window=128", "window=128,routed=2", "window=128,routed=3,stride=512"):
        assert place.index(file, kv=other)[0].tokens_stored_before == 0
    assert any("routed 2, stride 512" in notice for notice in place.index(file, kv="window=512")[1])


def test_none_of_them_is_the_window(place: Place) -> None:
    file = place.write(LONG)
    row, _ = place.index(file, kv="window=256,codec=f16")
    again, _ = place.index(file, kv="window=256,codec=f16,routed=0,stride=0")
    assert again.tokens_stored_before == row.tokens_total


def test_what_is_attended_changes_what_is_behind_the_window_alone(place: Place) -> None:
    file = place.write(LONG)
    place.index(file, kv=ROUTED)
    place.index(file, kv="window=128,codec=f16")
    one, two = values(place, WITH), values(place, WINDOW)
    assert np.abs(one[:256] - two[:256]).max() < 0.02 * two.std()
    assert np.abs(one[-256:] - two[-256:]).max() > 0.02 * two.std()


@pytest.mark.parametrize("where", ["memory", "store"])
def test_an_appended_text_is_as_one_that_was_prefilled_at_once(
    place: Place, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Also when every run has to be found again where runs are kept, not among the last ones in memory."""
    whole = LONG + chapters(6, seed=2)
    place.index(place.write(LONG), kv=ROUTED)
    if where == "store":
        monkeypatch.setattr(writing, "FULL_BYTES", 1)
        monkeypatch.setattr(recalling, "RECENT_BYTES", 1)
    row, _ = place.index(place.write(whole), kv=ROUTED)
    assert 0 < row.tokens_evaluated < row.tokens_total // 2
    other = Place(tmp_path_factory.mktemp("at_once"), place.model)
    other.index(other.write(whole), kv=ROUTED)
    one, two = values(place, WITH), values(other, WITH)
    assert len(one) == row.tokens_total
    assert np.abs(one - two).max() < 0.02 * two.std()


def test_an_exported_document_keeps_them(place: Place, tmp_path: Path) -> None:
    place.index(place.write(LONG), kv=ROUTED)
    with KVStore.open(place.store) as store, KVStore.open(tmp_path / "other") as other:
        (document,) = store.documents()
        store.export(document.key, tmp_path / "one.lctx")
        assert other.import_(tmp_path / "one.lctx").identity.policy == document.identity.policy


def test_they_take_room_from_the_window_and_too_many_are_refused(place: Place) -> None:
    file = place.write(LONG)
    place.index(file, kv="routed=4", ctx=1024)
    with KVStore.open(place.store) as store:
        policy = store.documents()[0].identity.policy
    assert policy.routed == 4
    assert 128 <= policy.window <= 256
    with pytest.raises(UsageError, match="routed 32") as error:
        place.index(file, kv="routed=32")
    assert "fewer" in error.value.hint
