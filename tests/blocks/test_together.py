"""Parts tokenised in one call get the tokens that they would get alone, with fewer calls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from zlib import crc32

import pytest
import regex
from blocks.text_cases import GPT2_WORDS, LLAMA3_WORDS, StringText, WordRules, texts
from hypothesis import given, settings

from localctx.blocks import SpellingTokenizer, split
from localctx.values import Block

PROSE = "The gate was built in 1742 by a mason. Ships came in the evening.\n\nWas it? It was. " * 300
OTHERS = "北京是首都。对吗？ The gate.\n\n" * 300


@dataclass
class Spelled:
    """WordRules that remember what their tokens spell; `lie` adds bytes to some of it."""

    pattern: str
    lie: int = 0
    spelling: dict[int, bytes] = field(default_factory=dict)
    n_calls: int = 0

    def __call__(self, text: str, first: bool) -> Sequence[int]:
        self.n_calls += 1
        parts = [
            word[at : at + 5].encode("utf-8", "surrogatepass")
            for word in regex.findall(self.pattern, text)
            for at in range(0, len(word), 5)
        ]
        tokens = [crc32(part) for part in parts]
        self.spelling.update(zip(tokens, parts, strict=True))
        return tokens

    def piece(self, token: int) -> bytes:
        return self.spelling[token] + b"x" * (self.lie if token % 3 == 0 else 0)


def blocks_of(text: str, rules: Spelled, *, together: bool, **sizes: int) -> list[Block]:
    tokenize = SpellingTokenizer(rules, rules.piece) if together else rules
    return list(split(StringText(text), tokenize, **sizes))


@settings(deadline=None, max_examples=150)
@given(text=texts)
@pytest.mark.parametrize("pattern", [GPT2_WORDS, LLAMA3_WORDS], ids=["gpt2", "llama3"])
def test_the_blocks_spell_the_text(pattern: str, text: str) -> None:
    rules = Spelled(pattern)
    blocks = blocks_of(text, rules, together=True, target_tokens=16, max_tokens=24)
    assert "".join(block.text for block in blocks) == text
    for block in blocks:
        assert len(block.tokens) <= 24
        spelled = b"".join(map(rules.piece, block.tokens))
        assert spelled == block.text.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("pattern", [GPT2_WORDS, LLAMA3_WORDS], ids=["gpt2", "llama3"])
def test_the_tokens_are_those_of_the_parts_with_fewer_calls(pattern: str) -> None:
    alone, together = Spelled(pattern), Spelled(pattern)
    assert blocks_of(PROSE, together, together=True) == blocks_of(PROSE, alone, together=False)
    assert together.n_calls < alone.n_calls / 10
    assert blocks_of(OTHERS, together, together=True) == blocks_of(OTHERS, alone, together=False)


@pytest.mark.parametrize("lie", [1, 7])
def test_a_spelling_that_is_not_the_text_s_is_not_used(lie: int) -> None:
    alone, lying = Spelled(GPT2_WORDS), Spelled(GPT2_WORDS, lie)
    assert blocks_of(PROSE, lying, together=True) == blocks_of(PROSE, alone, together=False)


def test_a_token_across_two_parts_leaves_them_to_themselves() -> None:
    pairs = WordRules(r"(?s)..?", word_part=2)
    spelling: dict[int, bytes] = {crc32((a + b).encode()): (a + b).encode() for a in "abc. " for b in "abc. "}
    spelling |= {crc32(a.encode()): a.encode() for a in "abc. "}
    text = "abc. ab. " * 3000
    assert list(split(StringText(text), SpellingTokenizer(pairs, spelling.__getitem__))) == list(
        split(StringText(text), pairs)
    )


@settings(deadline=None, max_examples=150)
@given(text=texts)
def test_blocks_are_the_same_however_the_text_is_streamed(text: str) -> None:
    rules = Spelled(GPT2_WORDS)
    tokenize = SpellingTokenizer(rules, rules.piece)
    blocks = [list(split(StringText(text * 20, piece), tokenize)) for piece in (7, 100_000)]
    assert blocks[0] == blocks[1]
