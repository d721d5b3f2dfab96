"""References inside a text ("Annex B", "section 3.2.1", "§ 12(3)", "附件二") → where what they name begins.

Pure text; knows no documents. A target is a line that begins with the label: of annexes, tables and articles
with the word, of sections and clauses also with the number alone. English, German, French and Chinese.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

__all__ = ["Reference", "lines_at", "references", "targets"]

MAX_LINE_CHARACTERS = 200
"""More of a line is not looked at."""

_FORMS = (
    "appendix app. appendices|article art. articles|section sec. sect. sections|chapter ch. chapters|"
    "figure fig. figures|table tab. tables|annex annexes|clause clauses|schedule schedules|exhibit exhibits|"
    "anhang anhänge anhangs|anlage anlagen|abschnitt abschn. abschnitte abschnitten abschnitts|"
    "tabelle tabellen|abbildung abb. abbildungen|kapitel kap. kapiteln kapitels|ziffer ziff.|artikel artikels"
)
_CANONICAL = {form: group.split()[0] for group in _FORMS.split("|") for form in group.split()[1:]}
_SPELLINGS = {
    "article": r"(?:article|art\.)",
    "artikel": r"(?:artikel|art\.)",
    "table": r"(?:table|tab\.|tabelle)",
    "figure": r"(?:figure|fig\.)",
    "abbildung": r"(?:abbildung|abb\.)",
}
_WITH_WORD = (
    "annex|appendix|schedule|exhibit|attachment|table|figure|article|anhang|anlage|tabelle|abbildung|artikel"
    "|annexe|tableau"
)
_BY_NUMBER = "section|clause|paragraph|chapter|part|abschnitt|kapitel|ziffer|punkt|teil|chapitre"
_ABBREVIATED = "|".join(regex.escape(form) for form in sorted(_CANONICAL, key=len, reverse=True))
_WORD = rf"(?P<word>{_ABBREVIATED}|{_WITH_WORD}|{_BY_NUMBER})"
_LABEL = r"(?P<label>\p{Nd}+(?:\.\p{Nd}+)*\p{Ll}?|\p{Lu}(?:\.\p{Nd}+)*|[IVXLC]+)(?![\p{L}\p{Nd}])"
_PART = r"(?P<part>(?:\s?\((?:\p{Nd}+|\p{Ll})\))+|\s+(?:Abs(?:\.|atz)|Satz)\s*\p{Nd}+)?"
_LATIN = regex.compile(rf"(?<![\p{{L}}\p{{N}}])(?i:{_WORD})[\s\u00a0]+{_LABEL}{_PART}")
_PARAGRAPH = regex.compile(r"§§?\s*(?P<label>\p{Nd}+\p{Ll}?)(?![\p{L}\p{Nd}])" + _PART)
_HAN_NUMBER = r"[一二三四五六七八九十百零〇\p{Nd}]+"
_HAN = regex.compile(
    rf"(?P<word>附件|附录|附錄|附表|表|图|圖)\s?(?P<label>{_HAN_NUMBER}|\p{{Lu}})(?![\p{{Nd}}\p{{Lu}}])"
    rf"|(?P<label2>第{_HAN_NUMBER}[条條章节節款部])"
)
_CONTENTS = regex.compile(r"(?:\.{3,}|…|(?:\. ){3,}|\t| {3,})\s*\p{Nd}+\s*$")
_LINE_START = r"^[\s#*_>|]*"
_SECTION_MARK = r"(?:§\s*)?"


@dataclass(frozen=True, slots=True)
class Reference:
    """A reference as written, at [start, end) of its text: its word ("" of "第三条"), label, and part."""

    text: str
    start: int
    end: int
    word: str
    label: str
    part: str = ""

    @property
    def key(self) -> tuple[str, str]:
        """Equal for references to the same thing."""
        return self.word, self.label.casefold()

    @property
    def heading(self) -> str:
        """A pattern of the beginning of the line that the reference leads to."""
        label = regex.escape(self.label)
        if not self.word:
            return rf"{_LINE_START}{label}"
        if self.word == "§":
            return rf"{_LINE_START}(?:§|(?i:art(?:icle|ikel|\.)?))\s*{label}(?![\p{{L}}\p{{Nd}}])"
        word = f"(?i:{_SPELLINGS.get(self.word, regex.escape(self.word))})"
        if not self.word.isascii() and regex.search(r"\p{Han}", self.word):
            return rf"{_LINE_START}{word}\s?{label}(?![\p{{Nd}}])"
        after = r"(?![\p{L}\p{Nd}]|\.\p{Nd})"
        named = rf"{_LINE_START}{word}[\s\u00a0]+{label}{after}"
        if self.word not in _BY_NUMBER.split("|") or not self.label[0].isdecimal():
            return named
        return rf"{named}|{_LINE_START}{_SECTION_MARK}{label}{after}[.):]?[ \t\u00a0]+\p{{Lu}}"


def references(text: str) -> tuple[Reference, ...]:
    """The references of a text in order, each thing once; the label of a heading or caption is none."""
    found: list[Reference] = []
    for match in _LATIN.finditer(text):
        word = match["word"].casefold()
        found.append(_reference(match, _CANONICAL.get(word, word), match["label"], match["part"]))
    found += [_reference(match, "§", match["label"], match["part"]) for match in _PARAGRAPH.finditer(text)]
    for match in _HAN.finditer(text):
        found.append(_reference(match, match["word"] or "", match["label"] or match["label2"], ""))
    inside = [one for one in found if not _heads_line(text, one)]
    first: dict[tuple[str, str], Reference] = {}
    for one in sorted(inside, key=lambda one: one.start):
        first.setdefault(one.key, one)
    return tuple(first.values())


def _reference(match: regex.Match[str], word: str, label: str, part: str | None) -> Reference:
    return Reference(match[0], match.start(), match.end(), word, label, (part or "").strip())


def _heads_line(text: str, reference: Reference) -> bool:
    """Whether the reference begins a line that reads like a heading or caption."""
    start = text.rfind("\n", 0, reference.start) + 1
    if text[start : reference.start].strip("\t #*_>|"):
        return False
    end = text.find("\n", reference.end)
    rest = text[reference.end : end if end >= 0 else len(text)].lstrip()
    return (
        not rest or rest[0] in ".:–—-)*|" or (len(rest) < MAX_LINE_CHARACTERS and rest[-1] not in ".!?。！？")
    )


def targets(wanted: Sequence[Reference], lines: Iterable[tuple[int, str]]) -> dict[tuple[str, str], int]:
    """Where what each reference names begins: its key → the offset of its line; those not found are left out.

    lines: (offset, line) in order. A heading or caption goes before a sentence that begins so.
    """
    patterns = [(one.key, regex.compile(one.heading)) for one in {w.key: w for w in wanted}.values()]
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for offset, line in lines:
        head = line[:MAX_LINE_CHARACTERS]
        for key, pattern in patterns:
            match = pattern.match(head)
            if match is None:
                continue
            quality = _quality(line, head[match.end() :].strip())
            if key not in found or found[key][0] < quality:
                found[key] = (quality, offset)
    return {key: offset for key, (_, offset) in found.items()}


def _quality(line: str, rest: str) -> int:
    """How surely a line that begins with a label is what the label names: 3 a marked heading, 2 a caption or
    short line, 1 a sentence, 0 an entry of a table of contents.
    """
    if _CONTENTS.search(line):
        return 0
    if line.lstrip().startswith("#"):
        return 3
    return 2 if not rest or rest[0] in ":.–—-" or rest[-1] not in ".!?。！？;," else 1


def lines_at(pieces: Iterable[str]) -> Iterator[tuple[int, str]]:
    """(offset, line) of a text that comes in pieces; a line longer than is looked at is cut."""
    offset, held = 0, ""
    for piece in pieces:
        held += piece
        *whole, held = held.split("\n")
        for line in whole:
            yield offset, line
            offset += len(line) + 1
    if held:
        yield offset, held
