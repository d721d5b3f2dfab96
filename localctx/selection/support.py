"""Does the document support the answer? A lexical judgement, statement by statement. Pure; knows no files.

"none" makes the caller take the answer back, so it needs a sign that the document says nothing of the kind.
The rule, in this order:

1. The answer says that the text does not say ("not mentioned", "I don't know" …), or is empty: "none"; not so
   where the passages say the same in the same words.
2. Question and answer are in another language than the passages, so words cannot be compared: "partial".
3. The passages hold no word of a question of three words or more, or of one that names what the document
   lacks, or the answer has no word of its own: "none"; not so where what the answer was taken from means what
   is asked for (`is_meant`), since a question may be put in other words.
4. The question holds a year or a code word that the document lacks: "none". A name that it lacks (it may be
   the author's, or another form): "none" where the answer is not the passages' own or speaks of another name.
5. Each sentence of the answer is judged by its place: the two sentences in a row, with the headings above
   them, that hold most of its own words and numbers (those that the question does not hold), then of the
   question's. "supported": the place holds nearly all of them and enough of the question, rare words weighing
   more, and neither denies what the other says. "none": the sentence of the place is about another year, code
   word or heading than the question; or the passages hold little of its own words and no claim; or nothing of
   them and little, or nearly all, of the question; or the place that answers the question best states another
   figure. Everything else is "partial".
6. The answer is "supported" where all its statements are, "none" where all are none, else "partial".

Known limits: a paraphrase in other words is "partial" at most; a wrong relation between words of one place
counts as supported; what is denied in other words is not seen. Measured in docs/honesty.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Literal

from localctx.selection.asking import Asked, years
from localctx.selection.beyond import may_be_named
from localctx.selection.claims import Claim, claims
from localctx.selection.evidence import without_evidence
from localctx.selection.key_sentences import sentences
from localctx.selection.matching import Place, holds, own_terms, share_of, terms
from localctx.selection.negation import denies
from localctx.selection.refusals import repeats_refusal, says_not_found
from localctx.selection.same_language import same_language

__all__ = ["Judgement", "Statement", "Verdict", "judgement", "support"]

Verdict = Literal["supported", "partial", "none"]

SUPPORTED_SHARE = 0.85
QUESTION_SHARE = 0.55
NONE_SHARE = 0.4
ANSWERED_SHARE = 0.75
BESIDE_SHARE = 0.2
FEW_WORDS = 2
MANY_OWN = 3

_BARE = frozenset(("yes", "no", "ja", "nein", "oui", "non", "sí", "si", "sim", "да", "нет", "true", "false"))


@dataclass(frozen=True, slots=True)
class Statement:
    """A sentence of the answer, answer[start:end], and its own verdict."""

    start: int
    end: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class Judgement:
    """The verdict on an answer, those on its statements, and, of "none", the reason in words."""

    verdict: Verdict
    statements: tuple[Statement, ...] = ()
    reason: str = ""

    def without_unheld(self, answer: str) -> str:
        """The answer without the statements that are judged "none"."""
        return " ".join(answer[s.start : s.end] for s in self.statements if s.verdict != "none") or answer


@dataclass(frozen=True, slots=True)
class _Own:
    """What a statement says that its question does not: terms, claims; and what the passages lack of it."""

    terms: frozenset[str]
    claims: tuple[Claim, ...]
    missing: tuple[Claim, ...]
    share: float


def support(
    question: str,
    answer: str,
    passages: Sequence[str],
    *,
    headings: Sequence[Sequence[str]] = (),
    absent: Collection[str] = (),
    language: str = "en",
) -> Verdict:
    """judgement()'s verdict."""
    return judgement(question, answer, passages, headings=headings, absent=absent, language=language).verdict


def judgement(
    question: str,
    answer: str,
    passages: Sequence[str],
    *,
    headings: Sequence[Sequence[str]] = (),
    absent: Collection[str] = (),
    language: str = "en",
    is_meant: Callable[[], bool] = lambda: False,
) -> Judgement:
    """Whether the attended `passages`, under their headings, support the answer (rule above).

    absent: the question's content words that occur nowhere in the whole document, as
    `LexicalIndex.absent(question)` gives them · is_meant: whether what holds the answer means what is asked
    for; asked where no word tells.
    """
    source = "\n".join(passages)
    if says_not_found(answer) and not (
        _is_held(answer, source, language) and repeats_refusal(answer, source)
    ):
        return Judgement("none", reason="the answer says so")
    spans = sentences(answer, language)
    same = same_language(f"{question} {answer}", source)
    if same is False:
        return Judgement("partial", tuple(Statement(s.start, s.end, "partial") for s in spans))
    asked = Asked.over(question, passages, headings, absent, language)
    if reason := _declined(asked, answer, is_meant, is_sure=same is True):
        return Judgement("none", tuple(Statement(s.start, s.end, "none") for s in spans), reason)
    judged = tuple(
        Statement(s.start, s.end, _verdict(asked, s.text, source, is_sure=same is True)) for s in spans
    )
    verdicts = {statement.verdict for statement in judged}
    verdict: Verdict = verdicts.pop() if len(verdicts) == 1 else "partial"
    return Judgement(verdict, judged, "no place in the document says so" if verdict == "none" else "")


def _declined(asked: Asked, answer: str, is_meant: Callable[[], bool], *, is_sure: bool) -> str:
    """Why the document cannot answer the question at all; "" where it may."""
    if asked.beyond.certain:
        return f"not in the document: {', '.join(asked.beyond.certain)}"
    if not is_sure:
        return ""
    own = own_terms(answer, asked.terms, asked.language) - _BARE
    place, share = _place(asked, own)
    is_held = share >= SUPPORTED_SHARE
    is_told = len(asked.terms) > FEW_WORDS or bool(asked.beyond) or not (own or claims(answer))
    if asked.terms and asked.is_unheard_of and is_told and not is_meant():
        return "the document holds no word of the question"
    if asked.beyond.names and (not is_held or _speaks_of_another(asked, answer, place)):
        return f"not in the document: {', '.join(asked.beyond.names)}"
    return ""


def _speaks_of_another(asked: Asked, answer: str, place: Place) -> bool:
    """Whether the place names something that the question does not; what answers "who" does not count."""
    named = [claim for claim in claims(place.both) if claim.kind in ("name", "code")]
    return bool(without_evidence(named, answer if asked.asks_who else "", asked.text))


def _is_held(answer: str, source: str, language: str) -> bool:
    """Whether the source holds nearly all of the answer's words."""
    return share_of(terms(answer, language), terms(source, language)) >= SUPPORTED_SHARE


def _verdict(asked: Asked, statement: str, source: str, *, is_sure: bool) -> Verdict:
    """The verdict on one sentence of the answer."""
    own = _own(asked, statement, source)
    wanted = own.terms
    if not own.terms and not own.claims:
        wanted = terms(statement, asked.language) - _BARE
        if not wanted or asked.asks_who or asked.asks_figure:
            return "partial"  # it says nothing, or nothing that was asked for
    place, share = _place(asked, wanted)
    sentence, told = place.text, place.terms
    if share_of(wanted, place.before_terms) > share_of(wanted, told):
        sentence, told = place.before_text, place.before_terms
    conflict = asked.conflict(place, told)
    if is_sure and (conflict == "sure" or _is_unheld(asked, own, place, source)):
        return "none"
    is_whole = share >= SUPPORTED_SHARE and not without_evidence(own.claims, f"{place.both}\n{place.above}")
    is_said = not own.terms or any(holds(place.terms | place.before_terms, term) for term in own.terms)
    is_about = is_said and asked.share(place) >= QUESTION_SHARE and asked.covers(place) and not asked.beyond
    if not (is_whole and is_about) or conflict or denies(statement, sentence, asked.language):
        return "partial"
    return "supported"


def _own(asked: Asked, statement: str, source: str) -> _Own:
    """The statement's own terms and claims, and their share in all the passages."""
    new = own_terms(statement, asked.terms, asked.language) - _BARE
    found = without_evidence(claims(statement), asked.text)
    missing = without_evidence(found, source)
    everywhere = frozenset[str]().union(*(place.all_terms for place in asked.places))
    return _Own(new, found, missing, share_of(new, everywhere) if new else 0.0)


def _place(asked: Asked, wanted: Collection[str]) -> tuple[Place, float]:
    """The place that holds most of the wanted terms, then one of the same subject, then the one that holds
    most of the question; and its share of the wanted ones.
    """
    shares = [share_of(wanted, place.all_terms) for place in asked.places]
    most = max(shares)
    best = max(
        (place for place, share in zip(asked.places, shares, strict=True) if share == most),
        key=lambda place: (asked.conflict(place, place.terms) != "sure", asked.share(place)),
    )
    return best, most


def _is_unheld(asked: Asked, own: _Own, place: Place, source: str) -> bool:
    """Whether it is sure that the document does not say what the statement says."""
    lacking = bool(own.claims) and all(
        claim in own.missing and not (claim.kind == "name" and may_be_named(claim.text, source))
        for claim in own.claims
    )
    if own.share < NONE_SHARE and lacking:
        return True
    best, answered = asked.best, asked.share(asked.best)
    around = asked.passage_terms[best.passage]
    is_nowhere = own.share == 0 and len(own.terms) >= MANY_OWN and (lacking or not own.claims)
    is_exact = len(asked.terms) > FEW_WORDS or asked.asks_figure or asked.asks_who
    is_told = answered >= ANSWERED_SHARE and is_exact
    if is_nowhere and not asked.asks_reason and (answered < QUESTION_SHARE or is_told):
        return True
    figures = {term for term in own.terms if term[0] == "#"}
    told = {term for term in best.terms - asked.terms if term[0] == "#"}
    if answered < ANSWERED_SHARE or not figures or figures & around:
        return False
    if not (told if years(figures) else told - years(told)) or (
        figures & place.all_terms and asked.share(place) > answered - BESIDE_SHARE
    ):
        return False
    return sum(holds(around, term) for term in own.terms - figures) < MANY_OWN
