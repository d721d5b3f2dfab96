"""Rendered text and content to token ids. Scaffold may hold special tokens, content never does.

Knows a vocabulary only through a protocol; no jinja, no llama.cpp. Content is cut inside every marker that
the tokenizer would read as one token, so it is spelled out like any other text; scaffold and content are
tokenised apart, so no token spans their border.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Protocol

from localctx.engine.template import FALLBACK_MARKERS, Rendered
from localctx.engine.thinking import DEFAULT_TAGS, ThinkingTags, starts_open
from localctx.errors import ModelError
from localctx.values import Prompt

__all__ = ["ContentTokenizer", "Layout", "Vocabulary", "assemble", "lay_out"]

_MARKER_SHAPE = re.compile(r"<\|.+\|>|<[^<>\s]+_of_[^<>\s]+>|\[/?[A-Z_]{3,}\]", re.DOTALL)
_LONE = (
    "\ue000",
    "\uf8ff",
    "\u2063",
)  # characters that merge with no neighbour in SentencePiece vocabularies
N_KNOWN, SHORT_CHARACTERS = 2048, 128
"""Texts as short as a header line whose tokens are remembered: the next question has many of them again."""

Encode = Callable[[str], Sequence[int]]


class Vocabulary(Protocol):
    """A model's tokenizer as llama.cpp has it. Neither encode adds BOS or EOS."""

    def encode_special(self, text: str) -> Sequence[int]:
        """Token ids of text whose markers become special tokens."""

    def encode_plain(self, text: str) -> Sequence[int]:
        """Token ids of text without control tokens; USER_DEFINED ones are still read as such."""

    def token_text(self, token: int) -> str:
        """The text in the vocabulary of a token."""

    @property
    def control_ids(self) -> frozenset[int]:
        """Tokens that are never text (CONTROL)."""

    @property
    def user_defined(self) -> Mapping[int, str]:
        """USER_DEFINED tokens and their text."""

    @property
    def bos_id(self) -> int | None:
        """The token that begins a sequence, if there is one."""

    @property
    def adds_bos(self) -> bool:
        """Whether the model expects BOS before everything."""

    @property
    def adds_space(self) -> bool:
        """Whether each encode call puts a space before text (SentencePiece)."""


class ContentTokenizer:
    """Text to token ids as data (values.Tokenizer): never a control token, never a marker of the template."""

    def __init__(self, vocabulary: Vocabulary, scaffold: Sequence[str] = ()) -> None:
        """`scaffold`: the template, and pieces that it rendered, as it may build markers from parts."""
        self._vocabulary = vocabulary
        shown = "\n".join((*FALLBACK_MARKERS, *scaffold))
        markers = {
            token: text
            for token, text in vocabulary.user_defined.items()
            if len(text) > 1 and not text.isspace() and (text in shown or _MARKER_SHAPE.fullmatch(text))
        }
        self.forbidden = vocabulary.control_ids | frozenset(markers)
        self._markers = _occurrences(markers.values())
        kept = [text for token, text in vocabulary.user_defined.items() if token not in markers and text]
        self._kept = _alternatives(kept) if vocabulary.adds_space else None
        self._controls: re.Pattern[str] | None = None
        self._known = lru_cache(N_KNOWN)(self._tokens)

    def __call__(self, text: str, first: bool = True) -> list[int]:
        """Token ids of `text`; `first`: it begins a text, so SentencePiece's space stays.

        Raises ModelError when the vocabulary gives control tokens even for single characters.
        """
        return list((self._known if len(text) <= SHORT_CHARACTERS else self._tokens)(text, first))

    def _tokens(self, text: str, first: bool) -> Sequence[int]:
        tokens = self._encode(self._pieces(text, self._markers), first)
        if self.forbidden.isdisjoint(tokens):
            return tokens
        if self._controls is None:  # plain merges can spell a control token in some vocabularies
            self._controls = _occurrences(self._vocabulary.token_text(token) for token in self.forbidden)
        tokens = self._encode(self._pieces(text, self._markers, self._controls), first)
        if self.forbidden.isdisjoint(tokens):
            return tokens
        tokens = self._encode(list(text), first)
        self.check(tokens)
        return tokens

    def check(self, tokens: Sequence[int]) -> None:
        """Raises ModelError when a forbidden token is among content tokens."""
        if not self.forbidden.isdisjoint(tokens):
            token = next(token for token in tokens if token in self.forbidden)
            raise ModelError(
                f"token {token} ({self._vocabulary.token_text(token)!r}) would stand inside a document"
            )

    def _pieces(self, text: str, *markers: re.Pattern[str] | None) -> list[str]:
        """The text, cut after the first character of every marker, so that none is left whole, and after
        other added tokens where the tokenizer would put a space behind them.
        """
        cuts = {
            match.start() + 1
            for pattern in markers
            if pattern is not None
            for match in pattern.finditer(text)
        }
        if self._kept is not None:
            cuts.update(match.end() for match in self._kept.finditer(text))
        edges = [0, *sorted(cuts), len(text)]
        return [text[a:b] for a, b in pairwise(edges) if a < b]

    def _encode(self, pieces: Sequence[str], first: bool) -> list[int]:
        tokens: list[int] = []
        for i, piece in enumerate(pieces):
            tokens += encode_joined(self._vocabulary, self._vocabulary.encode_plain, piece, first and i == 0)
        return tokens


def _occurrences(markers: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that matches, empty, wherever a marker starts; None without markers."""
    pattern = _alternatives([text for text in markers if len(text) > 1])
    return re.compile(f"(?={pattern.pattern})") if pattern is not None else None


def _alternatives(texts: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern that matches any of the texts, the longest first; None without texts."""
    longest_first = sorted(set(texts), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, longest_first))) if longest_first else None


def encode_joined(vocabulary: Vocabulary, encode: Encode, text: str, first: bool) -> list[int]:
    """Token ids of text that continues earlier text unless `first`: without the space SentencePiece adds."""
    if not text:
        return []
    if first or not vocabulary.adds_space:
        return list(encode(text))
    for lone in _LONE:
        lead, tokens = list(encode(lone)), list(encode(lone + text))
        if lead and tokens[: len(lead)] == lead:
            return tokens[len(lead) :]
    return list(encode(text.removeprefix(" ")))


@dataclass(frozen=True, slots=True)
class Layout:
    """A prompt's tokens and where content stands in them, as half-open token ranges in order."""

    tokens: tuple[int, ...]
    content: tuple[tuple[int, int], ...]


def lay_out(rendered: Rendered, vocabulary: Vocabulary, content: ContentTokenizer) -> Layout:
    """Tokens with exactly one BOS where the model wants one or the template writes one, none elsewhere.

    Raises ModelError when a special token would stand inside content.
    """
    tokens: list[int] = []
    spans: list[tuple[int, int]] = []
    for part in rendered.parts:
        start = len(tokens)
        if part.is_content:
            tokens += content(part.text, first=not tokens)
            spans.append((start, len(tokens)))
        else:
            tokens += encode_joined(vocabulary, vocabulary.encode_special, part.text, first=not tokens)
    bos = vocabulary.bos_id
    if bos is not None:
        first_content = spans[0][0] if spans else len(tokens)
        n_bos = next((i for i in range(first_content) if tokens[i] != bos), first_content)
        n_wanted = 1 if n_bos or vocabulary.adds_bos else 0
        tokens[:n_bos] = [bos] * n_wanted
        spans = [(start + n_wanted - n_bos, end + n_wanted - n_bos) for start, end in spans]
    for start, end in spans:
        content.check(tokens[start:end])
    return Layout(tuple(tokens), tuple(spans))


def assemble(
    rendered: Rendered, vocabulary: Vocabulary, content: ContentTokenizer, tags: ThinkingTags = DEFAULT_TAGS
) -> Prompt:
    """The prompt ready for decoding; thinking_open when the scaffold's end opens a thinking block."""
    tail = rendered.parts[-1] if rendered.parts else None
    is_open = tail is not None and not tail.is_content and starts_open(tail.text, tags)
    layout = lay_out(rendered, vocabulary, content)
    closing = tuple(encode_joined(vocabulary, vocabulary.encode_special, f"{tags.close}\n\n", first=False))
    return Prompt(layout.tokens, is_open, rendered.notices, layout.content, closing if is_open else ())
