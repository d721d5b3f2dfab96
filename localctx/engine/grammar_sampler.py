"""The next token under a grammar: the sampler's own choice where the grammar takes it, else its best choice
among those that it takes. Is handed llama_cpp; knows no schema.

Looking at one token costs next to nothing, at a whole vocabulary some milliseconds. llama.cpp's grammars take
any bytes for a character, so that tokens are also held to UTF-8.
"""

from __future__ import annotations

import codecs
import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from localctx.errors import ModelError

__all__ = ["GrammarSampler"]

_CANDIDATE = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])


class GrammarSampler:
    """One answer's place in its grammar. Close it.

    piece: the bytes of a token, none of one that ends an answer · hidden: tokens that are no text and do not
    end an answer; they are never chosen.
    """

    def __init__(
        self, lib: Any, vocab: int, grammar: str, piece: Callable[[int], bytes], hidden: frozenset[int]
    ) -> None:
        """Raises ModelError for a grammar that llama.cpp does not take."""
        self._lib = lib
        self._piece = piece
        self._hidden = list(hidden)
        self._pending = b""  # a character's first bytes
        self._handle = lib.llama_sampler_init_grammar(vocab, grammar.encode(), b"root")
        if not self._handle:
            raise ModelError("llama.cpp does not take the grammar", "a simpler --schema")

    def sample(self, chain: int, logits: NDArray[np.float32], favourite: int) -> int:
        """The token to go on with; `favourite` is what the chain alone chooses from the logits.

        Raises ModelError where no token of the vocabulary goes on with the grammar.
        """
        token = favourite if self._takes(favourite) else self._choose(chain, logits)
        self._lib.llama_sampler_accept(self._handle, token)
        data = self._pending + self._piece(token)
        self._pending = data[codecs.utf_8_decode(data, "strict", False)[1] :]
        return token

    def _takes(self, token: int) -> bool:
        table = np.array([(token, 0.0, 0.0)], _CANDIDATE)
        self._apply(self._handle, table)
        return token not in self._hidden and not math.isinf(table["logit"][0]) and self._is_text(token)

    def _is_text(self, token: int) -> bool:
        """Whether what is written stays UTF-8, as far as it goes."""
        try:
            codecs.utf_8_decode(self._pending + self._piece(token), "strict", False)
        except UnicodeDecodeError:
            return False
        return True

    def _choose(self, chain: int, logits: NDArray[np.float32]) -> int:
        table = np.zeros(len(logits), _CANDIDATE)
        table["id"] = np.arange(len(logits))
        table["logit"] = logits
        table["logit"][self._hidden] = -np.inf
        self._apply(self._handle, table)
        while np.isfinite(table["logit"]).any():
            chosen = table.copy()  # the chain sorts and cuts it
            token = int(chosen["id"][self._apply(chain, chosen)])
            if self._is_text(token):
                return token
            table["logit"][token] = -np.inf
        raise ModelError("no token of the model goes on with the schema", "a simpler --schema")

    def _apply(self, sampler: int, table: NDArray[Any]) -> int:
        """Let a sampler look at the candidates; the place of the chosen one."""
        item = ctypes.POINTER(self._lib.llama_token_data)
        array = self._lib.llama_token_data_array(table.ctypes.data_as(item), len(table), -1, False)
        self._lib.llama_sampler_apply(sampler, ctypes.byref(array))
        return int(array.selected)

    def close(self) -> None:
        """Free it."""
        self._lib.llama_sampler_free(self._handle)
