"""A question of a conversation as it would be put alone, and which earlier turns it needs. Pure text.

By words, not by a model: what the question leaves out is taken from the question before, as that stood alone.
A question that points back (it, they, dort) takes over what the earlier one was about; one that is cut short
(and the second one?) all of it but what it replaces: a year by a year, a name by a name.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import regex

from localctx.index.stop_words import EVERY_STOP_WORD, stop_words
from localctx.index.terms import content_words, fold, stem, words
from localctx.selection.claims import claims
from localctx.selection.followup_unspaced import is_unspaced, standalone_unspaced

__all__ = ["Exchange", "Standalone", "kept_turns", "standalone"]

SHORT_WORDS = 2
"""A question of fewer content words says too little to be searched for alone."""
ALWAYS_KEPT = 2
PERSONS_BACK = 3
"""Answers in which a person who is pointed at is looked for."""


def _pattern(spelled: str) -> regex.Pattern[str]:
    return regex.compile(rf"(?<![\p{{L}}\p{{N}}])(?:{spelled})(?![\p{{L}}\p{{N}}])", regex.IGNORECASE)


_PERSON = _pattern("he|him|his|she|her|hers|himself|herself|er|ihm|ihn|seine?[nrms]?|elle|lui|él|ella")
_POINTING = _pattern(
    "it|its|itself|they|them|their|theirs|this|these|those|there|then|thereof|es|sie|ihre?[nrms]?|dessen|deren"
    "|diese[rsmn]?|jene[rsmn]?|dort|davon|damit|dafür|dazu|darin|dabei|darüber|hier|ils?|elles|leurs?"
    "|celui|celle|ceux|celles|ello|ellos|ellas|sus?|eso|allí"
    r"|(?<=(?<!\p{L})(?:is|was|are|were|does|did|do|of|in|on|about|by|for|to|and|with|at|after|before|from|how"
    r"|why|can|could|will|would|has|had)\s)that"
)
_POINTS_NOWHERE = _pattern(
    r"is there|are there|was there|were there|there (?:is|are|was|were)|gibt es|gab es|es gibt|es gab"
    r"|(?:this|these|diese[rsmn]?) (?:document|text|contract|agreement|report|file|paper|book|chapter|manual"
    r"|dokument|vertrag|bericht|buch|kapitel|handbuch)s?"
)
_CUT_SHORT = regex.compile(
    r"^\W*(?:and|or|but|also|so|ok|okay|what about|how about|what of|same for|the same|why|how so|und|oder"
    r"|aber|auch|was ist mit|wie (?:ist|steht) es mit|dasselbe|warum|wieso|et|mais|y|pero)(?![\p{L}\p{N}])",
    regex.IGNORECASE,
)
_ORDINALS = (
    "first second third fourth fifth sixth last next previous former latter other another "
    "erste ersten erster zweite zweiten zweiter dritte dritten dritter letzte letzten letzter andere anderen"
)
_ORDINAL = frozenset(_ORDINALS.split())
_ONE = _pattern(
    r"(?:the|this|that|an)\s+(?:\p{L}+\s+)?ones?"
    r"|the (?:former|latter|others?|last|next|first|second)\s*(?=\?|$)"
)
_NUMBERED = regex.compile(r"(?<![\p{L}\p{N}])(\p{L}[\p{L}'’-]+)\s+(?:no\.?\s*)?(\p{Nd}+)(?![\p{L}\p{N}])")
_PLACED = regex.compile(
    r"(?<![\p{L}])(?:of|at|from|for|in|on|by|near|von|vom|bei|aus|für|zu|im|am)\s+(?:the\s+|der\s+|dem\s+)?"
    r"(\p{Lu}[\p{L}'’-]+)"
)
_WORD = regex.compile(r"[\p{L}\p{N}\p{M}][\p{L}\p{N}\p{M}'’-]*")


@dataclass(frozen=True, slots=True)
class Exchange:
    """An earlier question as it stands alone, and its answer."""

    question: str
    answer: str


@dataclass(frozen=True, slots=True)
class Standalone:
    """The question with what it leaves out; `carried`: the words that were added, in order."""

    text: str
    carried: tuple[str, ...] = ()


def standalone(question: str, earlier: Sequence[Exchange]) -> Standalone:
    """The question as it would be put without those before it: for searching, not for people."""
    if not earlier:
        return Standalone(question)
    last = earlier[-1]
    if is_unspaced(question):
        return Standalone(standalone_unspaced(question, last.question))
    bare = _POINTS_NOWHERE.sub(" ", question)
    pointer = _PERSON.search(bare) or _POINTING.search(bare)
    is_cut = _CUT_SHORT.search(bare) is not None or _ONE.search(bare) is not None
    named = _entities(question)
    if pointer is not None and named and not is_cut and bare.find(named[0]) < pointer.start():
        pointer = None  # what it points at stands before it
    if pointer is not None and not (is_cut and named):
        taken = _subject(earlier, is_person=_PERSON.search(bare) is not None)
    elif is_cut or len(_content(question)) < SHORT_WORDS or pointer is not None:
        taken = _what_stays(last.question, question)
    else:
        return Standalone(question)
    own = _stems(question)
    carried = tuple(dict.fromkeys(word for word in taken if not _stems(word) <= own))
    if not carried:
        return Standalone(question)
    return Standalone(f"{question.rstrip('?!. ')} ({', '.join(carried)})?", carried)


def kept_turns(
    costs: Sequence[int], texts: Sequence[str], sought: str, room: int, *, n_always: int = ALWAYS_KEPT
) -> list[int]:
    """Numbers of the earlier turns that stand before the next question, in order, within `room` tokens: the
    last ones, then those that share most words with what is sought, later ones first.

    costs: tokens of each · texts: what each says.
    """
    asked = _stems(sought)
    order = sorted(
        range(len(costs)),
        key=lambda n: (n < len(costs) - n_always, -len(asked & _stems(texts[n])), -n),
    )
    kept: list[int] = []
    for number in order:
        if costs[number] <= room:
            room -= costs[number]
            kept.append(number)
    return sorted(kept)


def _content(text: str) -> list[str]:
    """The text's words that carry search evidence, as they are written."""
    stops = stop_words(words(text)) | _ORDINAL | {"one", "ones"}
    return [word for word in _WORD.findall(text) if _says(fold(word), stops)]


def _says(word: str, stops: frozenset[str]) -> bool:
    return word not in stops and (len(word) > 1 or not word.isascii() or word.isdecimal())


def _stems(text: str) -> set[str]:
    return set(map(stem, content_words(text) or words(text)))


def _entities(text: str) -> list[str]:
    """What a text is about, as far as it shows: names, codes, quotations, numbered things."""
    wanted = ("name", "code", "quote")
    found = [claim.text for claim in claims(text) if claim.kind in wanted and claim.start > 0]
    found += [match[1] for match in _PLACED.finditer(text)]
    found += [match[0] for match in _NUMBERED.finditer(text) if fold(match[1]) not in EVERY_STOP_WORD]
    return [name for name in dict.fromkeys(found) if fold(name) not in EVERY_STOP_WORD]


def _subject(earlier: Sequence[Exchange], *, is_person: bool) -> list[str]:
    """What the last exchange was about: what its question names, and where that is nothing, its words; what
    an answer named last where a person is pointed at, the last one's where its question names nothing.
    """
    last = earlier[-1]
    found = _named_in(last.question)
    told = earlier[-PERSONS_BACK:] if is_person else () if found else (last,)
    by_answers = [_entities(f"It is {one.answer}") for one in reversed(told)]
    return [*(found or _content(last.question)), *next(filter(None, by_answers), [])]


def _named_in(text: str) -> list[str]:
    """What the text names, each with the noun before it and its preposition: `mill`, `at Denby`."""
    found: list[str] = []
    placed = {match[1]: match[0] for match in _PLACED.finditer(text)}
    for name in _entities(text):
        before = _WORD.findall(text[: text.find(name)])[-3:]
        found += [word for word in reversed(before) if fold(word) not in EVERY_STOP_WORD][:1]
        found.append(placed.get(name, name))
    return found


def _what_stays(last: str, question: str) -> list[str]:
    """Words of the last question that one cut short still asks with: all but what it has another of the same
    kind for; only what was named where it asks for something else of it.
    """
    kinds, left_out = _kinds(question), set[str]()
    for kind, texts in _kinds(last).items():
        if kinds.get(kind):
            left_out |= {fold(word) for text in texts for word in _WORD.findall(text)}
    named = _named_in(last) + [claim.text for claim in claims(last) if claim.kind == "number"]
    if not left_out and _content(question) and named:
        return named
    return [word for word in _content(last) if fold(word) not in left_out]


def _kinds(text: str) -> dict[str, list[str]]:
    """What can take another's place, by kind."""
    found: dict[str, list[str]] = {"ordinal": [word for word in words(text) if word in _ORDINAL]}
    for match in _PLACED.finditer(text):
        found.setdefault("name", []).append(match[1])
    for claim in claims(text):
        if claim.start > 0:
            found.setdefault(claim.kind, []).append(claim.text)
    return found
