"""What runs in the child process: open a PDF by whatever engine can, read page by page, ask a second opinion.

`read_pdf` yields JSON values: a header with the warnings of opening, then pages. Knows no limits and no user.
"""

from __future__ import annotations

import io
import math
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, NoReturn, TypeAlias

from localctx.document.pdf_clean import clean_text, fold_title
from localctx.document.pdf_engines import PdfminerReader, PdfReader, PypdfReader, Reading
from localctx.document.pdf_headings import HeadingSizes, locate_titles, sample_sizes
from localctx.document.pdf_lines import usual_widths
from localctx.document.pdf_margins import learned_margins, sampled_pages
from localctx.document.pdf_order import Strip, learned_strips
from localctx.document.pdf_page import NOTHING, Composed, compose
from localctx.document.pdf_pdfium import PdfiumReader, PdfiumRefusal
from localctx.document.pdf_quality import GOOD_ENOUGH, text_quality
from localctx.errors import InputError, PasswordNeeded
from localctx.names import display_name

if TYPE_CHECKING:
    import pikepdf

__all__ = ["read_pdf"]

Item: TypeAlias = dict[str, Any]

MAX_VAIN_OPINIONS = 20
"""An engine that was asked this often and never did better is not asked again."""


def read_pdf(
    path: str,
    name: str,
    password: str | None,
    ranges: Sequence[Sequence[int]] | None,
    engine: str,
    may_sample: bool = True,
) -> Iterator[Item]:
    """The document's items. `ranges` of page indices [first, last] are read, None: all; `name` is for errors.

    engine "pdfium" tries every way; "pdfminer" leaves pdfium alone, for a document that crashed it.
    may_sample: some pages are looked at first, for what runs through them: headers, sizes of headings.
    Raises PasswordNeeded, InputError.
    """
    opened = Opened(path, name, password, engine)
    reader = opened.reader
    outline = list(read_outline(reader, opened.warnings))
    yield {"n_pages": reader.n_pages, "outline": outline, "warnings": opened.warnings}
    pages = Pages(opened, outline, may_sample)
    for first, last in ranges if ranges is not None else [(0, reader.n_pages - 1)]:
        for index in range(first, min(last, reader.n_pages - 1) + 1):
            yield from pages.items(index)


def read_outline(reader: PdfReader, warnings: list[str]) -> Iterator[tuple[int, str, int | None]]:
    """Bookmarks with a title, cleaned: level, title, page index."""
    try:
        for level, title, index in reader.outline():
            if title := fold_title(title):
                yield level, title, index
    except Exception as error:  # noqa: BLE001 - a broken outline is no reason to refuse the text
        warnings.append(f"the outline could not be read ({short(error)})")


@dataclass(frozen=True, slots=True)
class Version:
    """A page's clean text as one engine has it."""

    text: str
    quality: float
    engine: str


class Opened:
    """A document opened by the first way that works; `source` and `password` open it for others too."""

    def __init__(self, path: str, name: str, password: str | None, engine: str) -> None:
        self.name = name
        self.password = ""
        self.warnings: list[str] = []
        self.source: str | BinaryIO = path
        self.failures: list[str] = []
        self.whole: pikepdf.Pdf | None = None
        if engine == "pdfium":
            self.reader = self.open_first(path, password)
        else:
            self.reader = self.open_pdfminer(path, password)

    def open_first(self, path: str, password: str | None) -> PdfReader:
        """pdfium with the empty or given password; a copy that pikepdf wrote; pdfminer."""
        for attempt in ("", password):
            if attempt is None:
                continue
            try:
                reader = PdfiumReader(path, attempt)
            except PdfiumRefusal as refusal:
                if not refusal.needs_password:
                    self.failures.append(f"pdfium: {refusal}")
                    break
            else:
                self.password = attempt
                return reader
        return self.open_copy(path, password) or self.open_pdfminer(path, password)

    def open_copy(self, path: str, password: str | None) -> PdfReader | None:
        """pdfium on a copy, repaired and decrypted, in an unnamed temporary file; None where that fails."""
        import pikepdf

        for attempt in ("", password):
            if attempt is None:
                continue
            try:
                with pikepdf.open(path, password=attempt) as document:
                    if len(document.pages) == 0:
                        raise InputError("no pages")
                    copy = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the reader
                    document.save(copy, encryption=False)
                reader = PdfiumReader(copy)
            except pikepdf.PasswordError:
                continue
            except Exception as error:  # noqa: BLE001 - any failure here means the next engine
                self.failures.append(f"pikepdf: {short(error).removeprefix(f'{display_name(path)}: ')}")
                return None
            self.source = copy
            if self.failures:
                self.warnings.append("the file is damaged and was repaired; text may be missing")
            return reader
        self.refuse_password(password)

    def open_pdfminer(self, path: str, password: str | None) -> PdfReader:
        """pdfminer; raises InputError with what every engine said."""
        from pdfminer.pdfdocument import PDFPasswordIncorrect

        try:
            reader = PdfminerReader(Path(path).open("rb"), password or "")  # noqa: SIM115 - the reader's own
            if reader.n_pages:
                self.password = password or ""
                self.warnings.append("the file is damaged; pdfminer read what it could, text may be missing")
                return reader
            self.failures.append("pdfminer: no pages")
        except PDFPasswordIncorrect:
            self.refuse_password(password)
        except Exception as error:  # noqa: BLE001 - named in the message
            self.failures.append(f"pdfminer: {short(error)}")
        raise InputError(
            f"{self.name}: not a readable PDF ({'; '.join(self.failures)})",
            "open it in a PDF viewer and save or print it to a new PDF, then try that file",
        )

    def single_page(self, index: int) -> BinaryIO:
        """A page as a document of its own, so that slow engines need not read the whole one."""
        import pikepdf

        if self.whole is None:
            self.whole = pikepdf.open(self.source, password=self.password)
        page = io.BytesIO()
        with pikepdf.new() as document:
            document.pages.append(self.whole.pages[index])
            document.save(page)
        return page

    def refuse_password(self, password: str | None) -> NoReturn:
        """Raise PasswordNeeded: neither the empty password nor the given one fits."""
        what = (
            "is encrypted and needs a password" if password is None else "the given password does not open it"
        )
        raise PasswordNeeded(f"{self.name}: {what}", "give it with --password-file FILE (its first line)")


class Pages:
    """Reads the pages of an opened document, with a second opinion where the text looks wrong."""

    def __init__(
        self, opened: Opened, outline: Sequence[tuple[int, str, int | None]], may_sample: bool = True
    ) -> None:
        self.opened = opened
        self.reader = opened.reader
        self.n_vain = {PdfminerReader.engine: 0, PypdfReader.engine: 0}
        self.before: tuple[int, Composed] = (-1, NOTHING)
        self.titles: dict[int, list[tuple[int, str]]] = {}
        for level, title, index in outline:
            if index is not None:
                self.titles.setdefault(index, []).append((level, title))
        self.sampled = sample(self.reader) if may_sample else {}
        self.sizes = (
            HeadingSizes(()) if outline else sample_sizes(seen.lines for seen in self.sampled.values())
        )
        self.strips: tuple[Strip, ...] = ()
        if isinstance(self.reader, PdfiumReader):
            pages = [seen.lines for seen in self.sampled.values()]
            self.reader.usual_widths = usual_widths(line for lines in pages for line in lines)
            self.strips, self.reader.places_words = learned_strips(pages)
        placed = {i: (seen.lines, seen.box) for i, seen in self.sampled.items()}
        self.margins = learned_margins(placed, [title for _, title, _ in outline], self.reader.n_pages)
        self.running: list[str] = []

    def items(self, index: int) -> Iterator[Item]:
        """A page as a JSON value; before it, provisionally, the first engine's where others are asked."""
        engine, label, self.running = self.reader.engine, None, []
        try:
            seen = self.sampled.pop(index, None) or self.reader.read(index)
            lines, label, self.running = self.margins.split(index, seen.lines, seen.box)
            seen = replace(seen, lines=tuple(lines))
            raw = self.composed(index, seen) if seen.lines else seen.text
            missing = is_missing(seen, raw)
        except Exception:  # noqa: BLE001 - others may manage; a page that nobody read has no engine
            seen, raw, missing, engine = Reading("", n_drawn=1), "", True, ""
        first = Version(clean_text(raw), text_quality(raw), engine)
        if not raw.strip() and not missing:
            first = Version("", 0.0 if seen.n_drawn else 1.0, engine)
        elif seen.hidden:  # other engines tell no hidden text apart: theirs would bring it back
            yield self.item(index, first, seen, label) | {"is_incomplete": missing}
            return
        elif missing or first.quality < GOOD_ENOUGH:
            yield self.item(index, first, seen, label) | {"provisional": True}
            best = self.best(first, index)
            yield self.item(index, best, seen if best is first else replace(seen, lines=()), label)
            return
        yield self.item(index, first, seen, label)

    def composed(self, index: int, seen: Reading) -> str:
        """The page's text, made of its lines."""
        before = self.before[1] if self.before[0] == index - 1 else NOTHING
        page = compose(seen, seen.lines, before, self.strips)
        self.before = (index, page)
        return page.text

    def item(self, index: int, version: Version, seen: Reading, printed: str | None) -> Item:
        """One page as a JSON value; `printed` is its label where the document has none for it."""
        titles = self.titles.get(index) or self.sizes.headings(seen.lines)
        return {
            "number": index + 1,
            "text": version.text,
            "label": self.reader.label(index) or printed,
            "quality": version.quality,
            "engine": version.engine,
            "headings": locate_titles(titles, version.text) if version.text else [],
            "hidden": seen.hidden,
            "running": self.running,
            "is_recognised": seen.drawn is not None and seen.drawn.is_recognised,
        }

    def best(self, first: Version, index: int) -> Version:
        """The version that looks most like language: the first engine's or another's."""
        opinions = (self.opinion(engine, index) for engine in self.n_vain if engine != first.engine)
        versions = [first, *filter(None, opinions)]
        longest = max(len(version.text) for version in versions) or 1
        best = max(versions, key=lambda version: worth(version, longest))
        for engine in self.n_vain:
            self.n_vain[engine] = 0 if engine == best.engine else self.n_vain[engine] + 1
        return best

    def opinion(self, engine: str, index: int) -> Version | None:
        """What another engine reads on the page; None where it fails or was never any better."""
        if self.n_vain[engine] >= MAX_VAIN_OPINIONS:
            return None
        kind = PdfminerReader if engine == PdfminerReader.engine else PypdfReader
        try:
            raw = kind(self.opened.single_page(index)).read(0).text
        except Exception:  # noqa: BLE001 - no opinion; the page's warning is given anyway
            return None
        return Version(clean_text(raw), text_quality(raw), engine)


def sample(reader: PdfReader) -> dict[int, Reading]:
    """Readings of pages spread over the document, by index; none from an engine that places no lines."""
    readings: dict[int, Reading] = {}
    for index in sampled_pages(reader.n_pages) if reader.engine == "pdfium" else []:
        try:
            readings[index] = reader.read(index)
        except Exception:  # noqa: BLE001, S112 - the page is reported when it is read
            continue
    return readings


def is_missing(seen: Reading, raw: str) -> bool:
    """Whether a page draws more pieces of text than could be read: hidden text is left out on purpose."""
    n_characters = len(raw) + sum(len(hidden.text) for hidden in seen.hidden)
    n_text = seen.drawn.n_text if seen.drawn is not None and seen.n_drawn > n_characters else 0
    return n_text > n_characters // 4 + 3


def worth(version: Version, longest: int) -> float:
    """How good a version is beside the others: clean above all, but not by leaving most of the text out."""
    return version.quality**2 * math.sqrt(math.sqrt(len(version.text) / longest))


def short(error: BaseException) -> str:
    """An exception as a few words on one line, which may quote the file."""
    return display_name(" ".join(str(error).split())) or type(error).__name__
