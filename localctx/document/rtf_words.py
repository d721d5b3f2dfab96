"""What words of RTF stand for: characters, code pages, what is passed over. Knows no state."""

from __future__ import annotations

import codecs

__all__ = [
    "BREAKS",
    "CHARSETS",
    "DOUBLE_BYTE",
    "READ_DESPITE_STAR",
    "SKIPPED",
    "SYMBOLS",
    "known_codec",
    "outline_level",
]

CHARSETS = {
    77: "mac_roman", 128: "cp932", 129: "cp949", 130: "johab", 134: "gbk", 136: "cp950", 161: "cp1253",
    162: "cp1254", 163: "cp1258", 177: "cp1255", 178: "cp1256", 186: "cp1257", 204: "cp1251", 222: "cp874",
    238: "cp1250", 254: "cp437", 255: "cp850",
}  # fmt: skip
DOUBLE_BYTE = frozenset({"cp932", "cp936", "cp949", "cp950", "gbk", "cp1361", "johab"})
SYMBOLS = {
    "tab": "\t", "line": "\n", "lbr": "\n", "emdash": "—", "endash": "–", "emspace": "\u2003",
    "enspace": "\u2002", "qmspace": "\u2005", "bullet": "•", "lquote": "‘", "rquote": "’", "ldblquote": "“",
    "rdblquote": "”", "~": "\u00a0", "_": "-", "\\\\": "\\", "\\{": "{", "\\}": "}",
}  # fmt: skip
SKIPPED = frozenset(
    {
        *("annotation", "atnauthor", "atnid", "atrfend", "atrfstart", "background", "bkmkend"),
        *("bkmkstart", "colortbl", "colorschememapping", "datafield", "datastore", "falt", "fldinst"),
        *("fontemb", "footer", "footerf", "footerl", "footerr", "ftncn", "ftnsep", "ftnsepc"),
        *("aftncn", "aftnsep", "aftnsepc", "filetbl", "generator", "header", "headerf", "headerl"),
        *("headerr", "info", "latentstyles", "listoverridetable", "listtable", "mmathPr"),
        *("nonshppict", "objdata", "objclass", "panose", "pict", "pgptbl", "picprop", "private"),
        *("revtbl", "rsidtbl", "rxe", "sp", "template", "tc", "tcn", "themedata", "userprops"),
        *("wgrffmtfilter", "xe", "xmlnstbl"),
    }
)
READ_DESPITE_STAR = frozenset({"shpinst", "shptxt", "footnote", "listtext", "pntext"})
BREAKS = frozenset({"par", "page", "sect", "column", "\n", "\r"})


def outline_level(number: int | None) -> int | None:
    """Level 1-9 from the file's 0-8; 9 means body text."""
    return number + 1 if number is not None and 0 <= number < 9 else None


def known_codec(name: str) -> str | None:
    """The codec's name, if Python has it."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        return None
