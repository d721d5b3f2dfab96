"""Blocks of any text: they join back, keep the cap, and do not depend on how the text streams."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import pytest
import regex
from blocks.text_cases import GPT2_WORDS, LLAMA3_WORDS, StringText, WordRules, texts, white_space_tokens
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.blocks import segments, split
from localctx.engine import open_model
from localctx.errors import UsageError
from localctx.values import Block, Page, Section, Tokenizer

PROSE = Path(argparse.__file__).read_text(encoding="utf-8")


def blocks_of(text: str, tokenize: Tokenizer, piece: int = 4096, target: int = 128) -> list[Block]:
    return list(split(StringText(text, piece), tokenize, target_tokens=target))


@pytest.fixture
def small_windows() -> Iterator[None]:
    """Windows of a few words, so that short texts cross many of them."""
    with mock.patch.object(segments, "WINDOW", 80), mock.patch.object(segments, "MARGIN", 24):
        yield


def check_blocks(blocks: list[Block], text: str, most: int) -> None:
    assert "".join(block.text for block in blocks) == text
    assert [block.index for block in blocks] == list(range(len(blocks)))
    at = 0
    for block in blocks:
        assert (block.start, block.end) == (at, at + len(block.text))
        assert block.text
        assert block.n_tokens <= most
        assert len(block.text) <= 64 * most
        at = block.end
    assert [block.cut for block in blocks].count("end") == (1 if blocks else 0)
    assert not blocks or blocks[-1].cut == "end"


@settings(deadline=None, max_examples=150)
@given(
    texts, st.integers(1, 70), st.sampled_from([1, 5, 12, 40]), st.sampled_from([GPT2_WORDS, LLAMA3_WORDS])
)
def test_any_text_joins_back_under_the_cap_whatever_the_pieces(
    text: str, piece: int, target: int, words: str
) -> None:
    with mock.patch.object(segments, "WINDOW", 80), mock.patch.object(segments, "MARGIN", 24):
        blocks = blocks_of(text, WordRules(words), piece, target)
        check_blocks(blocks, text, max(16, target * 3 // 2))
        assert blocks == blocks_of(text, WordRules(words), 1 << 20, target)


@settings(deadline=None, max_examples=150)
@given(texts, st.sampled_from([GPT2_WORDS, LLAMA3_WORDS]))
def test_no_cluster_is_cut_unless_it_is_larger_than_a_part(text: str, words: str) -> None:
    tokenize = WordRules(words)
    cuts = {block.start for block in blocks_of(text, tokenize, target=12)}
    for cluster in regex.finditer(r"\X", text):
        if len(tokenize(cluster.group(), False)) <= 4 and len(cluster.group()) <= 12:
            assert not cuts & set(range(cluster.start() + 1, cluster.end())), cluster


@pytest.mark.parametrize("cluster", ["👩‍👩‍👧‍👦", "🇩🇪", "👍🏽", "e\u0301", "ก็", "한", "क्षि", "\r\n"])
def test_a_run_of_clusters_without_white_space_is_cut_between_them(cluster: str) -> None:
    for lead in ("", "a", "ab"):
        text = lead + cluster * 400
        tokenize = WordRules(GPT2_WORDS, word_part=1)
        starts = [block.start for block in blocks_of(text, tokenize, target=24)]
        assert len(starts) > 10
        assert all((start - len(lead)) % len(cluster) == 0 for start in starts[1:])


@settings(deadline=None, max_examples=60)
@given(texts, st.integers(0, 300), st.integers(0, 300))
def test_a_part_of_the_text_is_split_alone(text: str, start: int, length: int) -> None:
    blocks = list(split(StringText(text), white_space_tokens, span=(start, start + length)))
    assert "".join(block.text for block in blocks) == text[start : start + length]
    assert all(text[block.start : block.end] == block.text for block in blocks)


@pytest.mark.parametrize("words", [GPT2_WORDS, LLAMA3_WORDS], ids=["line breaks lead", "line breaks follow"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"], ids=["LF", "CRLF"])
def test_tokens_concatenate_to_those_of_the_whole_text(words: str, line_end: str) -> None:
    tokenize = WordRules(words)
    text = PROSE.replace("\n", line_end)
    blocks = blocks_of(text, tokenize)
    assert len(blocks) > 100
    assert [token for block in blocks for token in block.tokens] == tokenize(text, True)
    assert {"paragraph", "sentence", "whitespace"} <= {block.cut for block in blocks}


@pytest.mark.model
@pytest.mark.slow
def test_tokens_of_the_embedded_model_concatenate(smollm2_path: Path) -> None:
    chinese = "保险箱的密码是七七三四。“北京是首都！”对吗？他说，没有标点的文字也很多\n\n" * 60
    records = json.dumps([{"id": i, "k": f"v{i}"} for i in range(1000)], separators=(",", ":"))
    prose = PROSE[:60_000]
    with open_model(smollm2_path) as model:
        for text in (prose, prose.replace("\n", "\r\n"), chinese, records):
            blocks = blocks_of(text, model.tokenize)
            assert [token for block in blocks for token in block.tokens] == model.tokenize(text)


def endless_lines() -> dict[str, str]:
    records = [{"id": i, "k": f"v{i}"} for i in range(8000)]
    log = (
        f"2024-01-01T00:00:{i % 60:02d}Z INFO svc[{i}] GET /x/{i} 200 {i * 7 % 997}ms\n" for i in range(3000)
    )
    return {
        "one letter": "a" * 200_000,
        "minified JSON": json.dumps(records, separators=(",", ":")),
        "log": "".join(log),
        "blank": " \n\t\r\n" * 30_000,
        "marks": "." * 100_000,
        "one cluster": "a" + "\u0301" * 100_000,
        "flags": "🇩🇪" * 20_000,
        "Chinese, no marks": "保险箱的密码是七七三四" * 10_000,
        "Chinese, one line": "北京是首都。对吗？" * 10_000,
    }


@pytest.mark.parametrize("name", list(endless_lines()))
def test_endless_lines_are_cut_and_tokenised_in_short_pieces(name: str) -> None:
    text = endless_lines()[name]
    tokenize = WordRules(GPT2_WORDS)
    blocks = blocks_of(text, tokenize, 65_536)
    check_blocks(blocks, text, 192)
    assert len(blocks) > 50 or name == "blank"
    assert max(tokenize.calls) <= 129 * 4
    assert sum(tokenize.calls) <= 4 * len(text)
    if name == "log":
        assert all(block.text.startswith("\n2024") for block in blocks[1:])
    if name == "minified JSON":
        assert [token for block in blocks for token in block.tokens] == tokenize(text, True)


def test_a_white_space_tokenizer_cannot_grow_a_block_without_end() -> None:
    text = "a" * 300_000 + " " * 300_000 + "b c " * 10_000
    check_blocks(blocks_of(text, white_space_tokens), text, 192)


def test_reads_no_more_than_two_windows_ahead() -> None:
    source = StringText(PROSE * 20, piece=1000)
    for block in split(source, white_space_tokens):
        assert source.n_streamed - block.end < 3 * segments.WINDOW


def test_sentences_are_whole_and_near_the_target() -> None:
    text = " ".join(f"Sentence number {i} has a few more words, as Dr. Smith said." for i in range(400))
    blocks = blocks_of(text, white_space_tokens)
    assert {block.cut for block in blocks} == {"sentence", "end"}
    assert all(block.text.strip().startswith("Sentence") and block.text.endswith("said.") for block in blocks)
    assert all(110 <= block.n_tokens <= 150 for block in blocks[:-1])


def test_paragraphs_win_over_sentences_and_crlf_stays_whole() -> None:
    paragraph = "One sentence of eight words stands here now. " * 11
    text = "\r\n\r\n".join([paragraph.strip()] * 20)
    blocks = blocks_of(text, white_space_tokens)
    assert [block.cut for block in blocks] == ["paragraph"] * 18 + ["end"]  # the last two fit one block
    assert all(block.text.startswith("\r\n\r\nOne") for block in blocks[1:])


def test_chinese_is_cut_behind_its_full_stops() -> None:
    text = "北京是中华人民共和国的首都。保险箱的密码是七七三四！对吗？" * 40
    blocks = blocks_of(text, WordRules(GPT2_WORDS, word_part=1))
    assert {block.cut for block in blocks} == {"sentence", "end"}
    assert all(block.text[-1] in "。！？" for block in blocks)


def sectioned() -> tuple[str, list[Section], list[Page]]:
    """# Book / ## One / body, ## Two / long body, # Coda / one line."""
    parts = [
        (1, "Book", "# Book\n\n"),
        (2, "One", "## One\n\nA short body.\n\n"),
        (2, "Two", "## Two\n\n" + "Words of the second part stand here. " * 60 + "\n\n"),
        (1, "Coda", "# Coda\n\nThe end."),
    ]
    text = ""
    starts: list[int] = []
    for _, _, body in parts:
        starts.append(len(text))
        text += body
    ends = [starts[3], starts[2], starts[3], len(text)]
    sections = [
        Section(level, title, a, b) for (level, title, _), a, b in zip(parts, starts, ends, strict=True)
    ]
    half = len(text) // 2
    return text, sections, [Page(1, 0, half, "i"), Page(2, half, half), Page(3, half, len(text), "1")]


@pytest.mark.parametrize("words", [GPT2_WORDS, LLAMA3_WORDS], ids=["line breaks lead", "line breaks follow"])
@pytest.mark.usefixtures("small_windows")
def test_blocks_keep_within_sections_and_a_bare_heading_leads_its_first_part(words: str) -> None:
    text, sections, pages = sectioned()
    blocks = list(split(StringText(text, 7), WordRules(words), sections=sections, pages=pages))
    check_blocks(blocks, text, 192)
    first = blocks[0]
    assert first.text.strip() == "# Book\n\n## One\n\nA short body."
    assert (first.heading_path, first.cut) == (("Book", "One"), "section")
    second = [block for block in blocks if block.heading_path == ("Book", "Two")]
    assert len(second) > 1
    assert second[0].text.strip().startswith("## Two")
    assert second[-1].cut == "section"
    assert (blocks[-1].heading_path, blocks[-1].text.strip()) == (("Coda",), "# Coda\n\nThe end.")
    assert (first.page, first.page_label) == (1, "i")
    assert (blocks[-1].page, blocks[-1].page_label) == (3, "1")


def test_a_page_is_that_of_the_first_visible_character() -> None:
    text = "Page one ends here.\n\nPage two starts here."
    pages = [Page(1, 0, 21), Page(2, 21, len(text))]
    sections = [Section(1, "A", 0, 21), Section(1, "B", 21, len(text))]
    one, two = split(StringText(text), white_space_tokens, pages=pages, sections=sections)
    assert two.start < 21
    assert (one.page, one.heading_path, two.page, two.heading_path) == (1, ("A",), 2, ("B",))


def test_an_underlined_heading_is_a_heading() -> None:
    text = "Book\n====\n\nOne\n---\n\nBody."
    sections = [Section(1, "Book", 0, len(text)), Section(2, "One", 11, len(text))]
    (only,) = split(StringText(text), white_space_tokens, sections=sections)
    assert only.heading_path == ("Book", "One")


def test_sibling_headings_without_text_stay_apart() -> None:
    text = "## A\n\n## B\n\nBody."
    sections = [Section(2, "A", 0, 6), Section(2, "B", 6, len(text))]
    blocks = list(split(StringText(text), white_space_tokens, sections=sections))
    assert [block.heading_path for block in blocks] == [("A",), ("B",)]


def test_no_text_no_blocks() -> None:
    assert blocks_of("", white_space_tokens) == []


@pytest.mark.parametrize(
    "sizes", [(0, None, None), (10, 20, None), (100, None, 50), (4, 2, 8), (10, -1, None)]
)
def test_sizes_out_of_order_are_refused(sizes: tuple[int, int | None, int | None]) -> None:
    target, least, most = sizes
    with pytest.raises(UsageError):
        split(StringText("a"), white_space_tokens, target_tokens=target, min_tokens=least, max_tokens=most)


def test_one_character_above_the_cap_is_refused() -> None:
    with pytest.raises(UsageError, match="one character"):
        list(split(StringText("a"), lambda text, first: [0] * 500 * len(text)))
