"""What the engine tests share."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from localctx.engine.llama import LlamaModel, open_model
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
