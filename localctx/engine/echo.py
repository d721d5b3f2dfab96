"""A deterministic fake model that ships: no weights, no llama.cpp, the same limits and generate loop.

A token is up to three bytes of UTF-8, cut anew before each run of whitespace, so ids are stable, need no
table, and text cut before whitespace tokenises to the tokens of the whole. By default it answers with the
last words of the last user turn; `reply` scripts any other answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from localctx._native import AbortFlag
from localctx.engine.batch_context import BatchContext
from localctx.engine.limits import check_context_size
from localctx.engine.schedule import Scheduler, Slice
from localctx.engine.thinking import ThinkingSplitter
from localctx.errors import LocalctxError, NotComposable
from localctx.kv import KVContext, KVSpace
from localctx.values import Message, ModelInfo, Prompt, RopeInfo, Sampling

__all__ = ["EchoContext", "EchoModel", "Reply", "last_words"]

Reply = Callable[[str], str]
"""The text of the last user turn to the answer."""

_CONTROL = ("<s>", "</s>", "<|system|>", "<|user|>", "<|assistant|>")
_BOS, _END, _SYSTEM, _USER, _ASSISTANT = range(len(_CONTROL))
_ROLES = {"system": _SYSTEM, "user": _USER, "assistant": _ASSISTANT}
_PIECE_BYTES = 3
_BASES = {1: len(_CONTROL), 2: len(_CONTROL) + (1 << 8), 3: len(_CONTROL) + (1 << 8) + (1 << 16)}
_N_VOCAB = len(_CONTROL) + (1 << 8) + (1 << 16) + (1 << 24)
_WORD = re.compile(r"\s*\S+|\s+")
_N_ECHOED = 16


def last_words(text: str, n_words: int = _N_ECHOED) -> str:
    """The last n_words words of the text, its whitespace kept between them."""
    words = list(re.finditer(r"\S+", text))[-n_words:]
    return text[words[0].start() : words[-1].end()] if words else ""


def _encode(text: str) -> list[int]:
    tokens: list[int] = []
    for match in _WORD.finditer(text):
        word = match.group().encode("utf-8")
        for i in range(0, len(word), _PIECE_BYTES):
            piece = word[i : i + _PIECE_BYTES]
            tokens.append(_BASES[len(piece)] + int.from_bytes(piece, "big"))
    return tokens


def _decode(token: int) -> bytes:
    for n_bytes in (3, 2, 1):
        if token >= _BASES[n_bytes]:
            return (token - _BASES[n_bytes]).to_bytes(n_bytes, "big")
    return b""


def _last_user_text(tokens: Sequence[int]) -> str:
    """The content of the last user turn of a prompt; the whole text when it has no turns."""
    ids = list(tokens)
    start = len(ids) - 1 - ids[::-1].index(_USER) if _USER in ids else 0
    body = ids[start + 1 :] if _USER in ids else ids
    end = body.index(_END) if _END in body else len(body)
    return b"".join(_decode(token) for token in body[:end]).decode("utf-8", "replace")


class EchoModel:
    """A Model without weights. `n_ctx_train` is its trained length in tokens."""

    def __init__(self, reply: Reply = last_words, *, n_ctx_train: int = 8192, name: str = "echo") -> None:
        self._reply = reply
        self._contexts: list[EchoContext] = []
        self.info = ModelInfo(
            name=name,
            path="",
            fingerprint="echo-1",
            architecture="echo",
            n_ctx_train=n_ctx_train,
            n_layer=0,
            n_vocab=_N_VOCAB,
            size_bytes=0,
            kv_bytes_per_token=0,
            rope=RopeInfo("none"),
            description="deterministic fake: answers with the last words of the question",
        )

    def tokenize(self, text: str, first: bool = True) -> list[int]:
        """Token ids of content; `first` makes no difference here."""
        return _encode(text)

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """One control token before and one after each turn, then the assistant's."""
        tokens, content = [_BOS], []
        for message in messages:
            tokens.append(_ROLES[message.role])
            for fragment in message.content:
                start = len(tokens)
                tokens += _encode(fragment)
                content.append((start, len(tokens)))
            tokens.append(_END)
        return Prompt((*tokens, _ASSISTANT), content=tuple(content))

    def usable_n_ctx(self, wanted: int | None = None, n_seq: int = 1) -> int:
        """See values.Model; memory is no limit here."""
        n_ctx = self.info.n_ctx_train if wanted is None else wanted
        check_context_size(self.info, n_ctx, n_seq, self.info.n_ctx_train)
        return n_ctx

    def open_context(self, n_ctx: int, n_seq: int = 1, *, n_longest: int | None = None) -> EchoContext:
        """Raises UsageError beyond the trained length, as a real model does."""
        check_context_size(self.info, n_longest or n_ctx, n_seq, self.info.n_ctx_train)
        context = EchoContext(self._reply, n_ctx, n_seq)
        self._contexts.append(context)
        return context

    def kv_refusal(self) -> str | None:
        """Why nothing can be stored: see LlamaModel."""
        return "keeps no KV"

    def kv_space(self, prefix: Sequence[int]) -> KVSpace:
        """Raises NotComposable."""
        raise NotComposable(f"{self.info.name} {self.kv_refusal()}")

    def open_kv_context(self, n_ctx: int, n_seq: int = 1, *, n_longest: int | None = None) -> KVContext:
        """Raises NotComposable."""
        raise NotComposable(f"{self.info.name} {self.kv_refusal()}")

    def close(self) -> None:
        """Close what is open."""
        for context in self._contexts:
            context.close()
        self._contexts.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: type[BaseException] | BaseException | TracebackType | None) -> None:
        self.close()


class _EchoDecoder:
    """Sequences as lists of token ids; the answer is a function of the prompt."""

    n_batch = 512

    def __init__(self, reply: Reply, n_seq: int, stop: AbortFlag) -> None:
        self._reply = reply
        self._cache: list[list[int]] = [[] for _ in range(n_seq)]
        self._answers: dict[int, list[int]] = {}
        self._stop = stop

    def evaluate(self, batch: Sequence[Slice]) -> bool:
        if self._stop.is_set:
            return False
        for piece in batch:
            cache = self._cache[piece.sequence]
            if len(cache) != piece.start:
                raise LocalctxError(f"sequence {piece.sequence} holds {len(cache)} tokens, not {piece.start}")
            cache.extend(int(token) for token in piece.tokens)
        return True

    def copy(self, source: int, sequence: int, n_tokens: int) -> None:
        self._cache[sequence] = self._cache[source][:n_tokens]

    def drop(self, sequence: int, start: int) -> None:
        del self._cache[sequence][start:]

    def begin(self, sequence: int, sampling: Sampling) -> None:
        self._answers.pop(sequence, None)

    def end(self, sequence: int) -> None:
        self._answers.pop(sequence, None)

    def sample(self, sequence: int, row: int) -> int | None:
        if sequence not in self._answers:
            self._answers[sequence] = _encode(self._reply(_last_user_text(self._cache[sequence])))[::-1]
        answer = self._answers[sequence]
        return answer.pop() if answer else None

    def piece(self, token: int) -> bytes:
        return _decode(token)

    def close(self) -> None:
        self._cache.clear()


def _new_splitter(thinking_open: bool) -> ThinkingSplitter:
    return ThinkingSplitter(starts_open=thinking_open)


class EchoContext(BatchContext):
    """A Context over lists of token ids."""

    notices: tuple[str, ...] = ()

    def __init__(self, reply: Reply, n_ctx: int, n_seq: int) -> None:
        stop = AbortFlag()
        super().__init__(_EchoDecoder(reply, n_seq, stop), Scheduler(n_ctx, n_seq), stop, _new_splitter)
