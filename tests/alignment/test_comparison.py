"""Two texts compared: what was kept, changed, moved, added, removed, and how it is classed."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.alignment import Comparison, Outline, Thresholds, words
from localctx.alignment.entities import entities
from localctx.alignment.pairing import Spelled, in_order, pair_similar
from localctx.alignment.words import Alphabet, similarity, words_of
from localctx.errors import UsageError
from localctx.eval.compare_pairs import compare_texts

TERM = "{}. Term\n\nThe lease runs for three years from 1 May 2025. It is renewed for another year.\n\n"
RENT = "{}. Rent\n\nThe monthly rent is EUR 1,250 and is due within thirty (30) days after the invoice.\n\n"
PETS = "{}. Pets\n\nThe Tenant may keep one dog with the written consent of the Landlord.\n\n"
NOTES = "{}. Notices\n\nNotices must be in writing and sent by registered mail to the other party.\n\n"
REPAIR = "{}. Repairs\n\nThe Landlord shall repair the roof at its own expense, as Section {} provides.\n\n"
PARTS = (TERM, RENT, PETS, NOTES)


def text_of(*parts: str, refers: int = 1) -> str:
    """The clauses numbered in this order."""
    return "".join(part.format(number, refers) for number, part in enumerate(parts, start=1))


def compared(a: str, b: str, **given: float) -> tuple[Outline, Outline, Comparison]:
    return compare_texts(a, b, "en", Thresholds(**given))


def kinds(a: str, b: str) -> list[str]:
    return [difference.kind for difference in compared(a, b)[2].differences]


def test_the_same_text_has_no_difference() -> None:
    _, _, comparison = compared(text_of(*PARTS), text_of(*PARTS))
    assert (comparison.is_same, comparison.similarity, comparison.counts["kept"]) == (True, 1.0, 4)


def test_line_breaks_quotes_hyphens_and_case_are_no_difference() -> None:
    a = "1. Term\n\nThe “well-known” lease runs on,\nfor three years — or so.\n\n"
    b = '1. TERM\n\nThe "well known" lease\nruns on, for three\nyears - or so.\n\n'
    assert kinds(a, b) == []


@pytest.mark.parametrize(
    ("before", "after", "kind", "change"),
    [
        ("EUR 1,250", "EUR 1,300", "number", ("EUR 1,250", "EUR 1,300")),
        ("thirty (30)", "sixty (60)", "number", ("thirty (30)", "sixty (60)")),
        ("(30) days", "(30) weeks", "number", ("days", "weeks")),
        ("1 May 2025", "15 June 2026", "date", ("1 May 2025", "15 June 2026")),
        ("The Tenant", "The Landlord", "party", ("Tenant", "Landlord")),
        ("may keep", "may not keep", "reworded", ("", "not")),
        ("written consent", "oral consent", "reworded", ("written", "oral")),
    ],
)
def test_a_change_is_classed_by_what_it_names(
    before: str, after: str, kind: str, change: tuple[str, str]
) -> None:
    text = text_of(*PARTS)
    assert before in text
    a, b, comparison = compared(text, text.replace(before, after))
    assert [(d.kind, d.changes) for d in comparison.differences] == [(kind, (change,))]
    side_a, side_b = comparison.differences[0].a, comparison.differences[0].b
    assert side_a is not None
    assert side_b is not None
    assert before.split(maxsplit=1)[0].strip("(") in a.text[side_a.start : side_a.end]
    assert after.split(maxsplit=1)[0].strip("(") in b.text[side_b.start : side_b.end]


def test_the_same_date_written_differently_is_rewording() -> None:
    text = text_of(*PARTS)
    assert kinds(text, text.replace("1 May 2025", "May 1, 2025")) == ["reworded"]


def test_a_number_changed_inside_a_rewritten_sentence_is_told_apart() -> None:
    text = text_of(*PARTS)
    other = text.replace("within thirty (30) days after the invoice", "no later than 45 days after receipt")
    assert sorted(kinds(text, other)) == ["number", "reworded"]


def test_a_number_in_a_sentence_that_was_turned_round_is_no_change() -> None:
    a = "1. Defects\n\nDefects notified within 21 months after acceptance are remedied by the Supplier.\n"
    b = "1. Defects\n\nThe Supplier remedies defects that are notified in the 21 months after acceptance.\n"
    assert kinds(a, b) == ["reworded"]


def test_two_numbers_that_changed_places_are_changes() -> None:
    a = "1. Times\n\nThe Buyer pays within 30 days and the Seller delivers within 60 days of the order.\n"
    b = "1. Times\n\nThe Buyer pays within 60 days and the Seller delivers within 30 days of the order.\n"
    assert kinds(a, b) == ["number"]


def test_a_clause_is_followed_through_new_numbers() -> None:
    _, _, comparison = compared(text_of(*PARTS), text_of(RENT, PETS, NOTES))
    assert [(d.kind, d.level) for d in comparison.differences] == [("removed", "clause")]
    assert [pair.is_renumbered for pair in comparison.pairs] == [False, True, True, True]


def test_a_moved_clause_is_one_difference_and_its_neighbours_are_kept() -> None:
    a, b, comparison = compared(text_of(*PARTS, REPAIR), text_of(REPAIR, *PARTS, refers=2))
    assert [(d.kind, d.level) for d in comparison.differences] == [("moved", "clause")]
    side = comparison.differences[0].b
    assert side is not None
    assert b.text[side.start : side.end].startswith("1. Repairs")
    assert comparison.references == 1
    assert a.clauses[4].number == "5"


def test_a_reference_that_does_not_follow_is_a_change() -> None:
    _, _, comparison = compared(text_of(*PARTS, REPAIR), text_of(REPAIR, *PARTS, refers=4))
    assert sorted(d.kind for d in comparison.differences) == ["moved", "number"]


def test_a_clause_that_moved_and_changed_says_both() -> None:
    other = text_of(NOTES, TERM, RENT, PETS).replace("registered mail", "electronic mail")
    assert sorted(kinds(text_of(*PARTS), other)) == ["moved", "reworded"]


def test_sentences_added_and_removed() -> None:
    text = text_of(*PARTS)
    other = text.replace(" It is renewed for another year.", "").replace(
        "Landlord.", "Landlord. Cats are kept indoors at all times."
    )
    _, _, comparison = compared(text, other)
    assert [(d.kind, d.level) for d in comparison.differences] == [
        ("removed", "paragraph"),
        ("added", "paragraph"),
    ]


def test_a_sentence_cut_in_two_is_one_rewording() -> None:
    text = text_of(*PARTS)
    other = text.replace("is EUR 1,250 and is due", "is EUR 1,250. It is due")
    assert kinds(text, other) == ["reworded"]


def test_a_sentence_that_went_to_another_clause_moved() -> None:
    sentence = "It is renewed for another year."
    text = text_of(*PARTS)
    other = text.replace(f" {sentence}", "").replace("other party.", f"other party. {sentence}")
    _, _, comparison = compared(text, other)
    assert [(d.kind, d.level) for d in comparison.differences] == [("moved", "paragraph")]


def test_like_clauses_for_different_things_are_not_one_that_moved() -> None:
    audit = "{}. Audit – %s\n\nFor %s the records are open once a year upon ten days of notice.\n\n"
    alpha, beta = (audit % (name, name) for name in ("Alpha", "Beta"))
    assert sorted(kinds(text_of(alpha, *PARTS), text_of(*PARTS, beta))) == ["added", "removed"]


def test_unrelated_texts_share_nothing() -> None:
    other = "1. Cookery\n\nBoil eggs in salted water until firm.\n\n2. Music\n\nA fugue has several voices.\n"
    _, _, comparison = compared(text_of(*PARTS), other)
    assert comparison.similarity < 0.15
    assert {d.kind for d in comparison.differences} == {"added", "removed"}


def test_a_list_in_lines_and_in_a_row_is_the_same() -> None:
    lines = "1. Goods\n\nThe goods are:\n(a) wheat of good quality;\n(b) barley in sacks; and\n(c) oats.\n"
    row = "1. Goods\n\nThe goods are: (a) wheat of good quality; (b) barley in sacks; and (c) oats.\n"
    assert kinds(lines, row) == []


def test_thresholds_decide_what_is_the_same() -> None:
    a = "1. Term\n\nThe lease runs for three years. The garden belongs to the upper flat only.\n"
    b = "1. Term\n\nThe lease runs for three years. The cellar belongs to the lower flat always.\n"
    assert kinds(a, b) == ["reworded"]
    name_a, name_b = (
        f"The Buyer is {name} GmbH of Trier, and it pays.\n" for name in ("Meyerhof", "Meierhof")
    )
    assert [d.kind for d in compared(name_a, name_b, entity=0.9)[2].differences] == ["reworded"]
    assert [d.kind for d in compared(name_a, name_b, entity=1.0)[2].differences] == ["party"]


@pytest.mark.parametrize("value", [0.0, -1.0, 1.01, float("nan")])
def test_a_threshold_is_a_share(value: float) -> None:
    with pytest.raises(UsageError):
        Thresholds(paragraph=value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("on 1 January 2025", [("date", "2025-01-01")]),
        ("am 31. März 2027", [("date", "2027-03-31")]),
        ("自2026年2月3日起", [("date", "2026-02-03")]),
        ("§ 5 und Section 12", [("reference", "5"), ("reference", "12")]),
        ("第二十三条", [("reference", "23")]),
        ("5 Prozent", [("number", "5 prozent ")]),
        ("Anlagen der Möller Anlagen GmbH", [("party", "moller anlagen gmbh")]),
        ("甲方应付款", [("party", "甲方")]),
        ("one of them", []),
        ("一切费用", []),
    ],
)
def test_entities(text: str, found: list[tuple[str, str]]) -> None:
    assert [(one.kind, one.key) for one in entities(text, 0, frozenset())] == found


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 30), st.sampled_from([0.3, 1.0, 2.5])), max_size=12, unique_by=lambda p: p[0]
    )
)
def test_what_stays_in_order_is_the_heaviest_rising_run(items: list[tuple[int, float]]) -> None:
    def weight(chosen: list[tuple[int, float]]) -> float:
        return sum(w for _, w in chosen)

    best = 0.0
    for mask in range(1 << len(items)):
        run = [item for k, item in enumerate(items) if mask >> k & 1]
        if all(x[0] < y[0] for x, y in pairwise(run)):
            best = max(best, weight(run))
    kept = [item for item, stays in zip(items, in_order(items), strict=True) if stays]
    assert [place for place, _ in kept] == sorted(place for place, _ in kept)
    assert weight(kept) == pytest.approx(best)


def test_pairs_are_one_to_one_and_the_nearest_of_equals() -> None:
    alphabet = Alphabet()

    def spelled(text: str, place: float) -> Spelled:
        texts = words_of(text).texts
        return Spelled(alphabet.spell(texts), alphabet.masked(texts), place)

    left = [spelled("item 1 costs 5 euros", 0.1), spelled("item 2 costs 6 euros", 0.9)]
    right = [spelled("item 2 costs 7 euros", 0.9), spelled("item 1 costs 5 euros", 0.1)]
    assert sorted((m.a, m.b) for m in pair_similar(left, right, 0.7)) == [(0, 1), (1, 0)]


def test_words_of_more_than_an_alphabet_are_still_compared() -> None:
    alphabet = Alphabet()
    spelled = alphabet.spell(tuple(f"w{n}" for n in range(60_000)))
    assert len(set(spelled)) == 60_000
    assert not any(0xD800 <= ord(c) < 0xE100 for c in spelled)
    assert similarity(spelled[:100], spelled[:100]) == 1.0


@settings(deadline=None, max_examples=40)
@given(st.text(st.sampled_from("ab1. \n§(第条。é5%"), max_size=120), st.text(max_size=60))
def test_any_text_is_the_same_as_itself_and_comparable_with_any_other(text: str, other: str) -> None:
    assert compared(text, text)[2].is_same
    a, b, comparison = compared(text, other)
    for difference in comparison.differences:
        for outline, side in ((a, difference.a), (b, difference.b)):
            assert side is None or 0 <= side.start <= side.end <= len(outline.text)


@pytest.mark.parametrize("piece", [" ", "\n", ".", ". ", '("', "Ab & ", "1. ", "条", "-\n"])
def test_a_long_run_of_anything_takes_no_long_time(piece: str) -> None:
    """Patterns that look back over such a run would take hours."""
    run = piece * 3000
    assert compared(f"The fee. {run} is due", f"The fee. {run} is due")[2].is_same


def test_long_texts_are_compared_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(words, "MOST_CELLS", 8)
    text = text_of(*PARTS)
    assert compared(text, text)[2].is_same
    _, _, comparison = compared(text, text_of(RENT, PETS, NOTES))
    assert comparison.counts["removed"] == 1
    assert comparison.counts["kept"] == 3
