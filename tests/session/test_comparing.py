"""`compare` over documents: places and pages on both sides, warnings, and explanations that hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from localctx.document import Document
from localctx.engine import EchoModel
from localctx.errors import LimitExceeded
from localctx.session import comparing
from localctx.session.compared import ComparedDifference
from localctx.session.comparing import compare_documents
from localctx.session.explaining import explain, holds
from localctx.session.prompts import difference_task
from localctx.session.provenance import Citation
from localctx.settings import Settings

OLD = "# Lease\n\n## 1. Term\n\nIt runs for three years.\n\n## 2. Rent\n\nThe rent is 1,250 euros a month.\n"
NEW = "# Lease\n\n## 1. Term\n\nIt runs for three years.\n\n## 2. Rent\n\nThe rent is 1,300 euros a month.\n"
RENT = ("The rent is 1,250 euros a month.", "The rent is 1,300 euros a month.")

Open = Callable[..., Document]


def test_every_place_is_quoted_verbatim_and_named_by_its_clause(open_text: Open) -> None:
    old, new = open_text(OLD, "old.md"), open_text(NEW, "new.md")
    compared = compare_documents(old, new)
    assert [(d.kind, d.changes) for d in compared.differences] == [
        ("number", (("1,250 euros", "1,300 euros"),))
    ]
    for document, side in ((old, compared.differences[0].a), (new, compared.differences[0].b)):
        assert side is not None
        assert side.quote == document.read(side.start, side.end)
        assert (side.source, side.heading_path, side.page) == (document.source, ("Lease", "2 Rent"), None)
    said = compared.to_json()
    assert said["schema"] == "localctx.compare/1"
    assert said["differences"][0]["b"]["quote"] == RENT[1]
    assert said["counts"]["number"] == 1
    assert [clause["classes"] for clause in said["clauses"]] == [["kept"], ["kept"], ["number"]]


def test_clauses_without_a_title_are_named_by_their_words(open_text: Open) -> None:
    old = open_text("1.1 The rent is due.\n\n1.2 It is paid.\n", "old.txt")
    compared = compare_documents(old, old)
    assert [clause.a for clause in compared.clauses] == ["1.1 The rent is due.", "1.2 It is paid."]


def test_two_languages_are_warned_of(open_text: Open) -> None:
    german = (
        "Der Vertrag beginnt am ersten Mai und endet nach drei Jahren. Die Miete ist monatlich zu zahlen. "
        * 9
    )
    english = "The lease begins on the first of May and ends after three years. The rent is due monthly. " * 9
    compared = compare_documents(open_text(english, "a.txt"), open_text(german, "b.txt"))
    assert any("different languages (en, de)" in warning for warning in compared.warnings)


def test_what_is_too_long_is_refused(open_text: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "MAX_CHARACTERS", 20)
    with pytest.raises(LimitExceeded, match=r"old\.md: too long to be compared"):
        compare_documents(open_text(OLD, "old.md"), open_text(NEW, "new.md"))


@pytest.mark.parametrize(
    ("said", "is_kept"),
    [
        ("The rent rises from 1,250 to 1,300 euros a month.", True),
        ("The rent falls from 1,300 to 1,250 euros a month.", False),  # the wrong way round
        ("The rent rises from 1,250 to 1,400 euros a month.", False),  # neither holds it
        ("Mrs Smith pays a rent of 1,300 euros.", False),
        ("The contract is between two sides.", False),
        ("The old version said 1,250 euros and the new version said 1,250 euros.", False),  # one side only
        ("", False),
    ],
)
def test_an_explanation_stays_only_where_it_holds(open_text: Open, said: str, is_kept: bool) -> None:
    old, new = open_text(OLD, "old.md"), open_text(NEW, "new.md")
    compared = compare_documents(old, new)
    explained = explain(compared, (old, new), EchoModel(lambda prompt: said), Settings())
    assert explained.differences[0].explanation == (said if is_kept else None)
    assert explained.explanations_dropped == (0 if is_kept else 1)
    assert explained.to_json()["model"] is not None


def test_an_explanation_says_of_each_version_what_that_one_has() -> None:
    side = Citation("a", 0, 9, "The Seller shall deliver.", 1.0)
    other = replace(side, quote="The Seller shall not deliver.")
    difference = ComparedDifference("reworded", "paragraph", side, other, (("", "not"),))
    both = "The old version said: The Seller shall{} deliver. The new version said: It shall not deliver."
    assert holds(both.format(""), difference, "stop", "en")
    assert not holds(both.format(" not"), difference, "stop", "en")


def test_an_explanation_that_was_cut_is_dropped() -> None:
    side = Citation("a", 0, 9, RENT[0], 1.0)
    difference = ComparedDifference("number", "entity", side, replace(side, quote=RENT[1]))
    text = "The rent rises from 1,250 to 1,300 euros."
    assert holds(text, difference, "stop", "en")
    assert not holds(text, difference, "length", "en")


def test_both_passages_are_shown_to_the_model() -> None:
    before, after = RENT
    fragments, task = difference_task(before, after)
    assert fragments.index(before) < fragments.index(after)
    assert "old version" in task[0]
    assert difference_task(None, after)[0] == (after,)
    assert "no longer" in difference_task(before, None)[1][0]


def test_nothing_is_asked_where_nothing_differs(open_text: Open) -> None:
    old = open_text(OLD, "old.md")
    compared = explain(compare_documents(old, old), (old, old), EchoModel(str.upper), Settings())
    assert (compared.is_same, compared.explanations_dropped) == (True, 0)
