"""Values of the store: what is asked for, what is kept, what was found. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from localctx.kv import KVSpace, PrefillPolicy
from localctx.store.identity import document_key

__all__ = [
    "WHOLE_STATE",
    "DocumentIdentity",
    "GcReport",
    "StoredDocument",
    "StoredRun",
    "VerifyReport",
    "joined",
]

HASH_SEPARATOR, NAME_SEPARATOR, PATH_SEPARATOR = "+", " + ", "\n"
"""Between those of documents that are kept as one; neither hashes nor displayable paths hold theirs."""
WHOLE_STATE = "whole state"
"""A space's `rope` where the model's whole state is kept instead of runs."""


@dataclass(frozen=True, slots=True)
class DocumentIdentity:
    """A document whose KV is written: one text, or several as one, under one space and policy.

    name: as shown · text_hash, n_bytes: of its UTF-8 text · n_tokens: of the whole document · model: the
    model's name as shown · path: the absolute path, made displayable; "" for standard input.
    """

    space: KVSpace
    policy: PrefillPolicy
    text_hash: str
    n_tokens: int
    name: str
    n_bytes: int = 0
    model: str = ""
    path: str = ""

    @property
    def key(self) -> str:
        """The document's name in the store, 32 hex digits."""
        return document_key(self.space, self.policy, self.text_hash)

    @property
    def is_state(self) -> bool:
        """Whether the model's whole state after it is kept, and no runs."""
        return self.space.rope == WHOLE_STATE

    @property
    def text_hashes(self) -> tuple[str, ...]:
        """Hashes of the texts: several for documents that are kept as one."""
        return tuple(self.text_hash.split(HASH_SEPARATOR))

    @property
    def paths(self) -> tuple[str, ...]:
        """Absolute paths, as many as there are texts."""
        return tuple(self.path.split(PATH_SEPARATOR))


def joined(identities: Sequence[DocumentIdentity], n_tokens: int) -> DocumentIdentity:
    """Documents that were prefilled as one stream of n_tokens, of one space and policy; at least one."""
    return replace(
        identities[0],
        text_hash=HASH_SEPARATOR.join(one.text_hash for one in identities),
        n_tokens=n_tokens,
        name=NAME_SEPARATOR.join(one.name for one in identities),
        n_bytes=sum(one.n_bytes for one in identities),
        path=PATH_SEPARATOR.join(one.path for one in identities),
    )


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document as the catalogue knows it; times are seconds since 1970.

    n_tokens_stored: tokens whose KV is kept in runs, each once, in whatever encoding and lazy grid ·
    size_bytes: of all its runs and derived files, those shared with other documents included.
    """

    identity: DocumentIdentity
    n_tokens_stored: int
    n_runs: int
    size_bytes: int
    codecs: tuple[str, ...]
    created: float
    last_used: float

    @property
    def key(self) -> str:
        """The document's name in the store, 32 hex digits."""
        return self.identity.key

    @property
    def share_stored(self) -> float:
        """Stored tokens as a share of the document's, from 0 to 1."""
        return self.n_tokens_stored / self.identity.n_tokens if self.identity.n_tokens else 1.0


@dataclass(frozen=True, slots=True)
class StoredRun:
    """Where one encoding of a run lies. max_error: of keys and values, as the encoder measured it."""

    id: bytes
    codec: str
    segment: str
    offset: int
    size_bytes: int
    n_tokens: int
    checksum: bytes
    max_error: tuple[float, float]


@dataclass(frozen=True, slots=True)
class GcReport:
    """What tidying did. freed_bytes: on disk, without what readers still hold open."""

    n_runs_removed: int
    n_segments_removed: int
    n_segments_rewritten: int
    n_leftovers_removed: int
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class VerifyReport:
    """What a full check found.

    problems: one line each, empty when all is well · n_dropped: damaged entries that were taken out ·
    n_leftovers: files of killed writers, harmless, swept by the next writer or gc.
    """

    n_documents: int
    n_segments: int
    n_runs: int
    n_artifacts: int
    size_bytes: int
    problems: tuple[str, ...]
    n_dropped: int
    n_leftovers: int

    @property
    def is_clean(self) -> bool:
        """Whether everything that is kept is what was written."""
        return not self.problems
