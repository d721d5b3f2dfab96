"""Made prose as a text of so many characters."""

from __future__ import annotations

import random

import pytest

from localctx.eval import prose
from localctx.eval.english import ENGLISH


def test_a_made_text_has_its_length_and_follows_from_the_seed(capsys: pytest.CaptureFixture[str]) -> None:
    text = "".join(prose.made_text(ENGLISH, random.Random(3), 20_000))
    assert 20_000 <= len(text) < 20_400
    assert text != "".join(prose.made_text(ENGLISH, random.Random(4), 20_000))
    paragraphs = text.split("\n\n")
    assert len(paragraphs) > 20 and all(one[0].isupper() for one in paragraphs if one)
    sentences = [one.strip() for one in text.split(". ") if one.strip()]
    assert len(set(sentences)) > 0.98 * len(sentences)
    prose.main(["20000", "--seed", "3"])
    assert capsys.readouterr().out == text
