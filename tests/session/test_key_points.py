"""Sections of a model that words none: told in their key sentences, without it; over a real tiny model."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from session.conftest import of_kind
from session.test_kept_kv import chapters
from session.test_outlines import BOOK, Desk, n_points

from localctx.document import open_document
from localctx.kv_taps import Taps
from localctx.session.events import SectionDone
from localctx.session.sections import KEY_SECTION_TOKENS


@pytest.fixture
def desk(tmp_path: Path, tiny_model_path: Path) -> Desk:
    return Desk(tmp_path, tiny_model_path)


def test_sections_are_told_in_their_own_sentences_and_decode_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from localctx.engine.kv_context import LlamaKVContext

    def refused(self: LlamaKVContext, taps: Taps) -> None:
        raise AssertionError("nothing is to be decoded beside the prefill")

    monkeypatch.setattr(LlamaKVContext, "tapping", refused)
    file = desk.write(BOOK)
    done, events = desk.index(file)
    row = done.documents[0]
    told = of_kind(events, SectionDone)
    assert row.tokens_total // KEY_SECTION_TOKENS < len(told) <= row.tokens_total // (KEY_SECTION_TOKENS // 2)
    assert all(section.text in BOOK for section in told)
    assert row.tokens_stored == row.tokens_total
    answer, _ = desk.summarize(file)
    assert (answer.strategy, answer.tokens.evaluated, answer.tokens.generated) == ("stream", 0, 0)
    assert answer.coverage.tokens_dropped == 0
    assert {line[2:].rpartition(" [")[0] for line in answer.text.splitlines() if line.startswith("- ")} <= {
        section.text for section in told
    }


def test_merging_keeps_leaders_and_words_only_the_last(desk: Desk) -> None:
    """Levels above 20 sections: the model is asked for the last two points, not for those below."""
    file = desk.write(BOOK)
    desk.index(file)
    merged, _ = desk.summarize(file, length="8")
    assert n_points(merged) == 2
    assert 0 < merged.tokens.generated <= 2 * 8
    with open_document(file, cache_dir=None) as document:
        for citation in merged.citations:
            assert document.read(citation.start, citation.end) == citation.quote


def test_the_last_points_are_worded_where_headings_keep_more_than_are_wanted(desk: Desk) -> None:
    text = "\n\n".join(
        f"# Book {seed}\n\n" + re.sub(r"(?m)^# .*\n", "", chapters(8, seed)) for seed in (1, 2, 3)
    )
    file = desk.write(text)
    desk.index(file)
    merged, _ = desk.summarize(file, length="20")
    assert n_points(merged) == 3
    assert 0 < merged.tokens.generated <= 3 * 8


@pytest.mark.parametrize("n_words", [48, 96])
def test_a_number_of_words_is_filled_with_sentences_of_any_length(desk: Desk, n_words: int) -> None:
    """Those here have nine words; points that the model words are taken to have 24."""
    file = desk.write(re.sub(r"(?m)^# .*\n", "", BOOK))
    desk.index(file)
    answer, _ = desk.summarize(file, length=str(n_words))
    n_said = sum(len(point.quote.split()) for point in answer.citations)
    assert n_words - 9 <= n_said <= n_words + 9
    assert answer.coverage.tokens_dropped == 0


def test_they_serve_under_any_settings_of_the_kv(desk: Desk) -> None:
    file = desk.write(BOOK)
    desk.index(file, kv="window=256,codec=int8")
    for kv in ("", "window=1024", "codec=f16"):
        assert desk.summarize(file, kv=kv)[0].strategy == "stream", kv


def test_what_was_indexed_without_them_is_not_evaluated_again(desk: Desk) -> None:
    file = desk.write(BOOK)
    desk.index(file, summaries=False)
    answer, _ = desk.summarize(file, strategy="stream")
    assert (answer.strategy, answer.tokens.evaluated, answer.coverage.tokens_dropped) == ("stream", 0, 0)
    assert desk.summarize(file)[0].strategy == "stream"


@pytest.mark.parametrize("store", [None, "off"])
def test_what_nobody_indexed_is_prefilled(desk: Desk, store: str | None) -> None:
    file = desk.write(BOOK)
    settings = {} if store is None else {"store": store}
    answer, _ = desk.summarize(file, strategy="stream", **settings)
    assert answer.strategy == "stream"
    assert answer.tokens.evaluated >= answer.coverage.tokens_total == answer.coverage.tokens_read


def test_a_focus_chooses_other_sentences(desk: Desk) -> None:
    text = chapters(4) + "\n\n## Last\n\nThe lighthouse keeper painted every window green in the winter."
    file = desk.write(text)
    desk.index(file)
    plain, _ = desk.summarize(file, length="24")
    focused, _ = desk.summarize(file, length="24", focus="lighthouse keeper", strategy="stream")
    assert "lighthouse keeper" in focused.text
    assert focused.text != plain.text


def test_a_stop_keeps_the_sections_of_what_is_stored(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """A summary cut short says how far it got; the next run makes the rest."""
    from localctx.engine.kv_context import LlamaKVContext

    plain: Callable[..., int] = LlamaKVContext.stream

    def stopping(self: LlamaKVContext, *words: object, **more: object) -> int:
        tell = more.get("on_progress")

        def told(done: int, total: int) -> None:
            if done * 2 > total > KEY_SECTION_TOKENS:
                self.cancel()

        return plain(self, *words, **{**more, "on_progress": told if tell is not None else None})

    file = desk.write(BOOK)
    monkeypatch.setattr(LlamaKVContext, "stream", stopping)
    answer, _ = desk.summarize(file, strategy="stream")
    assert answer.finish_reason == "cancelled"
    assert 0 < answer.coverage.tokens_read < answer.coverage.tokens_total
    monkeypatch.undo()
    done, events = desk.index(file)
    assert not done.was_cancelled
    assert of_kind(events, SectionDone)
    assert desk.summarize(file)[0].coverage.tokens_dropped == 0
