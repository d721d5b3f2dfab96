"""References inside a text, and the lines that they lead to."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.selection import references, targets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The deposit is set out in Annex B.", ["Annex B"]),
        ("See section 3.2.1 and Table 4.", ["section 3.2.1", "Table 4"]),
        ("Under § 12(3) and Art. 5 he may leave.", ["§ 12(3)", "Art. 5"]),
        ("Siehe Anhang B, Abschnitt 3.2 und Abb. 3.", ["Anhang B", "Abschnitt 3.2", "Abb. 3"]),
        ("nach § 12 Abs. 3 BGB", ["§ 12 Abs. 3"]),
        ("按附件二和第三条执行，见表4。", ["附件二", "第三条", "表4"]),
        ("As in Annex B, so in annex B.", ["Annex B"]),
        ("A part of the section on it is in order.", []),
        ("Annex B: Deposits\nThe rent is due.", []),
        ("## Section 4\nThe rent is due.", []),
        ("Section 4 says that rent is due.", ["Section 4"]),
        ("", []),
    ],
)
def test_what_is_a_reference(text: str, expected: list[str]) -> None:
    found = references(text)
    assert [one.text for one in found] == expected
    assert [text[one.start : one.end] for one in found] == expected


DOCUMENT = """Contents
Annex B .......... 12
Section 3.2.1    4

Table 4 shows that the pump is blue.
# 3.2.1 Payment
Within 30 days.
3.2 percent of the rent is kept.
## Annex B: Deposits
800 euros
**Table 4.** Pumps
§ 12 Haftung
(3) Es haftet der Mieter.
Art. 5 Scope
Anhang B
附件二 押金
第三条 付款
3.2 Zahlung
Annex BC
"""


@pytest.mark.parametrize(
    ("reference", "line"),
    [
        ("in Annex B", "## Annex B: Deposits"),
        ("in section 3.2.1", "# 3.2.1 Payment"),
        ("in Table 4", "**Table 4.** Pumps"),
        ("nach § 12(3)", "§ 12 Haftung"),
        ("in Article 5", "Art. 5 Scope"),
        ("siehe Anhang B", "Anhang B"),
        ("见附件二", "附件二 押金"),
        ("按第三条", "第三条 付款"),
        ("in Abschnitt 3.2", "3.2 Zahlung"),
        ("in Annex D", None),
        ("in Table 44", None),
        ("in section 3.2.11", None),
    ],
)
def test_where_it_leads(reference: str, line: str | None) -> None:
    (one,) = references(reference)
    found = targets([one], [DOCUMENT])
    led = found.get(one.key)
    assert (None if led is None else DOCUMENT[led:].partition("\n")[0]) == line


EVERY_REFERENCE = references(
    "See Annex B, section 3.2.1, Table 4, § 12(3), Article 5, Anhang B, 附件二, 第三条 and Abschnitt 3.2."
)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, len(DOCUMENT)), max_size=6))
def test_all_are_found_in_one_pass_however_the_text_is_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(DOCUMENT)]
    pieces = [DOCUMENT[a:b] for a, b in itertools.pairwise(edges)]
    each = {one.key: targets([one], [DOCUMENT])[one.key] for one in EVERY_REFERENCE}
    assert targets(EVERY_REFERENCE, pieces) == each


def test_empty_lines_and_lines_that_end_with_the_word_hide_no_heading() -> None:
    text = "Annex\n\n \nAnnex B\nas said in section\n3.2 Payment\n"
    wanted = references("See Annex B and section 3.2.")
    assert targets(wanted, [text]) == {
        ("annex", "b"): text.index("Annex B"), ("section", "3.2"): text.index("3.2")
    }  # fmt: skip


def test_a_text_of_one_line_is_looked_at_from_its_beginning_only() -> None:
    (wanted,) = references("in Annex B")
    pieces = ["Annex B is this. ", *["It goes on. "] * 1000, "Annex B is that.", "\n# Annex B\n"]
    assert targets([wanted], pieces[:-1]) == {wanted.key: 0}
    assert targets([wanted], pieces) == {wanted.key: sum(map(len, pieces[:-1])) + 1}
