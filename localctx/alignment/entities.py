"""A passage → the dates, numbers, parties and references in it, each with a comparable key. Pure patterns.

A date's key is its ISO form, a number's its value and unit, a reference's the number it names. Parties are
companies by their legal form, roles as contracts name them, and persons by their title.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

import regex

from localctx.alignment.words import SIGN
from localctx.document.clause_heads import han_number, han_value, plain_number
from localctx.index.terms import fold
from localctx.selection.numbers import numbers

__all__ = ["Entity", "EntityKind", "entities", "is_unit", "roles_of"]

EntityKind: TypeAlias = Literal["date", "number", "party", "reference"]
SMALL_WORDS = frozenset(("0", "1", "2"))
"""Spelled out and without a unit these are words like any other: "one of the parties", "first"."""

_MONTHS = {
    "jan": 1, "january": 1, "januar": 1, "jänner": 1, "feb": 2, "february": 2, "februar": 2, "mar": 3,
    "march": 3,
    "märz": 3, "apr": 4, "april": 4, "may": 5, "mai": 5, "jun": 6, "june": 6, "juni": 6, "jul": 7, "july": 7,
    "juli": 7, "aug": 8, "august": 8, "sep": 9, "sept": 9, "september": 9, "oct": 10, "october": 10,
    "okt": 10, "oktober": 10, "nov": 11, "november": 11, "dec": 12, "december": 12, "dez": 12, "dezember": 12,
}  # fmt: skip
_MONTH = "|".join(sorted(_MONTHS, key=len, reverse=True))
_H = "〇零一二三四五六七八九十"
_DATE = regex.compile(
    rf"(?P<d1>\p{{Nd}}{{1,2}})(?:st|nd|rd|th|\.)?\s+(?:day\s+of\s+)?(?P<m1>{_MONTH})\.?,?\s+(?P<y1>\p{{Nd}}{{4}})"
    rf"|(?P<m2>{_MONTH})\.?\s+(?P<d2>\p{{Nd}}{{1,2}})(?:st|nd|rd|th)?,?\s+(?P<y2>\p{{Nd}}{{4}})"
    r"|(?P<y3>\p{Nd}{4})-(?P<m3>\p{Nd}{2})-(?P<d3>\p{Nd}{2})"
    r"|(?P<d4>\p{Nd}{1,2})\.\s?(?P<m4>\p{Nd}{1,2})\.\s?(?P<y4>\p{Nd}{4})"
    r"|(?P<a5>\p{Nd}{1,2})/(?P<b5>\p{Nd}{1,2})/(?P<y5>\p{Nd}{4})"
    rf"|(?P<y6>\p{{Nd}}{{4}}|[{_H}]{{4}})\s*年\s*(?P<m6>\p{{Nd}}{{1,2}}|[{_H}]{{1,3}})\s*月"
    rf"(?:\s*(?P<d6>\p{{Nd}}{{1,2}}|[{_H}]{{1,3}})\s*[日号])?"
    rf"|(?P<m7>{_MONTH})\.?,?\s+(?P<y7>\p{{Nd}}{{4}})"
    rf"|(?P<d8>\p{{Nd}}{{1,2}})(?:st|nd|rd|th|\.)?\s+(?P<m8>{_MONTH})(?![\p{{L}}])"
    r"|(?<![\p{Nd}.,])(?P<y9>(?:19|20)\p{Nd}{2})(?![\p{Nd}]|[.,]\p{Nd})",
    regex.IGNORECASE,
)
_REFERENCE = regex.compile(
    r"(?:§{1,2}|\bArt(?:\.|icles?|ikel)|\bSections?|\bClauses?|\bZiffern?|\bZiff\.|\bAbschnitt|\bSchedule|\bAnnex"
    r"|\bExhibit|\bAppendix|\bAnlage|\bAnhang|\bparagraphs?|\bNummer|\bNr\.)\s*"
    r"(?P<number>\p{Nd}{1,4}(?:\.\p{Nd}{1,3})*(?!\p{Nd})|(?<=\s)(?-i:[IVXLC]{1,7}|[A-Z])\b)"
    rf"|第\s*(?P<han>[{_H}百两\p{{Nd}}]{{1,5}})\s*[条條款章节節项]",
    regex.IGNORECASE,
)
_UNIT_WORDS = (
    "day days week weeks month months year years hour hours minute minutes percent per cent euro euros "
    "eur usd gbp chf dollar dollars pound pounds working business calendar tag tage tagen woche wochen "
    "monat monate monaten jahr jahre jahren stunde stunden prozent franken werktage werktagen "
    "kalendertage"
)
_UNITS = frozenset((*_UNIT_WORDS.split(), *"%€$£¥天日周月年元时個个次倍份"))
_UNIT = regex.compile(
    r"[\s\u00A0)）-]*(?P<unit>(?:working|business|calendar)\s+(?:day|hour)s?|%|‰|[€$£¥]|\p{L}+)",
    regex.IGNORECASE,
)
_HAN_UNIT = regex.compile(r"\s*(?P<unit>个?(?:工作日|自然日|小时|月|天|日|周|年)|[万亿]?元|%|倍|次|份|名)")
_CURRENCY = regex.compile(r"(?:[€$£¥]|EUR|USD|GBP|CHF|RMB|人民币)\s*$", regex.IGNORECASE)
_SIGN = regex.compile(SIGN)
_COMPANY = regex.compile(
    r"(?<!\p{L})(?:\p{Lu}[\p{L}\p{M}&.'’-]{0,40}\s{1,3}(?:(?:and|und|&|of|für)\s{1,3})?){1,5}?"
    r"(?:Ltd|Limited|GmbH(?:\s*&\s*Co\.?\s*KG)?|AG|Inc|Incorporated|LLC|LLP|PLC|plc|KG|KGaA|SE|Corp"
    r"|Corporation|S\.A\.|B\.V\.|N\.V\.|Pty|Company|e\.\s?V\.)(?![\p{L}])\.?"
    r"|[\p{Han}（）()]{2,20}?(?:股份有限公司|有限责任公司|有限公司|集团|事务所|银行)"
)
_PERSON = regex.compile(
    r"(?:Mr|Mrs|Ms|Dr|Prof|Herrn?|Frau)\.?\s+(?:\p{Lu}\.\s+)*\p{Lu}[\p{L}\p{M}'’-]+"
    r"(?:\s+\p{Lu}[\p{L}\p{M}'’-]+){0,2}"
)
_ROLE_WORDS = (
    "supplier customer licensor licensee lessor lessee tenant landlord buyer seller purchaser vendor "
    "provider client contractor subcontractor company employer employee borrower lender guarantor agent "
    "principal distributor consultant publisher author investor carrier auftragnehmer auftraggeber "
    "auftragnehmerin auftraggeberin lieferant lieferanten käufer käuferin verkäufer verkäuferin mieter "
    "mieterin vermieter vermieterin kunde kunden kundin anbieter anbieterin lizenzgeber lizenznehmer "
    "arbeitgeber arbeitnehmer auftragnehmers auftraggebers lieferers bestellers besteller lieferer "
    "darlehensgeber darlehensnehmer bürge käufers verkäufers mieters vermieters anbieters lizenzgebers "
    "lizenznehmers"
)
_ROLES = frozenset(fold(word) for word in _ROLE_WORDS.split())
_WORD = regex.compile(r"\p{L}[\p{L}\p{M}]*")
_HAN_ROLE = regex.compile(
    r"[甲乙丙丁]方|买方|卖方|出租方|承租方|出租人|承租人|委托人|受托人|发包人|承包人|供方|需方|许可方|被许可方|借款人|贷款人|保证人"
    r"|供应商|客户|服务商|采购方"
)
_DEFINED = regex.compile(
    r"[(（][^()（）\n]{0,40}?[\"“„«'‘](?:the\s+|der\s+|die\s+|den\s+|das\s+)?"
    r"(?P<role>[^\"”“»'’\n]{2,40})[\"”“»'’]\s*[)）]",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Entity:
    """text [start, end) of the passage's document, of one kind; equal keys name the same thing."""

    kind: EntityKind
    key: str
    start: int
    end: int


def roles_of(text: str) -> frozenset[str]:
    """The names that a contract gives its parties in brackets and quotation marks, folded."""
    found = (fold(match["role"]).strip() for match in _DEFINED.finditer(text[:20_000]))
    return frozenset(role for role in found if len(role.split()) <= 3)


def entities(text: str, start: int, roles: frozenset[str]) -> tuple[Entity, ...]:
    """The entities of a passage that begins at `start`; none overlap: dates and references first, then
    numbers, then parties.
    """
    found: list[Entity] = []
    covered = bytearray(len(text))
    for entity in _all(text, roles):
        if not any(covered[entity.start : entity.end]):
            covered[entity.start : entity.end] = b"\1" * (entity.end - entity.start)
            found.append(Entity(entity.kind, entity.key, entity.start + start, entity.end + start))
    return tuple(sorted(found, key=lambda entity: entity.start))


def is_unit(word: str) -> bool:
    """Whether the word, as compared, says what a number counts."""
    return word in _UNITS


def _all(text: str, roles: frozenset[str]) -> Iterator[Entity]:
    for match in _REFERENCE.finditer(text):
        number = match["number"]
        key = plain_number(number) if number else han_number(match["han"])
        yield Entity("reference", key, match.start("number" if number else "han"), match.end())
    yield from _dates(text)
    yield from _numbers(text)
    yield from _parties(text, roles)


def _dates(text: str) -> Iterator[Entity]:
    for match in _DATE.finditer(text):
        parts = {name[0]: value for name, value in match.groupdict().items() if value is not None}
        if "a" in parts:  # the order of day and month is the country's: kept as it is
            key = f"{parts['y']}-{int(parts['a']):02}/{int(parts['b']):02}"
        else:
            month = parts.get("m", "")
            value = _MONTHS.get(month.casefold()) or han_value(month) if month else 0
            day = han_value(parts["d"]) if "d" in parts else 0
            key = f"{_year(parts.get('y', ''))}-{value or 0:02}-{day or 0:02}"
        yield Entity("date", key, match.start(), match.end())


def _year(text: str) -> str:
    return text if text.isdecimal() or not text else "".join(han_number(sign) for sign in text)


def _numbers(text: str) -> Iterator[Entity]:
    for number in numbers(text):
        behind = _HAN_UNIT.match(text, number.end) or _UNIT.match(text, number.end)
        unit = fold(behind["unit"]) if behind else ""
        is_known = any(part in _UNITS for part in unit.split()) or (behind and behind.re is _HAN_UNIT)
        written = text[number.start : number.end]
        is_word = number.spelled and not any(map(str.isdecimal, written))
        is_small = number.key in SMALL_WORDS or len(written) == 1
        if is_word and is_small and not is_known:
            continue
        start, is_negative = _signed(text, number.start)
        before = _CURRENCY.search(text, max(0, start - 8), start)
        if before:
            start, is_outside = _signed(text, before.start())
            is_negative |= is_outside
        is_closed = behind is not None and any(
            mark in text[number.end : behind.start("unit")] for mark in ")）"
        )
        end = behind.end() if behind and is_known and not is_closed else number.end
        value = f"-{number.key}" if is_negative else number.key
        key = f"{value} {unit if is_known else ''} {before[0].strip() if before else ''}"
        yield Entity("number", key, start, end)


def _signed(text: str, start: int) -> tuple[int, bool]:
    """Where the number or amount begins with its minus sign, and whether it has one."""
    return (start - 1, True) if start and _SIGN.match(text, start - 1) else (start, False)


def _parties(text: str, roles: frozenset[str]) -> Iterator[Entity]:
    for match in _COMPANY.finditer(text):
        yield Entity("party", fold(match[0]).rstrip("."), match.start(), match.end())
    for match in _HAN_ROLE.finditer(text):
        yield Entity("party", match[0], match.start(), match.end())
    for match in _PERSON.finditer(text):
        yield Entity("party", fold(match[0]), match.start(), match.end())
    yield from _roles(text, roles)


def _roles(text: str, roles: frozenset[str]) -> Iterable[Entity]:
    known = _ROLES | roles
    for match in _WORD.finditer(text):
        key = fold(match[0])
        if match[0][0].isupper() and (key in known or key.removesuffix("s") in known):
            yield Entity("party", key.removesuffix("s"), match.start(), match.end())
