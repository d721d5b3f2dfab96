"""What a question names that the document lacks: years, code words, names. Pure text; knows no files."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import regex

from localctx.index.terms import content_words, fold, stem, words
from localctx.selection.claims import Claim, claims
from localctx.selection.evidence import without_evidence

__all__ = ["YEARS", "Beyond", "may_be_abbreviated", "may_be_named", "named_beyond"]

ACRONYM_LETTERS = range(2, 7)
LIKE_RATIO = 0.8
YEARS = range(1000, 2200)

_SMALL = frozenset(("a", "an", "and", "for", "of", "the"))
_FORMS_WORDS = (
    "inc incorporated ltd limited llc plc corp corporation co company gmbh ag kg se sa spa srl bv nv"
)
_FORMS = frozenset(_FORMS_WORDS.split())
_TITLE_WORDS = (
    "mr mrs ms miss dr prof professor sir lord lady president senator governor general colonel captain "
    "king queen prince princess pope saint st judge justice secretary minister chancellor herr frau "
    "präsident kanzler"
)
_TITLES = frozenset(map(fold, _TITLE_WORDS.split()))
_JOINER = regex.compile(r"\s+(?:of|the|de|del|la|le|du|des|di|da|do|dos|von|van|der|den|zu|bin|al|y|и)\s+")


@dataclass(frozen=True, slots=True)
class Beyond:
    """`certain`: years and code words that the document lacks · `names`: names of which it holds no word."""

    certain: tuple[str, ...] = ()
    names: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.certain or self.names)


def named_beyond(question: str, absent: Collection[str], source: str, language: str = "en") -> Beyond:
    """What the question names that is neither in `source` nor, by its `absent` words, in the document."""
    lacking = set(absent)
    if not lacking:
        return Beyond()
    certain: list[str] = []
    names: list[str] = []
    for claim in claims(question):
        if claim.kind == "name":
            names += _absent_names(claim.text, lacking, source, language)
        elif _is_certain(claim) and set(words(claim.text)) & lacking and without_evidence([claim], source):
            certain.append(claim.text)
    return Beyond(tuple(certain), tuple(names))


def _is_certain(claim: Claim) -> bool:
    """A year or a code word, whose spelling leaves no choice."""
    if claim.kind == "number":
        return claim.key.isdecimal() and int(claim.key) in YEARS and claim.text.isdecimal()
    return claim.kind == "code"


def _absent_names(name: str, lacking: Collection[str], source: str, language: str) -> list[str]:
    """The parts of a name between small words of which the document holds nothing, or only a common half."""
    found = []
    for run in _JOINER.split(name):
        parts = [word for word in words(run) if word not in _FORMS and word not in _TITLES]
        missing = [word for word in parts if word in lacking]
        is_whole = bool(parts) and len(missing) == len(parts) and (language != "de" or len(parts) > 1)
        is_german_pair = language == "de" and len(missing) > 1
        is_half = len(parts) > 1 and 0 < len(missing) < len(parts) and _names_others(run, missing, source)
        if not (is_whole or is_german_pair or is_half) or _is_misspelt(missing, source):
            continue
        if is_german_pair or is_half or not may_be_named(run, source):
            found.append(run)
    return found


def _names_others(run: str, missing: Sequence[str], source: str) -> bool:
    """Whether what the source holds of the name always stands beside another name there: "Lake Orrin" for
    "Lake Rowan".
    """
    spoken = run.split()
    for at, word in enumerate(spoken):
        if set(words(word)) & set(missing):
            continue
        if at + 1 < len(spoken) and set(words(spoken[at + 1])) & set(missing):
            partners = regex.findall(
                rf"\b{regex.escape(word)}\b(?:[ \n]+([\p{{Lu}}\p{{Nd}}][\p{{L}}\p{{N}}-]*))?", source
            )
        elif at and set(words(spoken[at - 1])) & set(missing):
            partners = regex.findall(
                rf"(?:([\p{{Lu}}\p{{Nd}}][\p{{L}}\p{{N}}-]*)[ \n]+)?\b{regex.escape(word)}\b", source
            )
        else:
            continue
        others = [fold(partner) for partner in partners]
        return bool(others) and all(o and o not in _TITLES and o not in _FORMS for o in others)
    return False


def _is_misspelt(missing: Sequence[str], source: str) -> bool:
    """Whether the source holds words so like the missing ones that they may be meant."""
    spoken = list(dict.fromkeys(words(source)))
    return bool(missing) and all(
        len(word) > 4 and difflib.get_close_matches(word, spoken, 1, LIKE_RATIO) for word in missing
    )


def may_be_named(name: str, source: str) -> bool:
    """Whether the source holds a word of the name, its initials, or what its letters stand for."""
    spoken = words(source)
    if set(map(stem, content_words(name))) & set(map(stem, spoken)):
        return True
    return may_be_abbreviated(name, source)


def may_be_abbreviated(name: str, source: str) -> bool:
    """Whether the source holds the name's initials, or what its letters stand for."""
    spoken = words(source)
    parts = [word for word in words(name) if word not in _SMALL]
    if len(parts) > 1:
        letters = [word[0] for word in parts]
        text = f" {' '.join(spoken)} "
        return f" {''.join(letters)} " in text or f" {' '.join(letters)} " in text
    is_acronym = name.isupper() and len(name) in ACRONYM_LETTERS
    return is_acronym and name.lower() in "".join(word[0] for word in spoken if word not in _SMALL)
