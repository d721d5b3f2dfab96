"""The greedy text from stored f16 is that of KV never exported, but where two tokens are nearly even.

With weights in f16: llama.cpp rounds activations to 8 bits for quantised weights, and then the logits of the
same text evaluated in other batches already differ by more than what is allowed here, nothing stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path
from pydoc_data.topics import topics  # real prose that every Python has

import gguf
import gguf.quants
import numpy as np
import pytest
from session.conftest import answer_of

from localctx.document import open_document
from localctx.engine.batch_context import BatchContext
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.llama_decoder import LlamaDecoder
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.indexing import index_documents
from localctx.settings import Settings
from localctx.values import Piece, Progress, Request

QUESTION = "What does this text say? Explain it in detail."
N_TOKENS = 64
TEXT_CHARACTERS = 3500
EVEN = 0.05
"""Two logits so close may change places."""


@dataclass(frozen=True)
class Step:
    """A token that was sampled, None at the end of an answer, and how far its logit was ahead of the next."""

    token: int | None
    gap: float


@dataclass(frozen=True)
class Sampled:
    """One answer: its prompt, and step by step."""

    prompt: tuple[int, ...]
    steps: list[Step]


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> list[Sampled]:
    """Every answer that is sampled."""
    answers: list[Sampled] = []
    generate, sample = BatchContext.generate, LlamaDecoder.sample

    def watched_generate(
        self: BatchContext, requests: Sequence[Request], on_prefill: Progress | None = None
    ) -> Iterator[Piece]:
        (request,) = requests
        answers.append(Sampled(tuple(request.prompt.tokens), []))
        return generate(self, requests, on_prefill)

    def watched_sample(self: LlamaDecoder, sequence: int, row: int) -> int | None:
        second, first = np.sort(self.logits(row))[-2:]
        token = sample(self, sequence, row)
        answers[-1].steps.append(Step(token, float(first - second)))
        return token

    monkeypatch.setattr(BatchContext, "generate", watched_generate)
    monkeypatch.setattr(LlamaDecoder, "sample", watched_sample)
    return answers


def parting(one: Sampled, other: Sampled) -> tuple[int, float] | None:
    """The first step at which two answers differ, and how sure `other` was of its token there; or None."""
    pairs = list(zip(one.steps, other.steps, strict=False))
    n_same = len(list(takewhile(lambda pair: pair[0].token == pair[1].token, pairs)))
    if n_same == len(one.steps) == len(other.steps):
        return None
    return n_same, other.steps[n_same].gap


def write_f16(path: Path, source: Path) -> Path:
    """The model with its matrices in f16."""
    reader, writer = gguf.GGUFReader(source), gguf.GGUFWriter(path, "llama")
    for entry in reader.fields.values():
        if entry.name == "general.file_type":
            writer.add_file_type(gguf.LlamaFileType.MOSTLY_F16)
        elif not entry.name.startswith("GGUF.") and entry.name != "general.architecture":
            kind = entry.types[0]
            inner = entry.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
            writer.add_key_value(entry.name, entry.contents(), kind, sub_type=inner)
    for tensor in reader.tensors:
        values = gguf.quants.dequantize(tensor.data, tensor.tensor_type).astype(np.float32)
        is_matrix = values.ndim > 1
        writer.add_tensor(tensor.name, values.astype(np.float16) if is_matrix else values)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


@pytest.fixture(scope="module")
def smollm2_f16(smollm2_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LlamaModel]:
    """The embedded model, its weights in f16."""
    path = write_f16(tmp_path_factory.mktemp("f16") / "smollm2-f16.gguf", smollm2_path)
    with open_model(path) as model:
        yield model
    path.unlink()  # 271 MB


@pytest.mark.model
@pytest.mark.slow
@pytest.mark.parametrize("topic", ["class", "naming", "objects", "raise", "with"])
def test_stored_f16_says_what_kv_never_exported_says(
    topic: str, smollm2_f16: LlamaModel, seen: list[Sampled], tmp_path: Path
) -> None:
    path = tmp_path / f"{topic}.txt"
    path.write_text(topics[topic][:TEXT_CHARACTERS], "utf-8")
    kept = Settings(store=str(tmp_path / "store"), max_tokens=N_TOKENS, strategy="exact")

    def asked(settings: Settings) -> Answer:
        with open_document(str(path), cache_dir=None) as document:
            return answer_of(list(ask([document], smollm2_f16, QUESTION, settings)))

    with open_document(str(path), cache_dir=None) as document:
        list(index_documents([document], smollm2_f16, kept))
    stored, plain = asked(kept), asked(replace(kept, store="off"))
    assert stored.tokens.restored >= stored.coverage.tokens_total > 600
    assert stored.tokens.evaluated < 100
    assert plain.tokens.restored == 0
    assert seen[-2].prompt == seen[-1].prompt
    assert len(seen[-1].steps) > 32
    parted = parting(seen[-2], seen[-1])
    assert parted is None or parted[1] < EVEN, parted
    assert (stored.text == plain.text) == (parted is None)


def test_answers_part_where_a_token_differs() -> None:
    """The measure itself."""
    one = Sampled((), [Step(7, 1.0), Step(8, 2.0), Step(None, 3.0)])
    assert parting(one, one) is None
    assert parting(one, Sampled((), [Step(7, 1.0), Step(9, 0.04), Step(9, 3.0)])) == (1, 0.04)
    assert parting(one, Sampled((), [Step(7, 1.0), Step(8, 2.0), Step(5, 0.5), Step(6, 1.0)])) == (2, 0.5)
