"""Documents as a session reads them: cut once into blocks, counted, findable; passages made on demand.

Holds some 70 bytes a block and four a token instead of the blocks, so that a text of any size can be read.
"""

from __future__ import annotations

import json
from array import array
from bisect import bisect_right
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from localctx.blocks import BlockPolicy, seam_difference, split, table_header
from localctx.document import Document
from localctx.selection import header_line
from localctx.session.provenance import Coverage
from localctx.values import Block, BlockKind, Tokenizer

__all__ = ["Passage", "Reading"]

BLOCK_TOKENS = 128
ESTIMATE_CODE_POINTS = 20_000
STRETCH_CODE_POINTS = 16_000
FIRST_STRETCHES = 4
STRETCH_STEP = 32
FACTS = "facts"
"""The part of a kept reading that is JSON; all others are arrays of numbers."""
T = TypeVar("T", bound=Hashable)


@dataclass(frozen=True, slots=True)
class Passage:
    """A block of one of the session's documents, with what is shown beside it.

    Its tokens are [first_token, first_token + n_tokens) of the document's token stream.
    """

    document: int
    start: int
    end: int
    text: str
    n_tokens: int
    source: str
    page: int | None
    page_label: str | None
    heading_path: tuple[str, ...]
    first_token: int = 0
    table_header: str = ""

    @property
    def header(self) -> str:
        """What tells a model which passage this is: file › section › page, and the header of a table in whose
        middle it begins.
        """
        line = header_line(self.source, self.heading_path, self.page_label)
        return f"{line}\n{self.table_header}" if self.table_header else line


@dataclass(slots=True)
class _Seams:
    """Compares stretches of blocks with their text tokenised in one go: the first ones, then every 32nd."""

    n_difference: int = 0
    n_compared: int = 0
    _waiting: list[Block] = field(default_factory=list)
    _n_code_points: int = 0
    _stretch: int = 0

    def add(self, block: Block, tokenize: Tokenizer) -> None:
        """Take the next block; compare when a stretch is complete and its turn has come."""
        is_compared = self._stretch < FIRST_STRETCHES or self._stretch % STRETCH_STEP == 0
        if is_compared:
            self._waiting.append(block)
        self._n_code_points += len(block.text)
        if self._n_code_points < STRETCH_CODE_POINTS and block.cut != "end":
            return
        if is_compared and self._waiting:
            found = seam_difference(self._waiting, tokenize)
            self.n_difference += found.tokens
            self.n_compared += found.tokens_whole
        self._waiting, self._n_code_points = [], 0
        self._stretch += 1


class Reading:
    """One document, cut into blocks by `read()`; indices are those of the blocks in order.

    Its token stream is the concatenation of its blocks' tokens. `block_size`: tokens aimed at in a block ·
    `blocks`: which cuts are taken; neither changes a token · `referenced`: where what earlier questions'
    references name begins, None: nowhere.
    """

    def __init__(
        self,
        document: Document,
        ordinal: int = 0,
        block_size: int = BLOCK_TOKENS,
        blocks: BlockKind = "fixed",
    ) -> None:
        self.document = document
        self.ordinal = ordinal
        self.block_size = block_size
        self.blocks: BlockKind = blocks
        self._stream = array("i")
        self._first_tokens = array("q")
        self._starts = array("q")
        self._ends = array("q")
        self._n_tokens = array("q")
        self._places: list[tuple[int | None, str | None]] = []
        self._paths: list[tuple[str, ...]] = []
        self._seams = _Seams()
        self.referenced: dict[tuple[str, str], int | None] = {}

    def read(self, tokenize: Tokenizer) -> Iterator[Block]:
        """Cut the document, yielding each block once while its span and token count are kept."""
        document = self.document
        self._seams = _Seams()
        for block in split(
            document.text,
            tokenize,
            target_tokens=self.block_size,
            pages=document.pages,
            sections=document.sections,
            policy=BlockPolicy(self.blocks, document.language, is_table=document.format == "csv"),
        ):
            self._first_tokens.append(len(self._stream))
            self._stream.extend(block.tokens)
            self._starts.append(block.start)
            self._ends.append(block.end)
            self._n_tokens.append(block.n_tokens)
            self._places.append((block.page, block.page_label))
            self._paths.append(block.heading_path)
            self._seams.add(block, tokenize)
            yield block

    def parts(self) -> dict[str, bytes]:
        """All that read() found out, for restore(); numbers in this machine's byte order."""
        places, place_numbers = _numbered(self._places)
        paths, path_numbers = _numbered(self._paths)
        seams = (self._seams.n_difference, self._seams.n_compared)
        facts = {"places": places, "paths": paths, "seams": seams}
        arrays = {**self._arrays(), "places": place_numbers, "paths": path_numbers}
        return {
            FACTS: json.dumps(facts).encode(),
            **{name: numbers.tobytes() for name, numbers in arrays.items()},
        }

    def restore(self, parts: Mapping[str, bytes]) -> bool:
        """Be as after the read() that the parts were taken from; False, and nothing changed, where they are
        of another making.
        """
        try:
            facts = json.loads(parts[FACTS])
            found = {name: array(kept.typecode, parts[name]) for name, kept in self._arrays().items()}
            numbers = {name: array("i", parts[name]) for name in ("places", "paths")}
            places = [(page, label) for page, label in facts["places"]]
            paths = [tuple(path) for path in facts["paths"]]
            block_places = [places[number] for number in numbers["places"]]
            block_paths = [paths[number] for number in numbers["paths"]]
            n_difference, n_compared = facts["seams"]
            seams = _Seams(int(n_difference), int(n_compared))
        except (KeyError, ValueError, TypeError, IndexError):
            return False
        self._stream, self._first_tokens = found["tokens"], found["first_tokens"]
        self._starts, self._ends, self._n_tokens = found["starts"], found["ends"], found["n_tokens"]
        self._places, self._paths, self._seams = block_places, block_paths, seams
        return True

    def _arrays(self) -> dict[str, array[int]]:
        """The token stream and what is known of each block, by name."""
        return {
            "tokens": self._stream,
            "first_tokens": self._first_tokens,
            "starts": self._starts,
            "ends": self._ends,
            "n_tokens": self._n_tokens,
        }

    @property
    def seam_warning(self) -> str | None:
        """Said where the blocks' tokens do not add up to those of the text, as far as compared."""
        seams = self._seams
        if seams.n_difference == 0:
            return None
        return (
            f"{self.document.source}: cut into passages the text has {seams.n_difference:+,} tokens "
            f"in {seams.n_compared:,} compared; tokens_total is the passages' sum"
        )

    def estimate_tokens(self, tokenize: Tokenizer) -> int:
        """Tokens of the document, extrapolated from its beginning."""
        total = self.document.text.n_code_points
        sample = self.document.read(0, min(total, ESTIMATE_CODE_POINTS))
        return round(len(tokenize(sample, True)) * total / max(1, len(sample)))

    @property
    def n_blocks(self) -> int:
        """Blocks read so far."""
        return len(self._starts)

    @property
    def block_tokens(self) -> Sequence[int]:
        """Token count of each block."""
        return self._n_tokens

    @property
    def n_tokens(self) -> int:
        """Tokens of all blocks read so far."""
        return len(self._stream)

    @property
    def stream(self) -> array[int]:
        """The token stream of all blocks read so far: int32, four bytes a token."""
        return self._stream

    @property
    def first_tokens(self) -> Sequence[int]:
        """Where each block begins in the token stream."""
        return self._first_tokens

    def span(self, first: int, last: int) -> tuple[int, int]:
        """Code points [start, end) of blocks first..last, both included."""
        return self._starts[first], self._ends[last]

    def block_at(self, offset: int) -> int:
        """The block that holds the code point at `offset`."""
        return max(0, bisect_right(self._starts, offset) - 1)

    def heading_path(self, index: int) -> tuple[str, ...]:
        """Titles of the sections that block `index` is in, outermost first."""
        return self._paths[index]

    def passage(self, index: int) -> Passage:
        """Block `index`, read again from the document."""
        first = self._first_tokens[index]
        return self._passage(index, self.span(index, index), (first, first + self._n_tokens[index]))

    def part(self, index: int, first: int, end: int, spell: Callable[[Sequence[int]], str]) -> Passage:
        """What of block `index` lies in the tokens [first, end) of the stream. spell: tokens → their text."""
        begin, n_tokens = self._first_tokens[index], self._n_tokens[index]
        first, end = max(first, begin), min(end, begin + n_tokens)
        start, stop = self.span(index, index)
        before = spell(self._stream[begin:first])
        cut = min(stop, start + len(before))
        if end < begin + n_tokens:
            stop = max(cut, min(stop, start + len(spell(self._stream[begin:end]))))
        return self._passage(index, (cut, stop), (first, end), start + before.rfind("\n") + 1)

    def _passage(
        self, index: int, span: tuple[int, int], tokens: tuple[int, int], line: int | None = None
    ) -> Passage:
        """line: where the line begins that the passage begins in, where that is not with it."""
        document, (start, end), (first, stop) = self.document, span, tokens
        page, label = self._places[index]
        text, is_table = document.read(start, end), document.format == "csv"
        line = start if line is None else line
        begun = text if line == start else document.read(line, line + 1)
        is_in_table = is_table or begun.lstrip("\n").startswith("|")
        return Passage(
            document=self.ordinal,
            start=start,
            end=end,
            text=text,
            n_tokens=stop - first,
            source=document.source,
            page=page,
            page_label=label or (None if page is None else str(page)),
            heading_path=self._paths[index],
            first_token=first,
            table_header=table_header(document.text, line, end, is_table) if is_in_table else "",
        )

    def coverage(self, n_read: int, n_attended: int) -> Coverage:
        """What is said of this document when `n_read` of its tokens went through the model."""
        document = self.document
        return Coverage(
            tokens_total=self.n_tokens,
            tokens_read=n_read,
            tokens_attended=n_attended,
            tokens_dropped=self.n_tokens - n_read,
            pages_total=len(document.pages),
            pages_without_text=document.pages_without_text,
            replaced_characters=document.replaced_characters,
            pages_by_ocr=tuple(document.confidences),
            ocr_confidence=mean_confidence(document.confidences),
        )


def mean_confidence(confidences: Mapping[int, float]) -> float | None:
    """The mean over pages, None without any."""
    return round(sum(confidences.values()) / len(confidences), 4) if confidences else None


def _numbered(values: Sequence[T]) -> tuple[list[T], array[int]]:
    """Each different value once, in order of appearance, and for every value the number of its like."""
    numbers: dict[T, int] = {}
    at = array("i", (numbers.setdefault(value, len(numbers)) for value in values))
    return list(numbers), at
