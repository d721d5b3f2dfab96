"""EPUB → its chapters in reading order, sections from their headings or the table of contents."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from urllib.parse import unquote

from localctx.document.archive import Archive
from localctx.document.events import Event, Facts, Heading, Notice, Options, Text
from localctx.document.html import decode_html, html_events
from localctx.document.markup import QuietHandler, attribute, local_name
from localctx.document.parts import parse_whole
from localctx.document.sandbox import isolated_events
from localctx.document.source import Source
from localctx.errors import InputError

__all__ = ["convert", "parse"]

CONTAINER = "META-INF/container.xml"
ENCRYPTION = "META-INF/encryption.xml"
FONT_METHODS = ("http://www.idpf.org/2008/embedding", "http://ns.adobe.com/pdf/enc#RC")
CHAPTER_TYPES = frozenset({"application/xhtml+xml", "text/html", "text/x-oeb1-document"})


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The book's text, read in a child process. Raises InputError, LimitExceeded."""
    return isolated_events("epub", source, options)


def parse(source: Source, options: Options) -> Iterator[Event]:
    """The book's text, parsed in this process."""
    with Archive(source, options.limits) as archive:
        refuse_protected(archive, options)
        container = Elements(archive, CONTAINER, options)
        root = next(
            (attributes.get("full-path") for tag, attributes in container.found if tag == "rootfile"), None
        )
        if root is None or root not in archive:
            raise InputError(f"{source.name}: damaged EPUB (no package file)")
        package = Elements(archive, root, options)
        folder = posixpath.dirname(root)
        labels = contents_labels(archive, package, folder, options)
        n_replaced = 0
        members, n_missing, n_other = spine_members(archive, package, folder)
        for n, what in ((n_missing, "missing in the file"), (n_other, "not text")):
            if n:
                yield Notice(f"{n:,} of {len(members) + n_missing + n_other:,} chapters are {what}: left out")
        for member in members:
            text, _, n = decode_html(archive.read(member), options.encoding)
            n_replaced += n
            yield from chapter_events(text, labels.get(member))
        yield Facts(None, n_replaced)


def chapter_events(text: str, label: str | None) -> Iterator[Event]:
    """A chapter; one without any heading gets the table of contents' name for it as its section."""
    events = list(html_events(text, with_title=False))
    has_text = any(isinstance(event, Text) for event in events)
    if label and has_text and not any(isinstance(event, Heading) for event in events):
        yield Heading(1, label)
    yield from events
    if has_text:
        yield Text("\n")


def refuse_protected(archive: Archive, options: Options) -> None:
    """Raises InputError when more than fonts is encrypted."""
    if ENCRYPTION not in archive:
        return
    for tag, attributes in Elements(archive, ENCRYPTION, options).found:
        method = attributes.get("Algorithm", "")
        if tag == "EncryptionMethod" and not method.startswith(FONT_METHODS):
            raise InputError(
                f"{archive.name}: is protected by DRM", "only books without protection can be read"
            )


def spine_members(archive: Archive, package: Elements, folder: str) -> tuple[list[str], int, int]:
    """Members of the chapters in reading order, how many are missing, and how many are of another kind."""
    manifest = {attributes.get("id", ""): attributes for tag, attributes in package.found if tag == "item"}
    members, n_missing, n_other = [], 0, 0
    for tag, attributes in package.found:
        if tag != "itemref":
            continue
        item = manifest.get(attributes.get("idref", ""), {})
        member = resolved(folder, item.get("href", ""))
        if "href" not in item or member not in archive:
            n_missing += 1
        elif item.get("media-type", "application/xhtml+xml") in CHAPTER_TYPES:
            members.append(member)
        else:
            n_other += 1
    return members, n_missing, n_other


def contents_labels(archive: Archive, package: Elements, folder: str, options: Options) -> dict[str, str]:
    """Member → its name in the table of contents (EPUB 3 nav or EPUB 2 ncx)."""
    for tag, attributes in package.found:
        is_nav = "nav" in attributes.get("properties", "").split()
        is_ncx = attributes.get("media-type") == "application/x-dtbncx+xml"
        member = resolved(folder, attributes.get("href", ""))
        if tag == "item" and (is_nav or is_ncx) and member in archive:
            try:
                links = Links()
                parse_whole(archive, member, links, options)
            except InputError:  # a broken table of contents costs section names, not the book
                continue
            base = posixpath.dirname(member)
            return {resolved(base, href): label for href, label in reversed(links.found)}
    return {}


def resolved(folder: str, href: str) -> str:
    """The member that a relative reference means."""
    path = unquote(href.partition("#")[0])
    return posixpath.normpath(posixpath.join("/", folder, path)).lstrip("/")


class Elements(QuietHandler):
    """Every element of a small XML member: (name, attributes by local name)."""

    def __init__(self, archive: Archive, member: str, options: Options) -> None:
        self.found: list[tuple[str, dict[str, str]]] = []
        parse_whole(archive, member, self, options)

    def start(self, name: str, attributes: dict[str, str]) -> None:
        self.found.append((local_name(name), {local_name(key): value for key, value in attributes.items()}))


class Links(QuietHandler):
    """Handler of a table of contents: (reference, label) of each entry."""

    def __init__(self) -> None:
        self.found: list[tuple[str, str]] = []
        self._label: list[str] = []
        self._href = ""

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        if tag in ("a", "navLabel"):
            self._label = []
        if tag == "a":
            self._href = attribute(attributes, "href") or ""
        elif tag == "content":
            self._add(attribute(attributes, "src") or "")

    def end(self, name: str) -> None:
        if local_name(name) == "a":
            self._add(self._href)

    def data(self, text: str) -> None:
        self._label.append(text)

    def _add(self, href: str) -> None:
        """Keep an entry."""
        label = " ".join("".join(self._label).split())
        if href and label:
            self.found.append((href, label))
