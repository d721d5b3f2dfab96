"""Decoding and keeping with a tiny model: bytes are those of the formats, tokens those asked for."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from engine import tiny_gguf

from localctx.bench.decode import Sizes, measure
from localctx.engine import EngineOptions, open_model
from localctx.engine.echo import EchoModel
from localctx.engine.llama import LlamaModel
from localctx.errors import UsageError
from localctx.settings import Settings


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


@pytest.fixture
def wide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LlamaModel]:
    """Heads of 32 dimensions: whole blocks of q8_0 and q4_0."""
    monkeypatch.setattr(tiny_gguf, "Shape", partial(tiny_gguf.Shape, n_embd=128))
    path = tiny_gguf.write_tiny_gguf(tmp_path / "wide.gguf", tiny_gguf.bpe_vocabulary())
    with open_model(path, EngineOptions(n_threads=1)) as opened:
        yield opened


def silent(_: str) -> None:
    pass


def test_bytes_are_those_of_the_formats(wide: LlamaModel, tmp_path: Path) -> None:
    place = tmp_path / "place"
    report = measure(wide, Settings(store=str(place)), None, Sizes(300, 5, 2), silent)
    shown = report.to_json()
    assert shown["schema"] == "localctx.bench.decode/1"
    assert (shown["n_tokens"], shown["n_steps"], shown["decode"]["codec"]) == (300, 5, "int4")
    assert shown["decode"]["assembled_tokens_per_s"]["n"] == shown["decode"]["plain_tokens_per_s"]["n"] == 2
    rows = {(row["by"], row["form"]): row for row in shown["keeping"]}
    assert [form for by, form in rows if by == "store"] == ["f16", "int8", "int4"]
    assert [form for by, form in rows if by == "llama.cpp"] == ["f16", "q8_0", "q4_0"]
    assert all(row["save_s"]["n"] == row["load_s"]["n"] == 2 for row in rows.values())
    f16 = wide.info.kv_bytes_per_token
    for kv_type, share in (("f16", 1), ("q8_0", 34 / 64), ("q4_0", 18 / 64)):
        row = rows["llama.cpp", kv_type]
        beside = row["size_bytes"] - 300 * (f16 * share + 16)  # a cell's place and the token are 16 bytes
        assert 0 < beside < 200
        assert row["bytes_per_token"] == round(row["size_bytes"] / 300, 1)
    sizes = [rows["store", codec]["bytes_per_token"] for codec in ("f16", "int8", "int4")]
    assert sizes == sorted(sizes, reverse=True) and f16 <= sizes[0] < 1.05 * f16
    assert list(place.iterdir()) == []
    assert len(report.lines) == 2 + 6


def test_a_type_that_the_model_cannot_have_is_named(model: LlamaModel) -> None:
    report = measure(model, Settings(kv="codec=int8"), None, Sizes(200, 2, 1), silent)
    rows = {(row.by, row.form): row for row in report.keeping}
    assert "block size 32" in rows["llama.cpp", "q8_0"].error and not rows["llama.cpp", "q8_0"].save_s
    assert not rows["llama.cpp", "f16"].error
    assert report.codec == "int8"
    shown = {row["form"]: row for row in report.to_json()["keeping"] if row["by"] == "llama.cpp"}
    assert shown["q4_0"]["save_s"] is None and shown["q4_0"]["error"]


@pytest.mark.parametrize(
    ("sizes", "said"),
    [
        (Sizes(100), "--tokens 100"),
        (Sizes(n_steps=0), "--steps 0"),
        (Sizes(n_repeats=0), "--repeats 0"),
        (Sizes(2047, 2), "do not fit a context of 2,048"),
    ],
)
def test_what_makes_no_sense_is_refused(model: LlamaModel, sizes: Sizes, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        measure(model, Settings(), None, sizes, silent)


def test_what_cannot_be_measured(model: LlamaModel, tmp_path: Path) -> None:
    short = tmp_path / "short.txt"
    short.write_text("A few words.")
    with pytest.raises(UsageError, match="232 are needed"):
        measure(model, Settings(), str(short), Sizes(200), silent)
    with EchoModel() as echo, pytest.raises(UsageError, match="no KV"):
        measure(echo, Settings(), None, Sizes(), silent)
