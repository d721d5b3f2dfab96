"""Bytes of one message → its tree, under caps on parts, nesting, lines and headers. Knows no text.

The parser's time and memory grow with parts and with lines times nesting: few bytes may cost much.
"""

from __future__ import annotations

import email.parser
import email.policy
from email.message import Message

from localctx.document.mail_headers import MAX_CHARACTERS
from localctx.errors import LimitExceeded

__all__ = ["parsed"]

MAX_PARTS = 10_000
MAX_NESTED = 32
"""Parts inside parts: eight messages inside messages, each of three levels, are fewer."""
MAX_LINES = 1_000_000
"""A message of 64 MiB in lines of base64 has fewer."""
MAX_COMPARED = 10_000_000
"""Lines times nesting: each line is compared with the boundary of each part around it."""


def parsed(data: bytes) -> Message:
    """The message. Raises LimitExceeded."""
    n_lines = data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")
    if n_lines > MAX_LINES:
        raise LimitExceeded(f"a message has more than {MAX_LINES:,} lines")
    n_parts = 0

    def part(policy: email.policy.Policy = email.policy.compat32) -> Message:
        nonlocal n_parts
        n_parts += 1
        if n_parts > MAX_PARTS:
            raise LimitExceeded(f"a message has more than {MAX_PARTS:,} parts")
        made = Part(policy)
        made.max_above = min(MAX_NESTED, MAX_COMPARED // max(1, n_lines))
        return made

    return email.parser.BytesParser(part, policy=email.policy.compat32).parsebytes(data)


class Part(Message):
    """A part that knows how deep it lies."""

    n_above, max_above = 0, 0

    def attach(self, payload: Message) -> None:  # type: ignore[override]  # the parser attaches parts only
        """Put a part inside this one. Raises LimitExceeded."""
        if isinstance(payload, Part):
            payload.n_above = self.n_above + 1
            if payload.n_above > self.max_above:
                raise LimitExceeded(f"a message has parts nested more than {self.max_above} deep")
        super().attach(payload)

    def set_raw(self, name: str, value: str) -> None:
        """Keep a header, of one without end its beginning: looking for its parameters takes its square."""
        super().set_raw(name, value[: MAX_CHARACTERS + 1])
