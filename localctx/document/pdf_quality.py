"""How much a page's raw text looks like language: 1 is clean, 0 is noise. Pure; knows no engine.

Looks at code points that no text has (controls, private use, U+FFFD, `(cid:7)` marks), at mixed scripts in
words, at Latin letters whose frequencies no language has (a shifted alphabet), and at mojibake.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter

from localctx.document.pdf_clean import HYPHEN_MARKS

__all__ = ["GOOD_ENOUGH", "text_quality"]

GOOD_ENOUGH = 0.75
"""Below this a page gets a second opinion, and a warning when nothing better is found."""

CID_MARK = re.compile(r"\(cid:\d+\)")
MIXED_WORD = re.compile(
    "[A-Za-z\xc0-\u024f][\u0370-\u052f\u0590-\u06ff\u3040-\u9fff]"
    "|[\u0370-\u052f][A-Za-z\xc0-\u024f\u0590-\u06ff]"
)
SIGNS = "\\[]~^{}|$@"
SIGN_IN_WORD = re.compile(rf"(?<=[^\W\d_])[{re.escape(SIGNS)}](?=[^\W\d_])")
CASES = bytes(97 if 97 <= code <= 122 else 65 if 65 <= code <= 90 else 32 for code in range(256))
"""Every ASCII small letter as a, every capital as A."""
WORD = re.compile(r"[^\W\d_]{2,}")

FEW_DISTINCT = 100
"""Up to here counting character by character is faster than Counter; an ordinary page has 40 to 80."""

MIN_LETTERS = 120
"""Fewer Latin letters than this say nothing about their frequencies."""

# Letter frequencies, averaged: English, German, French, Spanish, Italian, Dutch, Polish, Finnish.
LATIN_PER_MILLE = dict(
    zip(
        "abcdefghijklmnopqrstuvwxyz",
        (90, 14, 31, 43, 142, 13, 19, 25, 78, 5, 15, 46, 28, 78, 62, 24, 4, 63, 64, 66, 39, 14, 13, 2, 14, 8),
        strict=True,
    )
)
LATIN_NORM = math.sqrt(sum(share * share for share in LATIN_PER_MILLE.values()))
LIKELY_COSINE = 0.70
UNLIKELY_COSINE = 0.50
BASE_LETTER = {chr(code): unicodedata.normalize("NFD", chr(code))[0].lower() for code in range(0x41, 0x250)}


def text_quality(raw: str) -> float:
    """Quality of `raw` (before cleaning) in [0, 1]; 0 for text without a single printable code point."""
    marks = CID_MARK.findall(raw)
    text = CID_MARK.sub("", raw) if marks else raw
    counts = count_characters(text)
    n_marked = sum(counts[mark] for mark in HYPHEN_MARKS)
    for space in " \t\n\r\xa0":
        counts.pop(space, None)
    n_all = counts.total() + len(marks)
    if n_marked * 20 <= n_all:  # as many as line ends have, not as many as noise has
        for mark in HYPHEN_MARKS:
            counts.pop(mark, None)
        n_all -= n_marked
    if n_all <= 0:
        return 0.0
    n_noise = len(marks) + sum(n for character, n in counts.items() if is_noise(character))
    clean = max(0.0, 1.0 - 2.0 * n_noise / n_all)
    return round(clean * latin_plausibility(text, counts) * script_plausibility(text, counts), 3)


def count_characters(text: str) -> Counter[str]:
    """How often each code point occurs."""
    distinct = set(text)
    if len(distinct) > FEW_DISTINCT:
        return Counter(text)
    return Counter({character: text.count(character) for character in distinct})


def is_noise(character: str) -> bool:
    """Whether no text has this code point: control, unassigned, private use, lone surrogate, U+FFFD."""
    if character.isalnum() or character.isascii():
        return character < " " or character == "\x7f"
    return character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cn", "Co", "Cs")


def latin_plausibility(text: str, counts: Counter[str]) -> float:
    """1 where Latin letters are as frequent as in any European language, towards 0 where they are shifted."""
    n_high = sum(n for character, n in counts.items() if "\x80" <= character <= "\xff")
    if n_high > 20 and n_high > 0.4 * counts.total():  # mojibake: another encoding's bytes read as Latin-1
        return 0.3
    likeness = latin_likeness(counts, counts.total())
    if likeness < 1.0:  # tables repeat a few words: every word once
        words = Counter("".join(set(WORD.findall(text))))
        likeness = max(likeness, latin_likeness(words, words.total()))
    return likeness


def latin_likeness(counts: Counter[str], n_all: int) -> float:
    """How much the frequencies of Latin letters resemble a language's, in [0.2, 1]; 1 where they are few."""
    letters: Counter[str] = Counter()
    for character, n in counts.items():
        base = BASE_LETTER.get(character)
        if base in LATIN_PER_MILLE:
            letters[base] += n
    n_letters = letters.total()
    if n_letters < MIN_LETTERS or n_letters * 2 < n_all:
        return 1.0
    norm = math.sqrt(sum(n * n for n in letters.values())) * LATIN_NORM
    cosine = sum(n * LATIN_PER_MILLE[letter] for letter, n in letters.items()) / norm
    return min(1.0, max(0.2, (cosine - UNLIKELY_COSINE) / (LIKELY_COSINE - UNLIKELY_COSINE)))


def script_plausibility(text: str, counts: Counter[str]) -> float:
    """1 where words keep to one script, one use of capitals and to letters, less where not."""
    has_signs = not counts.keys().isdisjoint(SIGNS)
    n_signs = len(SIGN_IN_WORD.findall(text)) if has_signs else 0
    if text.isascii():
        n_jumps, usual_share, weight = count_case_jumps(text), 0.6, 1.0  # program code has many
    else:
        n_jumps, usual_share, weight = len(MIXED_WORD.findall(text)), 0.15, 2.0
    if n_signs < 2 and n_jumps < 10:
        return 1.0
    n_words = max(1, len(WORD.findall(text)))
    signs = 1.0 - 1.5 * max(0.0, n_signs / n_words - 0.3) if n_signs > 1 else 1.0
    jumps = 1.0 - weight * max(0.0, n_jumps / n_words - usual_share) if n_jumps > 9 else 1.0
    return max(0.3, jumps) * max(0.3, signs)


def count_case_jumps(text: str) -> int:
    """How often a capital follows a small letter in ASCII text."""
    return text.encode("ascii").translate(CASES).count(b"aA")
