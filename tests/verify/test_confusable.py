"""Confusable documents: what only the header tells apart, in tokens that add up."""

from __future__ import annotations

import re

import pytest

from localctx.engine.echo import EchoModel
from localctx.verify.confusable import KINDS, Shape, make_document, words

PROSE = " ".join(f"Sentence number {n} tells of rain and of a long road to the hills." for n in range(900))
TOKENIZE = EchoModel().tokenize


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
def test_a_passage_holds_its_own_number_and_not_its_name(kind) -> None:
    document = make_document(3, words(PROSE, TOKENIZE), TOKENIZE, kind, Shape(60, 64, 4))
    assert len({chapter.answer for chapter in document.chapters}) == 4
    for chapter in document.chapters:
        assert re.findall(r"\b\d{5}\b", chapter.text) == [chapter.answer] * 2
        assert chapter.name not in chapter.text
        assert chapter.name in chapter.header
        assert chapter.name in chapter.question


def test_passages_are_token_ranges_of_their_text() -> None:
    document = make_document(1, words(PROSE, TOKENIZE), TOKENIZE, KINDS["city"], Shape(60, 64, 4))
    for chapter in document.chapters:
        assert list(document.tokens[chapter.first : chapter.end]) == TOKENIZE(chapter.text, False)
        assert 64 <= chapter.end - chapter.first < 64 + 16


def test_the_seed_alone_decides() -> None:
    haystack = words(PROSE, TOKENIZE)
    made = [make_document(seed, haystack, TOKENIZE, KINDS["term"], Shape(40, 64, 3)) for seed in (5, 5, 6)]
    assert made[0] == made[1]
    assert made[0] != made[2]


def test_words_add_up_to_the_text() -> None:
    found = words(PROSE, TOKENIZE)
    assert "".join(word for word, _ in found) == PROSE
    assert [token for _, tokens in found for token in tokens] == TOKENIZE(PROSE)


def test_a_short_haystack_is_refused() -> None:
    with pytest.raises(ValueError, match="haystack"):
        make_document(0, words("only a few words", TOKENIZE), TOKENIZE, KINDS["city"], Shape(60, 64, 4))
