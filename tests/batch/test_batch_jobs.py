"""Rows of a file of jobs: what is one, and what is said of what is none."""

from __future__ import annotations

import io
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.batch.jobs import MAX_LINE_BYTES, BadRow, Job, read_jobs
from localctx.errors import InputError

GOOD = b'{"id": "a", "documents": ["x.txt"], "question": "Why?"}'


def rows(data: bytes, *, has_documents: bool = False) -> list[Job | BadRow]:
    return list(read_jobs(io.BytesIO(data), has_documents=has_documents))


def test_a_job_keeps_its_line_and_all_that_it_says() -> None:
    more = b'"schema": {"type": "null"}, "max_tokens": 3'
    data = b'\n{"id": 7, "documents": "x.txt", "question": " Why? ", ' + more + b"}"
    assert rows(data) == [Job(2, 7, ("x.txt",), "Why?", '{"type":"null"}', 3)]


def test_mark_line_ends_and_blank_lines_make_no_difference() -> None:
    plain = rows(GOOD + b"\n" + GOOD + b"\n")
    for data in (
        b"\xef\xbb\xbf" + GOOD + b"\n" + GOOD,
        GOOD + b"\r\n" + GOOD + b"\r\n",
        GOOD + b"\n" + GOOD + b"\n\n  \n\r\n",
    ):
        assert rows(data) == plain
    assert [row.line for row in rows(b"\n\r\n" + GOOD)] == [3]


def test_with_a_folder_documents_may_be_left_out() -> None:
    assert rows(b'{"question": "Why?"}', has_documents=True) == [Job(1, None, (), "Why?")]
    assert isinstance(rows(b'{"question": "Why?"}')[0], BadRow)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"{", "not JSON: Expecting property name enclosed in double quotes (column 2)"),
        (b'{"id": "a", "quest', "not JSON: Unterminated string"),
        (b"[1, 2]", "an array, not an object with a question"),
        (b'"text"', "a text, not"),
        (b"null", "null, not"),
        (b"\0" * 10, "not JSON"),
        (b'{"question": "\xff"}', "not UTF-8 (byte 15"),
        (b'{"question": NaN}', "NaN is no number of JSON"),
        (b"[" * 100_000, "nested too deeply"),
        (b'{"question": ' + b"1" * 5000 + b"}", "not JSON"),
        (b'{"documents": ["a"]}', "there is no question"),
        (b'{"documents": ["a"], "question": "  "}', "question is not a text"),
        (b'{"documents": ["a"], "question": ["b"]}', "question is not a text"),
        (b'{"documents": ["a"], "question": "\\ud800"}', "surrogate"),
        (b'{"documents": ["\\ud800"], "question": "a"}', "surrogate"),
        (b'{"question": "b"}', "there are no documents"),
        (b'{"documents": [], "question": "b"}', "documents is not a list of file names"),
        (b'{"documents": [3], "question": "b"}', "documents is not a list of file names"),
        (b'{"documents": ["-"], "question": "b"}', "standard input"),
        (b'{"document": ["a"], "question": "b"}', "unknown key 'document'; did you mean 'documents'?"),
        (b'{"id": [1], "documents": ["a"], "question": "b"}', "id is neither"),
        (b'{"id": true, "documents": ["a"], "question": "b"}', "id is neither"),
        (b'{"documents": ["a"], "question": "b", "max_tokens": 0}', "max_tokens is not"),
        (b'{"documents": ["a"], "question": "b", "schema": {"type": "x"}}', 'schema at its top: type "x"'),
    ],
    ids=lambda value: str(value[:40]),
)
def test_a_bad_row_says_why_and_ends_nothing(data: bytes, reason: str) -> None:
    bad, good = rows(data + b"\n" + GOOD)
    assert isinstance(bad, BadRow)
    assert reason in bad.reason
    assert good == Job(2, "a", ("x.txt",), "Why?")


def test_the_id_of_a_bad_row_is_kept() -> None:
    assert rows(b'{"id": "a9", "question": 3}')[0].id == "a9"


def test_a_gigantic_line_is_passed_over_in_pieces() -> None:
    class Stream(io.BytesIO):
        largest = 0

        def readline(self, size: int | None = -1, /) -> bytes:
            data = super().readline(size)
            self.largest = max(self.largest, len(data))
            return data

    n_bytes = 5 * MAX_LINE_BYTES
    stream = Stream(GOOD + b"\n" + b"x" * n_bytes + b"\n" + GOOD)
    first, bad, last = read_jobs(stream)
    assert isinstance(bad, BadRow)
    assert f"{n_bytes + 1:,} bytes" in bad.reason
    assert (first.line, bad.line, last.line) == (1, 2, 3)
    assert stream.largest <= MAX_LINE_BYTES + 1


def test_utf_16_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="UTF-16"):
        rows(GOOD.decode().encode("utf-16"))


@settings(deadline=None, max_examples=300)
@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.just(GOOD),
            st.recursive(
                st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                lambda inner: (
                    st.lists(inner, max_size=3)
                    | st.dictionaries(st.sampled_from(["id", "documents", "question"]), inner)
                ),
            ).map(lambda value: json.dumps(value).encode()),
        )
    )
)
def test_every_line_that_is_not_blank_is_one_row(lines: list[bytes]) -> None:
    lines = [line.replace(b"\n", b"") for line in lines]
    if lines and lines[0][:2] in (b"\xff\xfe", b"\xfe\xff"):
        lines = lines[1:]
    found = rows(b"\n" + b"\n".join(lines))
    wanted = [number for number, line in enumerate(lines, 2) if line.strip(b" \t\r\n")]
    assert [row.line for row in found] == wanted
