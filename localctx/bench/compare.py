"""One document and its questions through llama.cpp alone, text retrieval, map-reduce and localctx, by turns.

Every round asks one question in every way, in an order that is turned round each time; there are as many
rounds as questions, at least --repeats. Answers are greedy, and beside known ones.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path

from localctx.bench.ask import learn_speed
from localctx.bench.compare_inputs import planted, questions_in
from localctx.bench.compare_report import Prepared, Report, Row
from localctx.bench.compare_ways import (
    DENSE,
    EXACT,
    STATE_FILE,
    WAYS,
    Asked,
    Saved,
    Ways,
)
from localctx.bench.inputs import BUILT_IN, check_length, document_of, kv_model, temporary_store
from localctx.bench.machine import machine
from localctx.bench.meters import Meter
from localctx.bench.repeats import check_repeats, in_turns
from localctx.document import Document
from localctx.engine.embedder import EmbedderFile
from localctx.engine.llama_context import LlamaContext
from localctx.errors import Interrupted, UsageError
from localctx.eval.documents import Question
from localctx.eval.scoring import score
from localctx.from_settings import open_document_for
from localctx.index import LexicalIndex
from localctx.session.cache import KVModel
from localctx.session.embedding import embed_all
from localctx.session.events import Event, ignore_progress
from localctx.session.indexed import Indexed
from localctx.session.indexing import index_documents
from localctx.session.opening import index_all
from localctx.session.run import Run, start
from localctx.session.strategy import round_n_ctx
from localctx.settings import Settings, nearest
from localctx.values import Model

__all__ = ["Comparing", "measure"]

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Comparing:
    """questions: a file of them; None: n_facts of each kind are planted by the seed · ways: None: all."""

    questions: str | None = None
    n_facts: int = 4
    n_repeats: int = 5
    ways: tuple[str, ...] | None = None

    def check(self) -> None:
        """Raises UsageError for what makes no sense."""
        check_repeats(self.n_repeats)
        for way in self.ways or ():
            if way not in WAYS:
                raise UsageError(f"--way: unknown {way!r}{nearest(way, WAYS)}", f"one of: {' · '.join(WAYS)}")


def measure(
    model: Model,
    settings: Settings,
    source: str | None,
    n_tokens: int | None,
    comparing: Comparing,
    say: Say,
    embedder: EmbedderFile | str | None = None,
) -> Report:
    """Every question in every way that can be, by turns; `say` is told what is done.

    source None: the built-in text. Raises UsageError for a text that is too short, for questions or a context
    that cannot be, NotComposable, StoreUnusable.
    """
    comparing.check()
    able, settings = kv_model(model), replace(settings, temp=0.0)
    facts = machine(settings.threads)
    with (
        temporary_store(settings) as (own, folder),
        _document(able, own, source, n_tokens, comparing, folder) as (document, questions),
    ):
        run = start([document], able, own, ignore_progress)
        run.embedder = embedder
        with index_all(run) as index:
            check_length(source, run.n_tokens)
            _run_through(embed_all(run))
            bench = _Bench(able, own, document, run, index, folder, say)
            name = Path(source).name if source else BUILT_IN
            name += "" if comparing.questions else ", facts planted"
            return _measured(bench, name, questions, comparing, facts)


def _run_through(events: Iterator[Event]) -> None:
    """Do what an iterator of events does."""
    for _ in events:
        pass


@dataclass(frozen=True, slots=True)
class _Bench:
    """What everything is measured on."""

    model: KVModel
    settings: Settings
    document: Document
    run: Run
    index: LexicalIndex
    folder: Path
    say: Say


@contextmanager
def _document(
    model: KVModel,
    settings: Settings,
    source: str | None,
    n_tokens: int | None,
    comparing: Comparing,
    folder: Path,
) -> Iterator[tuple[Document, list[Question]]]:
    """The document and what is asked of it."""
    asked = None if comparing.questions is None else questions_in(Path(comparing.questions))
    with document_of(source, settings, model, n_tokens, folder) as document:
        if asked is not None:
            yield document, asked
            return
        text = document.read(0, document.text.n_code_points)
        text, asked = planted(text, document.language, settings.seed, comparing.n_facts)
    path = folder / f"{Path(source).stem if source else 'documentation'}-with-facts.md"
    path.write_text(text, "utf-8", newline="\n")
    with open_document_for(str(path), settings) as document:
        yield document, asked


def _measured(
    bench: _Bench, name: str, questions: Sequence[Question], comparing: Comparing, facts: dict[str, object]
) -> Report:
    wanted = comparing.ways or WAYS
    missing = {way: reason for way in wanted if (reason := _why_not(bench, way, questions))}
    there = [way for way in wanted if way not in missing]
    prepared = _prepare(bench, there)
    ways = Ways(bench.run, bench.index, prepared.saved, bench.folder)
    n_rounds = max(comparing.n_repeats, len(questions))

    def asker(way: str) -> Callable[[], Asked]:
        order = cycle(questions)

        def ask() -> Asked:
            asked = ways.ask(way, next(order).text)
            bench.say(f"{way}: {asked.first_token_s:.2f} s to the first token, {asked.seconds:.2f} in all")
            return asked

        return ask

    found = in_turns({way: asker(way) for way in there}, n_rounds)
    rows = tuple(_row(way, found[way], questions, prepared.of) for way in there)
    return Report(
        model=bench.model.info,
        machine=facts,
        source=name,
        n_tokens=bench.run.n_tokens,
        questions=tuple(questions),
        n_rounds=n_rounds,
        max_tokens=bench.settings.max_tokens,
        rows=rows,
        missing=missing,
    )


def _row(
    way: str, found: Sequence[Asked], questions: Sequence[Question], prepared: Mapping[str, Prepared]
) -> Row:
    scores = [score(question, one.text, one.support) for question, one in zip(questions, found, strict=False)]
    return Row(way, tuple(found), tuple(scores), prepared.get(way, Prepared()))


def _why_not(bench: _Bench, way: str, questions: Sequence[Question]) -> str | None:
    """Why the document cannot be asked so; None where it can."""
    if way not in (DENSE, STATE_FILE, EXACT):
        return None
    run = bench.run
    longest = max(len(run.model.tokenize(one.text)) for one in questions)
    n_needed = run.n_tokens + longest + QUESTION_TOKENS + run.settings.max_tokens
    return f"{n_needed:,} tokens needed, context {run.limit:,}" if n_needed > run.limit else None


QUESTION_TOKENS = 96
"""What stands round the document and the question, about."""


# --- what stands ready before a question --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Ready:
    saved: Saved
    of: Mapping[str, Prepared]


def _prepare(bench: _Bench, ways: Sequence[str]) -> _Ready:
    """A state file and stores, as far as the ways need them."""
    of: dict[str, Prepared] = {}
    path: Path | None = None
    tokens: tuple[int, ...] = ()
    if STATE_FILE in ways:
        bench.say(f"evaluating {bench.run.n_tokens:,} tokens for the state file")
        path, tokens, of[STATE_FILE] = _save_state(bench)
    stores: dict[str, Path] = {}
    for strategy in ("exact", "stream"):
        kept = [way for way in ways if way.startswith(strategy)]
        if kept:
            bench.say(f"indexing for {strategy}")
            stores[strategy], done = _index(bench, strategy)
            of |= dict.fromkeys(kept, done)
    return _Ready(Saved(path, tokens, stores.get("exact"), stores.get("stream")), of)


def _index(bench: _Bench, strategy: str) -> tuple[Path, Prepared]:
    """A store that holds the document for a strategy."""
    store = bench.folder / f"store-{strategy}"
    settings = replace(bench.settings, store=str(store), strategy=strategy)
    with Meter() as meter:
        events = index_documents([bench.document], bench.model, settings, embedder=bench.run.embedder)
        done = [event for event in events if isinstance(event, Indexed)]
    if not done or done[0].was_cancelled:
        raise Interrupted("interrupted")
    run = start([bench.document], bench.model, settings, ignore_progress)
    run.embedder = bench.run.embedder
    with index_all(run):
        learn_speed(run)
    row = done[0].documents[0]
    return store, Prepared(meter.seconds, row.size_bytes, row.codec, meter.taken)


def _save_state(bench: _Bench) -> tuple[Path, tuple[int, ...], Prepared]:
    """The document evaluated by llama.cpp, and its cells in a file of llama.cpp's own, forced to the disk."""
    ways = Ways(bench.run, bench.index, Saved(None, (), None, None), bench.folder)
    prompt, end = ways.dense_prompt("?")
    tokens, path = prompt.tokens[:end], bench.folder / "state.bin"
    context = bench.run.context(round_n_ctx(end + 1))
    try:
        if not isinstance(context, LlamaContext):
            raise UsageError("this backend keeps no state files", f"--way without {STATE_FILE!r}")
        with Meter() as meter:
            if context.snapshot(tokens, is_wanted=lambda _: False) is None:
                raise Interrupted("interrupted")
            n_bytes = context.save_file(path, tokens)
            with path.open("rb") as file:
                os.fsync(file.fileno())
    finally:
        context.close()
    return path, tuple(tokens), Prepared(meter.seconds, n_bytes, "f16", meter.taken)
