"""FILE arguments to open documents: directories walked, failures collected, all closed at the end."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from localctx.errors import InputError, LocalctxError, NoTextError, UnknownFormat, UsageError

if TYPE_CHECKING:
    from localctx.document import Document, SkippedEntry

__all__ = ["Opened", "open_documents", "page_range"]

RESERVED_DESCRIPTORS = 32
"""Left for the program itself: streams, libraries, temporary files, the pipes of a child."""
DESCRIPTORS_PER_FILE = 2
"""A text file and the map over it; one more for each further window of a large text."""
MOST_DESCRIPTORS = 1 << 16


@dataclass(frozen=True, slots=True)
class Opened:
    """The documents that could be opened, how many could not, and all that was said of that."""

    documents: list[Document]
    n_failed: int
    warnings: tuple[str, ...]


def page_range(text: str | None) -> tuple[int, int] | None:
    """`10-40`, `7`, `10-` or `-5` as (first, last), 1-based and inclusive."""
    if text is None:
        return None
    first, dash, last = text.partition("-")
    try:
        low = int(first) if first else 1
        high = int(last) if last else (low if not dash else 1 << 30)
    except ValueError:
        low, high = 0, 0
    if not (first or last) or not 1 <= low <= high:
        raise UsageError(f"--pages {text!r} is not a page range", "--pages 10-40")
    return low, high


@contextmanager
def open_documents(
    sources: Sequence[str],
    open_one: Callable[[str], Document],
    warn: Callable[[str], None],
    *,
    has_page_range: bool = False,
) -> Iterator[Opened]:
    """Open every source with `open_one`. One that was named must open; what a directory holds is told by
    `warn` when it cannot be used. With `has_page_range` a directory's files without pages are passed over.

    Raises InputError when nothing can be opened or too many files would be, UsageError when standard input is
    named twice.
    """
    if sources.count("-") > 1:
        raise UsageError("standard input (-) is named twice", "it can be read only once")
    with ExitStack() as stack:
        opening = _Opening(open_one, warn, stack, has_page_range, _descriptor_limit())
        for source in sources:
            if source == "-" or not os.path.isdir(source):  # noqa: PTH112  # names that are no text stay bytes-safe
                opening.named(source)
            else:
                opening.folder(source)
        if not opening.documents:
            raise InputError(
                f"{', '.join(map(_display, sources))}: nothing to read",
                "name a file, or a directory that holds some",
            )
        yield Opened(opening.documents, opening.n_failed, tuple(opening.warnings))


@dataclass(slots=True)
class _Opening:
    """What was opened so far."""

    open_one: Callable[[str], Document]
    warn: Callable[[str], None]
    stack: ExitStack
    has_page_range: bool
    descriptor_limit: int
    documents: list[Document] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    n_failed: int = 0
    n_descriptors: int = RESERVED_DESCRIPTORS
    seen: dict[tuple[int, int], str] = field(default_factory=dict)

    def named(self, source: str) -> None:
        """Open a file that was named."""
        if not self._is_again(source):
            self._open(source)

    def folder(self, folder: str) -> None:
        """Open what a directory holds, telling what cannot be used."""
        from localctx.document import SkippedEntry, walk

        entries = list(walk(folder))
        self._check_room(sum(not isinstance(entry, SkippedEntry) for entry in entries))
        for entry in entries:
            if isinstance(entry, SkippedEntry):
                self.n_failed += could_not_be_read(entry)
                self._say(f"skipped: {_display(os.fspath(entry.path))}: {entry.reason}")
            elif not self._is_again(path := os.fspath(entry)):
                self._check_room(1)
                self._try(path)

    def _try(self, path: str) -> None:
        """Open a file of a directory, or tell why not."""
        try:
            self._open(path)
        except UnknownFormat as error:
            self._say(f"skipped: {error.message}")
        except InputError as error:
            self.n_failed += 1
            self._say(f"skipped: {error.message}")
        except UsageError as error:
            if not self.has_page_range:
                raise
            self._say(f"skipped: {error.message}")

    def _open(self, path: str) -> None:
        from localctx.document.text_file import WINDOW_BYTES

        document = self.stack.enter_context(self.open_one(path))
        self.documents.append(document)
        self.n_descriptors += DESCRIPTORS_PER_FILE + (document.text.n_bytes > WINDOW_BYTES)

    def _is_again(self, path: str) -> bool:
        """Whether the same file was opened before, under whatever name; told when it was."""
        try:
            status = os.stat(path)  # noqa: PTH116  # names that are no text stay bytes-safe
        except (OSError, ValueError):  # opening it says what is wrong
            return False
        if path == "-" or not stat.S_ISREG(status.st_mode):
            return False
        key = (status.st_dev, status.st_ino)
        if key not in self.seen:
            self.seen[key] = path
            return False
        self._say(f"read once: {_display(path)} is the same file as {_display(self.seen[key])}")
        return True

    def _check_room(self, n_files: int) -> None:
        """Raises InputError when so many more files cannot be open side by side."""
        if self.n_descriptors + n_files * DESCRIPTORS_PER_FILE > self.descriptor_limit:
            n_total = len(self.documents) + n_files
            raise InputError(
                f"too many files: {n_total:,} cannot be open at once here (limit {self.descriptor_limit:,})",
                "name fewer at a time, or raise the limit: ulimit -n",
            )

    def _say(self, text: str) -> None:
        self.warnings.append(text)
        self.warn(text)


def could_not_be_read(entry: SkippedEntry) -> bool:
    """Whether reading the entry failed; False where it was passed over for what it is."""
    from localctx.document.sniff import sniff
    from localctx.document.source import GZIP_MAGIC, open_path

    path = entry.path
    if path.name.startswith("."):
        return False
    try:
        mode = path.stat().st_mode
    except OSError:  # a link that leads nowhere
        return True
    if stat.S_ISDIR(mode):
        return not os.access(path, os.R_OK | os.X_OK)
    if not stat.S_ISREG(mode):
        return False
    try:
        with closing(open_path(path)) as source:
            if source.head(len(GZIP_MAGIC)) != GZIP_MAGIC:
                sniff(source)
    except (UnknownFormat, NoTextError):
        return False
    except (LocalctxError, OSError):
        return True
    return False


def _descriptor_limit() -> int:
    """How many descriptors this process may have, after asking for as many as it is allowed to."""
    try:
        import resource
    except ImportError:  # no such limit on this system
        return MOST_DESCRIPTORS
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):  # macOS has a lower bound of its own
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return MOST_DESCRIPTORS if soft == resource.RLIM_INFINITY else soft


def _display(path: str) -> str:
    from localctx.document.source import display_name

    return display_name(path)
