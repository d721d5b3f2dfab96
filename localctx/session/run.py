"""One verb on its way through the steps: what every step needs, and what it leaves for the answer."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from localctx.document import Document
from localctx.document.cache import NOT_KEPT
from localctx.engine.embedder import EmbedderFile
from localctx.engine.reranker import RerankerFile
from localctx.index.vectors import BlockVectors
from localctx.session.answer import Timings
from localctx.session.carried import Carried
from localctx.session.decoding import Decoded
from localctx.session.dialogue import Dialogue
from localctx.session.events import Listener, Notice
from localctx.session.prompts import question_task
from localctx.session.provenance import Pulled
from localctx.session.reading import Passage, Reading
from localctx.session.structured import AnswerSchema, answer_schema
from localctx.settings import Settings
from localctx.values import Context, Message, Model, Prompt, Request, Sampling

__all__ = ["Run", "start"]


@dataclass(slots=True)
class Run:
    """`started`: time.perf_counter() when the verb was called · limit: the largest context it may use ·
    pulled: what was read because a passage refers to it · blocks: running numbers of those to attend to,
    where the caller knows better than any selector · embedder: or why there is none, in words; None: nobody
    asked for one · reranker: judges the best passages again · selection: how passages were chosen, for the
    answer · schema: what the answer has to fulfil · dialogue: what was said before · likeness: how like the
    question spans of a passage's text are, where its tokens have vectors · vectors: of each document, by
    embedder, found once for all questions on a reading.
    """

    readings: list[Reading]
    model: Model
    settings: Settings
    listen: Listener
    limit: int
    started: float
    timings: Timings = field(default_factory=Timings)
    warnings: list[str] = field(default_factory=list)
    n_evaluated: int = 0
    n_restored: int = 0
    n_generated: int = 0
    pulled: list[Pulled] = field(default_factory=list)
    blocks: tuple[int, ...] | None = None
    embedder: EmbedderFile | str | None = None
    reranker: RerankerFile | None = None
    selection: dict[str, object] | None = None
    schema: AnswerSchema | None = None
    dialogue: Dialogue | None = None
    likeness: Callable[[Passage, Sequence[tuple[int, int]]], Sequence[float]] | None = None
    vectors: dict[tuple[str, str], list[BlockVectors]] = field(default_factory=dict)
    _unheard: list[str] = field(default_factory=list)

    @property
    def stored_limit(self) -> int:
        """The largest context that stored KV is put into: inside the trained length nothing is scaled."""
        return min(self.limit, self.model.info.n_ctx_train or self.limit)

    @property
    def turns(self) -> tuple[Message, ...] | None:
        """The earlier turns that stand before the question; None outside of a conversation."""
        return None if self.dialogue is None else self.dialogue.turns

    @property
    def carried(self) -> Carried | None:
        """In a conversation, what the context of the question before left."""
        return None if self.dialogue is None else self.dialogue.carried

    def sought(self, question: str) -> str:
        """The question as it would be put alone: what passages are chosen and answers judged by."""
        return question if self.dialogue is None else self.dialogue.sought or question

    @property
    def n_tokens(self) -> int:
        """Tokens of all documents, as far as read."""
        return sum(reading.n_tokens for reading in self.readings)

    @property
    def n_blocks(self) -> int:
        """Blocks of all documents; they are numbered through."""
        return sum(reading.n_blocks for reading in self.readings)

    @property
    def is_told_unkept(self) -> bool:
        """Whether a document says already that nothing can be kept under the root of the store."""
        return any(NOT_KEPT in warning for one in self.readings for warning in one.document.warnings)

    @property
    def language(self) -> str:
        """The first document's language; English where it has none."""
        return self.readings[0].document.language or "en"

    def passage(self, index: int) -> Passage:
        """The block with running number `index`."""
        for reading in self.readings:
            if index < reading.n_blocks:
                return reading.passage(index)
            index -= reading.n_blocks
        raise IndexError(index)

    def tokens_of(self, index: int) -> tuple[int, int, int]:
        """(document, first, end): the block with running number `index` in its document's token stream."""
        for reading in self.readings:
            if index < reading.n_blocks:
                first = reading.first_tokens[index]
                return reading.ordinal, first, first + reading.block_tokens[index]
            index -= reading.n_blocks
        raise IndexError(index)

    def task(self, question: str) -> tuple[str, ...]:
        """What is asked for, in the form that the answer is to have."""
        return question_task(question, None if self.schema is None else self.schema.text)

    def text(self) -> Iterator[str]:
        """All documents' text, in pieces."""
        for reading in self.readings:
            yield from reading.document.text.stream()

    def warn(self, text: str) -> Notice:
        """Keep a warning for the answer and tell it now."""
        self.warnings.append(text)
        return Notice(text)

    def note(self, text: str) -> None:
        """Keep a warning that comes up where nobody can be told; unheard() tells it."""
        self.warnings.append(text)
        self._unheard.append(text)

    def unheard(self) -> Iterator[Notice]:
        """The warnings that were only noted so far."""
        while self._unheard:
            yield Notice(self._unheard.pop(0))

    def request(self, messages: Sequence[Message], max_tokens: int) -> Request:
        """A request under the run's sampling settings; what its template notices becomes a warning."""
        return self.request_of(self.model.prompt(messages), max_tokens)

    def request_of(self, prompt: Prompt, max_tokens: int) -> Request:
        """The same from a prompt that is there already."""
        settings = self.settings
        self.warnings.extend(prompt.notices)
        return Request(
            prompt,
            Sampling(
                temperature=settings.temp,
                top_p=settings.top_p,
                top_k=settings.top_k,
                min_p=settings.min_p,
                seed=settings.seed,
                max_tokens=min(max_tokens, settings.max_tokens),
                grammar=self.schema.grammar if self.schema is not None else "",
            ),
        )

    def count(self, done: Decoded) -> None:
        """Add one request's tokens."""
        self.n_evaluated += done.n_evaluated
        self.n_generated += done.n_generated

    def context(self, n_ctx: int, n_seq: int = 1) -> Context:
        """A context within the limit; its notices become warnings."""
        context = self.model.open_context(min(n_ctx, self.limit), n_seq)
        self.warnings.extend(context.notices)
        return context


def _limit(model: Model, settings: Settings, n_seq: int) -> int:
    """The largest context. Answers from stored KV stay within the trained length, so that a --ctx beyond it
    only says how long documents may be, and no position needs scaling.
    """
    trained = model.info.n_ctx_train
    if settings.strategy == "stream" and settings.ctx and 0 < trained < settings.ctx:
        return min(trained, model.usable_n_ctx(None, n_seq))
    return model.usable_n_ctx(settings.ctx, n_seq)


def start(
    documents: Sequence[Document], model: Model, settings: Settings, listen: Listener, n_seq: int = 1
) -> Run:
    """A run over the documents. Raises UsageError or OutOfMemory for a context that cannot be."""
    cache = settings.cache
    readings = [
        Reading(document, ordinal, cache.block, cache.blocks) for ordinal, document in enumerate(documents)
    ]
    limit = _limit(model, settings, n_seq)
    warnings = list(model.info.notices)
    run = Run(readings, model, settings, listen, limit, time.perf_counter(), warnings=warnings)
    run.schema = answer_schema(settings)
    if settings.strategy == "stream" and (settings.rope_freq_base or settings.rope_scale):
        run.note(
            f"stored KV stays within the {model.info.n_ctx_train:,} tokens that {model.info.name} was trained"
            " for, where scaled RoPE only costs quality"
        )
    return run
