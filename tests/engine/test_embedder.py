"""Vectors of a tiny encoder, beside the same in NumPy; long, empty and odd texts; the real one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_bert import N_CTX, N_DIM, WORDS, token_rows, write_tiny_bert, written

from localctx.engine.embedder import Embedder, EmbedderFile, open_embedder
from localctx.engine.encoder import N_BATCH
from localctx.errors import LocalctxError, ModelError

REFERENCE = (-0.0142, 0.0295, 0.0038)
"""The first numbers of a sentence's vector, from the publisher's own library."""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Embedder]:
    """The tiny encoder, open."""
    with open_embedder(write_tiny_bert(tmp_path_factory.mktemp("bert") / "tiny-bert.gguf")) as embedder:
        yield embedder


def ids(text: str) -> list[int]:
    """Token ids of words that are spelled as in the vocabulary."""
    return [WORDS.index(word) for word in text.split()]


def unit(values: np.ndarray) -> np.ndarray:
    return values / np.linalg.norm(values, axis=-1, keepdims=True)


def test_vectors_are_those_of_the_published_model(tiny: Embedder) -> None:
    found = dict(tiny.embed(["the river rises near tannau", "mines opened ?"]))
    for number, words in enumerate(["the river rises near tannau", "mine ##s opened ?"]):
        rows = token_rows(ids(f"[CLS] {words} [SEP]"))
        if number == 1:  # "opened" is a word of its own
            assert WORDS.index("opened") in ids(words)
        np.testing.assert_allclose(found[number].vector, unit(rows.mean(axis=0)), atol=2e-3)
        np.testing.assert_allclose(found[number].tokens, unit(rows[1:-1]), atol=5e-3)


def test_a_text_has_the_same_vector_in_any_company(tiny: Embedder) -> None:
    texts = ["the river", "where does the river rise ?", "", "silver mine . " * 4, "中文", "the river"] * 40
    together, alone = tiny.vectors(texts), tiny.vectors(texts[:6])
    np.testing.assert_allclose(together, np.tile(alone, (40, 1)), atol=2e-3)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1.0, atol=1e-5)


def test_a_long_text_is_cut_and_pooled_never_dropped(tiny: Embedder) -> None:
    room = N_CTX - 2
    words = (WORDS[5:21] * 4)[: 2 * room]
    first, second = (
        token_rows(ids(f"[CLS] {' '.join(part)} [SEP]")) for part in (words[:room], words[room:])
    )
    found = next(tiny.embed([" ".join(words)]))[1]
    assert len(found.tokens) == len(words) == tiny.n_tokens(" ".join(words))
    wanted = unit((unit(first.mean(axis=0)) + unit(second.mean(axis=0))) / 2)
    np.testing.assert_allclose(found.vector, wanted, atol=2e-3)
    later = next(tiny.embed([" ".join([*words[:-3], "1", "2", "1"])]))[1]
    assert not np.allclose(found.vector, later.vector, atol=1e-2)


@pytest.mark.parametrize(
    "text", ["", " \n ", "x" * 5000, "☃" * 3000, "\0", "[CLS] [SEP]", "a " * 10 * N_BATCH]
)
def test_any_text_has_a_vector(tiny: Embedder, text: str) -> None:
    found = next(tiny.embed([text]))[1]
    assert found.vector.shape == (N_DIM,)
    assert np.isfinite(found.vector).all()
    assert found.tokens.shape == (tiny.n_tokens(text), N_DIM)


def test_markers_of_special_tokens_are_text(tiny: Embedder) -> None:
    assert tiny.n_tokens("[SEP]") > 1 or tiny.n_tokens("[SEP]") == len(ids("[UNK]"))
    rows = token_rows(ids("[CLS] [SEP] [SEP]"))
    assert not np.allclose(tiny.vectors(["[SEP]"])[0], unit(rows.mean(axis=0)), atol=1e-2)


def test_progress_counts_texts(tiny: Embedder) -> None:
    texts = ["the river rises near tannau and is long " * 2] * 200
    told: list[tuple[int, int]] = []
    assert len(list(tiny.embed(texts, lambda *count: told.append(count)))) == len(texts)
    assert told[-1] == (len(texts), len(texts))


@pytest.mark.parametrize(("kind", "least"), [("f16", 0.9999), ("q8_0", 0.998)])
def test_smaller_types_change_little(tiny: Embedder, tmp_path: Path, kind: str, least: float) -> None:
    (tmp_path / "small.gguf").write_bytes(written(kind))
    texts = ["the river rises near tannau", "the silver mine was opened in 1 2"]
    with open_embedder(tmp_path / "small.gguf") as small:
        assert ((small.vectors(texts) * tiny.vectors(texts)).sum(axis=1) > least).all()


def test_a_language_model_is_no_embedder(tiny_model_path: Path) -> None:
    with pytest.raises(ModelError, match="not an embedding model"):
        open_embedder(tiny_model_path)


def test_a_cut_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cut.gguf").write_bytes(written("f16")[:-4000])
    with pytest.raises(ModelError):
        open_embedder(tmp_path / "cut.gguf")


def test_closed_is_closed(tmp_path: Path) -> None:
    file = EmbedderFile(write_tiny_bert(tmp_path / "b.gguf"), "b", ["en"])
    with file:
        embedder = file.open()
        assert file.open() is embedder
    with pytest.raises(LocalctxError, match="closed"):
        next(embedder.embed(["a"]))
    assert file.covers("en")
    assert file.covers(None)
    assert not file.covers("zh")
    assert EmbedderFile(file.path, "b").covers("zh")


@pytest.mark.model
def test_the_real_embedder_finds_paraphrases(minilm_path: Path) -> None:
    texts = [
        "The railway was finished in 1871.",
        "Miners got their wages each Friday.",
        "Bread is baked at night.",
    ]
    with open_embedder(minilm_path) as embedder:
        assert (embedder.n_ctx, embedder.n_dim) == (256, 384)
        likeness = embedder.vectors(texts) @ embedder.vectors(["When were the workers paid?"])[0]
        assert int(likeness.argmax()) == 1
        # The numbers are those of sentence-transformers 6.2 on torch 2.13, in f32.
        first = embedder.vectors(["The railway was finished in 1871."])[0, :3]
        np.testing.assert_allclose(first, REFERENCE, atol=2e-3)
