"""Claims and a stream of text → the claims that the text does not hold. One pass, bounded memory; no files.

Numbers compare by value, everything else by its folded words: case, diacritics, punctuation and line breaks
do not matter. A name also counts as held with or without a plural s and with an initial between its words;
names in Cyrillic and Greek by their stems, since they inflect.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Iterator, Sequence

import regex

from localctx.index.terms import fold
from localctx.selection.claims import Claim, claims
from localctx.selection.numbers import figures_like, spelled_like

__all__ = ["unsupported", "without_evidence"]

WINDOW_CHARACTERS = 1 << 18
OVERLAP_CHARACTERS = 512
KEPT_CLAIMS = 512
STEM_CUT = 2
MIN_STEM = 4

_UNSPACED = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}ー\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]")
_WORD_CHARACTER = regex.compile(r"[\p{L}\p{N}\p{M}]")
_LETTERS_OR_DIGITS = regex.compile(r"\p{L}+|\p{Nd}+")
_INFLECTED = regex.compile(r"[\p{Cyrillic}\p{Greek}]")
_JOINER_WORDS = "of the de del la le du des di da do dos von van der den zu bin al y и"
_JOINERS = frozenset(_JOINER_WORDS.split())
_ELLIPSIS = regex.compile(r"\.{3}|…|\[[^\]]{0,20}\]")


def unsupported(answer: str, source: str | Iterable[str], question: str = "") -> tuple[Claim, ...]:
    """The answer's numbers, names, quotations and code words that neither the source nor the question holds.

    `source` is the text or its consecutive pieces of any size, read once and only as far as needed. A claim
    of more than 512 characters may be missed where two windows meet.
    """
    return without_evidence(claims(answer), source, question)


def without_evidence(
    found: Sequence[Claim], source: str | Iterable[str], question: str = ""
) -> tuple[Claim, ...]:
    """Those of `found` that neither the source nor the question holds, in their order."""
    pending: dict[Claim, None] = dict.fromkeys(found)
    pieces = [source] if isinstance(source, str) else source
    _strike(pending, question)
    if pending:
        for window in _windows(pieces):
            _strike(pending, window)
            if not pending:
                break
    return tuple(pending)


def _strike(pending: dict[Claim, None], text: str) -> None:
    """Remove the claims that `text` holds."""
    wanted = {claim.key for claim in pending if claim.kind == "number"}
    if wanted:
        values: set[str] = set()
        for read in (figures_like, spelled_like):
            for number in read(wanted - values, text):
                values.update((number.key, *number.parts))
                if wanted <= values:
                    break
        for claim in [c for c in pending if c.kind == "number" and c.key in values]:
            del pending[claim]
    if worded := [claim for claim in pending if claim.kind != "number"]:
        folded = fold(text)
        likely = [claim for claim in worded if all(piece in folded for piece in _pieces(claim))]
        flat = _flattened(folded) if likely else ""
        for claim in [c for c in likely if _holds(flat, c)]:
            del pending[claim]


@functools.lru_cache(maxsize=KEPT_CLAIMS)
def _pieces(claim: Claim) -> tuple[str, ...]:
    """What a folded text that holds the claim has somewhere, whatever the form: looked for first."""
    if claim.kind == "quote":
        return tuple(word for part in _ELLIPSIS.split(claim.key) for word in _flat(part).split())
    if claim.kind == "code":
        return tuple(_LETTERS_OR_DIGITS.findall(claim.key)) if fold(claim.key) == claim.key else ()
    return tuple(_stem(word).removesuffix("s") for word in _flat(claim.key).split() if word not in _JOINERS)


class _Flattening(dict[int, str]):
    """For str.translate: letters, digits and marks stay, all else is a space; unspaced scripts character by
    character, so that a claim is found inside a run of them. Filled as characters are met.
    """

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if _UNSPACED.match(character):
            character = f" {character} "
        elif not _WORD_CHARACTER.match(character):
            character = " "
        self[code] = character
        return character


_FLATTENING = _Flattening()


def _flat(text: str) -> str:
    """The folded words of `text`, one space between and round them."""
    return _flattened(fold(text))


def _flattened(folded: str) -> str:
    return f" {' '.join(folded.translate(_FLATTENING).split())} "


def _holds(flat: str, claim: Claim) -> bool:
    """Whether the flattened text holds the claim."""
    key = claim.key
    if claim.kind == "quote":
        parts = [_flat(part) for part in _ELLIPSIS.split(key)]
        return all(part in flat for part in parts if not part.isspace())
    words = _flat(key).split()
    if not words:
        return True
    if claim.kind == "code":
        forms = (" ".join(words), "".join(words), " ".join(_LETTERS_OR_DIGITS.findall(key)))
        return any(f" {form} " in flat for form in forms)
    return _holds_name(flat, words)


def _holds_name(flat: str, words: Sequence[str]) -> bool:
    """Whether the name stands there whole, or each of its parts between small words does."""
    if words[-1] == "s" and len(words) > 1:
        words = words[:-1]
    if _holds_run(flat, words):
        return True
    runs: list[list[str]] = [[]]
    for word in words:
        if word in _JOINERS:
            runs.append([])
        else:
            runs[-1].append(word)
    return len(runs) > 1 and all(_holds_run(flat, run) for run in runs if run)


def _holds_run(flat: str, words: Sequence[str]) -> bool:
    """Whether the words stand in a row, inflection and one initial between them allowed."""
    joined = " ".join(words)
    if any(f" {form} " in flat for form in (joined, f"{joined}s", joined.removesuffix("s")) if form):
        return True
    if _INFLECTED.search(joined):
        stems = [_stem(word) for word in words]
        pattern = " ".join(rf"{regex.escape(stem)}\p{{L}}{{0,4}}" for stem in stems)
        return stems[0] in flat and regex.search(f" {pattern} ", flat) is not None
    if len(words) > 1 and all(f" {word} " in flat for word in words):
        pattern = r" (?:\p{L} )?".join(map(regex.escape, words))
        return regex.search(f" {pattern} ", flat) is not None
    return False


def _stem(word: str) -> str:
    """The word without its last letters, where enough is left."""
    return word[:-STEM_CUT] if len(word) - STEM_CUT >= MIN_STEM else word


def _windows(pieces: Iterable[str]) -> Iterator[str]:
    """The text in overlapping windows of bounded size, cut between words where there are any."""
    held = ""
    for piece in pieces:
        for at in range(0, len(piece), WINDOW_CHARACTERS):
            held += piece[at : at + WINDOW_CHARACTERS]
            if len(held) < WINDOW_CHARACTERS:
                continue
            cut = _word_gap(held, len(held) - 1)
            yield held[:cut]
            held = held[_word_gap(held, max(cut - OVERLAP_CHARACTERS, 0)) :]
    if held:
        yield held


def _word_gap(text: str, at: int) -> int:
    """The last place between words at or before `at`, at most one overlap away; else `at` itself."""
    for place in range(at, max(at - OVERLAP_CHARACTERS, 0), -1):
        around = text[max(place - 2, 0) : place + 1]
        if not text[place - 1].isalnum() and not any(map(str.isdecimal, around)):
            return place
    return at
