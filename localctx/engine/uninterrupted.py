"""Waiting for another thread through any number of Ctrl-C. Knows no llama.cpp."""

from __future__ import annotations

import threading

__all__ = ["wait_whatever_comes"]


def wait_whatever_comes(event: threading.Event) -> KeyboardInterrupt | None:
    """Wait for it: what the other thread uses must not be freed under it. The last Ctrl-C that came, to be
    raised when that is safe.
    """
    interrupt = None
    while True:
        try:
            event.wait()
            return interrupt
        except KeyboardInterrupt as error:
            interrupt = error
