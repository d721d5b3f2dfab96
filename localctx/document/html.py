"""HTML → lines of text and sections at h1-h6, without scripts, styles and navigation. Fetches nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from localctx.document.encodings import decode_small
from localctx.document.events import Event, Facts, Heading, Options, Text
from localctx.document.markup import DECLARATION
from localctx.document.sandbox import isolated_events
from localctx.document.source import Source
from localctx.errors import LimitExceeded

if TYPE_CHECKING:
    from selectolax.lexbor import LexborNode

__all__ = ["convert", "html_events", "parse"]

MANY_TAGS = 8_000
"""From here on a child process parses: deep nesting costs quadratic time (16,000 levels: 3 s)."""
DROPPED = frozenset(
    {
        *("-comment", "!doctype", "head", "nav", "noscript", "script", "style", "template"),
        *("audio", "canvas", "embed", "iframe", "object", "svg", "video"),
        *("button", "dialog", "input", "select", "textarea"),
        *("annotation", "annotation-xml"),  # a formula's second form; its signs are text
    }
)
BLOCKS = frozenset(
    {
        *("address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "dir"),
        *("div", "dl", "dt", "fieldset", "figcaption", "figure", "footer", "form", "header", "hgroup", "hr"),
        *("html", "legend", "li", "main", "menu", "ol", "p", "pre", "section", "summary", "table", "tbody"),
        *("tfoot", "thead", "tr", "ul"),
    }
)
PARAGRAPHS = frozenset({"p", "pre", "blockquote", "table", "ul", "ol", "dl", "figure"})
HEADINGS = {f"h{level}": level for level in range(1, 7)}
CHARSET = re.compile(rb"""<meta[^>]{0,200}?charset\s*=\s*["']?\s*([A-Za-z0-9._:-]{1,40})""", re.I)
SPACES = re.compile(r"[ \t\r\n\f]+")


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The page's text. Raises LimitExceeded for a page too large to hold as a tree."""
    if source.size_bytes > options.limits.tree_bytes:
        raise LimitExceeded(
            f"{source.name}: HTML larger than {options.limits.tree_bytes:,} bytes",
            "split it, or rename it to .txt to read it with its tags",
        )
    if source.head(options.limits.tree_bytes).count(b"<") > MANY_TAGS:
        return isolated_events("html", source, options)
    return parse(source, options)


def parse(source: Source, options: Options) -> Iterator[Event]:
    """The page's text, parsed in this process."""
    data = source.head(options.limits.tree_bytes)
    text, encoding, n_replaced = decode_html(data, options.encoding)
    yield from html_events(text)
    yield Facts(encoding, n_replaced)


def decode_html(data: bytes, asked: str | None = None) -> tuple[str, str, int]:
    """(text, encoding, replaced characters) of a page that may declare its encoding."""
    head = data[:4096]
    found = DECLARATION.match(head.lstrip()) or CHARSET.search(head)
    return decode_small(data, asked, found[1].decode("ascii") if found else None)


def html_events(text: str, with_title: bool = True) -> Iterator[Event]:
    """Text and headings of a page. The <title> leads it, as its only section where there is no heading."""
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(text)
    root = tree.root
    if root is None:
        return
    if with_title and (found := tree.css_first("head > title")) is not None:
        title = SPACES.sub(" ", found.text()).strip()
        first = tree.css_first("h1, h2, h3")
        if title and first is None:
            yield Heading(1, title)
        if title and (first is None or SPACES.sub(" ", first.text()).strip() != title):
            yield Text(title + "\n\n")
    lines = Lines()
    for node, is_end in walk(root):
        if is_end:
            lines.end(node)
        else:
            lines.start(node)
        if lines.events:
            yield from lines.events
            lines.events.clear()
    lines.break_line()
    yield from lines.events


def walk(root: LexborNode) -> Iterator[tuple[LexborNode, bool]]:
    """Every node in document order, elements a second time at their end; dropped ones not at all."""
    node: LexborNode | None = root
    depth = 0
    while node is not None:
        child = None
        if node.tag not in DROPPED:
            yield node, False
            child = node.child
        if child is not None:
            node, depth = child, depth + 1
            continue
        if node.tag not in DROPPED:
            yield node, True
        while node is not None and node.next is None and depth > 0:
            node, depth = node.parent, depth - 1
            if node is not None:
                yield node, True
        node = node.next if node is not None and depth > 0 else None


class Lines:
    """Collects inline text into lines: blocks break them, cells are joined by bars, <pre> keeps its own."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self._line: list[str] = []
        self._pre = 0
        self._in_heading = False
        self._cells: list[int] = []  # cells so far in the open rows, the innermost last
        self._wants_blank = False
        self._has_text = False

    def start(self, node: LexborNode) -> None:
        """A node begins."""
        tag = node.tag or ""
        if tag == "-text":
            self._text(node.text_content or "")
        elif tag == "br":
            self._line.append(" " if self._cells or self._in_heading else "\n")
        elif tag in ("td", "th"):
            if self._cells:
                if self._cells[-1]:
                    self._line.append(" | ")
                self._cells[-1] += 1
        elif tag in HEADINGS:
            self.break_line()
            self._in_heading = True
        elif tag in BLOCKS:
            self._block(tag)

    def end(self, node: LexborNode) -> None:
        """A node ends."""
        tag = node.tag or ""
        if tag in HEADINGS:
            title = SPACES.sub(" ", "".join(self._line)).strip()
            if title:
                self._separate()
                self.events.append(Heading(HEADINGS[tag], title))
            self._in_heading = False
            self.break_line()
            self._wants_blank = True
        elif tag == "tr":
            if self._cells:
                self._cells.pop()
            if not self._cells:
                self.break_line()
        elif tag == "pre" and not self._cells and not self._in_heading:  # there it is a block like any
            self._pre = max(0, self._pre - 1)
            self.break_line(keep_spaces=True)
            self._wants_blank = True
        elif tag in BLOCKS and not self._cells and not self._in_heading:
            self.break_line()
            self._wants_blank = self._wants_blank or tag in PARAGRAPHS

    def break_line(self, keep_spaces: bool = False) -> None:
        """Write the line collected so far, if it holds anything."""
        text = "".join(self._line)
        self._line.clear()
        if keep_spaces:
            text = text.strip("\n")
        else:
            parts = (SPACES.sub(" ", part).strip() for part in text.split("\n"))
            text = "\n".join(part for part in parts if part.strip(" |"))
        if text.strip():
            self._separate()
            self.events.append(Text(text + "\n"))
            self._has_text = True

    def _block(self, tag: str) -> None:
        """A block begins: a new line, except inside a table row or a heading."""
        if tag == "tr":
            if not self._cells:
                self.break_line()
            self._cells.append(0)
        elif self._cells or self._in_heading:
            self._line.append(" ")
        else:
            self.break_line()
            self._wants_blank = self._wants_blank or tag in PARAGRAPHS
            self._pre += tag == "pre"
            if tag == "li":
                self._line.append("- ")

    def _text(self, text: str) -> None:
        """Characters: as they are in <pre>, otherwise with single spaces."""
        if self._pre and not self._cells:
            self._line.append(text)
        else:
            self._line.append(SPACES.sub(" ", text))

    def _separate(self) -> None:
        """The blank line between paragraphs."""
        if self._wants_blank and self._has_text:
            self.events.append(Text("\n"))
        self._wants_blank = False
