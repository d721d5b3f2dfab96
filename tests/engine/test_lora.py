"""LoRA adapters: what they do to logits, what they do to the fingerprint, and what is refused."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from engine.tiny_lora import PLACES, matrices, write_lora, write_merged
from numpy.typing import NDArray

from localctx.engine import EngineOptions, open_model
from localctx.engine.lora import parse_adapters
from localctx.engine.options import Adapter
from localctx.errors import ModelError, UsageError

TOKENS = [5, 9, 60, 12, 99, 3, 42, 17]


def logits(path: Path, adapters: Sequence[Adapter] = (), *, stores: bool = False) -> NDArray[np.float32]:
    """The logits after each token, from a plain context or one for stored KV."""
    rows: list[NDArray[np.float32]] = []
    with open_model(path, EngineOptions(adapters=tuple(adapters))) as model:
        context = (model.open_kv_context if stores else model.open_context)(256, n_outputs=8)
        context.score(TOKENS, lambda _, found: rows.append(found.copy()))
    return np.concatenate(rows)


def fingerprint(path: Path, *adapters: Adapter) -> str:
    with open_model(path, EngineOptions(adapters=adapters)) as model:
        return model.info.fingerprint


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_lora(tmp_path_factory.mktemp("lora") / "a.gguf")


@pytest.mark.parametrize("scale", [1.0, -0.5])
@pytest.mark.parametrize("stores", [False, True])
def test_an_adapter_is_its_product_added_to_the_weights(
    tiny_model_path: Path, lora: Path, tmp_path: Path, scale: float, stores: bool
) -> None:
    merged = logits(write_merged(tmp_path / "merged.gguf", scale))
    plain = logits(tiny_model_path)
    adapted = logits(tiny_model_path, [Adapter(lora, scale)], stores=stores)
    assert np.abs(adapted - merged).max() < 0.05 * np.abs(plain - merged).max()
    assert np.abs(plain - merged).std() > 0.1


def test_several_adapters_are_added_up(tiny_model_path: Path, lora: Path, tmp_path: Path) -> None:
    again = write_lora(tmp_path / "b.gguf")
    both = logits(tiny_model_path, [Adapter(lora, 0.25), Adapter(again, 0.75)])
    assert np.allclose(both, logits(tiny_model_path, [Adapter(lora)]), atol=1e-3)


def test_the_fingerprint_says_adapter_content_scale_and_order(
    tiny_model_path: Path, lora: Path, tmp_path: Path
) -> None:
    other = write_lora(tmp_path / "other.gguf", matrices(seed=12))
    found = [
        fingerprint(tiny_model_path, *adapters)
        for adapters in (
            (), (Adapter(lora),), (Adapter(lora, 0.5),), (Adapter(other),),
            (Adapter(lora), Adapter(other)), (Adapter(other), Adapter(lora)),
        )
    ]  # fmt: skip
    assert len(set(found)) == len(found)
    copied = Path(shutil.copy(lora, tmp_path / "copy.gguf"))
    assert fingerprint(tiny_model_path, Adapter(copied)) == found[1]
    with open_model(tiny_model_path, EngineOptions(adapters=(Adapter(lora),))) as model:
        assert model.kv_space([1]).model == found[1]


def refusal(model: Path, adapter: Path) -> ModelError:
    with pytest.raises(ModelError) as caught:
        open_model(model, EngineOptions(adapters=(Adapter(adapter),)))
    assert "\n" not in caught.value.message
    assert str(adapter) in caught.value.message
    assert caught.value.hint
    return caught.value


def test_what_is_no_lora_is_refused_before_anything_is_loaded(
    tiny_model_path: Path, lora: Path, tmp_path: Path
) -> None:
    assert "no such model file" in refusal(tiny_model_path, tmp_path / "none.gguf").message
    assert "a model, not a LoRA adapter" in refusal(tiny_model_path, tiny_model_path).message
    text = tmp_path / "text.gguf"
    text.write_text("<html>log in</html>")
    assert "an HTML or XML page" in refusal(tiny_model_path, text).message
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(lora.read_bytes()[:-500])
    assert "cut short" in refusal(tiny_model_path, cut).message
    control = write_lora(tmp_path / "c.gguf", adapter__type="control_vector")
    assert "of type 'control_vector'" in refusal(tiny_model_path, control).message
    projector = write_lora(tmp_path / "p.gguf", general__type="mmproj")
    assert "not a LoRA adapter" in refusal(tiny_model_path, projector).message
    some_words = write_lora(tmp_path / "alora.gguf", adapter__alora__invocation="x")
    assert "aLoRA" in refusal(tiny_model_path, some_words).message


def test_a_lora_of_another_model_is_refused(tiny_model_path: Path, tmp_path: Path) -> None:
    qwen = write_lora(tmp_path / "q.gguf", architecture="qwen3")
    assert "for architecture 'qwen3'" in refusal(tiny_model_path, qwen).message
    deeper = {place.replace("blk.1.", "blk.9."): pair for place, pair in matrices().items()}
    deep = write_lora(tmp_path / "d.gguf", deeper)
    assert "has no 'blk.9.attn_v.weight'" in refusal(tiny_model_path, deep).message
    a, b = matrices()[PLACES[0]]
    wide = {PLACES[0]: (np.ones((a.shape[0], 128), np.float32), b)}
    assert "of another size" in refusal(tiny_model_path, write_lora(tmp_path / "w.gguf", wide)).message
    assert "without any matrix" in refusal(tiny_model_path, write_lora(tmp_path / "e.gguf", {})).message


def test_file_and_scale_are_read_as_llama_cpp_writes_them() -> None:
    assert parse_adapters("") == ()
    assert parse_adapters("a.gguf") == (Adapter(Path("a.gguf")),)
    assert parse_adapters("a.gguf:0.5,/x/b:c.gguf:-2e-1") == (
        Adapter(Path("a.gguf"), 0.5),
        Adapter(Path("/x/b:c.gguf"), -0.2),
    )
    assert parse_adapters("C:/a.gguf") == (Adapter(Path("C:/a.gguf")),)
    assert parse_adapters("hf:a/b:c.gguf:2") == (Adapter(Path("hf:a/b:c.gguf"), 2.0),)
    for wrong in (
        ",",
        "a.gguf,",
        ":0.5",
        "a.gguf:0",
        "a.gguf:nan",
        "a.gguf:inf",
        "a.gguf:1e39",
        "a.gguf:1e-60",
    ):
        with pytest.raises(UsageError, match="--lora"):
            parse_adapters(wrong)
