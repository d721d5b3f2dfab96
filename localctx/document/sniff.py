"""Head of a file, its members where it is a zip → its format. Content decides; the extension is a hint."""

from __future__ import annotations

import re
from dataclasses import dataclass

from localctx._native import Utf8Index
from localctx.document.archive import member_names
from localctx.document.encodings import decode_small, mark_of, wide_pattern
from localctx.document.formats import CODE_LANGUAGES, FORMATS, Format, format_for_extension
from localctx.document.limits import Limits
from localctx.document.mail_start import MAILS, mail_name
from localctx.document.ocr import INSTALL, engine_version
from localctx.document.record_start import records_name
from localctx.document.source import GZIP_MAGIC, Source
from localctx.errors import NoTextError, UnknownFormat

__all__ = ["HEAD_BYTES", "Sniffed", "refuse_known_binary", "sniff"]

HEAD_BYTES = 1 << 16
SEEN_CHARACTERS = 20_000
SUPPORTED = "supported: " + ", ".join(row.label for row in FORMATS.values()) + ", any of them in .gz"

MAGICS: tuple[tuple[int, bytes, str], ...] = (  # no text begins with these
    (0, b"\x1aE\xdf\xa3", "a video"), (0, b"\0\0\1\0", "an icon"),
    (0, b"SQLite format 3\0", "an SQLite database"), (0, b"\x7fELF", "a program"),
    (0, b"\xcf\xfa\xed\xfe", "a program"), (0, b"\xca\xfe\xba\xbe", "a program"), (0, b"\0asm", "a program"),
    (0, b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"), (0, b"Rar!\x1a\x07", "a RAR archive"),
    (0, b"\xfd7zXZ\0", "an xz archive"), (0, b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (0, b"\xed\xab\xee\xdb", "an RPM package"), (0, b"\x89HDF", "an HDF5 file"),
    (0, b"\x93NUMPY", "a NumPy array"), (0, b"\0\1\0\0\0", "a font"),
    (0, b"%!PS-Adobe-", "a PostScript file"),
)  # fmt: skip
IMAGE_MAGICS = (
    (b"\x89PNG", "a PNG image"), (b"\xff\xd8\xff", "a JPEG image"), (b"II*\0", "a TIFF image"),
    (b"MM\0*", "a TIFF image"),
)  # fmt: skip
"""Images that OCR reads."""
RTF_MAGIC = b"{\\rtf1"
LETTER_MAGICS = tuple(  # letters that a text may begin with too: they count where control characters follow
    (re.compile(pattern, re.S), label)
    for pattern, label in (
        (rb"GIF8[79]a", "a GIF image"), (rb"RIFF.{4}WEBP", "a WebP image"),
        (rb"RIFF.{4}WAVE", "a sound file"), (rb"RIFF.{4}AVI ", "a video"),
        (rb".{4}ftyp", "a video or HEIC image"), (rb"8BPS", "a Photoshop image"),
        (rb"OggS", "a sound or video file"), (rb"ID3", "a sound file"), (rb"fLaC", "a sound file"),
        (rb"BZh[1-9]", "a bzip2 archive"), (rb".{257}ustar", "a tar archive"),
        (rb"!<arch>\n", "an ar archive or Debian package"), (rb"GGUF", "a model file (GGUF)"),
        (rb"PAR1", "a Parquet file"), (rb"%!PS", "a PostScript file"), (rb"AT&TFORM", "a DjVu file"),
        (rb".{60}BOOKMOBI", "a Kindle book"), (rb"wOF[F2]", "a font"), (rb"OTTO", "a font"),
        (rb"!BDN", "an Outlook mailbox"),
    )
)  # fmt: skip
OLE_MAGIC = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
ZIP_MAGICS = (b"PK\x03\x04", b"PK\x05\x06")
ZIP_KINDS = (  # a member's name, or how it begins, and what the zip is then
    ("xl/workbook.bin", "a binary Excel workbook (save it as .xlsx)"),
    ("content.xml", "an OpenDocument file"),
    ("AndroidManifest.xml", "an Android app"), ("META-INF/MANIFEST.MF", "a Java archive"),
    ("Index/", "an Apple iWork document"),
)  # fmt: skip
PDF_MARK = re.compile(rb"%PDF-\d")
HTML_START = re.compile(r"<(!doctype\s+html|html|head|body|title)\b", re.I)
CONTROLS = bytes(set(range(32)) - {7, 8, 9, 10, 11, 12, 13, 27})


@dataclass(frozen=True, slots=True)
class Sniffed:
    """The format a file's content has, the language of source code, and what the user should be told."""

    format: Format
    code_language: str | None = None
    notices: tuple[str, ...] = ()


def sniff(source: Source, limits: Limits | None = None) -> Sniffed:
    """The format of an opened (and, if need be, inflated) file.

    Raises UnknownFormat, NoTextError, InputError (damaged archive), LimitExceeded.
    """
    head = source.head(HEAD_BYTES)
    if not head:
        raise NoTextError(f"{source.name}: is empty")
    if len(head) == source.size_bytes and head.isspace():
        raise NoTextError(f"{source.name}: no text, only white space", "check that it is the right file")
    limits = limits or Limits()
    name = image_name(head, source.name, limits) or sniff_name(head, source, limits)
    if name is not None:
        return named(name, source)
    return sniff_text(head, source)


def sniff_name(head: bytes, source: Source, limits: Limits) -> str | None:
    """The name of a format that is told by its first bytes; None for text. Raises UnknownFormat."""
    if is_pdf(head, source.extension):
        return "pdf"
    if head.startswith(RTF_MAGIC):
        return "rtf"
    if head.startswith(ZIP_MAGICS):
        return sniff_zip(source, limits)
    refuse_known_binary(head, source.name)
    return None


def image_name(head: bytes, name: str, limits: Limits) -> str | None:
    """`image` for a picture that OCR can read. Raises UnknownFormat, with what to do, where it cannot."""
    label = next((label for magic, label in IMAGE_MAGICS if head.startswith(magic)), None)
    if label is None:
        return None
    if engine_version() is None:
        raise UnknownFormat(f"{name}: is {label}", f"{INSTALL} has images read by OCR")
    if not limits.ocr:
        raise UnknownFormat(f"{name}: is {label}", "--ocr auto has it read")
    return "image"


def is_pdf(head: bytes, extension: str) -> bool:
    """Whether a PDF's mark stands where readers look for it; a text that only speaks of it is none."""
    found = PDF_MARK.search(head, 0, 1024 + 6)
    if found is None:
        return False
    return found.start() == 0 or extension == "pdf" or n_controls(head) > 0


def refuse_known_binary(head: bytes, name: str) -> None:
    """Raises UnknownFormat, with what it is, for well-known files that hold no readable text."""
    if head.startswith(OLE_MAGIC):
        if "EncryptedPackage".encode("utf-16-le") in head:
            raise UnknownFormat(
                f"{name}: is an Office document with a password", "save a copy without the password"
            )
        raise UnknownFormat(f"{name}: is an old binary Office document", "save it as .docx or PDF")
    if head.startswith(b"version https://git-lfs.github.com/spec/"):
        raise UnknownFormat(f"{name}: is a Git LFS pointer, not the file itself", "run git lfs pull")
    for offset, magic, label in MAGICS:
        if head.startswith(magic, offset):
            raise UnknownFormat(f"{name}: is {label}", SUPPORTED)
    if n_controls(head):
        for pattern, label in LETTER_MAGICS:
            if pattern.match(head):
                raise UnknownFormat(f"{name}: is {label}", SUPPORTED)
    if head.startswith(GZIP_MAGIC):
        raise UnknownFormat(f"{name}: is a gzip file inside a gzip file", "unpack it once")
    if head.startswith(b"MZ") and b"PE\0\0" in head[:4096]:
        raise UnknownFormat(f"{name}: is a program", SUPPORTED)


def sniff_zip(source: Source, limits: Limits) -> str:
    """The name of the document format that a zip's members make. Raises UnknownFormat."""
    members = member_names(source, limits)
    if "word/document.xml" in members or any(name.startswith("word/document") for name in members):
        return "docx"
    if "ppt/presentation.xml" in members:
        return "pptx"
    if "META-INF/container.xml" in members:
        return "epub"
    if any(name.startswith("xl/") for name in members) and "xl/workbook.bin" not in members:
        return "xlsx"
    for start, label in ZIP_KINDS:
        if any(name.startswith(start) for name in members):
            raise UnknownFormat(f"{source.name}: is {label}", SUPPORTED)
    raise UnknownFormat(f"{source.name}: is a zip archive", "unpack it and name the files in it")


def sniff_text(head: bytes, source: Source) -> Sniffed:
    """The text format of a file that is no known binary. Raises UnknownFormat where it is no text at all."""
    if is_binary(head, is_whole=len(head) == source.size_bytes):
        raise UnknownFormat(f"{source.name}: is binary data of an unknown kind", SUPPORTED)
    text, extension = decode_small(head)[0][:SEEN_CHARACTERS], source.extension
    if (mail := mail_name(text, extension)) is not None:
        return named(mail, source)
    hinted = format_for_extension(extension)
    if hinted is not None and hinted.name in ("code", "markdown"):
        return Sniffed(hinted, CODE_LANGUAGES.get(extension))
    if starts_as_html(text) or (hinted is FORMATS["html"] and "<" in text):
        return named("html", source)
    if text.lstrip().startswith("<?xml") or (hinted is FORMATS["xml"] and text.lstrip().startswith("<")):
        return named("xml", source)
    if hinted is not None and hinted.is_text:
        return Sniffed(hinted)
    if (script := code_by_first_line(text)) is not None:
        return script
    is_whole = len(head) == source.size_bytes and len(text) < SEEN_CHARACTERS
    records = records_name(text, is_whole) if hinted is None else None
    return named(records or "text", source)


def starts_as_html(text: str) -> bool:
    """Whether a page begins here, after an XML declaration and comments perhaps."""
    at = skip_spaces(text, 0)
    if text.startswith("<?xml", at):
        at = skip_spaces(text, text.find("?>", at) + 2 if "?>" in text[at:] else len(text))
    while text.startswith("<!--", at) and (end := text.find("-->", at + 4)) >= 0:
        at = skip_spaces(text, end + 3)
    return HTML_START.match(text, at) is not None


def skip_spaces(text: str, at: int) -> int:
    """Where the white space that begins at `at` ends."""
    while at < len(text) and text[at].isspace():
        at += 1
    return at


def code_by_first_line(text: str) -> Sniffed | None:
    """A script that names its interpreter."""
    found = re.match(r"#!\s*\S*/(?:env\s+(?:-S\s+)?)?(python|perl|ruby|node|bash|sh|zsh|awk|lua)", text)
    if found is None:
        return None
    languages = {"node": "javascript", "bash": "shell", "sh": "shell", "zsh": "shell"}
    return Sniffed(FORMATS["code"], languages.get(found[1], found[1]))


def named(name: str, source: Source) -> Sniffed:
    """The format, with a notice where the file's name promises another one."""
    row = FORMATS[name]
    hinted = format_for_extension(source.extension)
    if hinted is None or hinted is row or (hinted.is_text and row.is_text):
        return Sniffed(row)
    if {hinted.name, name} in ({"xml", "html"}, MAILS) or (name == "xml" and hinted.name == "text"):
        return Sniffed(row)
    what = f"{row.label}" if name != "text" else "plain text"
    return Sniffed(row, notices=(f"named .{source.extension}, but its content is {what}: read as that",))


def n_controls(head: bytes) -> int:
    """How many NULs and other control characters that no text holds there are."""
    return len(head) - len(head.translate(None, CONTROLS))


def is_binary(head: bytes, is_whole: bool) -> bool:
    """Whether the bytes are no text in any encoding."""
    if mark_of(head) is not None or wide_pattern(head) is not None:
        return False
    n_other = n_controls(head) - head.count(0)
    index = Utf8Index()
    if index.feed(head) and (index.finish() or not is_whole):
        return head.count(0) > 0.3 * len(head) or n_other > 0.1 * len(head)
    if n_controls(head) == 0:
        return False
    import chardet

    guess = chardet.detect(head, max_bytes=len(head))["encoding"]
    if guess is not None and guess.lower().startswith("utf-"):
        return False
    return guess is None or 0 in head or n_other > 0.05 * len(head)
