"""/v1/embeddings with the embedder that passages are found by."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import openai
import pytest
from serve.serving import served

from localctx.engine.echo import EchoModel
from localctx.serve.keys import KeyRing
from localctx.settings import Settings

TEXTS = ["A ship lies in the harbour.", "A boat is moored in the port.", "The violin needs new strings."]


@pytest.fixture(scope="module")
def client(minilm_path: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    settings = Settings(store=str(tmp_path_factory.mktemp("store")), embedder=str(minilm_path))
    with served(EchoModel(), settings, KeyRing()) as serving, serving.client("none") as one:
        yield one


@pytest.mark.model
def test_like_texts_have_like_vectors(client: openai.OpenAI) -> None:
    name = next(model.id for model in client.models.list() if model.id != "echo")
    reply = client.embeddings.create(model=name, input=TEXTS)  # the client asks for base64
    vectors = np.array([row.embedding for row in reply.data])
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-4)
    same, other = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert same > other + 0.2
    assert [row.index for row in reply.data] == [0, 1, 2]
    assert reply.usage.prompt_tokens == reply.usage.total_tokens > 10
    as_floats = client.embeddings.create(model=name, input=TEXTS[0], encoding_format="float", dimensions=384)
    assert np.allclose(as_floats.data[0].embedding, vectors[0], atol=1e-4)
    with pytest.raises(openai.BadRequestError, match="'dimensions' is 384"):
        client.embeddings.create(model=name, input="x", dimensions=10)
    for wrong in ([], [[1, 2]], [1, 2]):
        with pytest.raises(openai.BadRequestError):
            client.embeddings.create(model=name, input=wrong)  # type: ignore[arg-type]  # what is refused
