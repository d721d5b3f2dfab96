"""Does one sentence deny what another says? By the words that follow a negation in each. Pure text.

English, German and Chinese, and the commonest words of French, Spanish and Italian. What is denied in other
words ("excludes", "lacks") is not seen.
"""

from __future__ import annotations

import regex

from localctx.selection.matching import terms

__all__ = ["denies"]

_NEGATION = regex.compile(
    r"\b(?:not|never|nobody|none|neither|nor|no|cannot|without|nicht|nie|niemals|niemand|keine?[mnrs]?|ohne|ne|pas"
    r"|jamais|nunca|non)\b|n['’]t\b|不(?!含|包括|仅|僅|但)|没|沒|未|无(?!线)|非(?!常)",
    regex.IGNORECASE,
)
_PIECE = regex.compile(r"\p{Han}{1,3}|[^\p{Han}]+")
_CLAUSE_END = regex.compile(r"[,;:.!?，、；：。！？]")


def denies(statement: str, sentence: str, language: str = "en") -> bool:
    """Whether one of the two denies something that the other says and does not deny."""
    said, told = _denied(statement, language), _denied(sentence, language)
    return bool((said - told) & terms(sentence, language)) or bool((told - said) & terms(statement, language))


def _denied(text: str, language: str) -> frozenset[str]:
    """The first terms after each negation in its clause; the last before it where none follow."""
    found: frozenset[str] = frozenset()
    for match in _NEGATION.finditer(text):
        after = _parts(_CLAUSE_END.split(text[match.end() :], maxsplit=1)[0])
        before = _parts(_CLAUSE_END.split(text[: match.start()])[-1])
        found |= next(
            (t for t in [*_each(after, language), *_each(before, language)[::-1]] if t), frozenset()
        )
    return found


def _each(parts: list[str], language: str) -> list[frozenset[str]]:
    """The terms of each part; a number's with the unit that belongs to it."""
    found = []
    for at, part in enumerate(parts):
        if part[0].isdecimal():
            joined = terms(
                " ".join(parts[at : at + 2]) if part.isascii() else "".join(parts[at : at + 2]), language
            )
            found.append(frozenset(term for term in joined if term[0] == "#"))
        else:
            found.append(terms(part, language))
    return found


def _parts(clause: str) -> list[str]:
    """Its words; of unspaced scripts pieces of a few characters."""
    return [piece for word in clause.split() for piece in _PIECE.findall(word)]
