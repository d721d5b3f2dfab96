"""Rotation, replaced metadata and cache types as people ran into them elsewhere, typed as they typed it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import llama_cpp
import numpy as np
import pytest
from engine.tiny_architectures import write_architecture
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf

from localctx.engine.llama import open_model
from localctx.values import Message, Request, Sampling

Run = Callable[..., Any]
TEXT = "The harbour of Tannau was built in 1871 by Anna Feld; the stones came from the hill. "
CHANGED = ["llama.rope.freq_base=int:1000000", "llama.rope.freq_base=bool:maybe", "k" * 129 + "=int:1"]


def test_without_rope_options_the_answer_is_a_plain_runs(tiny_model_path: Path) -> None:
    """A wrapper that passes its own base and scale as "defaults" makes fluent nonsense of another base."""
    with open_model(tiny_model_path) as model:
        prompt = model.prompt([Message("user", (TEXT,))])
        context = model.open_context(512)
        pieces = list(context.generate([Request(prompt, Sampling(temperature=0.0, max_tokens=12))]))
        assert context.rope.freq_base == pytest.approx(50_000.0)
    plain = llama_cpp.Llama(str(tiny_model_path), n_ctx=512, n_batch=512, flash_attn=True, verbose=False)
    try:
        said = []
        for token in plain.generate(list(prompt.tokens), temp=0.0, repeat_penalty=1.0):
            said.append(token)
            if len(said) == 12 or token == plain.token_eos():
                break
        wanted = plain.detokenize(said).decode("utf-8", "replace")
    finally:
        plain.close()
    assert "".join(piece.text for piece in pieces).strip("\ufffd") == wanted.strip("\ufffd")


def test_factors_of_the_file_are_listed(localctx: Run, tmp_path: Path) -> None:
    factors = np.ones(8, np.float32)
    path = write_architecture(tmp_path / "f.gguf", "llama", extra={"rope_freqs.weight": factors})
    assert localctx("models", "show", str(path), "--json").json["file"]["rope"]["factors"] == ["rope_freqs"]


def test_stored_kv_serves_contexts_of_another_size_or_is_not_used(
    localctx: Run, tiny_model_path: Path, tmp_path: Path
) -> None:
    file = tmp_path / "x.txt"
    file.write_text(TEXT * 30)
    words = [str(file), "-m", str(tiny_model_path), "--store", str(tmp_path / "store")]
    assert localctx("index", *words, "--ctx", "1024").code == 0
    question = ["ask", *words, "-q", "Who built the harbour?", "-n", "8", "--json"]
    stored = localctx(*question, "--ctx", "2048").json
    fresh = localctx(*question, "--ctx", "2048", "--store", "off").json
    assert stored["answer"] == fresh["answer"]
    assert stored["tokens"]["restored"] + stored["tokens"]["evaluated"] >= fresh["tokens"]["evaluated"]


@pytest.mark.parametrize("override", [*CHANGED, "llama.rope.freq_bse=float:1.5", "llama.rope.freq_base"])
def test_a_bad_override_is_one_line_before_anything_is_read(
    localctx: Run, tiny_model_path: Path, override: str
) -> None:
    result = localctx("summarize", "-", "-m", str(tiny_model_path), "--override-kv", override, stdin=b"x")
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)
    assert "--override-kv" in result.err
    twice = ["--override-kv", "general.name=str:a"] * 2
    assert "is given twice" in localctx("summarize", "-", "-m", str(tiny_model_path), *twice, stdin=b"x").err


def test_quantised_caches_work_or_are_refused_in_one_line(localctx: Run, tmp_path: Path) -> None:
    wide = write_tiny_gguf(tmp_path / "w.gguf", bpe_vocabulary(), script={1: 2})
    file = tmp_path / "x.txt"
    file.write_text(TEXT)
    words = ["ask", str(file), "-q", "Who?", "-n", "4", "--store", "off", "-m", str(wide)]
    for types in ("type_k=q8_0,type_v=q8_0", "type_k=q8_0,type_v=q4_0"):
        assert localctx(*words, "--kv", types).code == 0
    refused = localctx(*words, "-ctv", "q8_0", "-fa", "off")
    assert (refused.code, refused.out, refused.err.count("\n")) == (2, "", 1)
    assert "a quantised V cache needs flash attention" in refused.err
    words[-1] = str(write_tiny_gguf(tmp_path / "odd.gguf", bpe_vocabulary()))
    odd = localctx(*words, "-ctk", "q8_0")
    assert (odd.code, odd.err.count("\n")) == (2, 1)
    assert "blocks of 32 values do not divide this model's heads of 16" in odd.err
