"""A text span → its key sentences, verbatim and with exact offsets. Pure text; knows no model.

TF-IDF centroid (Radev et al., 2004) with a bonus for early sentences, then maximal marginal relevance
(Carbonell and Goldstein, 1998), so that the chosen ones do not repeat each other. Greetings, thanks, short or
broken sentences and what a speaker says of himself count less. Deterministic.
"""

from __future__ import annotations

import functools
import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import regex
import sentencex

from localctx.index.stop_words import stop_words
from localctx.index.terms import content_words, stem, words

__all__ = ["NOTICES", "Sentence", "figures", "key_sentences", "sentences"]

MAX_SENTENCE_CHARACTERS = 600
LONG_CHARACTERS = 320
MIN_WORDS = 4
SHORT_WORDS = 8
SHORT_CHARACTERS = 80
CLAUSE_MARKS = ",;:，、；：–—"
MAX_SENTENCES = 4000
KEPT_CHARACTERS = 16_000
KEPT_TEXTS = 256
"""Passages are asked for several times a question, and again by the next one; longer texts are not kept."""
LANGUAGE_CHARACTERS = 4000
REDUNDANCY_WEIGHT = 0.45
DUPLICATE_COSINE = 0.8
POSITION_BONUS = 0.25
FOCUS_WEIGHT = 4.0
FIGURE_BONUS, NAME_BONUS, FACT_BONUS = 0.2, 0.1, 0.8
"""For a figure, a name, or both: what a summary that leaves them out cannot be asked for."""

_GAP = regex.compile(r"\n[ \t]*\n+|(?<=[^\n]{1})\n(?=[ \t]*(?:[-*•‣]|\p{Nd}{1,3}[.)])[ \t])")
_ENDS = regex.compile(r"[.!?…。！？؟।։]['\"”’」』)\]]*\s*$")
_LETTERS = regex.compile(r"[\p{L}\p{M}]+")
NOTICES = (
    r"all rights reserved|copyright|©|\bisbn\b|table of contents|click here|page \d+ of \d+|cookie"
    r"|terms of use|privacy policy|\.{4,}|(?:\. ){4,}|_{4,}"
)
"""A pattern, for any case, of what stands in notices and tables of contents."""
_BOILERPLATE = regex.compile(rf"{NOTICES}|https?://|www\.", regex.IGNORECASE)
_CELLS = regex.compile(r"\t|\|| {3,}")
_GREETING = regex.compile(
    r"[\"“'(]*(?:gentlemen|ladies|fellow[ -]|dear\b|(?:mr|madam|mister)\.?[ ](?:president|speaker|chair)"
    r"|my friends|good (?:morning|afternoon|evening)|welcome|hello|meine damen|sehr geehrte|liebe\b|mesdames"
    r"|messieurs|señor[ae]s|queridos|amigos|signore|senhor[ae]s|дорогие|уважаемые|各位|皆さん|여러분)",
    regex.IGNORECASE,
)
_THANKS = regex.compile(
    r"\b(?:thank(?:s|ed)? (?:you|to all)|i thank|we thank|congratulat\p{L}+|god bless|pleas(?:ed|ure) to be"
    r"|honou?red? to (?:be|stand|speak|address)|vielen dank|ich danke|wir danken|merci|gracias|grazie"
    r"|obrigad[oa]|спасибо)\b|谢谢|感谢大家|ありがとう|감사합니다",
    regex.IGNORECASE,
)
_FIGURE = regex.compile(
    r"(?<![\p{L}\p{N}.,:(\[]|\bpp?\. )(?!(?:1[5-9]|20)\p{Nd}{2}(?!\p{N}))"
    r"(?:(?>\p{Nd}[\p{Nd}.,]*\p{Nd})(?:(?!\p{L})|(?<=[\p{Nd}.,]{3}))|\p{Nd}(?=\s?%))(?!:)"
    r"|[$€£¥]\s?\p{Nd}(?:[\p{Nd}.,]*\p{Nd})?"
)
"""A figure that is no year, no page, no verse; of an amount with its sign, all of it."""
_LAST_MARK = regex.compile(r"[.,](?=\p{Nd}+$)")
_NAME = regex.compile(r"(?<=[\p{Ll},;]\s)\p{Lu}\p{Ll}{2,}")
_OF_SELF = regex.compile(
    r"[\"“'(]*(?:I|I['’]\p{L}+|you|let me|my|ich|je|j['’]|yo|eu|io|я|我)(?![\p{L}\p{N}])", regex.IGNORECASE
)
_TORN = regex.compile(r"\p{Nd}{1,4}\s+\p{Ll}")
_LEANS = regex.compile(
    r"[\"“'(]*(?:he|she|it|they|this|that|these|those|such|but|and|or|so|yet|however|therefore|thus|hence|then|"
    r"moreover|furthermore|nevertheless|also|here|there)\b",
    regex.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence of a text: text[start:end] == `text`, without white space round it; score 0 if unrated."""

    start: int
    end: int
    text: str
    score: float = 0.0


def sentences(text: str, language: str = "en") -> tuple[Sentence, ...]:
    """The sentences of `text` in order; blank lines and list items end one too, over-long ones are cut."""
    return _kept(text, language) if len(text) <= KEPT_CHARACTERS else _sentences(text, language)


def _sentences(text: str, language: str) -> tuple[Sentence, ...]:
    found: list[Sentence] = []
    at = 0
    for gap in [*(match.span() for match in _GAP.finditer(text)), (len(text), len(text))]:
        if at < gap[0]:
            for cut in sentencex.get_sentence_boundaries(language, text[at : gap[0]]):
                found.extend(_pieces(text, at + cut["start_index"], at + cut["end_index"]))
        at = gap[1]
    return tuple(found)


_kept = functools.lru_cache(maxsize=KEPT_TEXTS)(_sentences)


def _pieces(text: str, start: int, end: int) -> list[Sentence]:
    """The span without white space at its ends, cut at spaces into pieces of bounded length."""
    pieces = []
    while start < end:
        stop = end
        if end - start > MAX_SENTENCE_CHARACTERS:
            gap = max(text.rfind(mark, start, start + MAX_SENTENCE_CHARACTERS) for mark in " \n\t，、；")
            stop = gap + 1 if gap > start else start + MAX_SENTENCE_CHARACTERS
        piece = text[start:stop]
        stripped = piece.strip()
        if stripped:
            first = start + len(piece) - len(piece.lstrip())
            pieces.append(Sentence(first, first + len(stripped), stripped))
        start = stop
    return pieces


def key_sentences(
    text: str, n: int, *, focus: str | None = None, language: str = "en", max_characters: int | None = None
) -> tuple[Sentence, ...]:
    """The `n` sentences that say most of what `text` says (of `focus`, when given), in document order.

    Fewer when the text has fewer. Headings, table rows, lists of links and over-long pieces are taken only
    when nothing else is there, and so are sentences of more than `max_characters`, cut at a clause or space.
    Scores are in (0, 1], the best one first chosen has 1. Time is linear in the text; of more than 4,000
    sentences an even sample is rated.
    """
    candidates = list(sentences(text, language))
    if n <= 0 or not candidates:
        return ()
    if len(candidates) > MAX_SENTENCES:
        step = len(candidates) / MAX_SENTENCES
        candidates = [candidates[int(place * step)] for place in range(MAX_SENTENCES)]
    stops = stop_words(words(text[:LANGUAGE_CHARACTERS]))
    terms_of = functools.cache(functools.partial(content_words, stops=stops))
    asked = {stem(term) for term in content_words(focus)} if focus else set[str]()

    def says_enough(sentence: Sentence) -> bool:
        terms = terms_of(sentence.text)
        return len(terms) >= MIN_WORDS or not asked.isdisjoint(map(stem, terms))

    good = _best_kind(candidates, n, says_enough, max(max_characters or MAX_SENTENCE_CHARACTERS, 1))
    vectors = _vectors([terms_of(sentence.text) for sentence in good])
    relevance = _relevance(good, vectors, focus)
    chosen = _diverse(vectors, relevance, n)
    best = max((relevance[place] for place in chosen), default=0.0) or 1.0
    return tuple(
        Sentence(good[p].start, good[p].end, good[p].text, round(max(relevance[p] / best, 1e-6), 6))
        for p in sorted(chosen)
    )


def _best_kind(
    candidates: Sequence[Sentence], n: int, says_enough: Callable[[Sentence], bool], max_characters: int
) -> list[Sentence]:
    """Prose of up to `max_characters`; where that is less than `n`, longer prose and then the rest, cut."""
    prose = [s for s in candidates if _is_prose(s.text) and says_enough(s)]
    good = [s for s in prose if len(s.text) <= max_characters]
    if len(good) >= n:
        return good
    known = set(prose)
    rest = [s for s in prose if len(s.text) > max_characters]
    rest += [s for s in candidates if s not in known and _LETTERS.search(s.text)]
    rest = rest if good or rest else list(candidates)
    return sorted([*good, *(_cut(s, max_characters) for s in rest[: n - len(good)])], key=lambda s: s.start)


def _cut(sentence: Sentence, max_characters: int) -> Sentence:
    """Its beginning of at most `max_characters`, up to a clause's end in the second half, or else a space."""
    if len(sentence.text) <= max_characters:
        return sentence
    head = sentence.text[:max_characters]
    clause = max(head.rfind(mark) for mark in CLAUSE_MARKS)
    space = max(head.rfind(mark) for mark in " \n\t") if not sentence.text[max_characters].isspace() else -1
    stop = clause if clause >= max(max_characters // 2, 1) else space if space > 0 else max_characters
    text = head[:stop].rstrip()
    return Sentence(sentence.start, sentence.start + len(text), text)


def _is_prose(sentence: str) -> bool:
    """Whether it reads as a sentence: mostly letters, with a beginning and an end, no table row or notice."""
    if len(sentence) >= MAX_SENTENCE_CHARACTERS - 40 or sentence[0].islower() or not _ENDS.search(sentence):
        return False
    n_visible = sum(map(len, sentence.split()))
    if sum(map(len, _LETTERS.findall(sentence))) < 0.6 * n_visible:
        return False
    return len(_CELLS.findall(sentence)) <= 2 and not _BOILERPLATE.search(sentence)


def _vectors(sentences_terms: Sequence[Sequence[str]]) -> list[dict[str, float]]:
    """Unit TF-IDF vectors of the sentences' words, sparse."""
    counts = [Counter(map(stem, terms)) for terms in sentences_terms]
    n_holding = Counter(term for count in counts for term in count)
    rarity = {n: math.log(1 + len(counts) / n) for n in set(n_holding.values())}
    vectors = []
    for count in counts:
        weights = {
            term: rarity[n_holding[term]] if times == 1 else (1 + math.log(times)) * rarity[n_holding[term]]
            for term, times in count.items()
        }
        norm = math.sqrt(sum([weight * weight for weight in weights.values()])) or 1.0
        vectors.append({term: weight / norm for term, weight in weights.items()})
    return vectors


def _relevance(
    candidates: Sequence[Sentence], vectors: Sequence[dict[str, float]], focus: str | None
) -> list[float]:
    """How much of the whole (and the focus) each sentence says; early, self-contained ones are preferred, and
    those with facts."""
    centroid: dict[str, float] = {}
    for vector in vectors:
        for term, weight in vector.items():
            centroid[term] = weight + centroid.get(term, 0)
    norm = math.sqrt(sum(weight * weight for weight in centroid.values())) or 1.0
    asked = set(map(stem, content_words(focus))) if focus else set()
    scores = []
    for place, (sentence, vector) in enumerate(zip(candidates, vectors, strict=True)):
        score = sum([weight * centroid[term] for term, weight in vector.items()]) / norm
        score *= 1 + POSITION_BONUS / (1 + place)
        if place == len(candidates) - 1:
            score *= 1 + POSITION_BONUS / 4
        if len(sentence.text) > LONG_CHARACTERS:
            score *= LONG_CHARACTERS / len(sentence.text)
        if _LEANS.match(sentence.text):
            score *= 0.8
        if sentence.text.endswith(("?", "!")):
            score *= 0.7
        score *= _matter(sentence.text) * _facts(sentence.text)
        if asked:
            score += FOCUS_WEIGHT * sum(vector.get(term, 0.0) for term in asked) / math.sqrt(len(asked))
        scores.append(score)
    return scores


def _matter(sentence: str) -> float:
    """A factor below 1 for greetings and thanks, "I" and "you", what follows a page's number, few words."""
    weight = 1.0
    if _GREETING.match(sentence) or _THANKS.search(sentence):
        weight *= 0.55
    elif _OF_SELF.match(sentence):
        weight *= 0.85
    if _TORN.match(sentence):
        weight *= 0.5
    if len(sentence) < SHORT_CHARACTERS and len(words(sentence)) < SHORT_WORDS:
        weight *= 0.75
    return weight


def figures(text: str) -> tuple[str, ...]:
    """The figures of a text that are no years and count no pages, in order: digits, "." before decimals."""
    return tuple(_digits(found[0]) for found in _FIGURE.finditer(text))


def _digits(figure: str) -> str:
    """Its digits; the last mark parts decimals unless it is there twice or is a comma before three."""
    mark = _LAST_MARK.search(figure)
    whole, decimals = (figure[: mark.start()], figure[mark.end() :]) if mark else (figure, "")
    if mark and (mark[0] in whole or (mark[0] == "," and len(decimals) == 3 and "." not in whole)):
        whole, decimals = figure, ""
    digits = "".join(c for c in whole if c.isdigit())
    return f"{digits}.{decimals}" if decimals else digits


def _facts(sentence: str) -> float:
    """A factor above 1 for a figure, a name, or a figure of something that has a name."""
    has_figure, has_name = _FIGURE.search(sentence) is not None, _NAME.search(sentence) is not None
    if has_figure and has_name:
        return 1 + FACT_BONUS
    return 1 + FIGURE_BONUS * has_figure + NAME_BONUS * has_name


def _diverse(vectors: Sequence[dict[str, float]], relevance: Sequence[float], n: int) -> list[int]:
    """Places of up to `n` sentences: relevant, and unlike those already chosen; near copies never."""
    chosen: list[int] = []
    likeness = [0.0] * len(vectors)
    top = max(relevance, default=0.0) or 1.0
    left = set(range(len(vectors)))
    while left and len(chosen) < n:
        best = max(left, key=lambda p: (relevance[p] / top - REDUNDANCY_WEIGHT * likeness[p], -p))
        left.discard(best)
        if chosen and likeness[best] > DUPLICATE_COSINE:
            continue
        chosen.append(best)
        for place in left:
            likeness[place] = max(likeness[place], _cosine(vectors[best], vectors[place]))
    return chosen


def _cosine(one: dict[str, float], other: dict[str, float]) -> float:
    """Inner product of two unit vectors."""
    if len(other) < len(one):
        one, other = other, one
    return sum(weight * other[term] for term, weight in one.items() if term in other)
