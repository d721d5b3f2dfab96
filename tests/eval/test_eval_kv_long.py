"""`eval kv` along one text: places, what is kept meanwhile, attention on keys near and far."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_gguf import TRAINING_TEXT, bpe_vocabulary, write_tiny_gguf

from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.errors import UsageError
from localctx.eval.benchmark_renderers import tables_of
from localctx.eval.kv import measure_long
from localctx.eval.kv_arms import attended
from localctx.eval.kv_column import KeyColumn
from localctx.eval.kv_long import LONG_MODES, LongText, LongWanted
from localctx.eval.kv_long_report import Long
from localctx.eval.kv_matrix import chunks_of
from localctx.kv import RUN_TOKENS
from localctx.selection.routing import LexicalRouter
from localctx.settings import Settings
from localctx.verify.heads import all_heads

PROSE = TRAINING_TEXT.split()
TRAINED = 512
WANTED = LongWanted((768, 1024, 1536), 32, "int4", 256, 256)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """Trained for 512 tokens, so that most of the text is further away."""
    path = tmp_path_factory.mktemp("short") / "short.gguf"
    write_tiny_gguf(path, bpe_vocabulary(), n_ctx_train=TRAINED)
    with open_model(path, EngineOptions(n_threads=1, n_batch=128)) as opened:
        yield opened


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = random.Random(2)
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text(" ".join(source.choice(PROSE) for _ in range(1700)))
    return str(path)


def measured(model: LlamaModel, wanted: LongWanted, folder: Path) -> Long:
    """Along the text."""
    settings = Settings(threads=1, store=str(folder))
    long = measure_long(model, settings, wanted, "a command", lambda line: None).long
    assert long is not None
    return long


@pytest.fixture(scope="module")
def long(model: LlamaModel, text: str, tmp_path_factory: pytest.TempPathFactory) -> Long:
    return measured(model, replace(WANTED, text=text), tmp_path_factory.mktemp("store"))


def test_every_mode_at_every_place(long: Long) -> None:
    found = long.to_json()
    assert [point["n_tokens"] for point in found["points"]] == [768, 1024, 1536]
    assert found["baseline"] == "local text"
    assert found["bytes_per_token"] == pytest.approx(84, abs=1)
    for point in found["points"]:
        assert tuple(one["mode"] for one in point["modes"]) == LONG_MODES
        by_mode = {one["mode"]: one for one in point["modes"]}
        assert by_mode["local text"]["ratio"] == 1.0
        assert by_mode["local text"]["n_evaluated"] == by_mode["local text"]["n_attended"] == 256
        assert by_mode["local"]["n_evaluated"] == 0
        assert by_mode["local"]["perplexity"] > 1
        assert 0 < by_mode["local"]["hit_rate"]["document"] < by_mode["local"]["hit_rate"]["all"] < 1
        assert by_mode["local"]["hit_rate"]["cells"] == round(256 / point["n_tokens"], 6)
    assert len(long.plots) == 3
    result = {
        "schema": "localctx.eval.kv/1",
        "model": {"name": "m"},
        "text": "t",
        "matrix": None,
        "long": found,
    }
    (table,) = tables_of(result)
    assert [len(row) == len(table.columns) for row in table.rows] == [True] * 3 * len(LONG_MODES)
    assert len([line for line in long.lines if "local text" in line]) == 3 + 1


def test_a_place_is_the_same_whether_or_not_others_were_looked_at(
    model: LlamaModel, text: str, long: Long, tmp_path: Path
) -> None:
    alone = measured(model, replace(WANTED, lengths=(1536,), text=text), tmp_path)
    one, other = alone.at[0].used, long.at[2].used
    for mode, a, b in zip(LONG_MODES, one, other, strict=True):
        np.testing.assert_allclose(a.losses, b.losses, atol=0.15, err_msg=mode)
        assert a.hits.document == pytest.approx(b.hits.document, abs=1e-3)
        assert a.n_attended == b.n_attended
    assert not list(tmp_path.iterdir())  # the keys are gone


def test_the_same_seed_gives_the_same_figures(
    model: LlamaModel, text: str, long: Long, tmp_path: Path
) -> None:
    again = measured(model, replace(WANTED, text=text), tmp_path)
    for one, other in zip(again.at, long.at, strict=True):
        for a, b in zip(one.used, other.used, strict=True):
            assert a.losses.tolist() == b.losses.tolist()
            assert a.hits == b.hits


def test_the_last_row_of_a_target_may_come_alone(model: LlamaModel, text: str, tmp_path: Path) -> None:
    """The model's batches have 128 tokens; a target has one more, whose row predicts none of them."""
    wanted = replace(WANTED, lengths=(768,), n_target=128, modes=("local", "selected"), text=text)
    (at,) = measured(model, wanted, tmp_path).at
    for used in at.used:
        assert (used.losses.shape, np.isfinite(used.losses).all()) == ((128,), True)


def test_only_runs_that_are_put_back_later_are_kept(model: LlamaModel, text: str, tmp_path: Path) -> None:
    tokens = array("i", model.tokenize(Path(text).read_text())[: 1536 + 33])
    with_room = model.open_kv_context(480, n_outputs=64)
    one = LongText(with_room, model, (), tokens, WANTED, tmp_path)
    most = []
    for at in one.looked_at(lambda line: None):
        most.append(len(one._kept))
        assert one._tail.keys() == set(range(at.n_tokens // RUN_TOKENS - 2, at.n_tokens // RUN_TOKENS))
        assert len(one._kept) < at.n_tokens // RUN_TOKENS
    assert most[-1] <= 4  # two near ones, one of each mode's choice
    assert not one._kept
    per_token = one._column.bytes_per_token
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) == 1536 * per_token


def test_attention_further_away_than_training_is_as_if_it_were_there(
    model: LlamaModel, text: str, tmp_path: Path
) -> None:
    """Of one place, from the column's own keys: every key at its distance, or at the longest one."""
    tokens = array("i", model.tokenize(Path(text).read_text())[: 1024 + 33])
    context = model.open_kv_context(480, n_outputs=64)
    one = LongText(context, model, (), tokens, replace(WANTED, lengths=(1024,), modes=("local",)), tmp_path)
    (at,) = one.looked_at(lambda line: None)
    asked, reach, rope = one._asked(1024), one._reach, context.rope_table
    assert reach == 384
    keys = np.concatenate([next(one._column.keys(first, first + 128)) for first in range(0, 1024, 128)])
    masses = np.zeros(2)
    for number, position in enumerate(asked.positions.tolist()):
        where = np.arange(1024)
        where[: 1024 - reach] = position - reach
        turned = rope.turn(keys, where.astype(np.int32)).astype(np.float64).reshape(1024, 2, 16)
        query = asked.queries[number, asked.layer(0)].reshape(1, -1).astype(np.float16)
        query = rope.turn(query, np.array([position], np.int32)).astype(np.float64).reshape(4, 16)
        scores = np.exp(np.einsum("hd,nhd->hn", query, np.repeat(turned, 2, axis=1)) / 4.0)
        scores /= scores.sum(axis=1, keepdims=True)
        masses += scores[:, 1024 - 256 :].sum(), scores.sum()
    assert at.used[0].hits.by_layer[0] == pytest.approx(masses[0] / masses[1], rel=0.02)


def test_a_column_has_the_keys_of_the_stream(model: LlamaModel, text: str, tmp_path: Path) -> None:
    tokens = model.tokenize(Path(text).read_text())[:256]
    context = model.open_kv_context(480)
    chunks = chunks_of(context, (), tokens, 128)
    column = KeyColumn(all_heads(model), context.rope_table.head_dim, tmp_path)
    for chunk in chunks:
        column.append(chunk)
    for layer, keys in enumerate(column.keys(128, 256)):
        turned = chunks[1].rope.turn(chunks[1].state.keys(layer), chunks[1].state.positions, inverse=True)
        assert np.abs(keys.astype(float) - turned.astype(float)).max() < 0.02 * turned.std()
    with pytest.raises(UsageError, match=r"take .* has .* free"):
        column.check_room(1 << 50)


def test_what_is_attended_to_is_chosen_by_what_stands_before() -> None:
    source = random.Random(3)
    tokens = [source.randrange(1000) for _ in range(1024)]
    other = [*tokens[:768], *(source.randrange(1000) for _ in range(256))]
    one, two = (attended("selected", 6, 384, LexicalRouter(text), "s") for text in (tokens, other))
    assert one == two
    assert len(one.runs) == 3


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"lengths": (1000,)}, "--lengths 1000 is out of range"),
        ({"lengths": (128,)}, "--lengths 128 is out of range"),
        ({"n_target": 8}, "--target 8 is out of range"),
        ({"window": 100}, "--windows 100 is out of range"),
        ({"window": 768}, "a window of 768 tokens holds all of a text of 768"),
        ({"budget": 768}, "--budget 768 is out of range"),
        ({"modes": ("all",)}, "--modes all is not known"),
    ],
)
def test_what_cannot_be_looked_at_is_refused(change: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        replace(WANTED, **change).check()


def test_texts_and_windows_that_do_not_do_are_refused(model: LlamaModel, text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"has [12],\d+ tokens, 16,417 are needed"):
        measured(model, replace(WANTED, lengths=(16384,), text=text), tmp_path)
    with pytest.raises(UsageError, match="takes 512"):
        measured(model, replace(WANTED, window=640, text=text), tmp_path)
