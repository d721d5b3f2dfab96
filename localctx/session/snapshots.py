"""Whole states, for models whose KV cannot be cut: the state after prefix and documents is kept, so that a
second question evaluates only itself.

A state serves prompts that begin with exactly its tokens. Its bytes are llama.cpp's own affair: its name says
what they depend on, and what is refused all the same is a miss. Knows no layout.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import blake2b
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from localctx.byte_sizes import format_bytes
from localctx.engine.memory import available
from localctx.errors import ModelError
from localctx.kv import KVSpace
from localctx.session.announce import MUCH_BYTES
from localctx.session.cache import EXACT
from localctx.session.events import Event, Notice
from localctx.session.events import Progress as Step
from localctx.session.kept import Kept
from localctx.session.opening import timed
from localctx.session.prefill import document_identity
from localctx.session.run import Run
from localctx.store import WHOLE_STATE, DocumentIdentity, KVStore, StoreUnusable, artifacts, joined
from localctx.values import Context, Progress

__all__ = ["Filled", "SnapshotContext", "WholeState"]

KIND = "snapshot"
PIECE_BYTES = 64 << 20
"""A state is kept in pieces of this size, since a file of the store takes 256 MB."""
PIECES_BYTES = 4
"""Of the number of pieces, which is kept under the state's own name."""
IsWanted: TypeAlias = Callable[[int], bool]


@runtime_checkable
class SnapshotContext(Context, Protocol):
    """A context whose whole state can be saved and put back."""

    @property
    def state_space(self) -> str:
        """What a state depends on beside the model and the tokens."""

    def check_snapshots(self) -> None:
        """Raises NotComposable, in words that follow the model's name, where states cannot be put back."""

    def snapshot(
        self, tokens: Sequence[int], on_progress: Progress | None = None, is_wanted: IsWanted = ...
    ) -> NDArray[np.uint8] | None:
        """Evaluate the tokens in an empty cache and return its state; None when cancelled, empty where
        is_wanted(bytes) is False.
        """

    def restore_snapshot(self, tokens: Sequence[int], blob: NDArray[np.uint8]) -> None:
        """Make the cache hold the tokens. Raises ModelError for a state that it does not take."""


@dataclass(frozen=True, slots=True)
class Filled:
    """What was done so that a cache holds the tokens. size_bytes: of the kept state, 0 where none is."""

    n_evaluated: int = 0
    n_restored: int = 0
    size_bytes: int = 0
    is_cancelled: bool = False


@dataclass(frozen=True, slots=True)
class WholeState:
    """What a context holds after `tokens`: the prompt's beginning, up to the end of all documents."""

    run: Run
    kept: Kept
    tokens: tuple[int, ...]

    def fill(self, context: SnapshotContext) -> Generator[Event, None, Filled]:
        """Have the tokens in the context, from the kept state where there is one; else keep it, if possible.

        Raises NotComposable where llama.cpp cannot put this model's states back, after which the context is
        empty; ModelError when a step fails.
        """
        run, name = self.run, self._name(context)
        with timed(run.timings, "assemble_ms"):
            size_bytes = self._restore(context, name)
        if size_bytes:
            run.n_restored += len(self.tokens)
            return Filled(n_restored=len(self.tokens), size_bytes=size_bytes)
        if self.kept.store is None or not self.kept.can_write:
            return Filled()
        yield from self._announce()
        with timed(run.timings, "prefill_ms"):
            context.check_snapshots()
            blob = context.snapshot(self.tokens, self._progress, self._has_room)
        if blob is None:
            return Filled(is_cancelled=True)
        run.n_evaluated += len(self.tokens)
        with timed(run.timings, "assemble_ms"):
            size_bytes = len(blob) if len(blob) and self._save(name, blob) else 0
        if size_bytes:
            kept = f"{format_bytes(size_bytes)} of state after {len(self.tokens):,} tokens is kept"
            yield Notice(f"{kept} for further questions on the same documents")
        yield from run.unheard()
        return Filled(n_evaluated=len(self.tokens), size_bytes=size_bytes)

    # --- inside ---------------------------------------------------------------------------------------

    def _name(self, context: SnapshotContext) -> str:
        """The state's name: a hash of all that its bytes depend on."""
        hasher = blake2b(digest_size=16, person=b"snapshot")
        hasher.update(f"{self.run.model.info.fingerprint}\n{context.state_space}\n".encode())
        hasher.update(np.array(self.tokens, "<i4").tobytes())
        return hasher.hexdigest()

    def _identity(self) -> DocumentIdentity:
        """The documents as the store knows them."""
        info = self.run.model.info
        space = KVSpace(info.fingerprint, WHOLE_STATE, ())
        documents = [reading.document for reading in self.run.readings]
        identities = [document_identity(document, info.name, space, EXACT, 0) for document in documents]
        return joined(identities, len(self.tokens))

    def _restore(self, context: SnapshotContext, name: str) -> int:
        """Put the kept state back; its bytes, 0 where there is none. One that is refused is forgotten."""
        store = self.kept.store
        if store is None:
            return 0
        try:
            blob = _read(store, name)
            if blob is None:
                return 0
            try:
                context.restore_snapshot(self.tokens, blob)
            except ModelError as error:
                self.run.note(f"a kept state does not serve and is made again: {error.message}")
                if not store.is_read_only:
                    artifacts.drop_of(store, KIND, self._identity().key)
                return 0
            store.touch(self._identity().key)
        except StoreUnusable as error:
            self.run.note(f"{error.message}; kept states are not used")
            return 0
        return len(blob)

    def _save(self, name: str, blob: NDArray[np.uint8]) -> bool:
        """Keep a state instead of any other of the same documents; whether that was possible."""
        store = self.kept.store
        if store is None:
            return False
        starts = range(0, len(blob), PIECE_BYTES)
        identity = self._identity()
        try:
            artifacts.drop_of(store, KIND, identity.key)
            for number, start in enumerate(starts):
                items = {f"{name}.{number}": blob[start : start + PIECE_BYTES].tobytes()}
                if number == len(starts) - 1:
                    items[name] = len(starts).to_bytes(PIECES_BYTES, "little")
                store.put_artifacts(KIND, items, identity)
        except StoreUnusable as error:
            with suppress(StoreUnusable):  # the first error says more
                artifacts.drop_of(store, KIND, identity.key)
            self.run.note(f"{error.message}; the state after the documents is not kept")
            return False
        return True

    def _announce(self) -> Generator[Event, None, None]:
        """Said before much is written; how much it is is only known afterwards."""
        most_bytes = len(self.tokens) * self.run.model.info.kv_bytes_per_token
        if most_bytes > MUCH_BYTES:
            yield self.run.warn(
                f"the state after {len(self.tokens):,} tokens takes up to {format_bytes(most_bytes)} of "
                "disk; --store off keeps none"
            )

    def _has_room(self, n_bytes: int) -> bool:
        """Whether a state of n_bytes can be kept, and copied for that."""
        store = self.kept.store
        if store is None:
            return False
        fits = n_bytes <= store.limit_bytes and n_bytes + PIECE_BYTES <= available().ram_bytes
        if not fits:
            self.run.note(
                f"the state after the documents, {format_bytes(n_bytes)}, is too large to be kept "
                f"(the store's limit is {format_bytes(store.limit_bytes)})"
            )
        return fits

    def _progress(self, done: int, total: int) -> None:
        self.run.listen(Step("prefill", done, total, "tokens"))


def _read(store: KVStore, name: str) -> NDArray[np.uint8] | None:
    """A kept state in one piece; None where one of its pieces is missing. Raises StoreUnusable."""
    with store.reading_artifacts(KIND, [name]) as found:
        n_pieces = int.from_bytes(found[name], "little") if name in found else 0
    pieces = [f"{name}.{number}" for number in range(n_pieces)]
    with store.reading_artifacts(KIND, pieces) as found:
        if not pieces or any(piece not in found for piece in pieces):
            return None
        return np.concatenate([np.frombuffer(found[piece], np.uint8) for piece in pieces])
