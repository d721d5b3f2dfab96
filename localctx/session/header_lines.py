"""What stands before the passages of an answer from stored KV: short header lines, each said once in a row.

They are evaluated with every question. Knows no scores and no KV.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from localctx.selection import header_line
from localctx.session.cache import Cache
from localctx.session.reading import Passage

__all__ = ["HEADER_TOKENS", "SEPARATOR", "TABLE_TOKENS", "Group", "groups_of"]

HEADER_TOKENS = 20
"""A header line's tokens at most: it is evaluated with every question."""
TABLE_TOKENS = 48
"""Most of a table's header before a passage that begins in its middle."""
SEPARATOR = "\n\n"


@dataclass(frozen=True, slots=True)
class Group:
    """A header line and the passages behind it, which follow each other in their document."""

    header: tuple[int, ...]
    passages: tuple[Passage, ...]

    @property
    def n_tokens(self) -> int:
        """Tokens of both."""
        return len(self.header) + sum(passage.n_tokens for passage in self.passages)


def groups_of(
    cache: Cache,
    passages: Sequence[Passage],
    unnamed: Collection[Passage] = (),
    *,
    are_many: bool = False,
    are_widened: bool = False,
) -> Iterator[Group]:
    """Passages in order; one that goes on where the last one ended, under the same header, joins it. What
    stands under the header of the passage before is parted from it without saying it again.

    unnamed: those that no header leads, nor that of a table · are_many: only words are parted then, since
    each gap takes a step, or room, of its own · are_widened: they are long, and one that goes on joins under
    any header, as an unnamed one does: it begins with its heading.
    """
    waiting: list[Passage] = []
    header = table = ""
    said: str | None = ""
    parting: str | None = None
    for passage in passages:
        is_named = passage not in unnamed
        goes_on = bool(waiting) and _end(waiting[-1]) == (passage.document, passage.first_token)
        joins = goes_on and (are_widened or not is_named)
        line = header if joins else _header(cache, passage) if is_named else ""
        if goes_on and line == header:
            waiting.append(passage)
            continue
        if waiting:
            yield _group(cache, ("" if header == said else header, table), waiting, parting)
            said = header if _is_under_one(waiting) else None
            parting = _least_parting(waiting[-1], passage) if are_many else SEPARATOR
        waiting, header = [passage], line
        table = _table_header(cache, passage) if is_named else ""
    if waiting:
        yield _group(cache, ("" if header == said else header, table), waiting, parting)


def _least_parting(one: Passage, two: Passage) -> str:
    """What keeps the last word of a passage from the first of the next."""
    are_apart = one.text[-1:].isspace() or two.text[:1].isspace()
    return "" if are_apart else "\n"


def _is_under_one(passages: Sequence[Passage]) -> bool:
    """Whether the last passage stands under the heading of the first, and on its page."""
    first, last = passages[0], passages[-1]
    return (first.heading_path, first.page_label) == (last.heading_path, last.page_label)


def _end(passage: Passage) -> tuple[int, int]:
    """(document, first token behind the passage)."""
    return passage.document, passage.first_token + passage.n_tokens


def _group(cache: Cache, headers: tuple[str, str], passages: Sequence[Passage], parting: str | None) -> Group:
    """headers: the line, and that of a table, "" for none · parting: what stands between passages without
    any; None: these are the first.
    """
    begins_anew = passages[0].text.startswith("\n")
    ends = "" if begins_anew else "\n"
    header = "\n".join(filter(None, headers))
    if not header:  # what begins with a line of its own needs no other: it would take a step of its own
        text = "" if begins_anew else parting or ""
    else:
        text = f"{'' if parting is None else SEPARATOR}{header}{ends}"
    return Group(tuple(cache.model.tokenize(text, False)) if text else (), tuple(passages))


def _header(cache: Cache, passage: Passage) -> str:
    """The passage's header line, short enough: without the source where there is one document only."""
    source = passage.source if len(cache.run.readings) > 1 else ""
    for path in (passage.heading_path[-2:], passage.heading_path[-1:]):
        if not (source or path or passage.page_label):
            return ""
        line = header_line(source, path, passage.page_label)
        if len(cache.model.tokenize(line, False)) <= HEADER_TOKENS - 3:
            return line
    while len(cache.model.tokenize(line, False)) > HEADER_TOKENS - 3:
        line = f"{line[: len(line) * 3 // 4].rstrip()}…]"
    return line


def _table_header(cache: Cache, passage: Passage) -> str:
    """The header of the table that the passage begins in, short enough."""
    line = passage.table_header
    while len(cache.model.tokenize(line, False)) > TABLE_TOKENS - 3:
        line = f"{line[: len(line) * 3 // 4].rstrip()}…"
    return line
