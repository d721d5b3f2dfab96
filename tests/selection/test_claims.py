"""Numbers, names, quotations and code words: found in answers, looked up in sources of any size."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.selection import claims, unsupported
from localctx.selection.evidence import OVERLAP_CHARACTERS, WINDOW_CHARACTERS
from localctx.selection.numbers import numbers


def keys(text: str) -> list[str]:
    return [number.key for number in numbers(text)]


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (text, "3000000")
        for text in (
            "3,000,000", "3 000 000", "3.000.000", "3'000'000", "3\u202f000\u202f000", "3000000",
            "3 million", "three million", "3 Millionen", "300万", "三百万", "３００万", "٣٠٠٠٠٠٠",
            "3.0 million", "3,0 Mio.",
        )
    ]
    + [
        ("0.125", "0.125"), ("0,125", "0.125"), ("1,234.56", "1234.56"), ("1.234,56", "1234.56"),
        ("1 234,56", "1234.56"), ("1'234,56", "1234.56"), ("12\u202f345\u202f678,9", "12345678.9"),
        ("3.50", "3.5"),
        ("25%", "25"), ("25 percent", "25"), ("19th", "19"), ("1990s", "1990"), ("$5bn", "5000000000"),
        ("5km", "5"), ("007", "7"), ("twenty-five", "25"), ("a hundred and five", "105"), ("twentieth", "20"),
        ("nineteen forty-five", "1945"), ("two hundred thousand", "200000"), ("一九四九", "1949"),
        ("二十五", "25"),
        ("两千三百", "2300"), ("1.2.3", "1.2.3"), ("9" * 80, "9" * 80),
    ],
)  # fmt: skip
def test_one_value_however_written(text: str, key: str) -> None:
    assert keys(f"about {text} of them")[0] == key


def test_numbers_side_by_side_stay_apart() -> None:
    assert keys("in 1999 300 men") == ["1999", "300"]
    assert keys("1994, 150 and 12") == ["1994", "150", "12"]
    ambiguous = next(numbers("12 300"))
    assert ambiguous.key == "12300" and ambiguous.parts == ("12", "300")


def found(answer: str) -> list[tuple[str, str]]:
    return [(claim.kind, claim.text) for claim in claims(answer)]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Our man, Abraham Lincoln, spoke in 1863.", [("name", "Abraham Lincoln"), ("number", "1863")]),
        ("However Lincoln was ill.", [("name", "Lincoln")]),
        ("Discussing taxes, Mr. Seward left.", [("name", "Seward")]),
        ("Prices rose. Wages fell.", []),
        ("The House of Representatives met.", [("name", "House of Representatives")]),
        ("NASA launched QX-417.", [("name", "NASA"), ("code", "QX-417")]),
        ("It was a 20-year-old B-52.", [("number", "20"), ("code", "B-52")]),
        ("Use foo_bar, iPhone and x86_64.", [("code", "foo_bar"), ("code", "iPhone"), ("code", "x86_64")]),
        ('He said "we shall see" twice.', [("quote", "we shall see")]),
        ("1. First point\n2. Second point [3] on page 12", []),
        ("Two reasons and five men, but thirty ships", [("number", "thirty")]),
        ("Key Points of the Speech\nthe nation is strong", []),
        ("- **Economy**: grew 3.5 percent", [("number", "3.5")]),
        ("Lincoln spoke. It was Lincoln.", [("name", "Lincoln")]),
        (
            "It is Boeing B-52 Stratofortress.",
            [("name", "Boeing"), ("code", "B-52"), ("name", "Stratofortress")],
        ),
        ("It is **Abraham** Lincoln.", [("name", "Abraham** Lincoln")]),
        ("J. F. Kennedy and I went home.", [("name", "J. F. Kennedy")]),
        ("他是亚伯拉罕·林肯，《解放宣言》", [("name", "他是亚伯拉罕·林肯"), ("quote", "解放宣言")]),
        ("", []),
        ("\x00\ud800", []),
    ],
)
def test_claims(answer: str, expected: list[tuple[str, str]]) -> None:
    assert found(answer) == expected


def test_offsets_point_into_the_answer() -> None:
    answer = '1. **In 1863** "four score" by _Abraham Lincoln_ and QX-417, 三百万 [2]'
    assert claims(answer)
    for claim in claims(answer):
        assert answer[claim.start : claim.end] == claim.text


def test_german_nouns_are_no_names() -> None:
    text = (
        "Der Hafen wurde im Winter von den Fischern gebaut, und die Stadt zahlte den Bau mit dem Geld aus "
        "dem Verkauf von Holz, weil die Steuern in diesem Jahr nicht für alle Arbeiten und Löhne reichten. "
        "Am Ende kam NATO mit Konrad Adenauer."
    )
    assert found(text) == [("name", "NATO"), ("name", "Konrad Adenauer")]


def missing(answer: str, source: str, question: str = "") -> list[str]:
    return [claim.text for claim in unsupported(answer, source, question)]


@pytest.mark.parametrize(
    ("answer", "source"),
    [
        ("He met Abraham Lincoln.", "ABRAHAM\nLINCOLN spoke"),
        ("He met President Abraham Lincoln.", "Mr. Abraham Lincoln"),
        ("He met Franklin Roosevelt.", "Franklin D. Roosevelt spoke"),
        ("They are Americans in Québec.", "an American from QUEBEC"),
        ("He saw the House of Representatives.", "House of\n  Representatives"),
        ("It is Lincoln's.", "Lincoln"),
        ("It cost 1.25 million.", "It cost $1,250,000."),
        ("In 1863 it was.", "in eighteen sixty-three"),
        ("Use a B52 here", "the B-52"),
        ('It says "four score, and seven"', "four  score and\nseven years"),
        ('It says "four score … years"', "four score and seven years"),
        ("他是亚伯拉罕·林肯", "总统亚伯拉罕·林肯发表了宣言"),
        ("部件QX-417坏了", "QX-417"),
        ("Это Владимир Ленин", "речь Владимира Ленина"),
        ("他说《解放宣言》很重要。有300万人。", "林肯的解放宣言。三百万人参加"),
    ],
)
def test_what_the_source_says_is_supported(answer: str, source: str) -> None:
    assert missing(answer, source) == []


@pytest.mark.parametrize(
    ("answer", "source", "claim"),
    [
        ("He met Abraham Lincoln.", "Abraham met Mr. Lincoln", "Abraham Lincoln"),
        ("It was Lincoln.", "Lincolnshire", "Lincoln"),
        ("It cost 1,250.", "It cost 1,250,000", "1,250"),
        ("It cost 12.", "It cost 12.5 and 112 and B12", "12"),
        ("It grew 3.5 percent", "3.4 percent, 35", "3.5"),
        ("It was NASA.", "nasal", "NASA"),
        ('It says "four score"', "four hundred score", "four score"),
        ("Use a B-53 here", "the B-52", "B-53"),
        ("《独立宣言》", "解放宣言", "独立宣言"),
    ],
)
def test_what_it_does_not_say_is_flagged(answer: str, source: str, claim: str) -> None:
    assert missing(answer, source) == [claim]


def test_the_questions_own_words_are_allowed() -> None:
    assert missing("Napoleon is not there, not in 1812.", "nothing", "Was Napoleon there in 1812?") == []


@pytest.mark.parametrize("at", [-40, -9, -8, -1, 0])
@pytest.mark.parametrize("filler", ["lorem ipsum ", "本文没有空格", "x" * 97])
def test_a_claim_across_a_window_border_is_found(at: int, filler: str) -> None:
    border = WINDOW_CHARACTERS + at
    lead = (filler * (border // len(filler) + 1))[:border]
    text = f"{lead} Abraham Lincoln 1,234,567 {filler * 10}"
    assert missing("He is Abraham Lincoln and 1,234,567", text) == []


@pytest.mark.parametrize("size", [1, 3, 7, 1000])
def test_pieces_of_any_size(size: int) -> None:
    text = f"{'word ' * 300}Abraham Lincoln in 1,234,567 {'word ' * 300}"
    pieces = (text[at : at + size] for at in range(0, len(text), size))
    assert [c.text for c in unsupported("Then Abraham Lincoln, Bismarck, 1,234,567, 34", pieces)] == [
        "Bismarck",
        "34",
    ]


def test_the_source_is_read_only_as_far_as_needed() -> None:
    n_read = 0

    def endless() -> Iterator[str]:
        nonlocal n_read
        while True:
            n_read += 1
            yield f"{'some words ' * 1000} Abraham Lincoln "

    assert unsupported("He is Abraham Lincoln.", endless()) == ()
    assert n_read * 11_000 < 4 * WINDOW_CHARACTERS
    assert unsupported("nothing to check", endless()) == ()


def test_memory_is_bounded_on_one_giant_line() -> None:
    lengths = []

    class Watching(str):
        __slots__ = ()

        def __getitem__(self, span: object) -> str:
            piece = str.__getitem__(self, span)  # type: ignore[index]  # a slice
            lengths.append(len(piece))
            return piece

    assert missing("It is Lincoln.", Watching("x" * (3 * WINDOW_CHARACTERS))) == ["Lincoln"]
    assert max(lengths) <= WINDOW_CHARACTERS
    assert OVERLAP_CHARACTERS < WINDOW_CHARACTERS


@pytest.mark.parametrize(
    "text", ["9" * 5000, "1," * 5000, "一" * 5000, "one " * 5000, "A" * 5000, "1.2" * 2000]
)
def test_absurdly_long_tokens_are_only_text(text: str) -> None:
    assert missing(f"It was {text}.", f"It was {text}.") == []


@pytest.mark.parametrize("text", ["A0万万", "1万c0", "__0", '"x"5万', "B52百万"])
def test_a_number_ends_where_it_does_in_the_source(text: str) -> None:
    assert missing(text, text) == []


@settings(deadline=None, max_examples=100)
@given(st.text(st.sampled_from("ABMcdez éÉжЖ09137 .,-_'’\"“”·\n三万百龙ー第"), max_size=60))
def test_every_claim_of_a_text_is_supported_by_the_text(text: str) -> None:
    assert unsupported(text, text) == ()
