"""A folder imports only those above it; the rules of docs/architecture.md, read off the syntax trees."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import localctx
import localctx.cli

ORDER = [
    "document",
    "blocks",
    "engine",
    "store",
    "index",
    "selection",
    "alignment",
    "assemble",
    "session",
    "forecast",
    "registry",
]
LEAVES = {
    "api",
    "api_chat",
    "api_events",
    "batch",
    "bench",
    "cli",
    "doctor",
    "eval",
    "from_settings",
    "serve",
    "verify",
}
SHARED = {
    "",
    "_native",
    "batches",
    "byte_sizes",
    "end_signals",
    "errors",
    "given_files",
    "kv",
    "kv_settings",
    "kv_taps",
    "kv_together",
    "kv_values",
    "lazy",
    "names",
    "package_version",
    "private_files",
    "settings",
    "small_text",
    "values",
}
KNOWN = {*ORDER, *LEAVES, *SHARED}
NEVER = {
    ("store", "engine"),
    ("engine", "store"),
    ("blocks", "document"),
    ("engine", "document"),
    ("engine", "blocks"),
}
PACKAGE = Path(localctx.__file__).parent
CLI = Path(localctx.cli.__file__).parent


def modules() -> list[tuple[str, Path]]:
    """(folder or module name under localctx, file) of every source file."""
    files = [(path.relative_to(PACKAGE), path) for path in PACKAGE.rglob("*.py")]
    found = [(name.parts[0].removesuffix(".py"), path) for name, path in files if name.parts[0] != "cli"]
    return found + [("cli", path) for path in CLI.rglob("*.py")]


def imported(path: Path) -> Iterator[str]:
    """Names of the modules that a file imports, wherever in the file."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def may_import(here: str, there: str) -> bool:
    """Whether a file of folder `here` may import from folder `there`."""
    if there in SHARED or here == there or here in LEAVES or here in ("__init__",):
        return (here, there) not in NEVER
    if here in SHARED or there in LEAVES or here not in ORDER or there not in ORDER:
        return False
    return ORDER.index(there) < ORDER.index(here) and (here, there) not in NEVER


def violations() -> list[str]:
    """Every import that breaks the order."""
    found = []
    for here, path in modules():
        for name in imported(path):
            parts = name.split(".")
            if parts[0] == "localctx":
                there = parts[1] if len(parts) > 1 else ""
                if there not in localctx.__all__ and not (there in KNOWN and may_import(here, there)):
                    found.append(f"{path.name} ({here}) imports {name}")
    return found


def test_a_folder_imports_only_those_above_it() -> None:
    assert violations() == []


def test_only_one_module_imports_llama_cpp() -> None:
    users = [
        path.name for _, path in modules() if any(n.split(".")[0] == "llama_cpp" for n in imported(path))
    ]
    assert users == ["llama.py"]


def test_only_the_renderers_import_rich() -> None:
    users = {path.name for _, path in modules() if any(n.split(".")[0] == "rich" for n in imported(path))}
    assert users == {"markdown.py", "render.py"}


def test_every_folder_and_module_has_its_place_in_the_order() -> None:
    folders = {path.name for path in PACKAGE.iterdir() if (path / "__init__.py").is_file()}
    assert folders <= {*ORDER, *LEAVES}
    alone = {path.stem for path in PACKAGE.glob("*.py*") if path.stem != "__init__"}
    assert alone <= {*SHARED, *LEAVES}


@pytest.mark.parametrize(
    ("here", "there", "allowed"),
    [
        ("document", "blocks", False),
        ("session", "document", True),
        ("engine", "document", False),
        ("cli", "api", True),
    ],
)
def test_the_rule_itself(here: str, there: str, allowed: bool) -> None:
    assert may_import(here, there) is allowed
