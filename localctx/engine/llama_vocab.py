"""llama.cpp's tokenizer of one model, as prompt.Vocabulary wants it. Is handed llama_cpp."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, cast

import numpy as np

from localctx.engine.gguf import GGUFHeader
from localctx.engine.grammar_sampler import GrammarSampler

__all__ = ["LlamaVocab", "adds_space", "bounded_pieces"]

_INTEGERS = ctypes.POINTER(ctypes.c_int32)
_SAFE_CUT = re.compile(r"(?<=\S) (?=\S)|(?<=\n)(?=\S)")
_CUT_AFTER, _CUT_BEFORE = 1 << 16, 1 << 24  # characters


def bounded_pieces(text: str) -> Iterator[str]:
    """The text in pieces of bounded size, cut where no tokenizer joins: before one space, after a newline."""
    start = 0
    while len(text) - start > _CUT_AFTER:
        match = _SAFE_CUT.search(text, start + _CUT_AFTER, start + _CUT_BEFORE)
        end = match.start() if match else min(len(text), start + _CUT_BEFORE)
        yield text[start:end]
        start = end
    if start < len(text):
        yield text[start:]


def adds_space(header: GGUFHeader) -> bool:
    """Whether the tokenizer puts a space first: SentencePiece-style ones do unless the file says no."""
    kind = header.text("tokenizer.ggml.model")
    return header.flag("tokenizer.ggml.add_space_prefix", kind in ("llama", "t5")) is True and kind != "gpt2"


class LlamaVocab:
    """The tokenizer of a loaded model, as prompt.Vocabulary wants it; valid as long as the model is."""

    def __init__(self, lib: Any, handle: int, adds_space: bool) -> None:
        """`adds_space`: a text begins with a space that is not its own (llama.cpp is told not to add it)."""
        self._lib = lib
        self._handle = handle
        self._pieces: dict[int, bytes] = {}
        self._ends: dict[int, bool] = {}
        self.adds_space = adds_space
        self.n_tokens = int(lib.llama_vocab_n_tokens(handle))
        bos = int(lib.llama_vocab_bos(handle))
        self.bos_id = bos if bos >= 0 else None
        eos = int(lib.llama_vocab_eos(handle))
        self.eos_id = eos if eos >= 0 else None
        self.shown_controls: frozenset[int] = frozenset()  # those that mark thinking in the output
        self.adds_bos = bool(lib.llama_vocab_get_add_bos(handle))

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """Tokens that are never text."""
        return frozenset(self._with_attribute(self._lib.LLAMA_TOKEN_ATTR_CONTROL))

    @cached_property
    def user_defined(self) -> dict[int, str]:
        """Added tokens that the tokenizer finds in any text, and their text."""
        return {
            token: self.token_text(token)
            for token in self._with_attribute(self._lib.LLAMA_TOKEN_ATTR_USER_DEFINED)
        }

    def _with_attribute(self, mask: int) -> Iterator[int]:
        attribute, handle = self._lib.llama_vocab_get_attr, self._handle
        return (token for token in range(self.n_tokens) if attribute(handle, token) & mask)

    def encode_special(self, text: str) -> list[int]:
        """Token ids; markers of control tokens become those. No BOS; the first space if `adds_space`."""
        return self._tokenize(self._lead(text, self._special_markers) + text, special=True)

    def encode_plain(self, text: str) -> list[int]:
        """Token ids without control tokens, in time linear in the text. No BOS; the first space likewise."""
        tokens: list[int] = []
        for index, piece in enumerate(bounded_pieces(text)):
            tokens += self._tokenize((self._lead(text, self._plain_markers) if index == 0 else "") + piece)
        return tokens

    def _lead(self, text: str, markers: re.Pattern[str]) -> str:
        """SentencePiece's space before a text; none before a marker that becomes one token."""
        return " " if self.adds_space and text and not markers.match(text) else ""

    @cached_property
    def _plain_markers(self) -> re.Pattern[str]:
        return _any_of(self.user_defined.values())

    @cached_property
    def _special_markers(self) -> re.Pattern[str]:
        return _any_of([*self.user_defined.values(), *map(self.token_text, self.control_ids)])

    def _tokenize(self, text: str, special: bool = False) -> list[int]:
        data = text.encode("utf-8", "replace")
        n_room = len(data) + 16
        while True:
            buffer = np.empty(n_room, np.int32)
            first = buffer.ctypes.data_as(_INTEGERS)
            n = self._lib.llama_tokenize(self._handle, data, len(data), first, n_room, False, special)
            if n >= 0:
                return cast(list[int], buffer[:n].tolist())
            n_room = -n

    def has_token(self, text: str) -> bool:
        """Whether the text is one special token."""
        return len(self.encode_special(text)) == 1

    def piece(self, token: int) -> bytes:
        """The token's text, control tokens written out; may be part of a character."""
        known = self._pieces.get(token)
        if known is None:
            n_room, n = 0, -64
            while n < 0:
                n_room = -n
                buffer = ctypes.create_string_buffer(n_room)
                n = self._lib.llama_token_to_piece(self._handle, token, buffer, n_room, 0, True)
            known = self._pieces[token] = buffer.raw[:n]
        return known

    def token_text(self, token: int) -> str:
        """The token as the vocabulary spells it."""
        return (self._lib.llama_vocab_get_text(self._handle, token) or b"").decode("utf-8", "replace")

    def is_control(self, token: int) -> bool:
        """Whether the id stands for no text."""
        return token in self.control_ids

    def grammar_sampler(self, grammar: str) -> GrammarSampler:
        """A sampler that keeps to the grammar, in visible text. Raises ModelError."""
        hidden = frozenset(token for token in self.control_ids if not self.is_end(token))
        return GrammarSampler(
            self._lib,
            self._handle,
            grammar,
            lambda token: b"" if self.is_end(token) else self.piece(token),
            hidden,
        )

    def is_end(self, token: int) -> bool:
        """Whether the id ends an answer."""
        if token not in self._ends:
            self._ends[token] = bool(self._lib.llama_vocab_is_eog(self._handle, token))
        return self._ends[token]


def _any_of(texts: Iterable[str]) -> re.Pattern[str]:
    """A pattern for any of the texts, the longest first; nothing matches an empty list."""
    return re.compile("|".join(map(re.escape, sorted(filter(None, texts), key=len, reverse=True))) or "(?!)")
