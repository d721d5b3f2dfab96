"""A footnote stands after the paragraph that refers to it, marked; what only looks like one stays."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from document.column_pdfs import Page, story
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from localctx.document.pdf import PdfPage, extract_pdf
from localctx.document.pdf_engines import Reading
from localctx.document.pdf_layout import PlacedLine, Word
from localctx.document.pdf_page import compose

SMALL = 8.0
MORE = [
    f"Its master wrote {n} letters about this matter to the governor of the whole province." for n in range(6)
]


def paragraphs(path: Path, page: Page) -> list[str]:
    """The paragraphs of a document of one page."""
    path.write_bytes(page.pdf())
    (text,) = [event.text for event in extract_pdf(path) if isinstance(event, PdfPage)]
    return [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]


def page_of(lines: list[str], notes: list[str]) -> Page:
    """A page of lines in which ^1 is a raised 1, an empty one between paragraphs; notes at its foot."""
    page = Page()
    for row, line in enumerate(lines):
        page.note_line(line, 60, 700 - 12 * row)
    for row, line in enumerate(notes):
        page.note_line(line, 60, 120 - 10 * row, SMALL)
    return page


def test_notes_stand_after_the_paragraphs_that_refer_to_them(tmp_path: Path) -> None:
    page = page_of(
        [
            "The harbour was closed for the winter,^1 and no ship left before the ice had gone from it.",
            "Its master wrote two letters about this matter to the governor of the province.^2",
            "",
            "In the year after the council met twice, and what it decided was written down.^3",
        ],
        [
            "^1 From the tenth of November to the end of March, as the books of the harbour have it,",
            "though some of the smaller boats went out before.",
            "^2 Both are lost.",
            "^3 By its clerk.",
        ],
    )
    assert paragraphs(tmp_path / "a.pdf", page) == [
        "The harbour was closed for the winter,[^1] and no ship left before the ice had gone from it. "
        "Its master wrote two letters about this matter to the governor of the province.[^2]",
        "[^1]: From the tenth of November to the end of March, as the books of the harbour have it, though "
        "some of the smaller boats went out before.",
        "[^2]: Both are lost.",
        "In the year after the council met twice, and what it decided was written down.[^3]",
        "[^3]: By its clerk.",
    ]


def test_a_note_below_a_column_does_not_part_its_sentence(tmp_path: Path) -> None:
    words = story(1, 24).split()
    half = len(words) // 2 + 5
    page = Page()
    page.note_line("A word.^1", 60, page.y + 20)
    page.columns([" ".join(words[:half]), " ".join(words[half:])], "columns")
    page.note_line("^1 What it means is told in the other book.", 60, page.y, SMALL)
    found = paragraphs(tmp_path / "a.pdf", page)
    assert "[^1]: What it means is told in the other book." in found
    assert " ".join(words) in found


def test_marks_without_notes_and_notes_without_marks_stay(tmp_path: Path) -> None:
    lines = [
        "There were 10^2 barrels in the house behind the old mill of the town, as it was said.",
        "The clerk wrote down what he had heard,^7 and nobody asked him for more than that.",
    ]
    notes = ["^2 Of what was found in the house, see below.", "^3 Nothing refers to this one."]
    found = "\n".join(paragraphs(tmp_path / "a.pdf", page_of(lines, notes)))
    assert "[^" not in found
    assert "heard,7" in found
    for note in notes:
        assert note[3:] in found
    assert found.index("nobody asked") < found.index("Of what was found")


def test_small_numbered_lines_are_no_notes(tmp_path: Path) -> None:
    lines = ["The list below has what was brought to the harbour in that year,^1 by the books of its master."]
    found = paragraphs(tmp_path / "a.pdf", page_of(lines, ["1. barrels of salt", "2. sacks of flour"]))
    assert "[^" not in "\n".join(found)
    assert "1. barrels of salt" in "\n".join(found)


def test_notes_of_a_table_stay_where_they_are(tmp_path: Path) -> None:
    page = page_of(
        ["What the books of the harbour have of that year and of the years before is told here."], []
    )
    page.canvas.grid([60, 160, 260], [600, 620, 640, 660])
    for row, cells in enumerate([("Goods", "Barrels"), ("Salt^1", "40"), ("Flour^2", "12")]):
        for column, cell in enumerate(cells):
            page.note_line(cell, 64 + 100 * column, 646 - 20 * row)
    for row, note in enumerate(["^1 From the mines of the north.", "^2 Of two mills."]):
        page.note_line(note, 60, 580 - 12 * row, SMALL)
    found = "\n".join(paragraphs(tmp_path / "a.pdf", page))
    assert "[^" not in found
    assert found.index("Salt") < found.index("From the mines") < found.index("Of two mills")


def test_exponents_are_no_references(tmp_path: Path) -> None:
    lines = [
        "The estate has 40 km^2 of wood, and each of its fields has x^2 or (a + b)^2 trees along its edge.",
        "Its walls are 3 ft^2 for each man, and mc^2 = E was written on one of them, as the books say.",
        "",
        "Its master wrote two letters about this matter, which were given to the clerk.^2 He lost them.",
    ]
    found = paragraphs(tmp_path / "a.pdf", page_of(lines, ["^2 Both letters are lost."]))
    plain = [line.replace("^", "") for line in lines[:2]]
    assert " ".join(found) == " ".join(
        [*plain, lines[3].replace("^2", "[^2]"), "[^2]: Both letters are lost."]
    )


def test_a_note_to_which_only_exponents_could_refer_stays(tmp_path: Path) -> None:
    lines = ["The estate has 40 km^2 of wood, and so has that of the town behind the mill by the river."]
    found = paragraphs(tmp_path / "a.pdf", page_of(lines, ["^2 Both letters are lost."]))
    assert found[0] == lines[0].replace("^", "")
    assert "[^" not in "\n".join(found)


def test_of_marks_behind_words_the_last_one_refers(tmp_path: Path) -> None:
    lines = [
        "The value of salt^2 is told by the master of the harbour in the books that he has written.",
        "Nobody knows why the letters^2 were given to the clerk, or what he did with them in that year.",
    ]
    found = paragraphs(tmp_path / "a.pdf", page_of(lines, ["^2 Both letters are lost."]))
    assert "salt2 is" in found[0]
    assert "letters[^2] were" in found[0]


def test_repeated_marks_behind_sentences_all_refer(tmp_path: Path) -> None:
    lines = [
        "The salt was brought to the harbour before the winter, as the clerk has written in his book.*",
        "Nobody knows why the letters were given to him, or what he did with them in that long year.*",
    ]
    found = paragraphs(tmp_path / "a.pdf", page_of(raised(lines), raised(["* Kept in the town."])))
    assert found[0].count("[^*]") == 2


def raised(lines: list[str]) -> list[str]:
    """The lines with every asterisk raised."""
    return [line.replace("*", "^*") for line in lines]


def test_two_notes_of_one_number_stay_where_they_are(tmp_path: Path) -> None:
    page = Page()
    bottoms = []
    for x, name in ((60, "left"), (320, "right")):
        for row in range(8):
            mark = "^1" if row == 3 else ""
            page.note_line(f"and then the {name} clerk wrote line {row} of it,{mark}", x, 700 - 12 * row)
        bottoms.append(f"What the {name} one wrote is lost.")
        page.note_line(f"^1 {bottoms[-1]}", x, 580, SMALL)
    found = "\n".join(paragraphs(tmp_path / "a.pdf", page))
    assert "[^" not in found
    assert found.count("it,1") == 2
    assert all(found.count(note) == 1 for note in bottoms)


def test_a_note_has_only_the_lines_below_it(tmp_path: Path) -> None:
    page = page_of(
        [
            "The harbour was closed for the winter,^1 and no ship left before the ice had gone from it.",
            *MORE,
        ],
        ["^1 From the tenth of November", "to the end of March."],
    )
    page.note_line("Table 3: barrels of salt, by the year", 320, 120, SMALL)
    page.note_line("Copyright of the town 1998", 60, 96, SMALL)
    found = paragraphs(tmp_path / "a.pdf", page)
    assert "[^1]: From the tenth of November to the end of March." in found
    whole = "\n".join(found)
    assert all(whole.count(text) == 1 for text in ("Table 3: barrels of salt, by the year", "Copyright of"))


def test_a_note_of_one_line_takes_no_footer(tmp_path: Path) -> None:
    lines = [
        "The harbour was closed for the winter,^1 and no ship left before the ice had gone from it.",
        *MORE,
    ]
    page = page_of(lines, ["^1 From the tenth of November"])
    page.note_line("Table 3: barrels of salt, by the year", 320, 120, SMALL)
    page.note_line("Copyright of the town 1998", 60, 106, SMALL)
    found = paragraphs(tmp_path / "a.pdf", page)
    assert "[^1]: From the tenth of November" in found
    whole = "\n".join(found)
    assert all(whole.count(text) == 1 for text in ("Table 3: barrels of salt, by the year", "Copyright of"))


def test_two_notes_of_one_number_in_one_row_stay(tmp_path: Path) -> None:
    page = Page()
    for row in range(8):
        for x, name in ((60, "left"), (320, "right")):
            mark = "^1" if row == 3 else ""
            page.note_line(f"and then the {name} clerk wrote line {row} of it,{mark}", x, 700 - 12 * row)
    for x, name in ((60, "left"), (320, "right")):
        page.note_line(f"^1 What the {name} one wrote is lost.", x, 580, SMALL)
    found = "\n".join(paragraphs(tmp_path / "a.pdf", page))
    assert "[^" not in found
    assert all(found.count(f"What the {name} one wrote is lost.") == 1 for name in ("left", "right"))


def test_notes_beside_one_another_keep_their_lines(tmp_path: Path) -> None:
    page = Page()
    columns = ((60, "left", 1), (320, "right", 2))
    for row in range(8):
        for x, name, number in columns:
            mark = f"^{number}" if row == 3 else ""
            page.note_line(f"and then the {name} clerk wrote line {row} of it,{mark}", x, 700 - 12 * row)
    for row, text in enumerate(("What the {} one wrote of the", "harbour in that {} book is lost.")):
        for x, name, number in columns:
            start = f"^{number} " if row == 0 else ""
            page.note_line(start + text.format(name), x, 580 - 10 * row, SMALL)
    found = paragraphs(tmp_path / "a.pdf", page)
    for _, name, number in columns:
        note = f"What the {name} one wrote of the harbour in that {name} book is lost."
        assert f"[^{number}]: {note}" in found


NAMES = [f"{a}{b}lin" for a in "bdfgklmnprst" for b in ("a", "e", "i", "o", "u", "ar", "er", "or")]
BODY, NOTE = 10.0, 7.0
BODIES = (
    "and the {}{} went on to say that it was",
    "The {}.{} It ended.",
    "It has 40 km{1} of {0} wood",
    "the {} of x{} = 4",
)
SAYINGS = ("{1} Of {0} and what it was", "of {} in the book", "{1}", "{1} {0}")


@st.composite
def marked_lines(draw: st.DrawFn) -> list[PlacedLine]:
    """Lines of a page, each with a word of its own: raised marks, exponents, notes, several of one number."""
    names = draw(st.lists(st.sampled_from(NAMES), max_size=40, unique=True))
    lines = []
    for name in names:
        is_note = draw(st.booleans())
        mark = draw(st.sampled_from(["1", "2", "*"]))
        text = draw(st.sampled_from(SAYINGS if is_note else BODIES)).format(name, mark)
        text = f"{name} {text}" if name not in text and not is_note else text
        left, width = draw(st.sampled_from([60.0, 62.0, 310.0])), draw(st.sampled_from([40.0, 230.0]))
        height = NOTE if is_note else BODY
        bottom = 12.0 * draw(st.integers(0, 20 if is_note else 60)) + (6 if left > 300 else 0)
        at = text.find(mark)
        raised = ((at, mark),) if at > 0 else ()
        words = []
        end, gap = left, draw(st.sampled_from([3.0, 100.0])) if is_note else 3.0
        for i, word in enumerate(text.split()):
            end += gap if i == 2 else 3.0
            words.append(Word(word, end, end + width / 10))
            end += width / 10
        right = words[-1].right
        lines.append(PlacedLine(text, left, right, bottom, bottom + height, 20.0, tuple(words), raised))
    return lines


@settings(deadline=None, max_examples=150)
@given(marked_lines())
def test_no_character_is_lost_or_doubled(lines: list[PlacedLine]) -> None:
    text = compose(Reading("", tuple(lines)), lines).text
    assume("---" not in text)  # a table says once what heads several of its columns
    assert letters(text) == letters("".join(line.text for line in lines))


def letters(text: str) -> Counter[str]:
    """How often each letter, digit and mark is in a text."""
    return Counter(character for character in text if character.isalnum() or character == "*")
