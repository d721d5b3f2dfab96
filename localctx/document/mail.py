"""EML and MBOX → a section a message: headers, body, attachments as sections of their own. Opens no links.

The plain form of a body is taken where there is one, else the HTML form; quoted replies stay. A mailbox is
read message by message; one message is held in memory, up to a cap.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from email.message import Message
from itertools import chain, pairwise

from localctx.document.events import Event, Facts, Heading, Notice, Options, Text
from localctx.document.mail_headers import header_lines, title_of
from localctx.document.mail_parser import parsed
from localctx.document.mail_parts import Attachment, attachment_events, body_events, parts_of
from localctx.document.mail_start import begins_header, is_envelope
from localctx.document.source import Source
from localctx.errors import LimitExceeded

__all__ = ["convert"]

QUOTED_SEPARATOR = re.compile(rb"^>(>*From )", re.M)
MAX_DEPTH = 8
"""Messages inside messages."""


def convert(source: Source, options: Options) -> Iterator[Event]:
    """The messages in the order of the file. Raises LimitExceeded."""
    if not source.head(5).startswith(b"From "):
        data, is_cut = source.head(options.limits.tree_bytes), source.size_bytes > options.limits.tree_bytes
        yield from message_events(data, options)
        if is_cut:
            yield Notice(too_large("the message", options))
        yield Facts(replaced_characters=0)
        return
    for number, (data, is_cut) in enumerate(messages(source, options), 1):
        yield from message_events(data, options)
        if is_cut:
            yield Notice(too_large(f"message {number:,}", options))


def too_large(what: str, options: Options) -> str:
    """The notice of a message that was not read to its end."""
    return f"{what} is larger than {options.limits.tree_bytes:,} bytes: only its beginning was read"


def messages(source: Source, options: Options) -> Iterator[tuple[bytes, bool]]:
    """(message, whether it was cut at the cap) of a mailbox, whose first line is known to be no text."""
    pieces: list[bytes] = []
    n_bytes, is_blank, is_cut = 0, False, False
    followed = pairwise(chain(lines(source, options), (b"",)))
    next(followed, None)
    for line, following in followed:
        if is_blank and is_separator(line, following):
            if pieces:
                yield unquoted(pieces), is_cut
            pieces, n_bytes, is_cut = [], 0, False
        elif n_bytes + len(line) <= options.limits.tree_bytes:
            pieces.append(line)
            n_bytes += len(line)
        else:
            is_cut = True
        is_blank = not line.strip(b"\r\n")
    if pieces:
        yield unquoted(pieces), is_cut


def is_separator(line: bytes, following: bytes) -> bool:
    """Whether a message begins with the following line; a sentence may begin with `From ` too."""
    return (
        line.startswith(b"From ")
        and is_envelope(line.decode("latin-1"))
        and begins_header(following.decode("latin-1"))
    )


def lines(source: Source, options: Options) -> Iterator[bytes]:
    """Lines with their ends; one longer than a chunk comes in parts."""
    held = b""
    for chunk in source.chunks(options.on_progress):
        *whole, held = (held + chunk).split(b"\n")
        for line in whole:
            yield line + b"\n"
        if len(held) > len(chunk):
            yield held
            held = b""
    if held:
        yield held


def unquoted(pieces: list[bytes]) -> bytes:
    """A mailbox's message without the mark before lines that begin with `From `."""
    return QUOTED_SEPARATOR.sub(rb"\1", b"".join(pieces))


def message_events(data: bytes, options: Options, level: int = 1) -> Iterator[Event]:
    """One message given as bytes."""
    try:
        message = parsed(data)
    except LimitExceeded as error:
        yield Notice(f"{error}: read as it is written")
        yield Text(data.decode("utf-8", "replace") + "\n\n")
        return
    yield from parsed_events(message, options, level)


def parsed_events(message: Message, options: Options, level: int) -> Iterator[Event]:
    """Headers, body, then what is attached."""
    title = title_of(message)
    yield Heading(level, title)
    yield Text("\n".join((title, *header_lines(message))) + "\n\n")
    parts = list(parts_of(message))
    attached = [part for part in parts if isinstance(part, Attachment)]
    for part in parts:
        if not isinstance(part, Attachment):
            yield from body_events(part, options)
    if attached:
        names = "; ".join(f"{one.name} ({one.kind}, {one.size})" for one in attached)
        yield Text(f"Attachments: {names}\n\n")
    for one in attached:
        inner = one.message
        if inner is None:
            yield from attachment_events(one, options, level + 1)
        elif level >= MAX_DEPTH:
            yield Notice(f"attachment {one.name}: messages nested more than {MAX_DEPTH} deep are left out")
        elif isinstance(inner, bytes):
            yield from message_events(inner, options, level + 1)
        else:
            yield from parsed_events(inner, options, level + 1)
