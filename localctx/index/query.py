"""A question → what is searched for: words, phrases and exact identifiers with weights. Knows no index.

Nothing of the question is query syntax: every term is quoted for FTS5, so operators, brackets, colons and
column names in it are only words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import regex

from localctx.index.terms import clean, content_words, words

__all__ = [
    "Query",
    "Term",
    "exact_phrases",
    "exact_terms",
    "n_words",
    "parse_query",
    "quoted_phrases",
    "quoted_phrases_at",
    "variants",
]

MAX_QUESTION_CHARACTERS = 20_000
FOCUS_CHARACTERS = 400
LONG_QUESTION_WORDS = 40
EXACT_WEIGHT = 3
PHRASE_WEIGHT = 2
NUMBER_WEIGHT = 2

_QUOTES = (
    r"\"([^\"\n]{2,300})\"|“([^”\n]{2,300})”|„([^“”\n]{2,300})[“”]|«\s*([^»\n]{2,300}?)\s*»|»([^«\n]{2,300})«"
    r"|「([^」\n]{1,300})」|『([^』\n]{1,300})』|《([^》\n]{1,300})》|`([^`\n]{2,300})`"
    r"|(?<![\p{L}\p{N}])['‘]([^'’\n]{2,300})['’](?![\p{L}\p{N}])"
)
_EXACT = (
    r"(?<![\p{L}\p{N}])(?:"
    r"[\p{L}\p{N}]+(?:[_./\\:@#+-]+[\p{L}\p{N}]+)*[_./\\:@#+-]*"
    r")"
)
_SENTENCE_END = regex.compile(r"(?<=[.!?])\s+|(?<=[。！？؟])\s*|\n+")
_HAS_DIGIT = regex.compile(r"\p{Nd}")
_HAS_LETTER = regex.compile(r"\p{L}")
_CAMEL = regex.compile(r"\p{Ll}\p{Lu}")
_INNER_MARK = regex.compile(r"[_./\\:@#]|(?<=\p{L})\+\+")
_LONG_NUMBER = regex.compile(r"(?<![\p{Nd}.,])\p{Nd}{4,}(?![\p{Nd}.,]\p{Nd}|\p{Nd})")
_NAME = regex.compile(r"(?<![\p{L}\p{N}])\p{Lu}[\p{L}'’-]+(?:[^\S\n]+\p{Lu}[\p{L}'’-]+)+")
_GROUPED = regex.compile(r"\d{1,3}(?:[,.' \u00A0\u202F\u2009]\d{3})+")


@dataclass(frozen=True, slots=True)
class Term:
    """One thing to look for: `text` as FTS5 tokenises it, a phrase when it holds several tokens."""

    text: str
    weight: int = 1
    prefix: bool = False

    @property
    def expression(self) -> str:
        """The term in FTS5's language, quoted."""
        return f'"{self.text.replace(chr(34), " ")}"{"*" if self.prefix else ""}'


@dataclass(frozen=True, slots=True)
class Query:
    """`focus` is what is asked; `background` is the rest of a long question, searched with less weight."""

    focus: tuple[Term, ...]
    background: tuple[Term, ...] = ()


def quoted_phrases_at(text: str) -> list[tuple[int, int]]:
    """Spans of what the text puts in quotation marks (of several languages) or backticks, marks left out."""
    spans = []
    for match in regex.finditer(_QUOTES, text):
        group = next(place for place, part in enumerate(match.groups(), 1) if part)
        if match[group].strip():
            spans.append(match.span(group))
    return spans


def quoted_phrases(question: str) -> tuple[str, ...]:
    """What the question quotes, in order, once each."""
    found = (question[start:end].strip() for start, end in quoted_phrases_at(question))
    return tuple(dict.fromkeys(found))


def exact_terms(question: str) -> tuple[str, ...]:
    """Identifiers of the question: letter-digit mixes, snake_case, camelCase, dotted paths, file names."""
    found: dict[str, None] = {}
    for match in regex.finditer(_EXACT, question):
        text = match[0].rstrip(".:-/\\")
        mixed = _HAS_DIGIT.search(text) and _HAS_LETTER.search(text)
        if mixed or _CAMEL.search(text) or (_INNER_MARK.search(text) and _HAS_LETTER.search(text)):
            found[text] = None
    return tuple(found)


def exact_phrases(question: str) -> tuple[str, ...]:
    """What is meant to the letter: identifiers, quotes, numbers of four digits or more, and names of several
    capitalised words, where not most of the question is capitalised. Of a long question its asking part.
    """
    text = clean(question)
    if len(text) > FOCUS_CHARACTERS:
        text = _asking_part(text)
    found = [*exact_terms(text), *quoted_phrases(text), *_GROUPED.findall(text), *_LONG_NUMBER.findall(text)]
    return tuple(dict.fromkeys([*found, *_names(text)]))


def _names(text: str) -> Iterator[str]:
    """Names of several capitalised words, a sentence's first word left out; none where nearly all words
    are capitalised.
    """
    spelt = regex.findall(r"\p{L}+", text)
    if 4 * sum(word[0].isupper() for word in spelt) > 3 * len(spelt):
        return
    for match in _NAME.finditer(text):
        before = text[: match.start()].rstrip()
        name = match[0].split()[1 if not before or before[-1] in ".!?:" else 0 :]
        if len(name) > 1 and len(content_words(" ".join(name))) == len(name):
            yield " ".join(name)


def parse_query(question: str) -> Query:
    """What to search for. Stop words are left out unless there is nothing else.

    A question of more than about 40 content words is split: its asking sentences (those that end with a
    question mark, else the last one) are the focus, what stands before them the background.
    """
    question = clean(question)
    if len(question) > MAX_QUESTION_CHARACTERS:
        half = MAX_QUESTION_CHARACTERS // 2
        question = f"{question[:half]} {question[-half:]}"
    if len(content_words(question)) <= LONG_QUESTION_WORDS:
        return Query(_terms(question))
    focus = _asking_part(question)
    terms = _terms(focus)
    if not content_words(focus):
        return Query(_terms(question))
    known = {term.text for term in terms}
    return Query(terms, tuple(term for term in _terms(question) if term.text not in known))


def n_words(question: str) -> int:
    """Words that are searched for in what is asked, each as often as it counts."""
    return sum(term.weight for term in parse_query(question).focus)


def _asking_part(question: str) -> str:
    """The sentences that end with a question mark, else the last sentence; of many, the last ones."""
    sentences = [part.strip() for part in _SENTENCE_END.split(question) if part and part.strip()]
    asking = [part for part in sentences if part[-1] in "?？؟"] or sentences[-1:]
    kept: list[str] = []
    room = FOCUS_CHARACTERS
    for sentence in reversed(asking):
        if kept and len(sentence) > room:
            break
        kept.append(sentence[-FOCUS_CHARACTERS:])
        room -= len(sentence)
    return " ".join(reversed(kept))


def variants(text: str, weight: int = 1) -> tuple[Term, ...]:
    """The terms under which the index may hold one word, number, identifier or phrase."""
    prepared = words(text)
    if not prepared:
        return ()
    joined = " ".join(prepared)
    spellings = [Term(joined, weight, prefix=len(joined) == 1 and not joined.isascii())]
    digits = regex.sub(r"\D", "", text) if _GROUPED.fullmatch(text) else text
    if digits.isdecimal() and len(digits) > 3:
        spellings += [Term(digits, weight), Term(" ".join(_groups(digits)), weight)]
    return tuple(dict.fromkeys(spellings))


def _terms(text: str) -> tuple[Term, ...]:
    """Words (once each), identifiers, quoted phrases and numbers with their weights."""
    found: dict[str, Term] = {}

    def add(candidates: Iterable[str], weight: int) -> None:
        for candidate in candidates:
            for term in variants(candidate, weight):
                if term.text not in found or found[term.text].weight < weight:
                    found[term.text] = term

    add(exact_terms(text), EXACT_WEIGHT)
    add(quoted_phrases(text), PHRASE_WEIGHT)
    add(_GROUPED.findall(text), NUMBER_WEIGHT)
    for word in content_words(text) or words(text):
        add([word], NUMBER_WEIGHT if word.isdecimal() else 1)
    return tuple(found.values())


def _groups(digits: str) -> list[str]:
    """A whole number's digits in groups of three, as the index holds "1,234,567"."""
    head = len(digits) % 3
    return ([digits[:head]] if head else []) + [digits[at : at + 3] for at in range(head, len(digits), 3)]
