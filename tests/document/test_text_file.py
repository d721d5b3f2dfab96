"""Code-point addressing of UTF-8 at rest, across windows, and what happens when the file changes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document import open_document, text_file
from localctx.document.text_file import TextFile, TextScan
from localctx.errors import InputError

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=300)


def text_at_rest(path: Path, text: str) -> TextFile:
    path.write_bytes(text.encode("utf-8"))
    file = path.open("rb")
    return TextFile(file, TextScan(file), "x")


@settings(deadline=None, max_examples=60)
@given(TEXTS, st.integers(0, 320), st.integers(0, 320))
def test_read_and_stream_are_slices_of_the_text(
    tmp_path_factory: pytest.TempPathFactory, text: str, start: int, end: int
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_file, "STREAM_BYTES", 7)
        at_rest = text_at_rest(tmp_path_factory.mktemp("t") / "x", text)
        assert at_rest.n_code_points == len(text)
        assert at_rest.read(start, end) == text[start:end]
        assert "".join(at_rest.stream(start, end)) == text[start:end]
        at_rest.close()


def test_reads_cross_windows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(text_file, "WINDOW_BYTES", 1 << 16)
    text = "".join(f"{n:06} Prüfung 日本 😀\n" for n in range(20_000))
    at_rest = text_at_rest(tmp_path / "x", text)
    for start, end in ((0, 10), (65_530 // 2, 65_600), (100, 300_000), (len(text) - 5, len(text) + 5)):
        assert at_rest.read(start, end) == text[start:end]
    assert "".join(at_rest.stream()) == text
    assert len(at_rest._windows) <= text_file.OPEN_WINDOWS
    at_rest.close()


@pytest.mark.parametrize("change", ["shrink", "grow", "touch"])
def test_a_changed_file_is_an_error(tmp_path: Path, change: str) -> None:
    path = tmp_path / "x"
    at_rest = text_at_rest(path, "abc" * 10_000)
    assert at_rest.read(0, 3) == "abc"
    if change == "shrink":
        os.truncate(path, 5)
    elif change == "grow":
        with path.open("ab") as file:
            file.write(b"more")
    else:
        os.utime(path, ns=(1, 1))
    with pytest.raises(InputError, match="changed"):
        at_rest.read(20_000, 20_010)
    at_rest.close()


@pytest.mark.parametrize("name", ["x.txt", "x.md"])
def test_a_file_changed_while_it_is_scanned_is_an_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_text("a" * 600_000)
    os.utime(path, ns=(1, 1))

    def meddle(done: int, total: int) -> None:
        with path.open("r+b") as file:  # of the same size, behind what was read
            file.write(b"b")

    with pytest.raises(InputError, match="changed"):
        open_document(path, cache_dir=None, on_progress=meddle)
    with path.open("rb") as file:
        scan = TextScan(file)
        os.utime(path, ns=(2, 2))
        with pytest.raises(InputError, match="changed"):
            TextFile(file, scan, "x")


def test_a_closed_text_cannot_be_read(tmp_path: Path) -> None:
    at_rest = text_at_rest(tmp_path / "x", "abc")
    at_rest.close()
    with pytest.raises(ValueError, match="closed"):
        at_rest.read(0, 1)


@pytest.mark.parametrize("offset", [text_file.SCAN_BYTES - 1, text_file.SCAN_BYTES - 2, 5, 0])
def test_scan_finds_its_needle_over_the_edge_of_a_piece(tmp_path: Path, offset: int) -> None:
    data = bytearray(b"x" * (text_file.SCAN_BYTES + 100))
    data[offset : offset + 2] = b"\\u"
    path = tmp_path / "x"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert TextScan(file, b"\\u").found
    data[offset : offset + 2] = b"xx"
    path.write_bytes(data)
    with path.open("rb") as file:
        assert not TextScan(file, b"\\u").found
