"""The encoder beside the decoder: order, waiting, and failures that come out where someone looks."""

from __future__ import annotations

import threading
from array import array
from typing import cast

import pytest

from localctx import _native
from localctx.kv import KVChunk, KVSpace, PrefillPolicy
from localctx.session.encoding import Encoder, Encoding
from localctx.session.token_stream import TokenStream

STREAM = TokenStream(array("i", range(1000)), KVSpace("m", "r", ()), PrefillPolicy("window", 256))


def chunk(first: int, n_tokens: int) -> KVChunk:
    return KVChunk(first, n_tokens, cast(_native.State, first), cast(_native.Rope, None))


@pytest.fixture(autouse=True)
def encode(monkeypatch: pytest.MonkeyPatch) -> None:
    """Encoding that only says which rows of which state it was given."""

    def fake(state: int, first: int, n_tokens: int, *_: object, **__: object) -> bytes:
        return f"{state + first}+{n_tokens}".encode()

    monkeypatch.setattr(_native, "encode", fake)


def test_every_run_is_handed_on_once_in_order() -> None:
    kept: list[tuple[int, bytes]] = []
    with Encoder(STREAM, Encoding("int4"), lambda number, data: kept.append((number, data))) as encoder:
        for first in range(0, 1000, 384):
            encoder.on_chunk(chunk(first, min(384, 1000 - first)))
    assert kept == [
        (number, f"{first}+{end - first}".encode()) for number, (first, end) in enumerate(STREAM.spans)
    ]
    assert kept[-1][1] == b"896+104"


def test_computing_waits_for_a_slow_writer() -> None:
    gate = threading.Event()
    taken: list[int] = []

    def slow(number: int, data: bytes) -> None:
        gate.wait(10)

    def feed(encoder: Encoder) -> None:
        for first in range(0, 896, 128):
            encoder.on_chunk(chunk(first, 128))
            taken.append(first)

    with Encoder(STREAM, Encoding("int4"), slow) as encoder:
        feeding = threading.Thread(target=feed, args=[encoder])
        feeding.start()
        feeding.join(0.3)
        assert len(taken) <= 4
        gate.set()
        feeding.join(10)
    assert len(taken) == 7


@pytest.mark.parametrize("n_chunks", [1, 7])
def test_a_failure_of_the_writer_comes_out(n_chunks: int) -> None:
    def full(number: int, data: bytes) -> None:
        raise OSError("disk full")

    def feed() -> None:
        with Encoder(STREAM, Encoding("int4"), full) as encoder:
            for first in range(0, n_chunks * 128, 128):
                encoder.on_chunk(chunk(first, 128))

    with pytest.raises(OSError, match="disk full"):
        feed()
    assert not any(thread.name == "localctx-encoder" for thread in threading.enumerate())


def test_an_error_of_the_decoder_is_not_hidden_by_the_writers() -> None:
    def full(number: int, data: bytes) -> None:
        raise OSError("disk full")

    def feed() -> None:
        with Encoder(STREAM, Encoding("int4"), full) as encoder:
            encoder.on_chunk(chunk(0, 128))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        feed()


def test_a_run_is_waited_for_until_it_was_handed_on_or_nothing_comes_any_more() -> None:
    gate, kept = threading.Event(), list[int]()

    def slow(number: int, data: bytes) -> None:
        gate.wait(10)
        if number == 2:
            raise OSError("disk full")
        kept.append(number)

    with pytest.raises(OSError, match="disk full"), Encoder(STREAM, Encoding("int4"), slow) as encoder:
        encoder.on_chunk(chunk(0, 256))
        threading.Timer(0.1, gate.set).start()
        encoder.wait_for(1)
        assert kept == [0, 1]
        encoder.on_chunk(chunk(256, 256))
        with pytest.raises(OSError, match="disk full"):
            encoder.wait_for(3)
        with pytest.raises(OSError, match="disk full"):
            encoder.on_chunk(chunk(512, 128))
        encoder.wait_for(2)  # it came out above, and still nobody may wait for ever
