"""The C function that llama.cpp's log goes to while nobody listens."""

from __future__ import annotations

import ctypes

import pytest

from localctx._native import ignore_log_address

CALLBACK = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


def test_it_takes_any_line_and_prints_nothing(capfd: pytest.CaptureFixture[str]) -> None:
    callback = CALLBACK(ignore_log_address)
    for text in (b"loaded\n", b"", None):
        callback(2, text, None)
    assert capfd.readouterr() == ("", "")
