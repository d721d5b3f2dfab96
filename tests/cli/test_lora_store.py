"""KV that was stored without a LoRA adapter is not served with it, nor the other way round."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from engine.tiny_lora import matrices, write_lora
from session.test_kept_kv import LONG, QUESTION

Run = Callable[..., Any]


def test_stored_kv_belongs_to_model_adapter_and_scale(
    localctx: Run, tiny_model_path: Path, tmp_path: Path
) -> None:
    lora, other = write_lora(tmp_path / "a.gguf"), write_lora(tmp_path / "b.gguf", matrices(seed=5))
    file = tmp_path / "book.md"
    file.write_text(LONG)
    words = [str(file), "-m", str(tiny_model_path), "--store", str(tmp_path / "store"), "-t", "1", "--json"]

    def stored_before(*more: str) -> tuple[int, int]:
        row = localctx("index", *words, *more).json["documents"][0]
        return row["tokens_stored_before"], row["tokens_total"]

    kinds: list[list[str]] = [
        [], ["--lora", str(lora)], ["--lora", f"{lora}:0.5"], ["--lora", str(lora), "--lora", str(other)],
    ]  # fmt: skip
    for more in kinds:
        before, total = stored_before(*more)
        assert before == 0 < total
    for more in kinds:
        before, total = stored_before(*more)
        assert before == total
    asked = ["ask", *words, "-q", QUESTION, "--strategy", "stream", "--kv", "refresh=0", "-n", "4"]
    answers = [localctx(*asked, *more).json for more in kinds]
    assert len({answer["model"]["fingerprint"] for answer in answers}) == len(kinds)
    assert all(answer["tokens"]["restored"] > 100 for answer in answers)


def test_a_lora_that_cannot_be_is_one_line(localctx: Run, tiny_model_path: Path, tmp_path: Path) -> None:
    file = tmp_path / "book.md"
    file.write_text("The code is 7734.\n")
    words = ["ask", str(file), "-q", "code?", "-m", str(tiny_model_path), "--store", "off"]
    for value, code, said in (
        (str(tmp_path / "none.gguf"), 1, "no such model file"),
        (str(tiny_model_path), 1, "a model, not a LoRA adapter"),
        ("x.gguf:0", 2, "a scale of 0"),
        ("hf:a/b:c.gguf", 1, "localctx models pull hf:a/b:c.gguf"),
    ):
        result = localctx(*words, "--lora", value)
        assert (result.code, result.out) == (code, "")
        assert said in result.err
        assert result.err.count("\n") == 1
