"""The words of questions about all records: what is asked, comparisons, words without meaning. Data only."""

from __future__ import annotations

from typing import Literal, TypeAlias

__all__ = [
    "ALL",
    "ALTERNATIVES",
    "AND",
    "ARTICLES",
    "CONNECTING",
    "FILLERS",
    "GENERIC_KINDS",
    "INTENTS",
    "LINKS",
    "NEGATIONS",
    "OPERATORS",
    "PARTS",
    "RANGES",
    "Intent",
    "singular",
]

Intent: TypeAlias = Literal["count", "list", "distinct"]

_MANY = (
    r"(?:how\s+many|what\s+is\s+the\s+(?:total\s+)?(?:number|count)\s+of|(?:the\s+)?(?:total\s+)?(?:number|count)\s+of|wie\s*viele"
    r"|combien\s+(?:de|d['’])|cu[aá]nt[oa]s|quant[ie])"
)
_DIFFERENT = (
    r"(?:different|distinct|unique|verschiedenen?|unterschiedlichen?|diff[eé]rent(?:e?s)?|distint[oa]s"
    r"|divers[ei])"
)
_ALL = r"(?:all|every|each|alle|tou(?:s|tes)|tod[oa]s|tutt[ie])"
_AND = r"^\W*(?:(?:and|und|et|y|e)\s+)?"
INTENTS: tuple[tuple[str, Intent], ...] = (
    (rf"{_AND}{_MANY}\s+{_DIFFERENT}\b", "distinct"),
    (rf"{_AND}(?:list|name|show|give\s+me|what\s+are)\s+(?:{_ALL}\s+)?(?:the\s+)?{_DIFFERENT}\b", "distinct"),
    (rf"{_AND}{_MANY}(?!\w)", "count"),
    (rf"{_AND}(?:please\s+)?count\b", "count"),
    (
        rf"{_AND}(?:please\s+)?(?:list|enumerate|name|show|find|give(?:\s+me)?|print|nenne|liste|zeige|"
        rf"[eé]num[eè]re|enumera|elenca)\s+(?:me\s+)?{_ALL}\b",
        "list",
    ),
    (rf"{_AND}(?:please\s+)?(?:list|enumerate|show|print)\s+(?:me\s+)?the\b", "list"),
    (
        rf"{_AND}(?:which|what|welche|quels|quelles)(?=\s+(?:of\s+the\s+)?(?:records?|rows?|items?|entries|"
        r"elements?|objects?|datens[aä]tze|eintr[aä]ge|zeilen|enregistrements|lignes)\b)",
        "list",
    ),
    (rf"{_AND}what\s+are\s+{_ALL}\b", "list"),
)
"""Patterns, the first of which that is found says what is asked. How many: of all words, these only."""

_KINDS = (
    "record records row rows item items entry entries element elements object objects datensatz datensatze "
    "datensätze eintrag eintrage einträge zeile zeilen enregistrement enregistrements ligne lignes registro "
    "registros"
)
_FILLERS = (
    "a an the than is are was were be been there in into this these those that it its file document data "
    "dataset table list database of do does did contain contains has have having had hold holds all "
    "every each any please me altogether overall exactly field fields value values set to their they equal "
    "equals with where whose which who what for from by at on as named called and $ # = == der die das "
    "ein eine es gibt sind ist im in den dem von mit haben hat datei dokument insgesamt le la les un une il "
    "y dans ce fichier ont avec qui el los las hay en este archivo con que"
)
_CONNECTING = "and with where whose which who that have has having und mit et avec y e con"
_NEGATIONS = (
    "not no without isn't aren't don't doesn't other never != ≠ ohne nicht kein keine sans sin isn’t aren’t"
)
GENERIC_KINDS = frozenset(_KINDS.split())
FILLERS = frozenset(_FILLERS.split())
"""Words that say nothing that a field or a value does not say."""
AND = frozenset({"and", "und", "et", "y", "e"})
RANGES = frozenset({"from", "to", "von"})
"""Words that make a number a bound, of which side is not said."""
ALL = frozenset({"all", "every", "each"})
PARTS = frozenset({"field", "fields", "value", "values"})
ARTICLES = frozenset({"a", "an", "the", "their", "its", "to"})
LINKS = frozenset({"is", "equal", "equals", "=", "==", "as", "than"})
"""Words behind which a field is what another one is compared with."""
CONNECTING = frozenset(_CONNECTING.split())
NEGATIONS = frozenset(_NEGATIONS.split())
ALTERNATIVES = frozenset({"or", "oder", "ou", "o"})
OPERATORS: dict[str, str] = {
    **dict.fromkeys(
        ("more than", "greater than", "larger than", "higher than", "bigger than", "over", "above", "after",
         "exceeding", "exceeds", "later than", "mehr als", "grosser als", "größer als", "uber", "über",
         "nach", "plus de", ">"), ">",
    ),
    **dict.fromkeys(
        ("less than", "fewer than", "smaller than", "lower than", "below", "under", "before", "earlier than",
         "weniger als", "kleiner als", "unter", "vor", "moins de", "<"), "<",
    ),
    **dict.fromkeys(
        ("at least", "greater than or equal", "more than or equal", "on or after", "not less than",
         "no less than", "mindestens", ">=", "≥"), ">=",
    ),
    **dict.fromkeys(
        ("at most", "less than or equal", "on or before", "up to", "no more than", "not more than",
         "hochstens", "höchstens", "<=", "≤"), "<=",
    ),
    "between": "between", "zwischen": "between", "entre": "between",
    **dict.fromkeys(
        ("starting with", "starts with", "start with", "beginning with", "begins with", "begin with"),
        "prefix",
    ),
    **dict.fromkeys(("ending with", "ends with", "end with", "ending in", "ends in", "end in"), "suffix"),
    **dict.fromkeys(("containing", "that contain", "that contains", "includes", "including"), "contains"),
}  # fmt: skip


def singular(word: str) -> str:
    """An English plural as one; other words as they are."""
    if word.endswith("ies") and len(word) > 4:
        return f"{word[:-3]}y"
    if word.endswith(("ses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith("ss") and len(word) > 2 else word
