"""Does the document support the answer? A lexical judgement, no model. Pure; knows no files.

The rule, in this order:

1. The answer says that the text does not say ("not mentioned", "I don't know" …), or is empty: "none".
2. The question names something (a name, number, quotation, code word) that the whole document lacks, or at
   least three quarters of its content words occur nowhere in it: "none". `absent` says what is lacking.
3. Of the answer's content words that the question does not hold already, the share found in the attended
   passages, names twice and numbers by value, decides: at least 0.75 with every number, name and quotation
   found is "supported", under 0.4 is "none", else "partial". An answer of words of the question alone
   ("Yes.") is "partial" when the passages hold most of the question's words, else "none".
   Where question and answer are in another language than the passages, words cannot be compared: "partial".
4. "supported" also needs one place (three sentences in a row) that holds a third of the answer's words and,
   where the question has any, a word of the question.

Known limits: a paraphrase in other words counts as unsupported; a negation, a wrong relation between words
that are all there, or the right words about another subject count as supported; "Yes" and "No" are never
judged by their sense. Stemming is English.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Sequence
from typing import Literal

import regex

from localctx.index.stop_words import likely_language
from localctx.index.terms import content_words, stem, words
from localctx.selection.claims import claims
from localctx.selection.evidence import without_evidence
from localctx.selection.key_sentences import sentences

__all__ = ["says_not_found", "support"]

Verdict = Literal["supported", "partial", "none"]

SUPPORTED_SHARE = 0.75
NONE_SHARE = 0.4
ABSENT_SHARE = 0.75
PLACE_SHARE = 1 / 3
PLACE_SENTENCES = 3
REFUSAL_CHARACTERS = 400
TONGUE_CHARACTERS = 4000
TONGUE_STOP_WORDS = 3

_SUBJECT = (
    r"(?:the\s+|this\s+|provided\s+|given\s+)+(?:text|document|passage|context|excerpt|article|report|author|source"
    r"|speech|information)s?"
)
_TELLING = (
    r"(?:mention(?:ed)?|stated?|specif(?:y|ied)|provided?|given|discuss(?:ed)?|described?|indicated?|address(?:ed)?"
    r"|covered|included?|listed|contained|contain|say|tell|give|answer(?:ed)?)"
)
_REFUSAL = regex.compile(
    rf"(?:is|are|was|were)(?:\s+not|\s+never|n.t)\s+(?:\p{{L}}+ly\s+)?{_TELLING}\s*(?:$|[.,;]|(?:in|by|within|anywhere)\b)"
    rf"|^\W*not\s+(?:\p{{L}}+ly\s+)?{_TELLING}"
    rf"|{_SUBJECT}\s+(?:(?:does|do|did|has|have|is|are)\s*(?:not|n.t|no\b)|(?:says?|contains?|gives?)\s+no)"
    rf"|(?:no|without)\s+(?:\p{{L}}+\s+)?(?:mention|information|indication|reference|answer|data|details?)\b"
    rf"|(?:can(?:not|.t)|could\s*n.t|could\s+not|unable\s+to)\s+(?:be\s+)?(?:find|found|answer|determined?|tell)\b"
    r"|i\s+(?:do\s+not|don.t)\s+know|i.m\s+not\s+sure|^\W*unknown\b"
    r"|nicht\s+(?:erwähnt|genannt|angegeben|enthalten|bekannt|gesagt)|keine\s+(?:angabe|information)"
    r"|(?:n.est|ne\s+sont)\s+pas\s+(?:mentionn|indiqu|précis)|ne\s+(?:dit|mentionne|précise|contient)\s+pas"
    r"|no\s+(?:se\s+)?(?:menciona|indica|especifica|dice|contiene)|non\s+(?:è|viene|sono)\s+(?:menzionat|indicat)"
    r"|não\s+(?:é\s+)?(?:menciona|indica|diz|contém)|не\s+(?:упомина|указан|сказано|говорится)"
    r"|(?:没有|未|沒有)(?:提到|提及|说明|說明|包含|找到|给出)|不知道|(?:記載|記述|言及)(?:が|は|されて)?(?:ありません|いません|ない)"
    r"|언급(?:되지|이\s*없)|나와\s*있지\s*않",
    regex.IGNORECASE,
)
_BARE = frozenset(("yes", "no", "ja", "nein", "oui", "non", "sí", "si", "sim", "да", "нет", "true", "false"))


def says_not_found(answer: str) -> bool:
    """Whether the answer, in its first sentences, says that the text does not hold the answer."""
    return not answer.strip() or _REFUSAL.search(answer[:REFUSAL_CHARACTERS]) is not None


def support(
    question: str, answer: str, passages: Sequence[str], *, absent: Collection[str] = (), language: str = "en"
) -> Verdict:
    """Whether the attended `passages` support the answer (rule above).

    absent: the question's content words that occur nowhere in the whole document, as
    `LexicalIndex.absent(question)` gives them.
    """
    if says_not_found(answer):
        return "none"
    tongue = _tongue(f"{question} {answer}")
    if tongue and (others := _tongue("\n".join(passages))) and tongue != others:
        return "partial"
    if _asks_beyond(question, absent):
        return "none"
    asked = set(map(stem, content_words(question)))
    said = dict.fromkeys(map(stem, content_words(answer)))
    new = [word for word in said if not (word in asked or word in _BARE or word[0].isdecimal())]
    held = set(map(stem, content_words("\n".join(passages))))
    found = claims(answer)
    if not new and not found:
        return "partial" if asked and len(asked & held) >= SUPPORTED_SHARE * len(asked) else "none"
    missing = without_evidence(found, passages, question)
    total = len(new) + len(found)
    share = (sum(word in held for word in new) + len(found) - len(missing)) / total
    if share < NONE_SHARE:
        return "none"
    if share < SUPPORTED_SHARE or missing or not _has_place(set(new), asked & held, passages, language):
        return "partial"
    return "supported"


def _asks_beyond(question: str, absent: Collection[str]) -> bool:
    """Whether the question is about something that the document never names."""
    if not absent:
        return False
    lacking = set(absent)
    if any(lacking & set(content_words(claim.text)) for claim in claims(question)):
        return True
    asked = set(content_words(question))
    return len(asked & lacking) >= ABSENT_SHARE * len(asked)


def _tongue(text: str) -> str:
    """The script of most letters or, for Latin ones, the likely language; "" when it cannot be told."""
    text = text[:TONGUE_CHARACTERS]
    scripts = Counter(unicodedata.name(c, "?").partition(" ")[0] for c in text if c.isalpha())
    script = max(scripts, key=lambda name: scripts[name], default="")
    if script != "LATIN":
        return script
    language, n_found = likely_language(words(text))
    return language if n_found >= TONGUE_STOP_WORDS else ""


def _has_place(new: set[str], asked: set[str], passages: Sequence[str], language: str) -> bool:
    """Whether some three sentences in a row hold enough of the answer and, if it can be, of the question."""
    for passage in passages:
        stems = [set(map(stem, content_words(s.text))) for s in sentences(passage, language)]
        for at in range(max(len(stems) - PLACE_SENTENCES + 1, 1)):
            near = set().union(*stems[at : at + PLACE_SENTENCES])
            if len(new & near) >= PLACE_SHARE * len(new) and (not asked or asked & near):
                return True
    return False
