"""References inside a text ("Annex B", "section 3.2.1", "§ 12(3)", "附件二") → where what they name begins.

Pure text; knows no documents. A target is a line that begins with the label: of annexes, tables and articles
with the word, of sections and clauses also with the number alone. English, German, French and Chinese.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import regex

__all__ = ["Reference", "references", "targets"]

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
_SPACE = r"[^\S\n]"
_MARKS = r"(?:[^\S\n]|[#*_>|])*"
_SECTION_MARK = rf"(?:§{_SPACE}*)?"


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
        """A pattern of how the line that the reference leads to begins, behind marks of headings."""
        label = regex.escape(self.label)
        if not self.word:
            return label
        if self.word == "§":
            return rf"(?:§|(?i:art(?:icle|ikel|\.)?)){_SPACE}*{label}(?![\p{{L}}\p{{Nd}}])"
        word = f"(?i:{_SPELLINGS.get(self.word, regex.escape(self.word))})"
        if not self.word.isascii() and regex.search(r"\p{Han}", self.word):
            return rf"{word}{_SPACE}?{label}(?![\p{{Nd}}])"
        after = r"(?![\p{L}\p{Nd}]|\.\p{Nd})"
        named = rf"{word}{_SPACE}+{label}{after}"
        if self.word not in _BY_NUMBER.split("|") or not self.label[0].isdecimal():
            return named
        return rf"{named}|{_SECTION_MARK}{label}{after}[.):]?{_SPACE}+\p{{Lu}}"


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


def targets(wanted: Sequence[Reference], pieces: Iterable[str]) -> dict[tuple[str, str], int]:
    """Where what each reference names begins: its key → the offset of its line; those not found are left out.

    pieces: a text, in order. A heading or caption goes before a sentence that begins so. One pass, whatever
    the number of references.
    """
    headings = {one.key: one.heading for one in wanted}
    if not headings:
        return {}
    any_of_them = regex.compile(f"\\n{_MARKS}(?:{'|'.join(headings.values())})")
    patterns = [(key, regex.compile(f"{_MARKS}(?:{one})")) for key, one in headings.items()]
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for offset, lines in _lines(pieces):
        for candidate in any_of_them.finditer("\n" + lines):  # ten times as fast as ^
            start = candidate.start()
            line = lines[start : start + MAX_LINE_CHARACTERS].partition("\n")[0]
            for key, pattern in patterns:
                match = pattern.match(line)
                quality = -1 if match is None else _quality(line, line[match.end() :].strip())
                if quality > found.get(key, (-1, 0))[0]:
                    found[key] = (quality, offset + start)
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


def _lines(pieces: Iterable[str]) -> Iterator[tuple[int, str]]:
    """(offset, whole lines) of a text that comes in pieces; of a line in several of them about as much as is
    looked at.
    """
    at, begun, begun_at = 0, "", 0
    for piece in pieces:
        first, last = piece.find("\n") + 1, piece.rfind("\n") + 1
        if first:
            yield begun_at, begun + piece[:first]
            yield at + first, piece[first:last]
            begun, begun_at = piece[last:], at + last
        elif len(begun) < MAX_LINE_CHARACTERS:
            begun += piece
        at += len(piece)
    yield begun_at, begun
