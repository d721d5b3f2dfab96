"""Bytes of tokens to complete UTF-8 text, ended by stop strings. Knows no tokens and no model.

The text does not depend on how the bytes were cut: a character split over pieces waits for its end, and a
text's longest tail that may still become a stop string is held back.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence

__all__ = ["StopMatcher", "TextStream", "Utf8Stream", "held_back"]


def held_back(text: str, markers: Sequence[str]) -> int:
    """Characters at the end of `text` that begin one of the markers without completing it."""
    longest = max((len(marker) for marker in markers), default=0) - 1
    for n in range(min(longest, len(text)), 0, -1):
        tail = text[-n:]
        if any(len(marker) > n and marker.startswith(tail) for marker in markers):
            return n
    return 0


class Utf8Stream:
    """Bytes in, complete characters out; what never was UTF-8 becomes U+FFFD, an open character waits."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, data: bytes) -> str:
        """The characters that these bytes complete."""
        return self._decoder.decode(data)

    def finish(self) -> str:
        """End of the bytes: a character left open becomes U+FFFD."""
        return self._decoder.decode(b"", True)


class StopMatcher:
    """Text up to, and without, the stop string that is completed first; of several, the longest."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._stop = tuple(marker for marker in stop if marker)
        self._pending = ""
        self.stopped = False

    def feed(self, text: str) -> str:
        """The text that is certain to come before any stop string; nothing once stopped."""
        if self.stopped:
            return ""
        text = self._pending + text
        found = [(at + len(marker), at) for marker in self._stop if (at := text.find(marker)) >= 0]
        if found:
            self.stopped = True
            self._pending = ""
            return text[: min(found)[1]]
        n_held = held_back(text, self._stop)
        self._pending = text[len(text) - n_held :]
        return text[: len(text) - n_held]

    def finish(self) -> str:
        """End of the text: what was held back."""
        pending, self._pending = self._pending, ""
        return pending


class TextStream:
    """The bytes of one answer's tokens to its text: Utf8Stream, then StopMatcher."""

    def __init__(self, stop: Sequence[str] = ()) -> None:
        self._utf8 = Utf8Stream()
        self._matcher = StopMatcher(stop)

    @property
    def stopped(self) -> bool:
        """Whether a stop string was met; all later bytes are ignored."""
        return self._matcher.stopped

    def feed(self, data: bytes) -> str:
        """Complete text that these bytes add."""
        return self._matcher.feed(self._utf8.feed(data))

    def finish(self) -> str:
        """End of the answer: an open character (as U+FFFD) and what was held back."""
        return self._matcher.feed(self._utf8.finish()) + self._matcher.finish()
