"""What the engine tests share."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from localctx.engine.estimate import ContextSettings, estimate
from localctx.engine.gguf import open_model as open_header
from localctx.engine.llama import LlamaModel, open_model
from localctx.engine.options import EngineOptions
from localctx.values import Context, Message, Model, Piece, Request, Sampling


@pytest.fixture
def tiny(tiny_model_path: Path) -> Iterator[LlamaModel]:
    """The tiny llama with a BPE vocabulary, open."""
    with open_model(tiny_model_path) as model:
        yield model


def ask(model: Model, text: str, **sampling: Any) -> Request:
    """A request of one user turn."""
    return Request(model.prompt([Message("user", (text,))]), Sampling(**sampling))


def collect(context: Context, requests: Sequence[Request]) -> list[list[Piece]]:
    """The pieces of each request."""
    pieces: list[list[Piece]] = [[] for _ in requests]
    for piece in context.generate(requests):
        pieces[piece.request].append(piece)
    return pieces


def text_of(pieces: Sequence[Piece]) -> str:
    """The answer's text."""
    return "".join(piece.text for piece in pieces)


def buffer_mib(line: str) -> float:
    """The size in a line of llama.cpp's log, 0 when there is none."""
    found = re.search(r"buffer size = +([0-9.]+) MiB", line)
    return float(found[1]) if found else 0.0


def check_buffers(path: Path, n_ctx: int, n_seq: int, n_batch: int) -> None:
    """The estimate is llama.cpp's own figure for the buffers of a context, or up to 25 MiB more."""
    lines: list[str] = []
    with open_model(path, EngineOptions(n_batch=n_batch, on_log=lines.append)) as model:
        lines.clear()
        model.open_context(n_ctx, n_seq)
    told = sum(buffer_mib(line) for line in lines if re.search("(compute|output) buffer", line))
    cache = sum(buffer_mib(line) for line in lines if "KV buffer" in line)
    needed = estimate(open_header(path), n_ctx, ContextSettings(n_ubatch=n_batch, n_seq=n_seq))
    assert told > 0
    assert told <= needed.compute_bytes / 2**20 <= told + 25
    assert needed.kv_bytes / 2**20 == pytest.approx(cache, abs=0.01)
