"""Sentences to hide facts among: made from templates, or those of a text. Bounded memory; knows no facts.

python -m localctx.eval.prose 19000000 > prose.txt     # as many characters, in paragraphs
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from localctx.bench.program import run_as_program
from localctx.eval.language import Language
from localctx.selection import Sentence, sentences

__all__ = ["made_sentences", "made_text", "sentences_of", "without"]

WINDOW_CHARACTERS = 32_768
PARAGRAPH_SENTENCES = 7
MAX_WORDS = 80
"""Longer sentences are tables or lists more often than prose."""
_SLOT = re.compile(r"\{(\w+)\}")


def made_sentences(language: Language, source: random.Random) -> Iterator[str]:
    """Sentences without end, of real words, hardly one of them twice."""
    prose = language.prose
    while True:
        used: list[str] = []

        def filled(match: re.Match[str], used: list[str] = used) -> str:
            choices = prose.slots[match[1]]
            word = source.choice(choices)
            while word in used:
                word = source.choice(choices)
            used.append(word)
            return word

        text = _SLOT.sub(filled, source.choice(prose.templates))
        yield _with_articles(text[0].upper() + text[1:]) if language.code == "en" else text


def made_text(language: Language, source: random.Random, n_characters: int) -> Iterator[str]:
    """Paragraphs of made sentences, in pieces, n_characters in all or as few more as end a sentence."""
    n_written = 0
    for number, sentence in enumerate(made_sentences(language, source), 1):
        if n_written >= n_characters:
            return
        piece = sentence + ("\n\n" if number % PARAGRAPH_SENTENCES == 0 else language.space)
        n_written += len(piece)
        yield piece


def _with_articles(text: str) -> str:
    """English "a" before a vowel as "an"."""
    return re.sub(r"\b([Aa])(?= [aeiou])", r"\1n", text)


def sentences_of(pieces: Iterable[str], language: str) -> Iterator[str]:
    """The sentences of a text given in pieces, their white space made single; over-long ones left out."""
    waiting = ""
    for piece in pieces:
        waiting += piece
        while len(waiting) >= WINDOW_CHARACTERS:
            window = waiting[:WINDOW_CHARACTERS]
            found = sentences(window, language)
            last = found[-1].start if len(found) > 1 else len(window)  # it may go on behind the window
            yield from _short_ones(found[:-1] if len(found) > 1 else found)
            waiting = waiting[last:]
    yield from _short_ones(sentences(waiting, language))


def _short_ones(found: Iterable[Sentence]) -> Iterator[str]:
    for sentence in found:
        words = sentence.text.split()
        if len(words) <= MAX_WORDS:
            yield " ".join(words)


def without(values: Iterable[str], texts: Iterable[str]) -> Iterator[str]:
    """The texts that hold none of the values as a word of their own."""
    holds: Callable[[str], re.Match[str] | None] | None = None
    wanted = sorted(values)
    if wanted:
        latin = "|".join(re.escape(value) for value in wanted if value.isascii())
        other = "|".join(re.escape(value) for value in wanted if not value.isascii())
        parts = [rf"\b(?:{latin})\b"] if latin else []
        holds = re.compile("|".join([*parts, *([other] if other else [])])).search
    return (text for text in texts if holds is None or not holds(text))


def main(arguments: Sequence[str] | None = None) -> None:
    """Print made prose in English."""
    from localctx.eval.english import ENGLISH

    parser = argparse.ArgumentParser(prog="python -m localctx.eval.prose")
    parser.add_argument("characters", type=int)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args(arguments)
    source = random.Random(asked.seed)  # noqa: S311  # reproducible, not secret
    sys.stdout.writelines(made_text(ENGLISH, source, asked.characters))


if __name__ == "__main__":
    run_as_program(main)
