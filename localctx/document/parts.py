"""XML members of a zip document, parsed with a handler, and what they refer to. Knows no one format."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

from localctx.document.archive import Archive
from localctx.document.events import NotThisFormat, Options
from localctx.document.markup import MarkupHandler, MarkupParser, QuietHandler, declared_encoding, local_name
from localctx.errors import InputError, LimitExceeded
from localctx.names import display_name

__all__ = ["parse_member", "parse_whole", "relationships"]


def parse_member(archive: Archive, member: str, handler: MarkupHandler, options: Options) -> Iterator[None]:
    """Parse an XML member, yielding after each step. Raises InputError where it is not well-formed."""
    chunks = archive.chunks(member)
    first = next(chunks, b"")
    encoding = declared_encoding(first[:1024])
    parser = MarkupParser(handler, options.limits, encoding)

    def content() -> Iterator[bytes]:
        yield first[encoding.mark_bytes :]
        yield from chunks

    try:
        yield from parser.feed(content())
    except NotThisFormat as error:
        shown = display_name(member)
        raise InputError(f"{archive.name}: damaged document ({shown}: {error})") from None


def parse_whole(archive: Archive, member: str, handler: MarkupHandler, options: Options) -> None:
    """The same in one go, for members whose handler keeps what it sees. Raises LimitExceeded."""
    n_before = archive.n_bytes_read
    for _ in parse_member(archive, member, handler, options):
        if archive.n_bytes_read - n_before > options.limits.tree_bytes:
            shown = display_name(member)
            raise LimitExceeded(f"{archive.name}: {shown} is larger than {options.limits.tree_bytes:,} bytes")


class Relations(QuietHandler):
    """Handler of a .rels part: id → (kind, target)."""

    def __init__(self) -> None:
        self.found: dict[str, tuple[str, str]] = {}

    def start(self, name: str, attributes: dict[str, str]) -> None:
        """One relationship; those that lead out of the file are left out."""
        if local_name(name) == "Relationship" and attributes.get("TargetMode") != "External":
            kind = attributes.get("Type", "").rpartition("/")[2]
            self.found[attributes.get("Id", "")] = (kind, attributes.get("Target", ""))


def relationships(archive: Archive, part: str, options: Options) -> dict[str, tuple[str, str]]:
    """Id → (kind, member) of what a part refers to inside the archive; part "" is the archive itself."""
    folder, base = posixpath.split(part)
    member = posixpath.join(folder, "_rels", f"{base}.rels")
    if member not in archive:
        return {}
    handler = Relations()
    parse_whole(archive, member, handler, options)
    return {
        key: (kind, posixpath.normpath(posixpath.join("/", folder, target)).lstrip("/"))
        for key, (kind, target) in handler.found.items()
    }
