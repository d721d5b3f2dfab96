"""`summarize` end to end over the echo engine: coverage, faithfulness, order, lengths."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from session.conftest import CHAPTERS, answer_of, of_kind

from localctx.document import Document
from localctx.engine import EchoModel
from localctx.errors import UsageError
from localctx.session.events import Planned, SectionDone, Text
from localctx.session.summarize import summarize, wanted_points
from localctx.settings import Settings

LONG = "".join(
    f"# Chapter {n}\n\nThe town number {n} has {n * 37} houses and one mill. "
    + f"Nothing else is known of town {n}. " * 30
    + "\n\n"
    for n in range(1, 21)
)


def last_line(prompt: str) -> str:
    """A model that repeats the sentence it is to shorten: never shorter, so never taken."""
    return prompt.strip().rpartition("\n")[2]


def test_a_short_document_is_read_whole(book: Document) -> None:
    events = list(summarize([book], EchoModel(last_line), Settings()))
    answer = answer_of(events)
    assert answer.strategy == "exact"
    assert answer.coverage.tokens_read == answer.coverage.tokens_total == len(EchoModel().tokenize(CHAPTERS))
    assert "".join(event.text for event in of_kind(events, Text)).strip() == answer.text
    assert answer.warnings == ()


def test_every_part_of_a_long_document_is_read(open_text: Callable[..., Document]) -> None:
    document = open_text(LONG)
    events = list(summarize([document], EchoModel(last_line, n_ctx_train=4096), Settings(), length="long"))
    answer = answer_of(events)
    assert answer.strategy == "map-reduce"
    assert answer.coverage.tokens_read == answer.coverage.tokens_total
    assert answer.coverage.tokens_dropped == 0
    assert answer.tokens.evaluated > answer.coverage.tokens_total
    assert len(of_kind(events, SectionDone)) == of_kind(events, Planned)[0].n_parts
    for citation in answer.citations:
        assert document.read(citation.start, citation.end) == citation.quote


@pytest.mark.parametrize(("length", "n_points"), [("short", 5), ("medium", 20), ("50", 2)])
def test_points_are_merged_to_the_wanted_number(
    open_text: Callable[..., Document], length: str, n_points: int
) -> None:
    model = EchoModel(last_line, n_ctx_train=4096)
    answer = answer_of(list(summarize([open_text(LONG)], model, Settings(), length=length)))
    points = [line for line in answer.text.splitlines() if line.startswith("- ")]
    assert len(points) == n_points
    assert points[-1].endswith(f"[{n_points}]")
    assert answer.coverage.tokens_dropped == 0


def test_a_merge_is_decoded_and_checked(open_text: Callable[..., Document]) -> None:
    """Twenty chapters into two points: what the model words is taken where it is faithful."""

    def reply(prompt: str) -> str:
        return last_line(prompt).replace(" else", "")

    model = EchoModel(reply, n_ctx_train=4096)
    answer = answer_of(list(summarize([open_text(LONG)], model, Settings(), length="50")))
    points = [line for line in answer.text.splitlines() if line.startswith("- ")]
    assert len(points) == 2
    assert all(re.match(r"- Nothing is known of town \d+\. \[", line) for line in points)


@pytest.mark.parametrize("n_ctx_train", [1500, 2000, 2500, 3000, 4097])
def test_any_prompt_fits_any_context(open_text: Callable[..., Document], n_ctx_train: int) -> None:
    text = "在山谷里有一座古老的银矿和许多小房子以及一条长长的河流" * 400
    model = EchoModel(last_line, n_ctx_train=n_ctx_train)
    answer = answer_of(list(summarize([open_text(text, "a.txt")], model, Settings(), length="short")))
    assert answer.n_ctx <= n_ctx_train
    assert answer.coverage.tokens_dropped == 0


def test_two_documents_are_summarised_under_their_own_names(open_text: Callable[..., Document]) -> None:
    one = open_text("# Introduction\n\nThe mill of Tannau stands by the river Orle.", "a.md")
    two = open_text("# Introduction\n\nThe mine of Quarz lies in the hills of Feld.", "b.md")
    answer = answer_of(list(summarize([one, two], EchoModel(last_line), Settings(), length="20")))
    headings = [line for line in answer.text.splitlines() if line.startswith("## ")]
    assert [heading.endswith(" › Introduction") for heading in headings] == [True, True]
    assert "a.md" in headings[0]
    assert "b.md" in headings[1]


def test_times_and_rates_cover_every_wave(open_text: Callable[..., Document]) -> None:
    text = "".join(f"# Part {n}\n\n" + f"Town {n} has a mill. " * 60 + "\n\n" for n in range(70))
    model = EchoModel(last_line, n_ctx_train=2048)
    answer = answer_of(list(summarize([open_text(text)], model, Settings(), length="long")))
    times = answer.timings
    assert answer.tokens.generated > 70
    assert times.decode_tokens_per_s == pytest.approx(answer.tokens.generated / (times.decode_ms / 1000))
    assert 0 < times.ttft_ms < times.document_ms + times.load_ms + times.decode_ms + 1000


def test_condense_reads_key_sentences_and_says_how_little(open_text: Callable[..., Document]) -> None:
    model = EchoModel(last_line, n_ctx_train=4096)
    answer = answer_of(list(summarize([open_text(LONG)], model, Settings(strategy="condense"))))
    assert answer.strategy == "condense"
    assert 0 < answer.coverage.tokens_read < answer.coverage.tokens_total / 4
    assert answer.coverage.tokens_read + answer.coverage.tokens_dropped == answer.coverage.tokens_total


def test_what_the_model_invents_never_gets_in(open_text: Callable[..., Document]) -> None:
    model = EchoModel(lambda prompt: "Paris had 99 cats.", n_ctx_train=4096)
    answer = answer_of(list(summarize([open_text(LONG)], model, Settings(), length="long")))
    assert "Paris" not in answer.text
    assert answer.warnings == ()


def test_a_cut_rewrite_is_not_taken_for_a_whole_one(book: Document) -> None:
    settings = Settings(max_tokens=3)
    answer = answer_of(list(summarize([book], EchoModel(last_line), settings)))
    for line in answer.text.splitlines():
        if line.startswith("- "):
            assert line.rpartition(" [")[0].endswith(".")


def test_the_focus_reaches_the_task(book: Document) -> None:
    seen: list[str] = []

    def reply(prompt: str) -> str:
        seen.append(prompt)
        return "x"

    list(summarize([book], EchoModel(reply), Settings(), focus="the mine"))
    assert any("the mine" in prompt for prompt in seen)


@pytest.mark.parametrize("length", ["tiny", "-3", "0", "1.5", ""])
def test_a_length_that_means_nothing_is_refused(length: str) -> None:
    with pytest.raises(UsageError, match="is not understood"):
        wanted_points(length)


def test_a_context_too_small_for_parts_names_what_is_enough(open_text: Callable[..., Document]) -> None:
    with pytest.raises(UsageError, match="too small to summarise in parts") as error:
        list(summarize([open_text(LONG)], EchoModel(last_line), Settings(ctx=512)))
    assert "--ctx" in error.value.hint
