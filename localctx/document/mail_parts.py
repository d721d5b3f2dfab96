"""Parts of a message → body text and attachments, each read by the format it has. Fetches nothing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.message import Message
from itertools import chain

from localctx.byte_sizes import format_bytes
from localctx.document.encodings import canonical_encoding, decode_small
from localctx.document.events import Event, Facts, Heading, Notice, NotThisFormat, Options, PageMark, Text
from localctx.document.formats import FORMATS
from localctx.document.mail_headers import file_name
from localctx.document.mail_start import MAILS, mail_name
from localctx.document.sniff import sniff
from localctx.document.source import GZIP_MAGIC, Source, inflated, spooled
from localctx.errors import InputError, UsageError

__all__ = ["Attachment", "attachment_events", "body_events", "parts_of"]

HEAD_BYTES = 20_000


@dataclass(frozen=True, slots=True)
class Attachment:
    """What hangs on a message: its name, declared type and content."""

    name: str
    kind: str
    data: bytes
    message: Message | bytes | None = None
    n_bytes: int = 0
    """Of a message, which is not held as bytes too."""

    @property
    def size(self) -> str:
        """Its size for a person."""
        return format_bytes(self.n_bytes or len(self.data))


def parts_of(part: Message) -> Iterator[Message | Attachment]:
    """The parts of the body that are to be read, and the attachments, in order."""
    kind = part.get_content_type()
    payload = part.get_payload()
    inner = [one for one in payload if isinstance(one, Message)] if isinstance(payload, list) else []
    if kind == "message/rfc822" and inner:
        for one in inner:
            yield Attachment(file_name(part) or "message", kind, b"", one, len(one.as_bytes()))
    elif kind.startswith("message/") and inner:  # a delivery report: groups of header lines
        text = "\n".join(f"{name}: {value}" for one in inner for name, value in one.items())
        name = file_name(part) or kind.rpartition("/")[2]
        yield Attachment(name, kind, text.encode("utf-8", "replace"))
    elif part.is_multipart():
        yield from alternative(inner) if kind == "multipart/alternative" else all_parts(inner)
    elif is_body(part):
        yield part
    else:
        yield attachment(part)


def all_parts(parts: list[Message]) -> Iterator[Message | Attachment]:
    """What several parts hold, one after the other."""
    for one in parts:
        yield from parts_of(one)


def alternative(parts: list[Message]) -> Iterator[Message | Attachment]:
    """Of forms of one body the plain one, else one with HTML, whole; what hangs on any of them stays."""
    forms = [list(parts_of(one)) for one in parts]
    bodies = [[one for one in form if isinstance(one, Message)] for form in forms]
    filled = [form for form in bodies if any(content(one).strip() for one in form)]
    plain = [form for form in filled if all(one.get_content_type() == "text/plain" for one in form)]
    chosen: list[Message] = next(chain(plain, filled, bodies), [])
    yield from chosen
    yield from (one for form in forms for one in form if isinstance(one, Attachment))


def is_body(part: Message) -> bool:
    """Whether a part is text to be read where it stands."""
    is_shown = part.get_content_disposition() != "attachment" and not file_name(part)
    return is_shown and part.get_content_type() in ("text/plain", "text/html")


def content(part: Message) -> bytes:
    """A part's bytes without their transfer encoding."""
    data = part.get_payload(decode=True)
    return data if isinstance(data, bytes) else b""


def attachment(part: Message) -> Attachment:
    """A part that is not body text."""
    kind = part.get_content_type()
    data = content(part)
    name = file_name(part) or f"unnamed {kind}"
    extension = name.lower().rpartition(".")[2]
    is_message = extension in MAILS and mail_name(data[:HEAD_BYTES].decode("latin-1"), extension) == "eml"
    return Attachment(name, kind, data, data if is_message else None)


def body_events(part: Message, options: Options) -> Iterator[Event]:
    """The text of a part of the body."""
    data, charset = content(part), declared_charset(part)
    if part.get_content_type() == "text/html":
        yield from html_body(data, charset, options)
        return
    text = decode_small(data, None, charset)[0].replace("\r\n", "\n").strip("\n")
    if text.strip():
        yield Text(f"{text}\n\n")


def declared_charset(part: Message) -> str | None:
    """The charset that a part names, if Python knows it."""
    try:
        name = part.get_content_charset()
        return canonical_encoding(name) if name else None
    except (UsageError, LookupError, UnicodeError):
        return None


def html_body(data: bytes, charset: str | None, options: Options) -> Iterator[Event]:
    """A body that is there as HTML only; its headings are no sections."""
    with_own = replace(quiet(options), encoding=None if charset == "ascii" else charset)
    source = spooled(io.BytesIO(data), "body.html", options.limits)
    try:
        for event in FORMATS["html"].converter()(source, with_own):
            if isinstance(event, Text | Notice):
                yield event
    except InputError as error:
        yield Notice(f"a message's HTML was left out: {reason(error, source.name)}")
    finally:
        source.close()
    yield Text("\n")


def quiet(options: Options) -> Options:
    """The options for a part: those that were meant for the file do not count."""
    return replace(options, encoding=None, password=None, pages=None, on_progress=None, on_preview=None)


def attachment_events(one: Attachment, options: Options, level: int) -> Iterator[Event]:
    """An attachment as a section, or a notice that and why it was left out."""
    source = spooled(io.BytesIO(one.data), one.name, options.limits)
    n_texts = 0
    try:
        if source.head(3) == GZIP_MAGIC:
            packed, source = source, inflated(source, options.limits)
            packed.close()
        for event in read_as_known(source, options, level):
            if isinstance(event, Text | Heading) and not n_texts:
                n_texts = 1
                yield Heading(level, one.name)
                yield Text(f"Attachment {one.name}\n\n")
            n_texts += isinstance(event, Text)
            if isinstance(event, Notice):
                event = Notice(f"attachment {one.name}: {event.message}")  # noqa: PLW2901  # the same, named
            yield event
        if n_texts:
            yield Text("\n\n")
    except (InputError, NotThisFormat) as error:
        how = "the rest was left out" if n_texts else "left out"
        yield Notice(f"attachment {one.name}: {how}: {reason(error, source.name)}")
        yield Text("\n\n" if n_texts else f"(attachment {one.name} was left out)\n\n")
    finally:
        source.close()


def read_as_known(source: Source, options: Options, level: int) -> Iterator[Event]:
    """The events of the format that an attachment has; its headings lie below its own. Raises InputError."""
    sniffed = sniff(source, options.limits)
    if sniffed.format.name in MAILS:
        raise InputError(f"{source.name}: is a {sniffed.format.label} inside a message", "save it to a file")
    if sniffed.format.name == "image":
        raise InputError(f"{source.name}: is an image", "save it to a file to have it read by OCR")
    for event in sniffed.format.converter()(source, quiet(options)):
        if isinstance(event, Heading):
            yield Heading(level + event.level, event.title)
        elif not isinstance(event, PageMark | Facts):
            yield event


def reason(error: InputError | NotThisFormat, name: str) -> str:
    """Why a part was left out, without its name."""
    return str(error).removeprefix(f"{name}: ")
