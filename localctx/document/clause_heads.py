"""A line of text → the clause that begins with it: number, words that name it. Pure; knows no documents.

Numbers are "2.", "2.1", "IV.", "§ 5", "Article 3", "Ziffer 4", "Schedule A", "第五条", "三、" and the like.
Whether such a line is a clause or the middle of a sentence is told by the line before it and by the numbers
so far.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import regex

__all__ = ["Head", "Heads", "han_value"]

MAX_TITLE_CHARACTERS = 90
SHORT_TITLE_CHARACTERS = 60
SHORT_TITLE_WORDS = 8
HAN_TITLE_CHARACTERS = 24
FULL_SHARE = 0.9
"""A line this full, with the next one's first word, was broken for want of room."""
NARROW = 40
"""Lines that are shorter than this when full tell nothing."""
WRAPPED = "and so on"
MOST_SKIPPED = 3
"""Numbers that a contract leaves out in a row are no more than two ("intentionally omitted")."""
MOST_LISTS = 24
"""Lists that are remembered from the outermost one on, and as many from the last one back."""

_SPACE = r"[ \t\u00A0\u3000]"
_BEFORE = regex.compile(rf"{_SPACE}*(?:\#{{1,6}}{_SPACE}+)?(?:\*\*|__)?{_SPACE}*")
_DECIMAL = regex.compile(
    rf"(?P<number>\p{{Nd}}{{1,4}}(?:\.\p{{Nd}}{{1,3}}){{0,5}})(?P<mark>[.)．、]?)(?:{_SPACE}+|(?=[\p{{Han}}])|$)"
)
_ROMAN = regex.compile(rf"(?P<number>[IVXLC]{{1,7}})(?P<mark>[.)]){_SPACE}+(?=\p{{Lu}})")
_NAMED = regex.compile(
    r"(?P<word>§{1,2}|Art(?:\.|icle|ikel)?|Section|Clause|Ziffer|Abschnitt|Schedule|Annex|Exhibit|Appendix|Anlage"
    r"|Anhang|Part|Teil|Chapter|Kapitel)"
    rf"{_SPACE}*(?P<number>\p{{Nd}}{{1,4}}(?:\.\p{{Nd}}{{1,3}})*[a-z]?|[IVXLC]{{1,7}}|[A-Z])(?![\p{{L}}\p{{N}}])"
    rf"{_SPACE}*(?P<mark>[.:)–—-]?){_SPACE}*",
    regex.IGNORECASE,
)
_HAN_NAMED = regex.compile(
    rf"第{_SPACE}*(?P<number>[〇零一二两三四五六七八九十百\p{{Nd}}]{{1,5}}){_SPACE}*(?P<word>[条條章节節编編部])"
    rf"(?P<mark>[、：:.．\s\u3000]*)"
)
_HAN_LISTED = regex.compile(rf"(?P<number>[一二三四五六七八九十]{{1,3}})(?P<mark>[、．.]){_SPACE}*")
_CAPITALS = regex.compile(r"[\p{Lu}\p{N}\p{P} ]{3,80}")
_ENDED = regex.compile(r"[.;:!?。；：！？…][\"'”’」』)\]*_]*$")
_TERMINAL = regex.compile(r"[.;!?。；！？,，][\"'”’」』)\]*_]*$")
_CONTENTS = regex.compile(r"(?:\.{3}|(?:\. ){3}|…|\t)\s{0,9}(?:\p{Nd}{1,4}|[ivxlc]{1,6})$")
TAIL = 24
"""Characters at a line's end that say how it ends: patterns look at no more, however long a line is."""
_HAN = regex.compile(r"\p{Han}")
_DIGITS = {sign: value for value, sign in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2}
_ROMANS = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100}


@dataclass(frozen=True, slots=True)
class Head:
    """How a clause begins. number: "2.1", "" without one · level: 1 is
    outermost · text_start: offset in the line behind the number · title: its words where they are
    a heading, else "".
    """

    number: str
    level: int
    text_start: int
    title: str


@dataclass(slots=True)
class Heads:
    """Finds heads line by line; remembers the numbers so far."""

    counts: list[list[int]] = field(default_factory=list)
    """Numbers in force, outermost list first: a list that begins anew inside a clause is pushed."""

    def head(self, line: str, before: str, after: str, *, width: int = 0) -> Head | None:
        """The head that the line is, between the line before it and the one after it; None: it is none.
        width: of a full line of the text.
        """
        start = _BEFORE.match(line).end()  # type: ignore[union-attr]  # it matches the empty text
        if is_listed(line) or start >= len(line):
            return None
        n_needed = len(line) + 1 + len(after.split(maxsplit=1)[0]) if after.strip() else 0
        if width >= NARROW and n_needed > FULL_SHARE * width:
            after = WRAPPED  # the next word had no room: the line was broken inside a sentence
        is_free = not before.strip() or _ENDED.search(_tail(before)) is not None or start > len(line.lstrip())
        for read in (self._named, self._decimal, self._roman, self._han):
            found = read(line, start, after, is_free=is_free or _is_heading_mark(line))
            if found is not None:
                return found
        return _capitals(line, start, before, after)

    def inline(self, line: str, place: int) -> Head | None:
        """The head at that place inside a line: only the very next number of those with points counts."""
        match = _DECIMAL.match(line, place)
        if match is None or not self.counts:
            return None
        parts, last = [int(part) for part in match["number"].split(".")], self.counts[-1]
        depth = len(parts) - 1
        is_next = len(last) > depth and parts == [*last[:depth], last[depth] + 1]
        if depth == 0 or not (is_next or parts == [*last, 1]):
            return None
        self.counts[-1] = parts
        return Head(".".join(map(str, parts)), 1 + len(parts), match.end(), "")

    def _named(self, line: str, start: int, after: str, *, is_free: bool) -> Head | None:
        match = _NAMED.match(line, start) or _HAN_NAMED.match(line, start)
        if match is None:
            return None
        rest = line[match.end() :].strip()
        if match.re is _HAN_NAMED:
            if not (is_free or match["mark"] or not rest):
                return None
            level = 1 if match["word"] in "章编編部" else 2
            return Head(han_number(match["number"]), level, match.end(), _title(rest, after))
        opens = not rest or match["mark"] in (".", ":", "–", "—", "-") or rest[0].isupper()
        title = _title(rest, after)
        is_title = not rest or bool(title) or match["mark"] in (":", "–", "—")
        if not (is_free and opens and is_title):
            return None
        is_outer = match["word"].casefold() in ("part", "teil", "chapter", "kapitel")
        return Head(plain_number(match["number"]), 1 if is_outer else 2, match.end(), title)

    def _decimal(self, line: str, start: int, after: str, *, is_free: bool) -> Head | None:
        match = _DECIMAL.match(line, start)
        if match is None:
            return None
        rest = line[match.end() :].strip()
        parts = [int(part) for part in match["number"].split(".")]
        is_marked = bool(match["mark"]) or len(parts) > 1
        opens = not rest or not rest[0].islower()
        title = _title(rest, after)
        if not (is_free and opens and (is_marked or title)):
            return None
        if not self._continues(parts):
            return None
        return Head(".".join(map(str, parts)), 1 + len(parts), match.end(), title)

    def _roman(self, line: str, start: int, after: str, *, is_free: bool) -> Head | None:
        match = _ROMAN.match(line, start)
        if match is None or not is_free:
            return None
        title = _title(line[match.end() :].strip(), after)
        return Head(plain_number(match["number"]), 1, match.end(), title) if title else None

    def _han(self, line: str, start: int, after: str, *, is_free: bool) -> Head | None:
        match = _HAN_LISTED.match(line, start)
        if match is None or not is_free:
            return None
        return Head(han_number(match["number"]), 2, match.end(), _title(line[match.end() :].strip(), after))

    def _continues(self, parts: list[int]) -> bool:
        """Whether the number goes on where numbers stopped; it is remembered then."""
        for place in reversed(range(len(self.counts))):
            last = self.counts[place]
            depth = len(parts) - 1
            same = parts[:depth] == last[:depth]
            if (same and len(last) > depth and 0 < parts[depth] - last[depth] <= MOST_SKIPPED) or (
                depth and parts[depth] <= MOST_SKIPPED and 0 <= parts[0] - last[0] <= MOST_SKIPPED
            ):
                self.counts[place:] = [parts]
                return True
        if parts[0] == 1 or (not self.counts and parts[0] <= MOST_SKIPPED):
            self.counts.append(parts)
            # The outermost lists go on behind everything that began inside them, the last ones at once.
            del self.counts[MOST_LISTS:-MOST_LISTS]
            return True
        return False


def is_listed(line: str) -> bool:
    """Whether the line ends as one of a table of contents or a price list does, in leaders or a tab and a
    number: no clause begins there.
    """
    return _CONTENTS.search(_tail(line)) is not None


def _tail(line: str) -> str:
    """The last characters of a line without white space behind them."""
    return line.rstrip()[-TAIL:]


def plain_number(text: str) -> str:
    """A number without its form: Roman ones in digits, letters as capitals."""
    folded = text.upper()
    if (set(folded) <= set(_ROMANS) and len(folded) > 1) or folded in ("I", "V", "X"):
        values = [_ROMANS[sign] for sign in folded]
        following = [*values[1:], 0]
        return str(sum(-v if v < n else v for v, n in zip(values, following, strict=True)))
    return folded


def han_number(text: str) -> str:
    """A Chinese number, or one in digits of any script, in digits."""
    value = han_value(text)
    return text if value is None else str(value)


def han_value(text: str) -> int | None:
    """The value below a thousand; None for what is no number."""
    if text.isdecimal():
        return int(text)
    total = digit = 0
    for sign in text:
        if sign in _DIGITS:
            digit = _DIGITS[sign]
        elif sign in "十百":
            total, digit = total + max(digit, 1) * (10 if sign == "十" else 100), 0
        else:
            return None
    return total + digit


def _capitals(line: str, start: int, before: str, after: str) -> Head | None:
    """An unnumbered heading in capitals, alone between blank lines."""
    text = line[start:].strip()
    alone = not before.strip() and not after.strip()
    if not alone or not text.isupper() or sum(map(str.isalpha, text)) < 3:
        return None
    is_title = _CAPITALS.fullmatch(text) is not None and _TERMINAL.search(_tail(text)) is None
    return Head("", 1, start, text) if is_title else None


def _title(rest: str, after: str) -> str:
    """The words behind a number where they are a heading of their own line, else ""."""
    text = rest.strip("*_ \t")
    if not text or len(text) > MAX_TITLE_CHARACTERS or _TERMINAL.search(_tail(text)):
        return ""
    if not after.strip():
        return text.rstrip(":：")
    if _HAN.search(text):
        return text.rstrip(":：") if len(text) <= HAN_TITLE_CHARACTERS else ""
    first = after.lstrip(" \t*_\"“„'(")[:1]
    is_short = len(text) <= SHORT_TITLE_CHARACTERS and len(text.split()) <= SHORT_TITLE_WORDS
    return text.rstrip(":") if is_short and first and not first.islower() else ""


def _is_heading_mark(line: str) -> bool:
    """Whether the line is a heading of Markdown."""
    return line.lstrip().startswith("#")
