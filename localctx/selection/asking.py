"""What a question asks, over passages: its terms, their weights, what it names, where it may be answered.

Pure text; knows no files and no answer.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Literal

import regex

from localctx.selection.beyond import YEARS, Beyond, may_be_abbreviated, named_beyond
from localctx.selection.claims import Claim, claims
from localctx.selection.matching import Place, holds, places, rarity, runs, share_of, terms

__all__ = ["Asked", "Conflict", "years"]

Conflict = Literal["", "maybe", "sure"]

RUN_SHARE = 0.5
HEADING_TERMS = 2
PASSAGE_SHARE = 0.5
"""What a question's word counts that stands elsewhere in the place's passage."""

_ASKING_WORDS = (
    "happen take took go going went long many much high large kind sort type come came get got use "
    "used name call mean people person thing exact number amount share percentage list give tell "
    "describe explain state according hoch lang viel viele gross schwer passiert passieren geschah "
    "geschehen kommt kommen geht gehen heisst nennen genau anzahl menge leute inc incorporated ltd "
    "limited llc plc corp corporation company gmbh ag kg se"
)
_ASKING = frozenset(_ASKING_WORDS.split())
_REASON = regex.compile(
    r"\b(?:why|how(?!\s+(?:many|much|long|high|deep|far|old|heavy|hot|large|big))|warum|wieso|weshalb)\b|为什么|怎么|怎样|如何",
    regex.IGNORECASE,
)
_FIGURE = regex.compile(
    r"\bhow\s+(?:many|much|long|high|deep|far|old|heavy|hot|cold|large|big|tall|wide|fast|often|soon|late)\b"
    r"|\b(?:when|(?:what|which)\s+(?:year|date|number|amount|sum|price|share|percentage))\b"
    r"|\bwie\s*(?:viel|oft|hoch|lang|tief|weit|alt|schwer|heiß|groß|breit|schnell)|\bwann\b|\bwelche[mrs]?\s+jahr"
    r"|多少|多[长長高远遠大久重深宽快]|[几幾]|何时|哪一?年|什么时候",
    regex.IGNORECASE,
)
_WHO = regex.compile(r"\b(?:who|whom|whose|wer|wem|wen|wessen|qui|quién)\b|谁|哪一?位", regex.IGNORECASE)
_CODE_TERM = regex.compile(r"(?=.*\p{L})(?=.*\p{Nd})[\p{L}\p{Nd}]+")


@dataclass(frozen=True, slots=True)
class Asked:
    """A question over passages.

    weights: its terms' rarity, the words of one name or heading sharing one weight · shares: of each place ·
    headed: headings that it names whole · beyond: what it names that the document lacks · asks_figure: how
    many, when … · asks_reason: why, how.
    """

    text: str
    language: str
    terms: frozenset[str]
    weights: dict[str, float]
    places: tuple[Place, ...]
    passage_terms: tuple[frozenset[str], ...]
    shares: tuple[float, ...]
    names: tuple[Claim, ...]
    headed: tuple[frozenset[str], ...]
    beyond: Beyond
    asks_figure: bool
    asks_reason: bool
    asks_who: bool

    @classmethod
    def over(
        cls,
        question: str,
        passages: Sequence[str],
        headings: Sequence[Sequence[str]],
        absent: Collection[str],
        language: str,
    ) -> Asked:
        """The question over the passages, each under its headings."""
        asked = terms(question, language) - _ASKING
        found = tuple(places(passages, headings, language)) or (Place(0, 0, "", frozenset(), frozenset()),)
        leaves = {place.headings[-1] for place in found if place.headings}
        headed = [leaf for leaf in leaves if leaf <= asked and (len(leaf) >= HEADING_TERMS or _codes(leaf))]
        names = [claim for claim in claims(question) if claim.kind == "name"]
        wholes = [*headed, *(terms(name.text, language) & asked for name in names)]
        weights = {
            term: weight / max([1, *(len(one) for one in wholes if term in one)])
            for term, weight in rarity(asked, found).items()
        }
        around = tuple(
            frozenset[str]().union(*(place.all_terms for place in found if place.passage == number))
            for number in range(max(1, len(passages)))
        )
        around_shares = [share_of(asked, held, weights) for held in around]
        source = "\n".join([*passages, *(line for path in headings for line in path)])
        return cls(
            text=question,
            language=language,
            terms=asked,
            weights=weights,
            places=found,
            passage_terms=around,
            shares=tuple(_share(asked, weights, place, around_shares[place.passage]) for place in found),
            names=tuple(names),
            headed=tuple(headed),
            beyond=named_beyond(question, absent, source, language),
            asks_figure=_FIGURE.search(question) is not None,
            asks_reason=_REASON.search(question) is not None,
            asks_who=_WHO.search(question) is not None,
        )

    def share(self, place: Place) -> float:
        """How much of the question a place holds, rare terms weighing more, and, at half, its passage."""
        return self.shares[place.number]

    @property
    def best(self) -> Place:
        """The place that holds most of the question."""
        return max(self.places, key=self.share)

    @property
    def is_unheard_of(self) -> bool:
        """Whether no place holds a term of the question."""
        return not any(holds(place.all_terms, term) for place in self.places for term in self.terms)

    def covers(self, place: Place) -> bool:
        """Of unspaced scripts, whether the place holds half of each of the question's words."""
        return all(share_of(run, place.all_terms) >= RUN_SHARE for run in runs(self.text))

    def conflict(self, place: Place, sentence: frozenset[str]) -> Conflict:
        """Whether the sentence of the place speaks of another year, code or headed subject than the question.

        "maybe": it is not said that it is the same.
        """
        found: Conflict = ""
        for kind in (years, _codes):
            asked, told = kind(self.terms), kind(sentence)
            if not asked or asked & told:
                continue
            if told - asked:
                return "sure"
            if not asked & place.all_terms:
                found = "maybe"
        for leaf in self.headed:
            if not leaf <= place.all_terms:
                return "sure" if place.headings and not place.headings[-1] <= self.terms else "maybe"
        if any(not self._is_named(claim, place) for claim in self.names):
            return "maybe"
        return found

    def _is_named(self, name: Claim, place: Place) -> bool:
        """Whether the place's passage holds the rarest word of a name, or another form of it."""
        parts = terms(name.text, self.language) & self.terms
        rarest = max(sorted(parts), key=lambda term: self.weights[term], default="")
        held = self.passage_terms[place.passage]
        return (
            not rarest or holds(held, rarest) or may_be_abbreviated(name.text, f"{place.both}\n{place.above}")
        )


def _share(asked: frozenset[str], weights: dict[str, float], place: Place, around: float) -> float:
    """Of the question in a place and, at half, in its passage, which holds the share `around`."""
    here = share_of(asked, place.all_terms, weights)
    return here + PASSAGE_SHARE * max(around - here, 0.0)


def years(found: Collection[str]) -> frozenset[str]:
    """The terms that are years."""
    return frozenset(t for t in found if t[0] == "#" and t[1:].isdecimal() and int(t[1:]) in YEARS)


def _codes(found: Collection[str]) -> frozenset[str]:
    """The terms that are code words."""
    return frozenset(filter(_is_code, found))


@functools.lru_cache(maxsize=1 << 14)
def _is_code(term: str) -> bool:
    return _CODE_TERM.fullmatch(term) is not None
