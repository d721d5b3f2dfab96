"""Model files for all tests: tiny generated ones, and the embedded model for tests marked `model`."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from engine.tiny_gguf import GEMMA_LIKE, LLAMA2_LIKE, bpe_vocabulary, spm_vocabulary, write_tiny_gguf

from localctx.errors import LocalctxError
from localctx.registry import resolve

# A shell starts background jobs with Ctrl-C ignored, which they and their children would inherit.
signal.signal(signal.SIGINT, signal.default_int_handler)
os.environ["LOCALCTX_EMBEDDER"] = "off"  # which passages are chosen must not depend on what is installed
os.environ["LOCALCTX_OCR"] = "off"  # seconds a page; test_ocr.py reads some
os.environ["LOCALCTX_HISTORY"] = "false"  # what was asked twice is to be answered twice
os.environ.setdefault("GOMP_SPINCOUNT", "0")  # tests run side by side: threads that wait must not spin


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny models of this session lie."""
    return tmp_path_factory.mktemp("tiny-models")


@pytest.fixture(scope="session")
def tiny_model_path(tiny_folder: Path) -> Path:
    """Llama, two layers, random weights, BPE vocabulary, ChatML template, 2,048 tokens."""
    return write_tiny_gguf(tiny_folder / "tiny.gguf", bpe_vocabulary())


@pytest.fixture(scope="session")
def tiny_spm_path(tiny_folder: Path) -> Path:
    """The same with a SentencePiece-style vocabulary that wants a BOS, and another template."""
    return write_tiny_gguf(tiny_folder / "tiny-spm.gguf", spm_vocabulary(), template=LLAMA2_LIKE)


@pytest.fixture(scope="session")
def tiny_qwen3_path(tiny_folder: Path) -> Path:
    """Qwen3 (NEOX rotation), BPE vocabulary."""
    return write_tiny_gguf(tiny_folder / "tiny-qwen3.gguf", bpe_vocabulary(), architecture="qwen3")


@pytest.fixture(scope="session")
def tiny_moe_path(tiny_folder: Path) -> Path:
    """Llama with four experts in each of its three layers."""
    return write_tiny_gguf(tiny_folder / "tiny-moe.gguf", bpe_vocabulary(), n_layer=3, n_expert=4)


@pytest.fixture(scope="session")
def tiny_gemma_template_path(tiny_folder: Path) -> Path:
    """A template that refuses the system role and writes its own BOS, while the vocabulary adds one too."""
    return write_tiny_gguf(tiny_folder / "tiny-gemma.gguf", bpe_vocabulary(bos="<s>"), template=GEMMA_LIKE)


@pytest.fixture(scope="session")
def tiny_no_template_path(tiny_folder: Path) -> Path:
    """No chat template in the file."""
    return write_tiny_gguf(tiny_folder / "tiny-none.gguf", bpe_vocabulary(), template=None)


@pytest.fixture(scope="session")
def smollm2_path() -> Path:
    """The embedded model's file; `make model` fetches it."""
    try:
        return resolve("smollm2-135m").path
    except LocalctxError as error:
        pytest.fail(f"{error.message}: run `make model`")


@pytest.fixture(scope="session")
def minilm_path() -> Path:
    """The default embedder's file; `make model` fetches it."""
    try:
        return resolve("all-minilm-l6-v2").path
    except LocalctxError as error:
        pytest.fail(f"{error.message}: run `make model`")
