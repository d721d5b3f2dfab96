"""The ways of answering a question about one document that `bench compare` sets beside each other.

    dense               llama.cpp alone: the whole document and the question evaluated
    dense, state file   the same, the document from a file of llama_state_seq_save_file()
    text                passages chosen as localctx chooses them, their text evaluated
    text, headers       the same, each led by its header line
    map-reduce          the question put to every part of the document, then to the answers of the parts
    exact               localctx, the whole document from the store
    stream, refresh=R   localctx, chosen passages from the store
    lazy                localctx, from an empty store: what the question needs is prefilled

Each has the document read, cut and searchable, and the model loaded; each opens a context of its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from localctx.bench.ask_session import session
from localctx.bench.meters import Meter, Taken
from localctx.engine.llama_context import LlamaContext
from localctx.errors import Interrupted, LocalctxError, ModelError
from localctx.index import LexicalIndex
from localctx.selection import says_not_found
from localctx.session.answer import Answer, Support
from localctx.session.ask import answered
from localctx.session.attending import documents_end
from localctx.session.decoding import Decoded, decode_many, decode_one
from localctx.session.events import Finished, result_of
from localctx.session.filling import Filling, retrieved, whole
from localctx.session.prompts import NOT_FOUND, document_messages, question_task
from localctx.session.run import Run
from localctx.session.strategy import round_n_ctx
from localctx.values import Context, Prompt

__all__ = ["WAYS", "Asked", "Saved", "Ways"]

DENSE, STATE_FILE, TEXT, HEADERS = "dense", "dense, state file", "text", "text, headers"
MAP_REDUCE, EXACT, AT_ZERO, AT_AUTO, LAZY = (
    "map-reduce", "exact", "stream, refresh=0", "stream, refresh=auto", "lazy",
)  # fmt: skip
WAYS = (DENSE, STATE_FILE, TEXT, HEADERS, MAP_REDUCE, EXACT, AT_ZERO, AT_AUTO, LAZY)
PART_TOKENS = 2048
"""Of a part that map-reduce reads."""
MAP_PARALLEL = 4


@dataclass(frozen=True, slots=True)
class Asked:
    """One answer. first_token_s, seconds: from the question to the first token, and to the judged answer ·
    kept_bytes: on disk afterwards, where this answer decides it.
    """

    text: str
    support: Support
    first_token_s: float
    seconds: float
    n_evaluated: int
    n_restored: int
    n_generated: int
    taken: Taken = field(default_factory=Taken)
    kept_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """What stands ready before any question: the state's file, the tokens it holds, stores by strategy."""

    state_file: Path | None
    state_tokens: tuple[int, ...]
    exact_store: Path | None
    stream_store: Path | None


class Ways:
    """Asks in each way. `run` has read the document, whose words `index` searches; folder: for copies."""

    def __init__(self, run: Run, index: LexicalIndex, saved: Saved, folder: Path) -> None:
        self._run, self._index, self._saved, self._folder = run, index, saved, folder

    def ask(self, way: str, question: str) -> Asked:
        """Raises what sessions raise, and Interrupted."""
        by_name: dict[str, Callable[[str], Asked]] = {
            DENSE: self._dense,
            STATE_FILE: self._from_state_file,
            TEXT: lambda text: self._from_text(text, has_headers=False),
            HEADERS: lambda text: self._from_text(text, has_headers=True),
            MAP_REDUCE: self._map_reduced,
            EXACT: lambda text: self._kept(text, self._saved.exact_store, "exact", ""),
            AT_ZERO: lambda text: self._kept(text, self._saved.stream_store, "stream", "refresh=0"),
            AT_AUTO: lambda text: self._kept(text, self._saved.stream_store, "stream", "refresh=auto"),
            LAZY: self._lazy,
        }
        with Meter() as meter:
            asked = by_name[way](question)
        return replace(asked, taken=meter.taken)

    def new_run(self, **changed: object) -> Run:
        """The document as read, with counts and timings of their own; the question is put now."""
        run = self._run
        settings = replace(run.settings, **changed)  # type: ignore[arg-type]  # settings by name
        return replace(
            run, settings=settings, started=time.perf_counter(), warnings=[], n_evaluated=0, n_restored=0,
            n_generated=0, timings=type(run.timings)(), pulled=[], selection=None, likeness=None, _unheard=[],
        )  # fmt: skip

    def dense_prompt(self, question: str) -> tuple[Prompt, int]:
        """The whole document and the question; and the tokens up to the document's end. Raises ModelError for
        a template that does not tell.
        """
        messages = document_messages(whole(self._run).fragments, question_task(question))
        prompt = self._run.model.prompt(messages)
        end = documents_end(prompt, messages)
        if end is None:
            raise ModelError("the chat template does not tell where the document ends")
        return prompt, end

    # --- the baselines --------------------------------------------------------------------------------

    def _dense(self, question: str) -> Asked:
        run = self.new_run()
        return self._decoded(run, self.dense_prompt(question)[0])

    def _from_state_file(self, question: str) -> Asked:
        run, tokens, path = self.new_run(), self._saved.state_tokens, self._saved.state_file
        prompt, _ = self.dense_prompt(question)

        def load(context: Context) -> None:
            if not isinstance(context, LlamaContext) or path is None:
                raise ModelError("this backend keeps no state files", "leave that way out")
            context.load_file(path, tokens)

        return replace(self._decoded(run, prompt, load), n_restored=len(tokens))

    def _from_text(self, question: str, *, has_headers: bool) -> Asked:
        run = self.new_run(strategy="retrieve")
        empty = len(run.model.prompt(document_messages((), question_task(question))).tokens)
        room = run.limit - empty - run.settings.max_tokens
        filling = result_of(retrieved(run, self._index, question, room))
        fragments = filling.fragments if has_headers else _without_headers(filling)
        return self._decoded(run, run.model.prompt(document_messages(fragments, question_task(question))))

    def _decoded(self, run: Run, prompt: Prompt, before: Callable[[Context], None] | None = None) -> Asked:
        """The prompt's answer, in a context that holds it."""
        context = run.context(round_n_ctx(len(prompt.tokens) + run.settings.max_tokens))
        try:
            if before is not None:
                before(context)
            request = run.request_of(prompt, run.settings.max_tokens)
            decoded = result_of(decode_one(context, request, run.timings, run.started, run.listen))
        finally:
            context.close()
        return _plain(run, decoded, decoded.n_evaluated, decoded.n_generated)

    def _map_reduced(self, question: str) -> Asked:
        run, task = self.new_run(), question_task(question)
        parts = [run.model.prompt(document_messages([text], task)) for text in self._parts(run)]
        requests = [run.request_of(prompt, run.settings.max_tokens) for prompt in parts]
        longest = round_n_ctx(max(len(one.tokens) for one in parts) + run.settings.max_tokens)
        n_side = max(1, min(MAP_PARALLEL, len(parts), run.limit // longest))
        context = run.context(longest * n_side, n_side)
        try:
            found = sorted(
                decode_many(context, requests, run.timings, run.started), key=lambda one: one.index
            )
        finally:
            context.close()
        _raise_cancelled(found)
        said = [one.text.strip() for one in found if one.text.strip() and not says_not_found(one.text)]
        n_evaluated, n_generated = (sum(getattr(one, name) for one in found) for name in COUNTS)
        answers = ["Answers from parts of the document:\n", "\n".join(said or [NOT_FOUND])]
        reduced = self._decoded(run, run.model.prompt(document_messages(answers, task)))
        return replace(
            reduced,
            n_evaluated=reduced.n_evaluated + n_evaluated,
            n_generated=reduced.n_generated + n_generated,
        )

    def _parts(self, run: Run) -> list[str]:
        """The text in parts of whole blocks."""
        (reading,) = run.readings
        most = min(PART_TOKENS, run.limit // 2)
        starts, n_tokens = [0], 0
        for number, n in enumerate(reading.block_tokens):
            if n_tokens and n_tokens + n > most:
                starts.append(number)
                n_tokens = 0
            n_tokens += n
        ends = [*starts[1:], reading.n_blocks]
        spans = (reading.span(first, end - 1) for first, end in zip(starts, ends, strict=True))
        return [reading.document.read(*span) for span in spans]

    # --- localctx -------------------------------------------------------------------------------------

    def _kept(self, question: str, store: Path | None, strategy: str, kv: str) -> Asked:
        """From a copy of a store that holds the document: what a question leaves there is not kept."""
        settings = replace(self._run.settings, store=str(store))
        with session(settings, self._folder, self._run.note) as begun:
            return self._answered(question, begun.store, strategy, kv)

    def _lazy(self, question: str) -> Asked:
        with TemporaryDirectory(dir=self._folder, ignore_cleanup_errors=True) as name:
            asked = self._answered(question, Path(name) / "store", "stream", "lazy=on")
            return replace(asked, kept_bytes=size_of(Path(name)))

    def _answered(self, question: str, store: Path, strategy: str, kv: str) -> Asked:
        settings = ",".join(filter(None, [self._run.settings.kv, kv]))
        run = self.new_run(store=str(store), strategy=strategy, kv=settings)
        answers = [
            event.answer for event in answered(run, self._index, question) if isinstance(event, Finished)
        ]
        answer: Answer = answers[-1]
        if answer.finish_reason == "cancelled":
            raise Interrupted("interrupted")
        if answer.strategy != strategy:
            raise LocalctxError(f"{strategy} was not taken: {'; '.join(answer.warnings)}")
        counts = answer.tokens
        return Asked(
            answer.text,
            answer.support,
            answer.timings.ttft_ms / 1000,
            time.perf_counter() - run.started,
            counts.evaluated,
            counts.restored,
            counts.generated,
        )


COUNTS = ("n_evaluated", "n_generated")


def _without_headers(filling: Filling) -> Sequence[str]:
    return ["\n\n".join(passage.text.strip() for passage in filling.passages)]


def _plain(run: Run, decoded: Decoded, n_evaluated: int, n_generated: int) -> Asked:
    """An answer that nobody judged."""
    _raise_cancelled([decoded])
    seconds = time.perf_counter() - run.started
    first = run.timings.ttft_ms / 1000
    return Asked(decoded.text.strip(), "supported", first, seconds, n_evaluated, 0, n_generated)


def _raise_cancelled(found: Sequence[Decoded]) -> None:
    if any(one.finish_reason == "cancelled" for one in found):
        raise Interrupted("interrupted")


def size_of(folder: Path) -> int:
    """Bytes of the segments below a folder: what KV takes."""
    return sum(path.stat().st_size for path in folder.rglob("*.seg"))
