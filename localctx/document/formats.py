"""The formats that can be read: names, labels, file extensions, and the module that converts each."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import cast

from localctx.document.events import Converter

__all__ = ["CODE_LANGUAGES", "FORMATS", "Format", "format_for_extension"]


@dataclass(frozen=True, slots=True)
class Format:
    """A readable format. is_text: plain text by nature, so that UTF-8 files are used where they lie."""

    name: str
    label: str
    extensions: tuple[str, ...]
    is_text: bool = False
    has_pages: bool = False

    def converter(self) -> Converter:
        """The `convert` function of the format's module, imported now."""
        module = importlib.import_module(f"localctx.document.{_MODULES.get(self.name, self.name)}")
        return cast(Converter, module.convert)


CODE_LANGUAGES: dict[str, str] = {
    "asm": "assembly", "awk": "awk", "bash": "shell", "bat": "batch", "c": "c", "cc": "c++", "clj": "clojure",
    "cmake": "cmake", "cpp": "c++", "cs": "c#", "css": "css", "cu": "cuda", "cxx": "c++", "dart": "dart",
    "ex": "elixir", "exs": "elixir", "erl": "erlang", "f90": "fortran", "fs": "f#", "go": "go",
    "gradle": "gradle", "groovy": "groovy", "h": "c", "hh": "c++", "hpp": "c++", "hs": "haskell",
    "java": "java", "jl": "julia", "js": "javascript", "jsx": "javascript", "kt": "kotlin", "lisp": "lisp",
    "lua": "lua", "m": "objective-c", "mjs": "javascript", "ml": "ocaml", "nim": "nim", "nix": "nix",
    "pas": "pascal", "php": "php", "pl": "perl", "pm": "perl", "proto": "protobuf", "ps1": "powershell",
    "py": "python", "pyi": "python", "pyx": "cython", "r": "r", "rb": "ruby", "rs": "rust", "scala": "scala",
    "scm": "scheme", "scss": "scss", "sh": "shell", "sql": "sql", "svelte": "svelte", "swift": "swift",
    "tcl": "tcl", "tf": "terraform", "ts": "typescript", "tsx": "typescript", "v": "verilog", "vb": "basic",
    "vhd": "vhdl", "vue": "vue", "zig": "zig", "zsh": "shell",
}  # fmt: skip
"""File extension → language label of source code."""

FORMATS: dict[str, Format] = {
    row.name: row
    for row in (
        Format("text", "plain text", ("txt", "text", "log", "rst", "tex", "org", "adoc"), is_text=True),
        Format("markdown", "Markdown", ("md", "markdown", "mdown", "mkd"), is_text=True),
        Format("code", "source code", tuple(CODE_LANGUAGES), is_text=True),
        Format("csv", "CSV table", ("csv", "tsv", "tab"), is_text=True),
        Format("json", "JSON", ("json", "geojson", "ipynb"), is_text=True),
        Format("jsonl", "JSON Lines", ("jsonl", "ndjson"), is_text=True),
        Format("html", "HTML", ("html", "htm", "xhtml", "xht")),
        Format("xml", "XML", ("xml", "rss", "atom", "svg", "dita", "docbook", "tei", "jats", "nxml")),
        Format("pdf", "PDF", ("pdf",), has_pages=True),
        Format("docx", "Word document", ("docx", "docm", "dotx")),
        Format("pptx", "PowerPoint presentation", ("pptx", "pptm", "ppsx"), has_pages=True),
        Format("xlsx", "Excel workbook", ("xlsx", "xlsm", "xltx")),
        Format("epub", "EPUB book", ("epub",)),
        Format("image", "scanned image", ("png", "jpg", "jpeg", "tif", "tiff"), has_pages=True),
        Format("rtf", "RTF document", ("rtf",)),
        Format("eml", "e-mail message", ("eml",)),
        Format("mbox", "mailbox", ("mbox",)),
    )
}
"""Name → format."""

_MODULES = {"code": "text", "csv": "text", "eml": "mail", "jsonl": "json", "mbox": "mail", "pdf": "from_pdf"}
_BY_EXTENSION = {extension: row for row in FORMATS.values() for extension in row.extensions}


def format_for_extension(extension: str) -> Format | None:
    """The format that a lower-case extension without its dot stands for, if any."""
    return _BY_EXTENSION.get(extension)
