"""`localctx --help` is quick because it imports next to nothing."""

from __future__ import annotations

import subprocess
import sys

HEAVY = (
    "llama_cpp", "torch", "sentence_transformers", "numpy", "rich.table", "rich.progress", "jinja2", "lxml",
    "pypdfium2", "chardet", "sqlite3", "huggingface_hub", "httpx2",
    "prompt_toolkit", "rich.markdown", "localctx.engine.llama",
    "localctx.document.document",
)  # fmt: skip


def test_help_imports_nothing_heavy() -> None:
    code = f"""
import sys
from localctx.cli.main import run
try:
    run(["--help"])
except SystemExit as done:
    assert done.code == 0, done.code
print("LOADED", [name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "summarize" in done.stdout
    assert "LOADED []" in done.stderr


def test_import_of_the_package_is_light() -> None:
    code = f"import sys, localctx; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
