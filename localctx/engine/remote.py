"""A model on another server, as values.Model: it generates, all else is done here. No KV, no vocabulary.

Token counts are estimates until the server has counted. Nothing but chat messages goes out.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self
from zlib import crc32

from localctx.engine.batch_context import check_requests
from localctx.engine.remote_batch import RemoteBatch
from localctx.engine.remote_client import KEY_VARIABLE, Delta, RemoteClient, parse_backend
from localctx.errors import BackendError, UsageError
from localctx.values import (
    FinishReason,
    Message,
    ModelInfo,
    Piece,
    Progress,
    Prompt,
    Request,
    RopeInfo,
)

__all__ = ["RemoteModel", "open_remote"]

DEFAULT_N_CTX = 8192
"""Where neither the user nor the server says how long a context may be."""
TOKENS_PER_MESSAGE = 4
WORD = re.compile(r"\s?[A-Za-z]{1,6}|\s?\d{1,2}|\s?[^\w\s]|\s+|\w[^\W\dA-Za-z]?")
"""About a token of any vocabulary, rather too small than too large."""


def open_remote(backend: str, n_ctx: int | None, *, offline: bool = False) -> RemoteModel:
    """The model that openai:URL[#MODEL] names; asks the server which ones it has.

    Raises UsageError for what is not understood, and with `offline` for another machine; BackendError.
    """
    base_url, model = parse_backend(backend)
    client = RemoteClient(base_url, os.environ.get(KEY_VARIABLE))
    try:
        if offline and not client.is_here:
            raise UsageError(f"--offline: {client.host} is another machine", "a server at localhost")
        return RemoteModel(client, model, n_ctx)
    except BaseException:
        client.close()
        raise


@dataclass(frozen=True, slots=True)
class RemotePrompt(Prompt):
    """A prompt whose tokens are an estimate; what is sent are the messages."""

    messages: tuple[Message, ...] = ()


class RemoteModel:
    """A values.Model. Close it, or use `with`."""

    def __init__(self, client: RemoteClient, model: str | None, n_ctx: int | None) -> None:
        """`model` None: the first that the server names. Raises BackendError, UsageError."""
        self._client = client
        rows = client.models()
        row = next((row for row in rows if model in (None, row["id"])), {})
        name = model or row.get("id")
        if name is None:
            raise BackendError(f"{client.base_url} names no model", "openai:URL#MODEL")
        if rows and not row:
            known = ", ".join(str(one["id"]) for one in rows[:8])
            raise UsageError(f"{client.base_url} has no model {name!r}", f"one of {known}")
        told = _n_ctx_of(row)
        if n_ctx and told and n_ctx > told:
            raise UsageError(
                f"--ctx {n_ctx} is more than {name} has there ({told:,} tokens)", f"--ctx {told}"
            )
        self._n_ctx = n_ctx or told or DEFAULT_N_CTX
        self.info = ModelInfo(
            name=name,
            path="",
            fingerprint=f"openai:{client.base_url}#{name}",
            architecture="remote",
            n_ctx_train=self._n_ctx,
            n_layer=0,
            n_vocab=0,
            size_bytes=0,
            kv_bytes_per_token=0,
            rope=RopeInfo("none"),
            description=f"generates at {client.base_url}",
            notices=self._notices(told=bool(n_ctx or told)),
        )

    def _notices(self, *, told: bool) -> tuple[str, ...]:
        url = self._client.base_url
        notices = [f"{url} generates: stored KV is not used, tokens are counted there and estimated here"]
        if not self._client.is_here:
            how = "" if url.startswith("https:") else ", unencrypted"
            notices.append(f"the question and passages of the documents are sent to {self._client.host}{how}")
        if not told:
            notices.append(
                f"the server does not say how long a context may be; {self._n_ctx:,} tokens (--ctx)"
            )
        return tuple(notices)

    def tokenize(self, text: str, first: bool = True) -> list[int]:
        """Numbers that stand for about a token each; equal for equal pieces."""
        return [crc32(piece.encode("utf-8", "replace")) & 0x7FFFFFFF for piece in WORD.findall(text)]

    def prompt(self, messages: Sequence[Message]) -> RemotePrompt:
        """The messages, and about what they take."""
        tokens: list[int] = []
        content: list[tuple[int, int]] = []
        for message in messages:
            tokens += [0] * TOKENS_PER_MESSAGE
            for fragment in message.content:
                start = len(tokens)
                tokens += self.tokenize(fragment)
                content.append((start, len(tokens)))
        return RemotePrompt((*tokens, 0), content=tuple(content), messages=tuple(messages))

    def usable_n_ctx(self, wanted: int | None = None, n_seq: int = 1) -> int:
        """See values.Model; memory is the server's affair."""
        if wanted is not None and wanted > self._n_ctx:
            raise UsageError(f"--ctx {wanted} is more than {self.info.name} has ({self._n_ctx:,})")
        return wanted or self._n_ctx

    def open_context(self, n_ctx: int, n_seq: int = 1, *, n_longest: int | None = None) -> RemoteContext:
        """Requests that are sent n_seq at a time."""
        return RemoteContext(self._client, self.info.name, n_ctx, n_seq)

    def close(self) -> None:
        """Drop the connections."""
        self._client.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class RemoteContext:
    """A values.Context: requests go out side by side, pieces come back as they arrive."""

    notices: tuple[str, ...] = ()

    def __init__(self, client: RemoteClient, model: str, n_ctx: int, n_seq: int) -> None:
        self._client, self._model = client, model
        self.n_ctx, self.n_seq = n_ctx, n_seq
        self._batch: RemoteBatch | None = None

    def generate(self, requests: Sequence[Request], on_prefill: Progress | None = None) -> Iterator[Piece]:
        """See values.Context. Raises UsageError; BackendError with the first piece that should come."""
        check_requests(requests, self.n_ctx)
        return self._pieces(requests)

    def _pieces(self, requests: Sequence[Request]) -> Iterator[Piece]:
        batch = self.open_batch()
        try:
            for request in requests:
                batch.submit(request)
            while not batch.is_idle:
                yield from batch.step()
        finally:
            batch.close()

    def open_batch(self) -> RemoteBatch:
        """See kv.BatchingContext."""
        self._batch = RemoteBatch(self._send, self.n_ctx, self.n_seq)
        return self._batch

    def _send(self, request: Request) -> Iterator[Piece]:
        return _pieces_of(self._client.chat(self._payload(request)))

    def _payload(self, request: Request) -> dict[str, Any]:
        """The request in OpenAI's words; parameters that only some servers know are left out."""
        if not isinstance(request.prompt, RemotePrompt):
            raise TypeError("a prompt of another model")
        sampling = request.sampling
        payload: dict[str, Any] = {
            "model": self._model,
            "messages": [
                {"role": message.role, "content": "".join(message.content)}
                for message in request.prompt.messages
            ],
            "max_tokens": sampling.max_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": sampling.seed,
        }
        return {**payload, "stop": list(sampling.stop)} if sampling.stop else payload

    def cancel(self) -> None:
        """End every open request."""
        if self._batch is not None:
            self._batch.stop()

    def close(self) -> None:
        """End what is open; nothing is held."""
        self.cancel()


def _pieces_of(deltas: Iterator[Delta]) -> Iterator[Piece]:
    """A request's pieces; the counts are the server's where it tells them."""
    n_generated = 0
    for delta in deltas:
        n_generated += bool(delta.text or delta.thinking)
        reason: FinishReason | None = None
        if delta.finish_reason is not None:
            reason = "length" if delta.finish_reason == "length" else "stop"
        yield Piece(
            0,
            delta.text,
            delta.thinking,
            reason,
            max(0, (delta.n_prompt or 0) - delta.n_cached),
            n_generated if delta.n_generated is None else delta.n_generated,
        )


def _n_ctx_of(row: dict[str, Any]) -> int | None:
    """How long a context may be, as different servers tell it in a row of /models."""
    inside = [row.get(name) for name in ("localctx", "meta")]
    places: list[dict[str, Any]] = [row, *(one for one in inside if isinstance(one, dict))]
    for name in ("max_model_len", "n_ctx", "context_length", "context_window", "n_ctx_train"):
        for place in places:
            value = place.get(name)
            if isinstance(value, int) and value > 0:
                return value
    return None
