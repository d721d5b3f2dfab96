"""Page numbers of a table of contents are no text; prices that are set like one are."""

from __future__ import annotations

import pytest

from localctx.eval.compare_pairs import compare_texts

TITLES = ("Term", "Rent", "Pets")
BODY = "".join(
    f"{n}. {title}\n\nThe parties agree on {title} as follows, and in all other respects the law applies.\n\n"
    for n, title in enumerate(TITLES, start=1)
)
CONTENTS = "Contents\n\n1. Term ........ {}\n2. Rent ........ {}\n3. Pets ........ {}\n\n"


def kinds(a: str, b: str) -> list[str]:
    return [difference.kind for difference in compare_texts(a, b)[2].differences]


@pytest.mark.parametrize(
    "contents",
    [
        CONTENTS,
        CONTENTS.replace("\n2", "\n\n2"),
        CONTENTS.replace("........", ". . . . ."),
        CONTENTS.replace("........", "…"),
        CONTENTS.replace("1. ", "").replace("2. ", "").replace("3. ", ""),
        CONTENTS.replace("\n1", "\nPreface ........ i\n1"),
    ],
)
def test_page_numbers_in_a_table_of_contents_are_no_difference(contents: str) -> None:
    assert kinds(contents.format(3, 4, 5) + BODY, contents.format(4, 4, 6) + BODY) == []


def test_headings_without_a_line_of_their_own_are_named_too() -> None:
    body = "".join(
        f"{n}.1 {title}. The parties agree on it as follows, and in every other respect the law applies.\n\n"
        for n, title in enumerate(TITLES, start=1)
    )
    contents = "1.1 Term ........ {}\n2.1 Rent ........ {}\n3.1 Pets ........ {}\n\n"
    assert kinds(contents.format(3, 4, 5) + body, contents.format(4, 4, 6) + body) == []


@pytest.mark.parametrize(
    "prices",
    [
        "Setup fee\t{}\nMonthly fee\t{}\nYearly fee\t{}\n",
        "Setup fee ........ {}\nMonthly fee ........ {}\nYearly fee ........ {}\n",
        "1. Fees\n\nSetup fee ........ {}\n\nMonthly fee ........ {}\n\nYearly fee ... {}\n",
        "The fees are these.\nSetup … {}\nMonthly … {}\nYearly … {}\n",
        "Term\t{}\nRent\t{}\nPets\t{}\n\n" + BODY,
        BODY + "Term ........ {}\nRent ........ {}\nPets ........ {}\n",
        "Term ........ {}\nRent ........ {}\n\nThe prices follow.\n\nPets ........ {}\n\n" + BODY,
        "Term ........ {}00\nRent ........ {}00\nPets ........ {}00\n\n" + BODY,
    ],
)
def test_prices_that_are_set_like_a_table_of_contents_are_compared(prices: str) -> None:
    assert set(kinds(prices.format(1, 5, 6), prices.format(1, 5, 7))) == {"number"}
    assert set(kinds(prices.format(1, 2, 9), prices.format(3, 7, 9))) == {"number"}


def test_page_numbers_that_fall_are_prices() -> None:
    assert kinds(CONTENTS.format(5, 4, 3) + BODY, CONTENTS.format(5, 4, 1) + BODY) == ["number"]


def test_a_paragraph_is_compared_though_its_last_line_is_of_a_table_of_contents() -> None:
    contents = "The fee is {} euros.\n" + CONTENTS.removeprefix("Contents\n\n")
    assert kinds(contents.format(7, 1, 2, 3) + BODY, contents.format(8, 2, 3, 4) + BODY) == ["number"]


def test_a_line_that_names_no_heading_is_compared_within_a_table_of_contents() -> None:
    contents = CONTENTS.replace("\n3", "\nDeposit ........ {}\n3")
    assert kinds(contents.format(1, 2, 2, 3) + BODY, contents.format(1, 2, 3, 3) + BODY) == ["number"]
