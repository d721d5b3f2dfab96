"""Does the document support the answer? A lexical judgement, no model. Pure; knows no files.

"none" makes the caller take the answer back, so it is said only when sure. The rule, in this order:

1. The answer says that the text does not say ("not mentioned", "I don't know" …), or is empty: "none"; not so
   where the passages say the same in the same words.
2. Question and answer are in another language than the passages, so words cannot be compared: "partial".
3. The answer's own words and claims (numbers, names, quotations, code words) are those that the question does
   not hold. Their share found in the passages, names twice and numbers by value, decides. Under 0.4 is "none"
   when all own claims are missing, or when at least three quarters of the question's words, and three of
   them, occur nowhere in the document; a share of 0 also when the question names something of which the
   document holds no word. An answer with nothing of its own ("Yes.") is "none" only when the passages hold no
   word of the question. A name is not missing when the passages hold one of its words, its initials, or what
   its letters stand for. Where the language of either side cannot be told, nothing of this is sure enough.
4. A share of at least 0.75 with every claim found is "supported", if the question asks for nothing absent and
   one place (two sentences in a row, or rows of a table) holds half of the words of question and answer, and
   its numbers stand in one sentence with half of the question's words. Everything else is "partial".

Known limits: a paraphrase in other words is "partial" at most, and so is an invented answer without numbers
or names; a negation, a wrong relation between words that are all there, or the right words about another
subject count as supported; "Yes" and "No" are never judged by their sense. Stemming is English.
"""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from localctx.index.stop_words import stop_word_counts
from localctx.index.terms import content_words, stem, words
from localctx.selection.claims import Claim, claims
from localctx.selection.evidence import without_evidence
from localctx.selection.key_sentences import sentences

__all__ = ["says_not_found", "support"]

Verdict = Literal["supported", "partial", "none"]

SUPPORTED_SHARE = 0.75
NONE_SHARE = 0.4
ABSENT_SHARE = 0.75
ABSENT_WORDS = 3
PLACE_SHARE = 0.5
ROW_CHARACTERS = 60
REFUSAL_CHARACTERS = 400
TONGUE_CHARACTERS = 4000
TONGUE_STOP_WORDS = 2
ACRONYM_LETTERS = range(2, 7)

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
_SMALL = frozenset(("a", "an", "and", "for", "of", "the"))
_BARE = frozenset(("yes", "no", "ja", "nein", "oui", "non", "sí", "si", "sim", "да", "нет", "true", "false"))


@dataclass(frozen=True, slots=True)
class _Own:
    """What an answer says that its question does not: content words, claims; what of it passages hold."""

    words: frozenset[str]
    claims: tuple[Claim, ...]
    missing: tuple[Claim, ...]
    share: float


def says_not_found(answer: str) -> bool:
    """Whether the answer, in its first sentences, says that the text does not hold the answer."""
    return (
        not answer.strip()
        or regex.search(_REFUSAL, answer[:REFUSAL_CHARACTERS], regex.IGNORECASE) is not None
    )


def support(
    question: str, answer: str, passages: Sequence[str], *, absent: Collection[str] = (), language: str = "en"
) -> Verdict:
    """Whether the attended `passages` support the answer (rule above).

    absent: the question's content words that occur nowhere in the whole document, as
    `LexicalIndex.absent(question)` gives them.
    """
    source = "\n".join(passages)
    held = frozenset(map(stem, content_words(source)))
    asked = frozenset(map(stem, content_words(question)))
    own = _own(question, answer, source, asked, held)
    if says_not_found(answer) and not (own.share >= SUPPORTED_SHARE and _repeats(answer, source)):
        return "none"
    same = _same_tongue(f"{question} {answer}", source)
    if same is False:
        return "partial"
    if not own.words and not own.claims:
        unasked = same and asked and not (asked & held or claims(answer))
        return "none" if unasked else "partial"
    beyond = _asks_beyond(question, absent, source)
    if same and _is_unheld(own, beyond, source):
        return "none"
    whole = own.share >= SUPPORTED_SHARE and not own.missing and not beyond
    return "supported" if whole and _has_place(own, asked & held, passages, language) else "partial"


def _own(question: str, answer: str, source: str, asked: frozenset[str], held: frozenset[str]) -> _Own:
    """The answer's own words and claims, and their share in the source; 0 when there are none."""
    said = map(stem, content_words(answer))
    new = frozenset(w for w in said if not (w in asked or w in _BARE or w[0].isdecimal()))
    found = without_evidence(claims(answer), question)
    missing = without_evidence(found, source)
    total = len(new) + len(found)
    share = (len(new & held) + len(found) - len(missing)) / total if total else 0.0
    return _Own(new, found, missing, share)


def _is_unheld(own: _Own, beyond: float, source: str) -> bool:
    """Whether it is sure that the source does not say what the answer says."""
    lacking = bool(own.claims) and all(
        claim in own.missing and not (claim.kind == "name" and _may_be_named(claim.text, source))
        for claim in own.claims
    )
    return own.share < NONE_SHARE and (lacking or beyond >= ABSENT_SHARE or (beyond > 0 and own.share == 0))


def _asks_beyond(question: str, absent: Collection[str], source: str) -> float:
    """The share of the question's content words that the document lacks, if it names something that the
    document holds no word of or lacks most of them; else 0.
    """
    lacking = set(absent)
    asked = set(content_words(question))
    n_lacking = len(asked & lacking)
    share = n_lacking / len(asked) if asked else 0.0
    for claim in claims(question) if share else ():
        parts = set(content_words(claim.text))
        if parts and parts <= lacking and not _may_be_named(claim.text, source):
            return share
    return share if n_lacking >= ABSENT_WORDS and share >= ABSENT_SHARE else 0.0


def _may_be_named(name: str, source: str) -> bool:
    """Whether the source holds a word of the name, its initials, or what its letters stand for."""
    spoken = words(source)
    if set(map(stem, content_words(name))) & set(map(stem, spoken)):
        return True
    parts = [word for word in words(name) if word not in _SMALL]
    if len(parts) > 1:
        letters = [word[0] for word in parts]
        text = f" {' '.join(spoken)} "
        return f" {''.join(letters)} " in text or f" {' '.join(letters)} " in text
    is_acronym = name.isupper() and len(name) in ACRONYM_LETTERS
    return is_acronym and name.lower() in "".join(word[0] for word in spoken if word not in _SMALL)


def _repeats(answer: str, source: str) -> bool:
    """Whether the answer's words of not finding are the source's own."""
    match = regex.search(_REFUSAL, answer[:REFUSAL_CHARACTERS], regex.IGNORECASE)
    return match is not None and " ".join(words(match[0])) in " ".join(words(source))


def _same_tongue(text: str, source: str) -> bool | None:
    """Whether two texts are in one script and language; None when that cannot be told."""
    scripts = [_script(text), _script(source)]
    if "" in scripts:
        return None
    if scripts != ["LATIN", "LATIN"]:
        return scripts[0] == scripts[1]
    counts, others = (stop_word_counts(words(t[:TONGUE_CHARACTERS])) for t in (text, source))
    tongue = max(others, key=lambda language: (others[language], language == "en"))
    if others[tongue] < TONGUE_STOP_WORDS or not any(counts.values()):
        return None
    return counts[tongue] == max(counts.values())


def _script(text: str) -> str:
    """The script of most letters; "" when there are none."""
    scripts = Counter(
        unicodedata.name(c, "?").partition(" ")[0] for c in text[:TONGUE_CHARACTERS] if c.isalpha()
    )
    return max(scripts, key=lambda name: scripts[name], default="")


def _has_place(own: _Own, asked: frozenset[str], passages: Sequence[str], language: str) -> bool:
    """Whether two sentences in a row hold enough of question and answer, and one of them its numbers."""
    wanted = own.words | asked
    figures = [claim for claim in own.claims if claim.kind in ("number", "code")]
    for passage in passages:
        before: frozenset[str] = frozenset()
        for unit in _units(passage, language):
            here = frozenset(map(stem, content_words(unit)))
            is_near = len(wanted & (before | here)) >= PLACE_SHARE * len(wanted)
            is_about = not asked or 2 * len(asked & here) >= len(asked)
            if is_near and (not figures or (is_about and not without_evidence(figures, unit))):
                return True
            before = here
    return False


def _units(passage: str, language: str) -> Iterator[str]:
    """Sentences; the short lines of a list or table each by itself."""
    for sentence in sentences(passage, language):
        lines = sentence.text.splitlines()
        yield from lines if max(map(len, lines)) <= ROW_CHARACTERS else [sentence.text]
