"""Follow-up questions in Chinese, where a pronoun stands in the place of what it points at. Pure text."""

from __future__ import annotations

import regex

__all__ = ["is_unspaced", "standalone_unspaced"]

NAME_CHARACTERS = 4
"""What is so long, or shares a character with what was spoken of, takes its place; else it is asked of it."""
_HAN = regex.compile(r"\p{Han}")
_LETTER = regex.compile(r"\p{L}")
_POINTING = regex.compile(
    r"(?:它|牠|祂|他|她)们?|[这這那](?:个|個|座|家|本|位|条|條|种|種|些)?(?!\p{Nd})|其(?![他它实實中])|该|該"
)
_CUT_SHORT = regex.compile(
    r"^\W*(?:那么|那麼|那|还有|還有|以及|而)?(?P<what>.{1,24}?)(?:呢|怎么样|怎麼樣)\s*[？?]?\s*$"
)
_SAYING = regex.compile(
    r"什么时候|什麼時候|何时|何時|什么|什麼|多少|几|幾|哪[里裡儿兒年些个個位]?|谁|誰|为什么|為什麼|怎么|怎麼|怎样|如何|多[长長高远遠大久重深宽快]"
    r"|是|有|在|被|由|的|了|吗|嗎|呢|[？?。，,、！!]"
)


def is_unspaced(text: str) -> bool:
    """Whether the text is written in Han characters, most of it."""
    return 2 * len(_HAN.findall(text)) > len(_LETTER.findall(text))


def standalone_unspaced(question: str, last: str) -> str:
    """The question with what the last one was about in the place of its pronoun, or the last one with what is
    asked about now.
    """
    subject = next((part for part in _SAYING.split(last) if _HAN.search(part)), "")
    cut = _CUT_SHORT.match(question)
    if not subject:
        return question
    if cut is not None and not _POINTING.search(cut["what"]):
        is_alike = len(cut["what"]) >= NAME_CHARACTERS or not set(cut["what"]).isdisjoint(subject)
        return last.replace(subject, cut["what"], 1) if is_alike else f"{subject}的{cut['what']}？"
    pointed = _POINTING.sub(subject, question, count=1)
    if pointed == question and len(_HAN.findall(question)) <= 6:
        return f"{subject}{question}"
    return pointed
