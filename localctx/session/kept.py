"""The runs at hand: in the store, and in memory where there is no store or it fails. Knows no engine.

A store that cannot be used, or not any further, is told once; the work goes on without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Self, TypeAlias

from localctx import _native
from localctx.kv import KVSource
from localctx.session.loaded_runs import LoadedRuns
from localctx.session.run import Run
from localctx.session.speeds import Speeds
from localctx.session.token_stream import TokenStream, TokenStreams
from localctx.settings import Settings
from localctx.store import DocumentIdentity, KVStore, RunWriter, StoredRun, StoreUnusable

__all__ = ["Keep", "Kept", "kept_or_opened"]

Keep: TypeAlias = Callable[[int, bytes], None]
"""Takes the encoded run with this number of a stream; called from one thread at a time."""
PREFIX_KIND = "prefix"


class Kept:
    """Close it when the work is done: runs that were read stay valid until then.

    `warn` is told, once, that the store is not used. Without a folder everything is kept in memory.
    """

    def __init__(
        self,
        folder: Path | None,
        warn: Callable[[str], None],
        *,
        has_store: bool = True,
        limit_bytes: int | None = None,
        is_told: bool = False,
    ) -> None:
        """is_told: that nothing can be kept there was said already."""
        self.warn = warn
        self._is_told = is_told
        self._stack = ExitStack()
        self._memory: dict[bytes, _native.Run] = {}
        self._loaded = LoadedRuns()
        self.speeds = Speeds(self.facts, self.set_fact)
        self.streams = TokenStreams()
        self._store: KVStore | None = None
        self.failure: StoreUnusable | None = None
        if has_store:
            try:
                self._store = KVStore.open(folder, limit_bytes, warn=warn)
            except StoreUnusable as error:
                self._give_up(error)

    @classmethod
    def of_settings(cls, settings: Settings, warn: Callable[[str], None], *, is_told: bool = False) -> Self:
        """With the store that the settings name, or in memory alone."""
        root = settings.store_root
        limit_bytes = settings.store_limit_bytes
        return cls(root, warn, has_store=root is not None, limit_bytes=limit_bytes, is_told=is_told)

    def close(self) -> None:
        """Let go of what was read, and close the store."""
        self._loaded.close()
        self._stack.close()
        if self._store is not None:
            self._store.close()
            self._store = None

    @property
    def store(self) -> KVStore | None:
        """The store; None where there is none, or none any more."""
        return self._store

    @property
    def can_write(self) -> bool:
        """Whether what is prefilled now will be there for the next process."""
        return self._store is not None and not self._store.is_read_only and self.failure is None

    # --- runs -----------------------------------------------------------------------------------------

    def has(self, ids: Sequence[bytes], codec: str | None = None) -> set[bytes]:
        """Those of the ids whose runs are at hand, in `codec` or in any."""
        held = {run_id for run_id in self._memory.keys() & set(ids) if self._in_memory(run_id, codec)}
        rest = [run_id for run_id in ids if run_id not in held] if held else ids
        if self._store is None or not rest:
            return held
        try:
            return held | self._store.which(rest, codec)
        except StoreUnusable as error:
            self._give_up(error)
            return held

    def n_leading(self, ids: Sequence[bytes], codec: str | None = None) -> int:
        """How many of the first runs are at hand without a gap."""
        there = self.has(ids, codec)
        return next((place for place, run_id in enumerate(ids) if run_id not in there), len(ids))

    def load(self, ids: Sequence[bytes], codec: str | None = None) -> set[bytes]:
        """Have runs ready for run(); those of the ids that are. Damage is told, and is not among them."""
        self.begin_loading(ids, codec)
        self.wait()
        return {run_id for run_id in ids if self._ready(run_id, codec) is not None}

    def begin_loading(self, ids: Sequence[bytes], codec: str | None = None) -> None:
        """load() without waiting: source() has what is being read, run() waits for it."""
        wanted = [run_id for run_id in dict.fromkeys(ids) if self._ready(run_id, codec) is None]
        if self._store is not None and wanted:
            try:
                self._loaded.begin(self._store, wanted, codec)
            except StoreUnusable as error:
                self._give_up(error)

    def begin_question(self) -> None:
        """Let go of what was loaded long ago; what the question needs of it is loaded again."""
        self._loaded.let_go_of_old()

    def wait(self) -> None:
        """Until all that is being read is there."""
        try:
            self._loaded.wait()
        except StoreUnusable as error:
            self._give_up(error)

    def run(self, run_id: bytes) -> _native.Run | None:
        """A run that was loaded or is in memory; one that is being read is waited for."""
        return self._ready(run_id, None)

    def source(self, run_id: bytes) -> KVSource | None:
        """run() without waiting."""
        return self._memory.get(run_id) or self._loaded.source(run_id)

    def encoding_of(self, run_id: bytes) -> bytes:
        """What tells the run at hand from any other encoding of it."""
        run = self._memory.get(run_id)
        if run is None and (name := self._loaded.name_of(run_id)) is not None:
            return name
        run = run or self._loaded.get(run_id)
        return (
            b"" if run is None else f"{run.codec} {run.head_group} {run.max_error} {run.n_outliers}".encode()
        )

    def _ready(self, run_id: bytes, codec: str | None) -> _native.Run | None:
        for runs in (self._memory, self._loaded):
            run = runs.get(run_id)
            if run is not None and codec in (None, run.codec):
                return run
        return None

    def _in_memory(self, run_id: bytes, codec: str | None) -> bool:
        return (run := self._memory.get(run_id)) is not None and codec in (None, run.codec)

    @contextmanager
    def keeping(
        self,
        document: DocumentIdentity,
        stream: TokenStream,
        *,
        is_cancelled: Callable[[], bool] | None = None,
        on_wait: Callable[[], None] | None = None,
    ) -> Iterator[Keep]:
        """Where the stream's new runs go. Leaving commits them; what the store does not take stays here."""
        with ExitStack() as stack:
            writer = None
            if self._store is not None and self.failure is None:  # one that can only be read says so
                try:
                    writing = self._store.writing(
                        document, stream.named_ids, is_cancelled=is_cancelled, on_wait=on_wait
                    )
                    writer = stack.enter_context(writing)
                except StoreUnusable as error:
                    self._give_up_writing(error)
            yield self._keeper(stream, writer)
            try:
                stack.close()
            except StoreUnusable as error:
                self._give_up_writing(error)
            if writer is not None:
                self._memory.update({run_id: _native.Run(data) for run_id, data in writer.untaken.items()})

    def _keeper(self, stream: TokenStream, writer: RunWriter | None) -> Keep:
        def keep(number: int, data: bytes) -> None:
            run, run_id = _native.Run(data), stream.ids[number]
            if writer is not None and self.failure is None:
                try:
                    writer.add(
                        stream.first_ordinal + number,
                        run_id,
                        data,
                        n_tokens=run.n_tokens,
                        codec=run.codec,
                        max_error=run.max_error,
                    )
                except StoreUnusable as error:
                    self._give_up_writing(error)
                else:
                    return
            self._memory[run_id] = run

        return keep

    def stored(self, ids: Sequence[bytes], codec: str | None = None) -> list[StoredRun]:
        """The runs that the store holds in `codec`, or in the encoding it would give."""
        return [] if self._store is None else list(self._store.lookup(ids, codec).values())

    def others(self, text_hash: str, stream: TokenStream) -> list[str]:
        """In words, what stored KV of the same text was made with, where that is something else."""
        if self._store is None:
            return []
        found = []
        for document in self._store.documents():
            identity = document.identity
            if identity.text_hash != text_hash or not document.n_tokens_stored:
                continue
            if identity.space.model != stream.space.model:
                found.append(f"it is of another model ({identity.model})")
            elif (identity.space.rope, identity.space.prefix) != (stream.space.rope, stream.space.prefix):
                found.append("it was made with other rotary settings or another prefix")
            elif identity.policy.kind != "lazy" and identity.policy != stream.policy:
                made = identity.policy
                beside = made.beside_window
                found.append(f"it was made with policy {made.kind}, window {made.window:,}{beside}")
        return list(dict.fromkeys(found))

    # --- the prefix -----------------------------------------------------------------------------------

    def load_prefix(self, stream: TokenStream) -> bool:
        """Have the prefix's runs ready for run(); False where they are not kept."""
        wanted = {run_id.hex(): run_id for run_id in stream.ids if self.run(run_id) is None}
        if self._store is not None and wanted:
            try:
                found = self._stack.enter_context(self._store.reading_artifacts(PREFIX_KIND, list(wanted)))
                self._loaded.add({wanted[key]: _native.Run(view) for key, view in found.items()})
            except StoreUnusable as error:
                self._give_up(error)
        return all(self.run(run_id) is not None for run_id in stream.ids)

    def keep_prefix(self, stream: TokenStream, data: Sequence[bytes]) -> None:
        """Keep the prefix's runs, beside all documents."""
        self._memory.update(zip(stream.ids, map(_native.Run, data), strict=True))
        if self.can_write and self._store is not None:
            items = {run_id.hex(): run for run_id, run in zip(stream.ids, data, strict=True)}
            try:
                self._store.put_artifacts(PREFIX_KIND, items)
            except StoreUnusable as error:
                self._give_up_writing(error)

    # --- what is known of a model ---------------------------------------------------------------------

    def facts(self, fingerprint: str) -> dict[str, Any]:
        """What was found out about a model earlier."""
        if self._store is None:
            return {}
        try:
            return self._store.model_facts(fingerprint)
        except StoreUnusable as error:
            self._give_up(error)
            return {}

    def set_fact(self, fingerprint: str, name: str, value: object) -> None:
        """Keep what was found out about a model, where that can be."""
        if self.can_write and self._store is not None:
            try:
                self._store.set_model_fact(fingerprint, name, value)
            except StoreUnusable as error:
                self._give_up_writing(error)

    def _give_up(self, error: StoreUnusable) -> None:
        """Go on without the store."""
        self._give_up_writing(error)
        self._store = None

    def _give_up_writing(self, error: StoreUnusable) -> None:
        """Go on without writing to the store; told once."""
        if self.failure is None:
            hint = f" ({error.hint})" if error.hint else ""
            if not self._is_told:
                self.warn(f"{error.message}{hint}; what is computed now is not kept")
            self.failure = error


@contextmanager
def kept_or_opened(run: Run, kept: Kept | None) -> Iterator[Kept]:
    """`kept`, which stays open, or the store of the run's settings."""
    if kept is not None:
        yield kept
        return
    opened = Kept.of_settings(run.settings, run.note, is_told=run.is_told_unkept)
    try:
        yield opened
    finally:
        opened.close()
