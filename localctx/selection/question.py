"""What kind of question it is: one that passages can answer, or one that needs the whole document.

Patterns over English, German, French, Spanish, Italian, Portuguese, Dutch, Russian, Chinese, Japanese and
Korean. Knows no document: "how many" may be answered by one sentence that states the figure, which is why the
caller warns instead of refusing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import regex

from localctx.index.query import exact_terms, quoted_phrases

__all__ = ["QuestionTraits", "question_traits"]

Kind = Literal["plain", "count", "list", "position"]

_WORD = r"(?<![\p{L}\p{N}])"
_COUNT = (
    _WORD
    + r"(?:how\s+(?:many|often)|count\s+(?:of|the|all|every|how)|number\s+of\s+(?!the\s+page)|total\s+number"
    r"|wie\s*viele|wie\s+oft|anzahl"
    r"|combien\s+d|combien\s+y|nombre\s+d"
    r"|cu[aá]nt[oa]s|n[uú]mero\s+de"
    r"|quant[ie]\s|quant[oa]s\s|hoeveel|сколько|количество)"
    r"|多少(?:个|次|条|人|种|名|行|页|章|本|位|件)|[几幾](?:个|個|次|条|條|人|种|種|名|行|章|本|位|件)|总数|總數"
    r"|いくつ|何(?:件|個|回|人|名|種類|行|ページ|章)|몇\s*(?:개|번|명|건|행)"
)
_LIST = (
    _WORD + r"(?:(?:list|name|enumerate|show|give|find|extract|collect|mention)\s+(?:me\s+|us\s+)?"
    r"(?:all|every|each)"
    r"|list\s+(?:the|of)\b|enumerate|(?:what|which|who)\s+are\s+all|(?:complete|full)\s+list"
    r"|every\s+(?:single|mention)|(?:which|what)\s+\p{L}+s\s+(?:are|were)\s+(?:mentioned|named|listed)"
    r"|all\s+(?:the\s+)?\p{L}+(?:\s+\p{L}+)?\s+(?:mentioned|named|listed|that\s+(?:are|were)|in\s+(?:the|this)\s+"
    r"(?:document|file|book|text|report))"
    r"|(?:nenne|liste|zähle|gib)\s+(?:mir\s+)?alle|alle\s+\p{L}+\s+auf|liste\s+\p{L}+\s+auf|auflist"
    r"|(?:liste[rz]?|énum[eéè]re[rz]?|cite[rz]?|donne[rz]?)\s+(?:moi\s+)?(?:tou|les|la\s+liste)|tou(?:s|tes)\s+les"
    r"|(?:lista|enumera|nombra|menciona|dame|elenca|liste|enumere|cite)\s+(?:tod[oa]s|tutt[ie]|los|las|os|as)\b"
    r"|tod[oa]s\s+(?:los|las|os|as)|tutt[ie]\s+(?:i|gli|le)|noem\s+alle|перечисли|все\s+упом|назови\s+все)"
    r"|列出|列举|列舉|所有的?|全部的?|すべて|全て|一覧|列挙|모든|모두|나열"
)
_UNIT = (
    r"(?:line|row|record|entry|item|word|sentence|paragraph|character|chapter|section|page"
    r"|zeile|wort|satz|absatz|kapitel|seite|ligne|mot|phrase|paragraphe|chapitre|l[ií]nea|linha|riga|palabra|palavra"
    r"|parola|frase|p[aá]rrafo|cap[ií]tulo|строк[аеиу]|слово|предложение|абзац|глав[аеу])s?"
)
_PLACE = (
    r"(?:first|second|third|last|penultimate|next[- ]to[- ]last|\d+(?:st|nd|rd|th)|\d+\."
    r"|erste[nrs]?|zweite[nrs]?|dritte[nrs]?|letzte[nrs]?|premi[eè]re?|derni[eè]re?|primer[ao]?|primeir[ao]"
    r"|prim[ao]|[uú]ltim[ao]|eerste|laatste|перв\p{L}{2}|последн\p{L}{2})"
)
_POSITION = (
    _WORD + r"(?:(?:line|row|record|zeile|ligne|l[ií]nea|linha|riga|строк[аеиу])"
    r"\s*(?:no\.?|number|nr\.?|#|№)?\s*\d+"
    r"|(?:paragraph|sentence|absatz|satz|entry|item)\s*(?:no\.?|number|nr\.?|#|№)?\s*\d+"
    rf"|{_PLACE}\s+(?:\d+\s+|two\s+|three\s+|ten\s+)?{_UNIT}(?![\p{{L}}])"
    r"|at\s+the\s+(?:very\s+)?(?:end|beginning|start|top|bottom)\s+of\s+(?:the|this)"
    r"\s+(?:document|file|text|book))"
    r"|第\s*[\d〇零一二三四五六七八九十百千]+\s*(?:行|句|段|条|條)|最[后後]一[行句段]|最後の(?:行|文|段落)"
    r"|\d+\s*行目|\d+\s*번째\s*(?:줄|행|문장)|마지막\s*(?:줄|문장|문단)"
)


@dataclass(frozen=True, slots=True)
class QuestionTraits:
    """What the question asks for, the identifiers it spells out and the phrases it quotes."""

    kind: Kind
    identifiers: tuple[str, ...] = ()
    quotes: tuple[str, ...] = ()

    @property
    def needs_whole_document(self) -> bool:
        """Whether an answer from selected passages may be wrong although each passage is right."""
        return self.kind != "plain"


def question_traits(question: str) -> QuestionTraits:
    """The question's traits; of a long question only the last 2,000 characters are judged for its kind."""
    asked = " ".join(question[-2000:].split())
    kind: Kind = "plain"
    if regex.search(_COUNT, asked, flags=regex.IGNORECASE):
        kind = "count"
    elif regex.search(_LIST, asked, flags=regex.IGNORECASE):
        kind = "list"
    elif regex.search(_POSITION, asked, flags=regex.IGNORECASE):
        kind = "position"
    shown = question[:20_000]
    return QuestionTraits(kind, exact_terms(shown), quoted_phrases(shown))
