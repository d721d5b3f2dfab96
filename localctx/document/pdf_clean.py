"""Raw text of a PDF page → text to be stored, hashed and tokenised. Pure; knows neither engines nor files.

Runs once, before any offset is taken: ligatures are folded, words cut at line ends are joined again, dot
leaders are cut short, and code points that are not text (controls, lone surrogates, soft hyphens) go.
"""

from __future__ import annotations

import re
import unicodedata

__all__ = ["HYPHEN_MARKS", "clean_text", "fold_title"]

HYPHEN_MARKS = "\ufffe\x02"
"""What pdfium writes for a hyphen that it takes for the cut of a word at a line's end."""

LIGATURES = {
    0xFB00: "ff",
    0xFB01: "fi",
    0xFB02: "fl",
    0xFB03: "ffi",
    0xFB04: "ffl",
    0xFB05: "st",
    0xFB06: "st",
}
ACCENTS = {"\xa8": "\u0308", "\xb4": "\u0301", "\u02c6": "\u0302", "\u02dc": "\u0303", "\u02c7": "\u030c"}
NOT_TEXT: dict[int, str | None] = dict.fromkeys(
    [
        *(code for code in range(0x20) if chr(code) not in "\t\n"),
        *range(0x7F, 0xA0),
        0xAD,
        *range(0xD800, 0xE000),
        0xFEFF,
        *range(0xFFF9, 0xFFFC),
        0xFFFE,
        0xFFFF,
    ]
)
TRANSLATION: dict[int, str | None] = NOT_TEXT | LIGATURES | {0xA0: " "}

UNUSUAL = re.compile("[^\n -~\xc0-\u02c5\u0370-\u1fff\u2010-\u2027\u2030-\u205e\u20a0-\ud7ff]")
LINE_END = re.compile("\r\n?|\x0c|\x85|\u2028|\u2029")
CUT_WORD = re.compile(f"([^\\W\\d_]?)[{HYPHEN_MARKS}]\n?([^\\W\\d_]?)")
SOFT_HYPHEN_CUT = re.compile("\xad\n?")
PLAIN_CUT = re.compile(r"(?<=[^\W\d_]{2})-\n(?=[^\W\d_]{2})")
LOOSE_ACCENT = re.compile("([\xa8\xb4\u02c6\u02dc\u02c7])([A-Za-z\u0131])")
LEADER = re.compile(r"(?:[ \t]?\.){5,}")
TRAILING_SPACE = re.compile(r"[ \t]+\n")
BLANK_LINES = re.compile(r"\n{3,}")


def clean_text(raw: str) -> str:
    """`raw` without what is not text; line ends are LF, no line ends in white space, no two blank lines."""
    text = raw
    if UNUSUAL.search(text):  # most pages skip what costs most
        text = LINE_END.sub("\n", text)
        text = CUT_WORD.sub(joined, text)
        text = SOFT_HYPHEN_CUT.sub("", text)
        text = text.translate(TRANSLATION)
        text = LOOSE_ACCENT.sub(composed, text)
    if "-\n" in text:
        text = PLAIN_CUT.sub(lambda cut: "" if text[cut.end()].islower() else "-", text)
    if "..." in text or ". . ." in text:
        text = LEADER.sub(" ...", text)
    text += "\n"
    if " \n" in text or "\t\n" in text:
        text = TRAILING_SPACE.sub("\n", text)
    if "\n\n\n" in text:
        text = BLANK_LINES.sub("\n\n", text)
    return text.strip("\n")


def joined(cut: re.Match[str]) -> str:
    """A word that was cut: without the hyphen between letters, unless the second is a capital."""
    before, after = cut.groups()
    if before and after:
        return f"{before}-{after}" if after.isupper() else before + after
    if not before and not after:
        return ""
    return f"{before}-{after}" if before else after


def composed(pair: re.Match[str]) -> str:
    """A letter with the accent that was drawn over it as a sign of its own, where such a letter exists."""
    letter = "i" if pair[2] == "\u0131" else pair[2]
    whole = unicodedata.normalize("NFC", letter + ACCENTS[pair[1]])
    return whole if len(whole) == 1 else pair[0]


def fold_title(title: str) -> str:
    """A bookmark's title as one clean line."""
    return " ".join(clean_text(title).split())
