"""A server on a tiny model, behind three keys."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import openai
import pytest
from serve.serving import ALICE, KEYS, TEXT, Serving, served

from localctx.engine import open_model
from localctx.engine.options import EngineOptions
from localctx.serve.keys import KeyRing, read_keys
from localctx.settings import Settings


@pytest.fixture(scope="session")
def ring(tmp_path_factory: pytest.TempPathFactory) -> KeyRing:
    """Three keys of three tenants."""
    path = tmp_path_factory.mktemp("keys") / "keys.toml"
    path.write_text(KEYS)
    return read_keys(path)


@pytest.fixture(scope="session")
def server(
    tiny_model_path: Path, ring: KeyRing, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Serving]:
    """The tiny model behind three keys, with a store."""
    settings = Settings(store=str(tmp_path_factory.mktemp("store")), embedder="off", max_tokens=8)
    model = open_model(tiny_model_path, EngineOptions(name="tiny"))
    with model, served(model, settings, ring) as serving:
        yield serving


@pytest.fixture
def client(server: Serving) -> Iterator[openai.OpenAI]:
    """The official client of one tenant."""
    with server.client() as one:
        yield one


@pytest.fixture
def upload(server: Serving) -> Callable[..., str]:
    """Upload a text under a key; the file's id."""

    def upload(text: str = TEXT, key: str = ALICE, name: str = "harbour.txt") -> str:
        with server.client(key) as one:
            return one.files.create(file=(name, text.encode()), purpose="user_data").id

    return upload
