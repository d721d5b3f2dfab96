"""An answer → its checkable claims: numbers, names, quotations, code words. Pure text; knows no sources.

What a small model invents most visibly. Names are found by capitals, so scripts without them yield names only
where the text marks them: Katakana runs, Han names with a middle dot, titles in quotation marks.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import regex

from localctx.index.query import quoted_phrases_at
from localctx.index.stop_words import EVERY_STOP_WORD, likely_language
from localctx.index.terms import fold
from localctx.selection.numbers import numbers

__all__ = ["Claim", "claims"]

Kind = Literal["number", "name", "quote", "code"]

SPELLED_FROM = 13
TAKEN = ","
"""Stands for quotations and code words already found: neither a space within a name nor a sentence's end."""
TITLE_CASE_SHARE = 0.7
NOUN_CAPITALS_SHARE = 0.22
NOUN_CAPITALS_MIN_WORDS = 25
GERMAN_STOP_WORDS = 2

_MASKED = regex.compile(
    r"^[ \t]*(?:\(?\p{Nd}{1,3}[.)]|[-*•‣–—])[ \t]+"  # list markers
    r"|\[\p{Nd}+(?:\s*[,;–-]\s*\p{Nd}+)*\]"  # citation marks
    r"|(?<![\p{L}\p{N}])(?:pp?\.|pages?|Seiten?|S\.)\s*\p{Nd}+(?:\s*[-–]\s*\p{Nd}+)?"  # references to pages
    r"|\*+|_{2,}|^[ \t]*\#+|^[ \t]*>",  # Markdown
    regex.MULTILINE | regex.IGNORECASE,
)
_CAPITAL = r"\p{Lu}[\p{L}\p{M}]*(?:['’-]\p{L}[\p{L}\p{M}]*)*"
_INITIAL = r"\p{Lu}\.(?:[ -]?\p{Lu}\.)*"
_JOINER = r"(?:of|the|of\s+the|de|del|de\s+la|la|le|du|des|di|da|do|dos|von|van|der|den|zu|bin|al|y|и)"
_NAME = regex.compile(
    rf"(?<![\p{{L}}\p{{N}}])(?:{_INITIAL}|{_CAPITAL})"
    rf"(?:[ \u00A0]+(?:{_JOINER}[ \u00A0]+)?(?:{_INITIAL}|{_CAPITAL}))*(?![\p{{L}}\p{{Nd}}])"
)
_HAN_NAME = regex.compile(r"\p{Han}{1,8}(?:[·・]\p{Han}{1,8})+")
_KATAKANA_NAME = regex.compile(r"[\p{Katakana}ー]{3,}(?:[・=][\p{Katakana}ー]+)*")
_TWO_CAPITALS = regex.compile(r"\p{Lu}[\p{L}\p{M}.]*[ \u00A0]+\p{Lu}")
_CODE = regex.compile(
    r"(?<![\p{Lu}\p{Ll}\p{Nd}_])"
    r"[\p{Lu}\p{Ll}\p{Nd}_]+(?:[-./:\#+][\p{Lu}\p{Ll}\p{Nd}_]+)*(?![\p{Lu}\p{Ll}\p{Nd}])"
)
_MEASURE = regex.compile(r"\p{Nd}[\p{Nd}.,]*(?:st|nd|rd|th|s|\p{L}{1,3})?", regex.IGNORECASE)
_INNER_CAPITAL = regex.compile(r"\p{Ll}\p{Lu}")
_JOINT = regex.compile(r"[-./:#+]")
_LAST_WORD = regex.compile(r"(\p{L}+)\.$")
_ORDINARY = regex.compile(r"\p{Lu}?\p{Ll}+|\p{L}\p{Ll}*")
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}'’-]*")
_OPENING_MARKS = " \t\u00a0\"'“‘«([„>–—-"
_SENTENCE_ENDS = ".!?:;…。！？"

_TITLE_WORDS = (
    "mr mrs ms miss dr prof professor sir lord lady president presidents senator governor general colonel "
    "captain king queen prince princess pope saint st judge justice secretary minister chancellor emperor "
    "herr frau monsieur madame don señor mister doctor father mother brother sister uncle aunt"
)
_OPENER_WORDS = (
    "according although among another answer anyone both chapter conclusion consequently despite document "
    "during each early eventually every everyone finally first following furthermore given hence here "
    "however indeed instead introduction its key later like main many meanwhile moreover most much "
    "nevertheless nothing now once one others overall overview page part people perhaps point points "
    "second section several similarly since so some something summary text then therefore third thus "
    "today together toward two unlike unless until upon what whatever whenever where whereas wherever "
    "whether while within without yes yet no not note also three four five six ten"
)
_TITLES = frozenset(_TITLE_WORDS.split())
_OPENERS = frozenset(_OPENER_WORDS.split()) | EVERY_STOP_WORD


@dataclass(frozen=True, slots=True)
class Claim:
    """One checkable thing an answer says: what kind, as written, and where in the answer.

    `key` is its comparable form: the decimal value of a number, else the folded text.
    """

    kind: Kind
    text: str
    start: int
    end: int
    key: str


def claims(answer: str) -> tuple[Claim, ...]:
    """The claims of an answer in text order, each once.

    Left out: list markers, citation marks and page references, the numbers up to twelve in words, single
    capitalised words that only ever start a sentence, headings in title case, and single capitalised words
    where every noun is written so (German).
    """
    text = _MASKED.sub(lambda match: " " * len(match[0]), answer)
    found: list[Claim] = []
    for start, end in quoted_phrases_at(text):
        found.append(Claim("quote", answer[start:end], start, end, fold(answer[start:end])))
        text = text[:start] + TAKEN * (end - start) + text[end:]
    for claim in _codes(text):
        found.append(claim)
        text = text[: claim.start] + TAKEN * (claim.end - claim.start) + text[claim.end :]
    for number in numbers(answer):
        # Read in the whole answer, as the source is read: its neighbours decide how far a number goes.
        is_small = number.spelled and number.key.isdecimal() and int(number.key) < SPELLED_FROM
        is_masked = text[number.start : number.end] != answer[number.start : number.end]
        if not (is_masked or is_small):
            found.append(
                Claim("number", answer[number.start : number.end], number.start, number.end, number.key)
            )
    found.extend(replace(name, text=answer[name.start : name.end]) for name in _names(text))
    first: dict[tuple[Kind, str], Claim] = {}
    for claim in sorted(found, key=lambda claim: (claim.start, claim.end)):
        first.setdefault((claim.kind, claim.key), claim)
    return tuple(first.values())


def _codes(text: str) -> Iterator[Claim]:
    """Letter-digit mixes, snake_case and inner capitals; "19th", "5km" and "20-year-old" are numbers."""
    for match in _CODE.finditer(text):
        word = match[0]
        has_letter, has_digit = any(map(str.isalpha, word)), any(map(str.isdecimal, word))
        snake = "_" in word.strip("_") and has_letter
        camel = _INNER_CAPITAL.search(word) is not None and not word.startswith(("Mc", "Mac", "O'"))
        if not (snake or camel or (has_letter and has_digit)):
            continue
        if not snake and _MEASURE.fullmatch(word):
            continue
        parts = _JOINT.split(word)
        is_compound = all(_MEASURE.fullmatch(part) or _ORDINARY.fullmatch(part) for part in parts)
        if is_compound and not (snake or camel or any(len(p) == 1 and p.isupper() for p in parts)):
            continue
        yield Claim("code", word, match.start(), match.end(), fold(word))


def _names(text: str) -> Iterator[Claim]:
    """Proper names."""
    for match in _KATAKANA_NAME.finditer(text):
        yield Claim("name", match[0], match.start(), match.end(), fold(match[0]))
    for match in _HAN_NAME.finditer(text):
        # Where a Han name begins and ends cannot be seen: two characters on each side of the dots count.
        first, *middle, last = regex.split("[·・]", match[0])
        key = "·".join([first[-2:], *middle, last[:2]])
        yield Claim("name", match[0], match.start(), match.end(), fold(key))
    headings = _title_case_lines(text)
    candidates: list[tuple[int, int, bool]] = []
    for match in _NAME.finditer(text):
        if not any(start <= match.start() < end for start, end in headings):
            starts = _starts_sentence(text, match.start())
            start = _after_openers(text, match, starts)
            candidates.append((start, match.end(), starts and start == match.start()))
    inside = {fold(text[start:end]) for start, end, starts in candidates if not starts}
    nouns = _writes_nouns_with_capitals(text, sum(not starts for _, _, starts in candidates))
    for start, end, starts in candidates:
        name = text[start:end]
        if _is_name(name, starts, fold(name) in inside, nouns):
            yield Claim("name", name, start, end, fold(name))


def _starts_sentence(text: str, at: int) -> bool:
    """Whether a capital there may be due to its place; the point of "Mr." or an initial ends no sentence."""
    before = text[max(0, at - 60) : at].rstrip(_OPENING_MARKS)
    if not before:
        return True
    if before[-1] == ".":
        word = _LAST_WORD.search(before)
        return word is None or not (fold(word[1]) in _TITLES or (len(word[1]) == 1 and word[1].isupper()))
    return before[-1] in _SENTENCE_ENDS or before[-1] == "\n"


def _after_openers(text: str, match: regex.Match[str], starts: bool) -> int:
    """Where the name starts, after words with capitals only by place and after titles of persons."""
    start: int = match.start()
    while start < match.end():
        word = _WORD.match(text, start)
        if word is None:
            break
        folded = fold(word[0])
        by_place = starts and (folded in _OPENERS or folded.endswith(("ly", "ing")))
        is_title = folded in _TITLES and word.end() < match.end()
        if not (by_place or is_title or folded in ("the", "a", "an")):
            break
        start = word.end()
        while start < match.end() and not text[start].isalpha():
            start += 1
    return start


def _is_name(name: str, starts_sentence: bool, also_inside: bool, nouns: bool) -> bool:
    """Whether a capitalised sequence is taken for a proper name."""
    if len(name.split()) > 1:
        return not nouns or _TWO_CAPITALS.search(name) is not None
    if len(name) < 2 or fold(name) in _TITLES or name in ("I", "I'm", "I'll", "I've", "OK"):
        return False
    if name.isupper() and name.isalpha():
        return True
    return (not starts_sentence or also_inside) and not nouns


def _title_case_lines(text: str) -> list[tuple[int, int]]:
    """Spans of lines that are headings: no closing mark, nearly all longer words with capitals."""
    spans, at, has_lines = [], 0, "\n" in text.strip()
    for line in text.splitlines(keepends=True):
        long_words = [word for word in _WORD.findall(line) if len(word) > 3]
        capitals = sum(word[0].isupper() for word in long_words)
        bare = line.strip()
        is_open = bool(bare) and bare[-1] not in ".!?。！？,;"
        most = capitals >= TITLE_CASE_SHARE * len(long_words)
        if is_open and has_lines and most and len(long_words) > 1:
            spans.append((at, at + len(line)))
        at += len(line)
    return spans


def _writes_nouns_with_capitals(text: str, n_inside: int) -> bool:
    """Whether capitals mark no names: the text is German, or many words within sentences have one."""
    found = _WORD.findall(text)
    language, n_stop_words = likely_language(map(fold, found))
    if language == "de" and n_stop_words >= GERMAN_STOP_WORDS:
        return True
    return len(found) >= NOUN_CAPITALS_MIN_WORDS and n_inside > NOUN_CAPITALS_SHARE * len(found)
