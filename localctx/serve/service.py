"""What the routes work with: model, worker, documents, limits. Made once, closed once; knows no HTTP."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Self

import numpy as np
from numpy.typing import NDArray

from localctx.document import Named
from localctx.errors import UsageError
from localctx.from_settings import open_document_for
from localctx.registry.selectors import opened_embedder, opened_reranker
from localctx.serve.chats import Chats
from localctx.serve.documents import StoredFile, UploadedFiles
from localctx.serve.gate import Limits
from localctx.serve.keys import KeyRing, Tenant
from localctx.serve.metrics import Metrics
from localctx.serve.questions import Questions
from localctx.serve.tickets import ChatJob, QuestionJob
from localctx.serve.tracing import Tracing
from localctx.serve.worker import Outcomes, Worker
from localctx.session.events import ignore_progress
from localctx.session.opening import index_all
from localctx.session.run import start
from localctx.session.side_by_side import DEFAULT_PARALLEL
from localctx.settings import Settings
from localctx.values import Model

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.engine.embedder import EmbedderFile

__all__ = ["ServeOptions", "Service"]

CHATS = 16
"""Chats decoded side by side where --parallel says nothing."""
MOST_CELLS = 32_768
"""Cells that chats share where --ctx says nothing."""
FOLDER = "serve"


@dataclass(frozen=True, slots=True)
class ServeOptions:
    """n_parallel: chats decoded side by side · n_questions: questions on documents open at a time ·
    max_queue: requests of each kind that wait.
    """

    n_parallel: int = CHATS
    n_questions: int = DEFAULT_PARALLEL
    max_queue: int = 256
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(cls, settings: Settings, max_queue: int, limits: Limits) -> Self:
        """With as many side by side as the settings say, else what is best for most machines."""
        n = settings.parallel
        return cls(n or CHATS, n or DEFAULT_PARALLEL, max_queue, limits)


class Service:
    """Close it after the last request. `post` may be set until start()."""

    def __init__(self, model: Model, settings: Settings, ring: KeyRing, options: ServeOptions) -> None:
        """Opens what chats are decoded in, and with it the weights. Raises what localctx.errors names."""
        self.model, self.settings, self.ring, self.options = model, settings, ring, options
        self.metrics, self.tracing = Metrics(), Tracing()
        self.post: Callable[[Outcomes], None] = lambda outcomes: None
        self._embed_lock = threading.Lock()
        with ExitStack() as stack:
            self.files = UploadedFiles(self._root(stack))
            self.files.tidy()
            # Two of each: one for the worker's thread, one for /v1/embeddings.
            self.embedder = stack.enter_context(opened_embedder(settings))
            finder = stack.enter_context(opened_embedder(settings))
            reranker = stack.enter_context(opened_reranker(settings))
            chats = Chats(model, self._n_ctx(), options.n_parallel)
            self.n_ctx = chats.n_ctx
            questions = Questions(model, self.settings_of, options.n_questions, finder, reranker)
            self.worker = Worker(
                {ChatJob: chats, QuestionJob: questions},
                ring.tenants,
                self._told,
                max_queue=options.max_queue,
            )
            self._resources = stack.pop_all()

    def _told(self, outcomes: Outcomes) -> None:
        self.post(outcomes)

    def _root(self, stack: ExitStack) -> Path:
        root = self.settings.store_root
        if root is None:
            return Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="localctx-serve-")))
        return root / FOLDER

    def _n_ctx(self) -> int:
        n_parallel = self.options.n_parallel
        if self.settings.ctx is not None:
            return self.model.usable_n_ctx(self.settings.ctx, n_parallel)
        return min(MOST_CELLS, self.model.usable_n_ctx(None, n_parallel))

    def close(self) -> None:
        """End what is open, free everything but the model."""
        self.worker.close()
        self._resources.close()

    # --- documents ------------------------------------------------------------------------------------

    def settings_of(self, tenant: Tenant) -> Settings:
        """The server's settings with the tenant's own store."""
        if self.settings.store_root is None:
            return self.settings
        limit_bytes, n_tenants = self.settings.store_limit_bytes, len(self.ring.tenants)
        limit = None if limit_bytes is None else str(max(1, limit_bytes // n_tenants))
        return replace(self.settings, store=str(self.files.store_root(tenant)), store_limit=limit)

    def upload(self, tenant: Tenant, content: BinaryIO, filename: str, purpose: str) -> StoredFile:
        """Take a document, read it whole, keep it: as long as reading takes. Raises InputError, OSError."""
        written = self.files.write(tenant, content, filename, purpose)
        settings = self.settings_of(tenant)
        try:
            with open_document_for(Named(str(written.path), filename), settings) as document:
                # Read here, and kept, what a question would else stop the decoding thread for.
                index_all(start([document], self.model, settings, ignore_progress)).close()
                read = replace(
                    written,
                    text_hash=document.content_hash,
                    n_pages=len(document.pages),
                    n_characters=document.text.n_code_points,
                )
            self.files.add(read)
        except BaseException:
            self.files.drop(written)
            raise
        return read

    def open_documents(self, tenant: Tenant, names: Sequence[str]) -> list[tuple[StoredFile, Document]]:
        """The tenant's files, open, under names of their own; whoever asks closes them. Raises NoSuchFile,
        InputError.
        """
        files = [self.files.get(tenant, name) for name in dict.fromkeys(names)]
        settings, taken = self.settings_of(tenant), set[str]()
        found: list[tuple[StoredFile, Document]] = []
        with ExitStack() as opened:
            for file in files:
                name = file.filename if file.filename not in taken else f"{file.filename} ({file.id})"
                taken.add(name)
                document = open_document_for(Named(str(file.path), name), settings)
                found.append((file, opened.enter_context(document)))
            opened.pop_all()
        return found

    # --- embeddings -----------------------------------------------------------------------------------

    @contextmanager
    def _embedding(self) -> Iterator[EmbedderFile]:
        file = self.embedder
        if file is None or isinstance(file, str):
            raise UsageError(file or "the server has no embedder", "localctx models pull all-minilm-l6-v2")
        with self._embed_lock:
            yield file

    @property
    def embedder_name(self) -> str | None:
        """What /v1/embeddings knows the embedder by; None without one."""
        return None if self.embedder is None or isinstance(self.embedder, str) else self.embedder.name

    def embed(self, texts: Sequence[str]) -> tuple[NDArray[np.float32], int]:
        """Vectors [n, dim] of length 1, and the texts' tokens. Raises UsageError without an embedder."""
        with self._embedding() as file:
            embedder = file.open()
            return embedder.vectors(texts), sum(map(embedder.n_tokens, texts))
