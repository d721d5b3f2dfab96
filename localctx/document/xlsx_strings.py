"""The strings that the cells of a workbook share, on disk. Knows neither sheets nor styles."""

from __future__ import annotations

import re
from array import array

from localctx.document.markup import QuietHandler, local_name
from localctx.document.source import temporary_file
from localctx.errors import LimitExceeded

__all__ = ["CELL_CHARACTERS", "SharedStrings", "unescaped"]

ESCAPED = re.compile(r"_x([0-9A-Fa-f]{4})_")
CELL_CHARACTERS = 1 << 20
"""Of one cell's text; Excel stops at 32,767."""


class SharedStrings(QuietHandler):
    """Handler of sharedStrings.xml; the strings lie in an unlinked file, however many they are."""

    def __init__(self) -> None:
        self._file = temporary_file()
        self._ends = array("q", [0])
        self._pieces: list[str] = []
        self._n_held = 0
        self._is_text = False
        self._phonetic = 0

    def __enter__(self) -> SharedStrings:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __getitem__(self, number: int) -> str:
        """A string by its number; "" where there is none."""
        if not 0 <= number < len(self._ends) - 1:
            return ""
        start = self._ends[number]
        self._file.seek(start)
        return self._file.read(self._ends[number + 1] - start).decode("utf-8", "surrogatepass")

    def start(self, name: str, attributes: dict[str, str]) -> None:
        tag = local_name(name)
        self._phonetic += tag == "rPh"
        self._is_text = tag == "t" and not self._phonetic

    def data(self, text: str) -> None:
        if self._is_text:
            self._n_held += len(text)
            if self._n_held > CELL_CHARACTERS:
                raise LimitExceeded(f"a cell's text is longer than {CELL_CHARACTERS:,} characters")
            self._pieces.append(text)

    def end(self, name: str) -> None:
        tag = local_name(name)
        self._phonetic -= tag == "rPh"
        self._is_text = False
        if tag == "si":
            data = unescaped("".join(self._pieces)).encode("utf-8", "surrogatepass")
            self._file.write(data)
            self._ends.append(self._ends[-1] + len(data))
            self._pieces.clear()
            self._n_held = 0


def unescaped(text: str) -> str:
    """The text with `_x000D_` and its like as the characters they stand for."""
    return ESCAPED.sub(lambda found: chr(int(found[1], 16)), text) if "_x" in text else text
