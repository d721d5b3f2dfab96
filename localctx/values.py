"""Values and protocols that cross folders. All frozen; no I/O, no third-party imports.

Offsets count Unicode code points of a document's extracted text and are half-open, [start, end).
`page` is a 1-based index; None where the format has no pages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

__all__ = [
    "Block",
    "BlockKind",
    "CancelToken",
    "Context",
    "CutReason",
    "DeviceShare",
    "FinishReason",
    "Message",
    "Model",
    "ModelInfo",
    "Page",
    "Piece",
    "Progress",
    "Prompt",
    "Request",
    "RopeInfo",
    "Sampling",
    "Scores",
    "Section",
    "Strategy",
    "TextSource",
    "Tokenizer",
]

BlockKind: TypeAlias = Literal["fixed", "adaptive"]
CutReason: TypeAlias = Literal["section", "paragraph", "row", "sentence", "whitespace", "limit", "end"]
FinishReason: TypeAlias = Literal["stop", "length", "cancelled"]
Strategy: TypeAlias = Literal["exact", "stream", "retrieve", "map-reduce", "condense", "count"]
"""How documents were read; `count`: every record by its parser, without the model."""
Progress: TypeAlias = Callable[[int, int], None]
"""Called with (done, total) in the unit the caller names."""


# --- documents and blocks ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Page:
    """One page of a paged document: its 1-based number, printed label, span and text quality in [0, 1]."""

    number: int
    start: int
    end: int
    label: str | None = None
    quality: float = 1.0
    engine: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A heading and what it governs: level 1 is outermost; the span starts at the heading itself."""

    level: int
    title: str
    start: int
    end: int


class TextSource(Protocol):
    """A document's extracted text, addressed by code point, never held in memory whole."""

    @property
    def n_code_points(self) -> int:
        """Length of the text."""

    def read(self, start: int, end: int) -> str:
        """The text of [start, end), clamped to the text's end."""

    def stream(self, start: int = 0, end: int | None = None) -> Iterator[str]:
        """The text in consecutive pieces of bounded size whose concatenation is read(start, end)."""


@dataclass(frozen=True, slots=True)
class Block:
    """A passage: what is selected, cited and summarised. Blocks of a document join back to its text."""

    index: int
    start: int
    end: int
    text: str
    tokens: tuple[int, ...]
    cut: CutReason
    page: int | None = None
    page_label: str | None = None
    heading_path: tuple[str, ...] = ()

    @property
    def n_tokens(self) -> int:
        """Number of tokens of the block's text as part of the whole text."""
        return len(self.tokens)


class Tokenizer(Protocol):
    """Text to token ids, as content: no id of a control token ever results."""

    def __call__(self, text: str, first: bool) -> Sequence[int]:
        """Token ids of `text`; `first` says that it begins the document's text (SentencePiece's space)."""


# --- the engine -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RopeInfo:
    """The rotary settings in force; `type` is llama.cpp's name (none, norm, neox, mrope, vision)."""

    type: str
    scaling: str = "none"
    freq_base: float = 10000.0
    freq_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class DeviceShare:
    """What one device holds of a model and of its last context: layers, and bytes as llama.cpp reports them,
    to 0.01 MiB.
    """

    name: str
    layers: int
    weights_bytes: int
    kv_bytes: int


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model before its weights are loaded. Sizes in bytes, per token where named so.
    `devices` is empty until they are.
    """

    name: str
    path: str
    fingerprint: str
    architecture: str
    n_ctx_train: int
    n_layer: int
    n_vocab: int
    size_bytes: int
    kv_bytes_per_token: int
    rope: RopeInfo
    description: str = ""
    notices: tuple[str, ...] = ()
    devices: tuple[DeviceShare, ...] = ()


@dataclass(frozen=True, slots=True)
class Message:
    """One turn. `content` fragments are data: tokenised one by one, never read as special tokens."""

    role: Literal["system", "user", "assistant"]
    content: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Prompt:
    """Token ids ready for decoding, and what was noticed while rendering them.

    content: the half-open token range of each content fragment, in order · closing: what ends the thinking
    block that is open, where the answer is to begin at once.
    """

    tokens: tuple[int, ...]
    thinking_open: bool = False
    notices: tuple[str, ...] = ()
    content: tuple[tuple[int, int], ...] = ()
    closing: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a token is chosen. temperature 0 is greedy; `stop` is no part of the answer; `grammar` is GBNF."""

    temperature: float = 0.0
    top_p: float = 0.95
    top_k: int = 40
    min_p: float = 0.05
    seed: int = 0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    grammar: str = ""


@dataclass(frozen=True, slots=True)
class Request:
    """One sequence to decode."""

    prompt: Prompt
    sampling: Sampling = field(default_factory=Sampling)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of one request's output. The last piece of a request has `finish_reason`, and it alone.

    `text` is complete UTF-8 text of the answer; `thinking` is text of a thinking block, kept apart.
    Counts are of this request: prompt tokens really computed, and tokens generated so far.
    """

    request: int
    text: str
    thinking: str = ""
    finish_reason: FinishReason | None = None
    n_evaluated: int = 0
    n_generated: int = 0


class CancelToken(Protocol):
    """Asks running work to stop; safe to call from another thread or a signal handler."""

    def cancel(self) -> None:
        """Ask for the stop."""

    @property
    def cancelled(self) -> bool:
        """Whether a stop was asked for."""


class Context(Protocol):
    """A KV cache of `n_ctx` cells shared by up to `n_seq` sequences. Close it before its model."""

    @property
    def n_ctx(self) -> int:
        """Cells of the cache."""

    @property
    def n_seq(self) -> int:
        """Sequences decoded side by side."""

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should know of this context, one line each."""

    def generate(self, requests: Sequence[Request], on_prefill: Progress | None = None) -> Iterator[Piece]:
        """Decode the requests, as many side by side as cells and sequences allow, a freed place being
        taken at once. Pieces of different requests interleave. on_prefill counts prompt tokens over all
        requests. Cancelling ends every open request with finish_reason "cancelled".

        One call is in force at a time: the next one, or close(), ends an earlier one that was left half-way;
        that one's stream then gives the last pieces of its open requests, "cancelled", if it is asked on.

        Raises UsageError when one request alone does not fit n_ctx.
        """

    def cancel(self) -> None:
        """Stop generate() soon (within one batch on GPUs, sooner on the CPU)."""

    def close(self) -> None:
        """Free the cache."""


class Model(Protocol):
    """A model's tokenizer and chat template at once, its weights when the first context is opened."""

    @property
    def info(self) -> ModelInfo:
        """Facts of the model file."""

    def tokenize(self, text: str, first: bool = True) -> list[int]:
        """Token ids of content (see Tokenizer)."""

    def prompt(self, messages: Sequence[Message]) -> Prompt:
        """Render the chat template round the messages and open the assistant's turn."""

    def usable_n_ctx(self, wanted: int | None = None, n_seq: int = 1) -> int:
        """`wanted` if a context of that many tokens can be opened; without it the longest one that the model
        was trained for and the free memory holds. Loads nothing.

        Raises UsageError beyond the trained length, OutOfMemory when it does not fit.
        """

    def open_context(self, n_ctx: int, n_seq: int = 1, *, n_longest: int | None = None) -> Context:
        """Load the weights if needed and make a context. n_longest: tokens of one sequence at most, where all
        together may have more. Raises OutOfMemory before allocating.
        """

    def close(self) -> None:
        """Free the weights."""


# --- selection --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Scores:
    """One selector's opinion: higher is better, index i is block i; 0 means no evidence."""

    selector: str
    values: tuple[float, ...]
