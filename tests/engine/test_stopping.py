"""Text and stop strings do not depend on where bytes are cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.stopping import StopMatcher, TextStream, Utf8Stream

TEXTS = st.text(alphabet="abé世😀< |", max_size=40)
STOPS = st.lists(st.text(alphabet="abé世<", min_size=1, max_size=4), max_size=3)


def cut(data: bytes, cuts: Sequence[int]) -> list[bytes]:
    edges = sorted({0, len(data), *(min(c, len(data)) for c in cuts)})
    return [data[a:b] for a, b in pairwise(edges)]


def first_stop(text: str, stops: Sequence[str]) -> str:
    """The specification: cut at the stop string completed first, the longest of several."""
    for end in range(1, len(text) + 1):
        ending = [stop for stop in stops if text[:end].endswith(stop)]
        if ending:
            return text[: end - max(map(len, ending))]
    return text


@settings(deadline=None, max_examples=400)
@given(TEXTS, STOPS, st.lists(st.integers(0, 120), max_size=12))
def test_any_cut_gives_the_same_text(text: str, stops: list[str], cuts: list[int]) -> None:
    stream = TextStream(stops)
    out = "".join(map(stream.feed, cut(text.encode(), cuts))) + stream.finish()
    assert out == first_stop(text, stops)
    assert stream.stopped == any(stop in text for stop in stops)


@settings(deadline=None, max_examples=200)
@given(st.binary(max_size=30), st.lists(st.integers(0, 30), max_size=8))
def test_any_bytes_give_what_decoding_at_once_gives(data: bytes, cuts: list[int]) -> None:
    stream = Utf8Stream()
    assert "".join(map(stream.feed, cut(data, cuts))) + stream.finish() == data.decode("utf-8", "replace")


def test_a_split_character_waits_and_an_unfinished_one_is_marked_once() -> None:
    stream = TextStream()
    assert [stream.feed(bytes([byte])) for byte in "😀".encode()] == ["", "", "", "😀"]
    assert stream.feed("é".encode()[:1]) == ""
    assert (stream.finish(), stream.finish()) == ("\ufffd", "")


def test_only_what_may_become_a_stop_string_is_held() -> None:
    matcher = StopMatcher(["\nUser:", "###"])
    assert matcher.feed("yes\nUs") == "yes"
    assert matcher.feed("ing #") == "\nUsing "
    assert matcher.feed("#") == ""
    assert matcher.finish() == "##"


def test_nothing_follows_a_stop() -> None:
    stream = TextStream(["END"])
    assert stream.feed(b"a EN") == "a "
    assert stream.feed(b"D more") == ""
    assert (stream.feed(b"more"), stream.finish(), stream.stopped) == ("", "", True)


def test_an_empty_stop_string_means_nothing() -> None:
    stream = TextStream([""])
    assert stream.feed(b"abc") == "abc"
    assert not stream.stopped
