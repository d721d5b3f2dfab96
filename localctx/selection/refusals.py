"""Does an answer say that the text does not say? Patterns over many languages. Pure; knows no document."""

from __future__ import annotations

import regex

from localctx.index.terms import words

__all__ = ["repeats_refusal", "says_not_found"]

REFUSAL_CHARACTERS = 400

_SUBJECT = (
    r"(?:the\s+|this\s+|provided\s+|given\s+)+(?:text|document|passage|context|excerpt|article|report|author|source"
    r"|speech|information)s?"
)
_TELLING = (
    r"(?:mention(?:ed)?|stated?|specif(?:y|ied)|provided?|given|discuss(?:ed)?|described?|indicated?|address(?:ed)?"
    r"|covered|included?|listed|contained|contain|say|tell|give|answer(?:ed)?)"
)
_REFUSAL = (
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
    r"|언급(?:되지|이\s*없)|나와\s*있지\s*않"
)


def says_not_found(answer: str) -> bool:
    """Whether the answer, in its first sentences, says that the text does not hold the answer."""
    return (
        not answer.strip()
        or regex.search(_REFUSAL, answer[:REFUSAL_CHARACTERS], regex.IGNORECASE) is not None
    )


def repeats_refusal(answer: str, source: str) -> bool:
    """Whether the answer's words of not finding are the source's own."""
    match = regex.search(_REFUSAL, answer[:REFUSAL_CHARACTERS], regex.IGNORECASE)
    return match is not None and " ".join(words(match[0])) in " ".join(words(source))
