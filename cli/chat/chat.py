"""A chat: conversation, model, documents and the file it is kept in, and how an answer is shown.

Knows neither a line editor nor slash commands.
"""

from __future__ import annotations

import sys
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from localctx.document.encodings import canonical_encoding
from localctx.errors import InputError, LocalctxError, UsageError
from localctx.from_settings import choose_model, open_document_for, open_model_for
from localctx.session.conversation import Conversation
from localctx.session.events import Event, Finished, Notice, Overview, Planned
from localctx.session.private_database import folder_of
from localctx.session.saved_conversations import SavedConversation, SavedConversations
from localctx.session.strategy import check_strategy
from localctx.settings import Settings

from ..answer_lines import counted
from ..documents import page_range
from ..render import Painter, Reporter
from .library import Library

if TYPE_CHECKING:
    from localctx.document import Document
    from localctx.session.answer import Answer

    from ..options import OutputOptions

__all__ = ["Chat", "Wanted"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the command line asked for. flags: settings as they were given · continues: the last conversation
    on the files, or on any without.
    """

    files: tuple[str, ...]
    flags: dict[str, object]
    config: str | None
    output: OutputOptions
    pages: str | None = None
    continues: bool = False


class Chat:
    """Close it, or use `with`. `last`: the answer that /cite and /cover speak of."""

    def __init__(self, wanted: Wanted, painter: Painter | None = None) -> None:
        """Raises what opening model and documents raises."""
        self.wanted = wanted
        self.flags = dict(wanted.flags)
        pages = page_range(wanted.pages)
        self.last: Answer | None = None
        self._told: set[str] = set()
        self._resources = ExitStack()
        output = wanted.output
        self.reporter = Reporter(
            as_json=output.json,
            quiet=output.quiet,
            verbose=output.verbose,
            shows_answer=not output.json,
            painter=painter,
        )
        self.settings, chosen = choose_model(self.flags, wanted.config)
        _check(self.settings)

        def open_one(source: str) -> Document:
            return open_document_for(source, self.settings, pages)

        with ExitStack() as stack:
            stack.callback(self._resources.close)
            self._model = open_model_for(self.settings, chosen)
            self._resources.callback(self._close_model)
            self.library = Library(open_one, self.say)
            self._resources.callback(self.library.close)
            self._saved = self._open_saved()
            self.kept = SavedConversation(model=self.settings.model, documents=())
            self._begin()
            self.conversation = self._conversation()
            self._resources.callback(self.conversation.close)
            stack.pop_all()

    # --- asking ---------------------------------------------------------------------------------------

    def ask(self, question: str) -> Answer | None:
        """Show the answer and keep the turn; None where it was stopped.

        Raises KeyboardInterrupt where it was stopped by Ctrl-C, the turn kept all the same.
        """
        try:
            for event in self.conversation.say(question, self.reporter.progress):
                self.show(event)
        except KeyboardInterrupt:
            self.reporter.stop()
            self.keep()
            raise
        except LocalctxError:
            self.reporter.stop()
            raise
        self.keep()
        return self.last

    def ask_each(self, question: str) -> None:
        """Show each document's own answer, under its name."""
        if not self.library.documents:
            raise UsageError("no document is open", "/open FILE")
        shown: Document | None = None
        for document, event in self.conversation.ask_each(question, self.reporter.progress):
            if document is not shown:
                self.say(f"— {document.source}")
                shown = document
            self.show(event)

    def show(self, event: Event) -> None:
        """Show an event; what a document is only once, plans only to who wants to hear more."""
        if isinstance(event, Overview):
            if event.source in self._told:
                return
            self._told.add(event.source)
        if isinstance(event, Planned) and not self.wanted.output.verbose:
            return
        if isinstance(event, Notice):
            if event.text in self._told:
                return
            self._told.add(event.text)
        if isinstance(event, Finished):
            self.last = event.answer
        self.reporter.event(event)

    def say(self, text: str) -> None:
        """A line about the work."""
        self.reporter.line(text)

    # --- what it works with ---------------------------------------------------------------------------

    def open(self, source: str) -> list[Document]:
        """Open documents. Raises what opening raises."""
        new = self.library.open(source, has_page_range=self.wanted.pages is not None)
        self.conversation.documents = list(self.library.documents)
        self.keep()
        return new

    def close_document(self, name: str) -> Document:
        """Close a document. Raises UsageError."""
        closed = self.library.close_one(name)
        self.conversation.documents = list(self.library.documents)
        self.keep()
        return closed

    def use_model(self, name: str) -> None:
        """Go on with another model; with the one before where it cannot be opened."""
        flags = {**self.flags, "model": name}
        settings, chosen = choose_model(flags, self.wanted.config)
        model = open_model_for(settings, chosen)
        self.conversation.use_model(model, settings)
        self._model.close()
        self._model, self.flags, self.settings = model, flags, settings
        self._told.clear()
        self.keep()

    def set(self, name: str, value: str | None) -> None:
        """Change a setting of the questions to come; None: back to what it was. Raises UsageError."""
        flags = {**self.flags, name: self.wanted.flags.get(name) if value is None else value}
        settings, _ = choose_model(flags, self.wanted.config)
        _check(settings)
        self.flags, self.settings = flags, settings
        self.conversation.settings = settings

    # --- the file of conversations --------------------------------------------------------------------

    @property
    def saved(self) -> SavedConversations | None:
        """The file; None where there is none."""
        return self._saved

    def keep(self) -> None:
        """Write the conversation down, if anything was said; that it cannot be is told once."""
        kept = self.kept
        kept.model, kept.documents = self.settings.model, self.library.listed()
        kept.turns = tuple(self.conversation.turns)
        if self._saved is None or not (kept.turns or kept.id is not None):
            return
        try:
            self._saved.save(kept)
        except LocalctxError as error:
            self.say(f"warning: {error.message}")
            self._saved.close()
            self._saved = None

    def begin_anew(self) -> None:
        """Another conversation on the same documents."""
        self.conversation.clear()
        self.kept, self.last = SavedConversation(self.settings.model, ()), None

    def load(self, found: SavedConversation) -> None:
        """Go on with a conversation that was kept, on its documents."""
        self.library.close()
        self._reopen(found)
        self.conversation.clear()
        self.conversation.documents = list(self.library.documents)
        self.conversation.turns = list(found.turns)
        self.kept, self.last = found, None

    # --- inside ---------------------------------------------------------------------------------------

    def _close_model(self) -> None:
        """The one in use by then."""
        self._model.close()

    def _conversation(self) -> Conversation:
        from localctx.registry.selectors import opened_embedder, opened_reranker

        enter = self._resources.enter_context
        return Conversation(
            self.library.documents,
            self._model,
            self.settings,
            embedder=enter(opened_embedder(self.settings)),
            reranker=enter(opened_reranker(self.settings)),
            turns=self.kept.turns,
        )

    def _open_saved(self) -> SavedConversations | None:
        folder = folder_of(self.settings)
        if folder is None:
            return None
        try:
            saved = SavedConversations(folder)
        except LocalctxError as error:
            if self.wanted.continues:
                raise
            self.say(f"warning: {error.message}")
            return None
        self._resources.callback(lambda: self._saved.close() if self._saved is not None else None)
        return saved

    def _begin(self) -> None:
        """Open the documents of the command line, or of the conversation to go on with."""
        for source in self.wanted.files:
            self.library.open(source, has_page_range=self.wanted.pages is not None)
        if not self.wanted.continues:
            return
        if self._saved is None:
            raise UsageError("--continue needs conversations that are kept", "not with --store off")
        paths = [path for path, _ in self.library.listed()] if self.wanted.files else None
        found = self._saved.latest(paths)
        if found is None:
            on = " on these files" if paths else ""
            raise UsageError(f"there is no conversation{on} to continue", "localctx chat FILE begins one")
        if not self.wanted.files:
            self._reopen(found)
        self.kept = found
        self.say(f"going on after {counted(len(found.turns), 'question')}")

    def _reopen(self, found: SavedConversation) -> None:
        """Open a conversation's documents; one that is gone or changed is told."""
        for path, content_hash in found.documents:
            try:
                new = self.library.open(path)
            except InputError as error:
                self.say(f"warning: {error.message}")
                continue
            if all(document.content_hash != content_hash for document in new):
                self.say(f"warning: {path} has changed since")

    def close(self) -> None:
        """Free all."""
        self._resources.close()

    def __enter__(self) -> Chat:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def is_live(self) -> bool:
        """Whether someone looks at a terminal."""
        return sys.stdout.isatty()


def _check(settings: Settings) -> None:
    """Refuse settings that no question can be answered with."""
    check_strategy(settings.strategy, "ask")
    if settings.encoding is not None:
        canonical_encoding(settings.encoding)
    _ = settings.cache
