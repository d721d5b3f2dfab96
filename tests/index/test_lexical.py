"""BM25 over blocks: what is found, what never breaks it, what it costs to keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.index import LexicalIndex
from localctx.values import Block


def block(index: int, text: str, headings: tuple[str, ...] = (), page: int | None = None) -> Block:
    return Block(index, 0, len(text), text, (0,), "end", page=page, heading_path=headings)


def index_of(texts: Iterable[str], **options: str) -> LexicalIndex:
    return LexicalIndex.build([block(i, text) for i, text in enumerate(texts)], **options)


FILLER = [f"Paragraph {i} speaks about the weather, the roads and the price of bread." for i in range(20)]


def best(texts: list[str], question: str) -> int | None:
    with index_of(texts) as index:
        ranking = index.search(question).ranking
        return ranking[0][0] if ranking else None


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("The capital of Freedonia is Fredville.", "What is the capital of Freedonia?"),
        ("The runners were running quickly.", "run"),
        ("Le résumé de la séance du café", "resume cafe"),
        ("İstanbul ve Ankara", "istanbul"),
        ("恐龙蛋在中国发现了", "恐龙"),
        ("恐龙蛋在中国发现了", "龙"),
        ("恐龙蛋在中国发现了", "哪里发现了恐龙蛋？"),
        ("東京タワーは高いです", "タワーの高さ"),
        ("서울은 대한민국의 수도이다", "대한민국 수도"),
        ("हिन्दी भाषा का व्याकरण", "हिन्दी व्याकरण"),
        ("ภาษาไทยเป็นภาษาที่สวยงาม", "ภาษาไทย"),
        ("Set foo_bar.max-size before FTS5.", "foo_bar.max-size"),
        ("The total came to 1,234,567 dollars.", "1234567"),
        ("The total came to 1234567 dollars.", "1,234,567"),
        ("Part QX-417 failed.", "what happened to QX-417?"),
        ("Ｆｕｌｌｗｉｄｔｈ １２３", "fullwidth 123"),
        ("e\u0301te\u0301 chaud", "été"),
        ("A great war broke out", "war"),
        ("Mr O'Brien came late", "o'brien"),
        ("L'homme est né libre", "homme libre"),
        ("La liberté de l’homme", "Qu'est-ce que l'homme ?"),
        ("Press the door shut", "door"),
    ],
)
def test_the_right_block_is_found(text: str, question: str) -> None:
    assert best([*FILLER, text], question) == len(FILLER)


def test_stop_words_do_not_decide() -> None:
    texts = ["What is the the the what is of the what is the", "Zebras live on plains."]
    assert best(texts, "what is the zebra?") == 1


def test_a_question_of_stop_words_alone_still_searches() -> None:
    assert best(["alpha beta", "to be or not to be"], "to be or not to be") == 1


def test_an_exact_phrase_beats_scattered_words() -> None:
    texts = [*FILLER, "net of tax, revenue fell; revenue was net", "the net revenue rose"]
    assert best(texts, 'What about the "net revenue"?') == len(texts) - 1


def test_identifiers_weigh_more_than_words() -> None:
    texts = [*FILLER, "status report status report for the engine", "module AX-9 in brief"]
    assert best(texts, "status report engine AX-9") == len(texts) - 1


def test_headings_and_pages_tell_equal_blocks_apart() -> None:
    blocks = [
        block(i, "The secret code of this city is hidden here.", (f"Chapter about {city}",), page=i + 1)
        for i, city in enumerate(["Aachen", "Bergen", "Cadiz", "Dover"])
    ]
    with LexicalIndex.build(blocks) as index:
        assert index.search("What is the secret code of Cadiz?").ranking[0][0] == 2
        assert index.search("the secret code on page 4").ranking[0][0] == 3


def test_equal_scores_keep_document_order() -> None:
    with index_of(["the same text"] * 5 + FILLER) as index:
        assert [i for i, _ in index.search("same text").ranking] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("question", ["", "   ", "?!…", "\x00", "\ud800", '"', "''", "\n\n", "()*^:"])
def test_empty_questions_find_nothing(question: str) -> None:
    with index_of(FILLER) as index:
        assert index.search(question).ranking == ()
        assert index.scores(question).values == (0.0,) * len(FILLER)
        assert index.absent(question) == ()


@pytest.mark.parametrize(
    "question", ["bread AND (", 'header:bread "', "bread NEAR/2", "bread* -weather ^x", "body:"]
)
def test_the_question_is_never_query_syntax(question: str) -> None:
    with index_of(FILLER) as index:
        index.search(question)
    assert best([*FILLER, "near and not or"], "NEAR") == len(FILLER)


def test_a_question_of_100_kilobytes() -> None:
    words = " ".join(f"word{i}" for i in range(14_000))
    assert len(words) > 100_000
    assert best([*FILLER, "the zebra"], f"{words} What about the zebra?") == len(FILLER)


def test_long_questions_with_one_preamble_find_different_blocks() -> None:
    """What is asked at the end decides, not 600 words before it that fit another block far better."""
    topic = "walrus tusks blubber whiskers arctic ice floes molluscs haul herds bellow breed"
    preamble = " ".join(f"Note {i}: {topic}." for i in range(50))
    assert len(preamble.split()) >= 600
    texts = [*FILLER, f"The {topic}.", "Zebras eat grass on the plains.", "Otters sleep in the river."]
    assert best(texts, f"{preamble} What do zebras eat?") == len(FILLER) + 1
    assert best(texts, f"{preamble} Where do otters sleep?") == len(FILLER) + 2


def test_a_long_text_without_question_mark_uses_all_of_it() -> None:
    story = " ".join(f"Something{i} about zebras." for i in range(60)) + " The end."
    assert best([*FILLER, "zebras"], story) == len(FILLER)


def test_absent_words_are_named() -> None:
    with index_of(["The runners ran by 1,234 houses.", "恐龙蛋"]) as index:
        assert index.absent("Did a runner pass by 1234 houses?") == ("pass",)
        assert index.absent("Is Napoleon a runner?") == ("napoleon",)
        assert index.absent("龙") == ()


@pytest.mark.parametrize(
    "texts",
    [
        [],
        [""],
        ["\x00"],
        ["\ud800 lone"],
        ["x" * 2_000_000],
        ["wort " * 400_000],
        ["dup"] * 500,
        ["dup", "wort", "lone"] * 200,
        ["😀👩‍👩‍👧 \u202e"],
    ],
    ids=["none", "empty", "nul", "surrogate", "one word", "one line", "equal", "one token each", "emoji"],
)
def test_degenerate_blocks(texts: list[str]) -> None:
    with index_of(texts) as index:
        assert index.n_blocks == len(texts)
        assert len(index.scores("dup wort 😀 lone").values) == len(texts)


@settings(deadline=None, max_examples=60)
@given(st.text(max_size=200), st.lists(st.text(max_size=80), max_size=5))
def test_any_question_on_any_text(question: str, texts: list[str]) -> None:
    with index_of(texts) as index:
        hits = index.search(question)
        assert all(score > 0 and 0 <= i < len(texts) for i, score in hits.ranking)
        assert [s for _, s in hits.ranking] == sorted((s for _, s in hits.ranking), reverse=True)
        assert set(index.absent(question)) <= set(index.absent(question + " "))


def test_blocks_are_streamed_not_collected() -> None:
    alive = 0

    class Counted(str):
        def __new__(cls, text: str) -> Counted:
            nonlocal alive
            alive += 1
            return super().__new__(cls, text)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    most = 0

    def stream() -> Iterator[Block]:
        nonlocal most
        for i in range(400):
            most = max(most, alive)
            yield block(i, Counted(f"text number {i}"))

    with LexicalIndex.build(stream()) as index:
        assert index.n_blocks == 400
    assert most < 20
