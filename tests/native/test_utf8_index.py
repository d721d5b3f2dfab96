"""The byte <-> code-point index agrees with Python's own decoder, whatever the pieces."""

from __future__ import annotations

import importlib.metadata
import mmap
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx import _native
from localctx._native import Utf8Index, utf8_advance


def fed(data: bytes, piece: int = 1 << 20, step: int = 4096) -> Utf8Index:
    index = Utf8Index(step)
    for at in range(0, len(data), piece):
        index.feed(data[at : at + piece])
    return index


@settings(deadline=None, max_examples=300)
@given(st.binary(max_size=60) | st.text(max_size=40).map(lambda text: text.encode()), st.integers(1, 9))
def test_validity_and_first_error_are_those_of_the_strict_decoder(data: bytes, piece: int) -> None:
    index = fed(data, piece)
    valid = index.finish()
    try:
        text = data.decode("utf-8", errors="strict")
    except UnicodeDecodeError as error:
        assert not valid
        assert index.error_offset == error.start
        assert index.n_bytes == error.start
        assert index.n_code_points == len(data[: error.start].decode())
    else:
        assert valid
        assert index.error_offset is None
        assert (index.n_bytes, index.n_code_points) == (len(data), len(text))
        assert index.n_nul == text.count("\0")


@settings(deadline=None, max_examples=100)
@given(st.text(max_size=300), st.integers(1, 40), st.integers(4, 40))
def test_checkpoints_are_boundaries_close_before_what_is_asked(text: str, piece: int, step: int) -> None:
    data = text.encode()
    index = fed(data, piece, step)
    assert index.finish()
    for code_point in range(len(text) + 1):
        byte, at = index.checkpoint_for_code_point(code_point)
        assert at <= code_point
        assert data[:byte].decode() == text[:at]
        wanted = len(text[:code_point].encode())
        assert wanted - byte < step + 4
        assert byte + utf8_advance(data[byte:], code_point - at) == wanted
    for outside in (-1, len(text) + 1):
        with pytest.raises(IndexError):
            index.checkpoint_for_code_point(outside)


def test_a_character_may_straddle_two_pieces() -> None:
    data = "日本語😀é".encode()
    index = Utf8Index()
    for cut in range(len(data)):
        assert index.feed(data[cut : cut + 1])
    assert index.n_code_points == 5
    index.feed(data[:2])
    assert index.n_code_points == 5
    assert not index.finish()
    assert index.error_offset == len(data)


def test_reads_a_memory_mapped_file(tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("Préfecture de l'Hérault\n" * 1000, encoding="utf-8")
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as view:
        index = Utf8Index()
        assert index.feed(view)
        assert index.n_code_points == 24_000
        assert utf8_advance(view, 24) == len("Préfecture de l'Hérault\n".encode())


def test_refuses_what_has_no_bytes_and_steps_too_small() -> None:
    with pytest.raises(TypeError):
        Utf8Index().feed("text")  # type: ignore[arg-type]  # the refusal is what is tested
    with pytest.raises(ValueError, match="step"):
        Utf8Index(3)
    with pytest.raises(ValueError, match="negative"):
        utf8_advance(b"abc", -1)


def test_one_thread_reads_while_another_feeds() -> None:
    data = b"a" * 50_000_000
    index = Utf8Index()
    ticks: list[int] = []
    started = threading.Event()
    done = threading.Event()

    def tick() -> None:
        while not done.is_set():
            ticks.append(index.n_bytes)
            started.set()

    thread = threading.Thread(target=tick)
    thread.start()
    started.wait()
    for n_pieces in range(1, 5):
        assert index.feed(data)
        while thread.is_alive() and ticks[-1] < n_pieces * len(data):
            time.sleep(0.001)
    done.set()
    thread.join()
    assert index.n_bytes == 200_000_000
    assert ticks == sorted(ticks)
    assert set(ticks) >= {len(data) * n for n in range(1, 5)}  # after each piece it was read


def test_version_is_the_distribution_s() -> None:
    assert _native.__version__ == importlib.metadata.version("localctx")
