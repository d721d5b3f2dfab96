"""Documents found cut, counted and searchable from an earlier run, and put there for the next one.

Everything that the blocks, their tokens and the words depend on is in the key, so what is found is what
reading the document again would give. What cannot be kept costs time only, and is said once.
"""

from __future__ import annotations

import json
import os
import sqlite3
import sys
import unicodedata
from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Self

from localctx.index import LexicalIndex, kept
from localctx.package_version import package_version
from localctx.session.cache import why_no_cache
from localctx.session.prompts import document_messages
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.store import StoreUnusable
from localctx.store.derived import DerivedFiles, share_of
from localctx.store.errors import TooLarge

__all__ = ["LEAST_BYTES", "Shelf"]

SHELF_VERSION = 2
"""Part of every key: raise it whenever blocks, words or what is kept of them change."""
LEAST_BYTES = 64 << 10
"""A shorter text is read again: that takes a tenth of a second."""
PACKAGES = ("llama-cpp-python", "sentencex", "regex")
"""Others that tokens, blocks and words come from."""


class Shelf:
    """The kept readings of a run's documents, under the store of its settings; none with the store off."""

    def __init__(self, run: Run, files: DerivedFiles | None) -> None:
        self._run = run
        self._files = files
        self._is_told = False
        self._tokenizer: list[object] = []

    @classmethod
    def of(cls, run: Run) -> Self:
        """The one that the run's settings name. What a password opened is not kept."""
        root = run.settings.store_root
        is_used = root is not None and run.settings.password_file is None
        is_used = is_used and any(map(cls.stays, run.readings))
        if not is_used or root is None:
            return cls(run, None)
        limit_bytes = run.settings.store_limit_bytes
        return cls(run, DerivedFiles(root, None if limit_bytes is None else share_of(limit_bytes)))

    @property
    def files(self) -> DerivedFiles | None:
        """Where derived files are kept; None where nothing is."""
        return self._files

    @staticmethod
    def stays(reading: Reading) -> bool:
        """Whether the document lies in a file that stays: what came through a pipe does not."""
        path = reading.document.path
        return path is not None and os.path.isfile(path)  # noqa: PTH113  # any name

    def restore(self, reading: Reading) -> tuple[bool, LexicalIndex | None]:
        """Whether the reading is now as after its read(); and the index of its words, if one was kept."""
        if self._files is None or not _is_kept(reading):
            return False, None
        found = kept.load(self._files, reading.document.content_hash, self.key(reading))
        if found is None:
            return False, None
        parts, index = found
        is_restored = reading.restore(parts)
        if index is not None and not (is_restored and index.n_blocks == reading.n_blocks):
            index.close()
            index = None
        return is_restored, index

    def restore_joint(self, readings: Sequence[Reading]) -> LexicalIndex | None:
        """The one index of the words of several documents, if it was kept; they are restored already."""
        if self._files is None or not _are_kept(readings):
            return None
        found = kept.load(self._files, readings[0].document.content_hash, self._joint_key(readings))
        index = None if found is None else found[1]
        if index is not None and index.n_blocks != sum(reading.n_blocks for reading in readings):
            index.close()
            index = None
        return index

    def keep(self, reading: Reading, index: LexicalIndex | None) -> None:
        """Keep a reading that was read, and the index of its words where it has one of its own."""
        if _is_kept(reading):
            self._save(reading, self.key(reading), reading.parts(), index)

    def keep_joint(self, readings: Sequence[Reading], index: LexicalIndex) -> None:
        """Keep the one index of the words of several documents, with the first."""
        if _are_kept(readings):
            self._save(readings[0], self._joint_key(readings), {}, index)

    def _save(
        self, reading: Reading, key: str, parts: Mapping[str, bytes], index: LexicalIndex | None
    ) -> None:
        if self._files is None:
            return
        try:
            kept.save(self._files, reading.document.content_hash, key, parts, index)
        except StoreUnusable as error:
            # Of a folder that cannot be written, the store of KV says so already, where there is one.
            is_told = not self._files.can_write and why_no_cache(self._run.model) is None
            if not (is_told or self._is_told):
                self._run.note(f"the words are indexed again for the next question: {error.message}")
            self._is_told = True
            if not isinstance(error, TooLarge):
                self._files = None

    def key(self, reading: Reading) -> str:
        """A name of the reading's blocks and of all that they depend on beside the text."""
        document = reading.document
        self._tokenizer = self._tokenizer or _tokenizer_facts(self._run)
        facts = [
            self._tokenizer,
            [reading.block_size, reading.blocks],
            document.language,
            [(page.number, page.start, page.end, page.label) for page in document.pages],
            [(part.level, part.title, part.start, part.end) for part in document.sections],
        ]
        return blake2b(json.dumps(facts).encode(), digest_size=16).hexdigest()

    def _joint_key(self, readings: Sequence[Reading]) -> str:
        """A name of several documents' blocks, in their order."""
        facts = [[reading.document.content_hash, self.key(reading)] for reading in readings]
        return blake2b(json.dumps(["joint", facts]).encode(), digest_size=16).hexdigest()


def _is_kept(reading: Reading) -> bool:
    """Whether the text is long enough, and stays."""
    return reading.document.text.n_bytes >= LEAST_BYTES and Shelf.stays(reading)


def _are_kept(readings: Sequence[Reading]) -> bool:
    """Whether the texts are long enough together, and stay."""
    n_bytes = sum(reading.document.text.n_bytes for reading in readings)
    return n_bytes >= LEAST_BYTES and all(map(Shelf.stays, readings))


def _tokenizer_facts(run: Run) -> list[object]:
    """What the tokens, blocks and words depend on beside the document and the settings.

    The rendered prompt stands for the template: its markers are no content tokens.
    """
    prompt = run.model.prompt(document_messages(["text"], ["task"]))
    return [
        SHELF_VERSION,
        sys.byteorder,
        sqlite3.sqlite_version,
        unicodedata.unidata_version,
        [package_version(package) for package in PACKAGES],
        run.model.info.fingerprint,
        prompt.tokens,
    ]
