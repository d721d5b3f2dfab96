"""Beginning of a text → whether it is a message or a mailbox. Knows neither bodies nor encodings.

Notes may begin as mail does (`From Monday on`, `Received: from the bank`), and would lose what a reader of
mail does not show. So names count that mail has, and lines as mail programs write them.
"""

from __future__ import annotations

import re
from itertools import islice

__all__ = ["MAILS", "begins_header", "is_envelope", "mail_name"]

MAILS = frozenset({"eml", "mbox"})
"""Names of formats and extensions."""
KNOWN = frozenset(
    {
        *("bcc", "cc", "content-disposition", "content-transfer-encoding", "content-type", "date"),
        *("delivered-to", "dkim-signature", "from", "in-reply-to", "list-id", "message-id", "mime-version"),
        *("received", "references", "reply-to", "return-path", "sender", "subject", "to", "user-agent"),
        *("x-gmail-labels", "x-mailer", "x-mozilla-status", "x-received", "x-status"),
    }
)
HEADER = re.compile(r"([!-9;-~]{1,100}):")
WRITTEN_BY_PROGRAMS = re.compile(
    r"(Return-Path: ?\S*[<@]|Received: ?(from .*? )?by .*;|Delivered-To: ?\S+@|MIME-Version: ?\d|"
    r"DKIM-Signature: ?\w+=|ARC-[\w-]+: ?\w+=)",
    re.I,
)
FOLD = re.compile(r"\r?\n[ \t]+")
DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
TIME = r"\d{1,2}:\d\d(?::\d\d)?"
ZONE = r"(?: +[A-Z+-][\w+-]{0,9})"
ENVELOPE = re.compile(
    rf"From [^\n]*?\b(?:{DAY} +{MONTH} +\d{{1,2}} +{TIME}{ZONE}{{0,2}} +\d{{4}}{ZONE}?|"
    rf"{DAY}, +\d{{1,2}} +{MONTH} +\d{{4}} +{TIME}{ZONE}?)\s*$"
)
ADDRESSED = re.compile(r"From \S+@\S+ [^\n]*\d{4}")
LONGEST = 1000
"""Characters of a line that are looked at."""


def is_envelope(line: str) -> bool:
    """Whether a line stands before a message of a mailbox: `From`, a sender, day, time and year."""
    return line.startswith("From ") and len(line) <= LONGEST and ENVELOPE.match(line) is not None


def begins_header(line: str) -> bool:
    """Whether a line may be the first of a message's header."""
    return HEADER.match(line) is not None


def mail_name(text: str, extension: str) -> str | None:
    """`eml` or `mbox` of a text, by how it begins; None where it is neither."""
    is_named = extension in MAILS
    if text.startswith("From "):
        first, _, rest = text.partition("\n")
        n_known = n_known_headers(rest)
        if is_envelope(first):
            enough = begins_header(rest) if is_named else n_known >= 1
        else:
            enough = (
                n_known >= 1 if is_named else n_known >= 2 and ADDRESSED.match(first[:LONGEST]) is not None
            )
        return "mbox" if enough else None
    n_known = n_known_headers(text)
    enough = (
        n_known >= 1
        if is_named
        else n_known >= 2 and WRITTEN_BY_PROGRAMS.match(FOLD.sub(" ", text[:LONGEST])) is not None
    )
    return "eml" if enough else None


def n_known_headers(text: str) -> int:
    """How many different names that mail has stand in the header with which a text begins."""
    found = set()
    for line in islice(text.split("\n"), 1000):
        if line[:1] in (" ", "\t") and line.strip():
            continue
        header = HEADER.match(line)
        if header is None:
            break
        found.add(header[1].lower())
    return len(found & KNOWN)
