"""The scripts under docs/examples run as their first lines say, in an empty folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
OLD = """# Lease

## Term

The lease runs for three years from 1 May 2025.

## Rent

The monthly rent is 1,250 euros, due on the third working day.

## Pets

Pets are not allowed in the house.
"""
NEW = """# Lease

## Term

The lease runs for three years from 1 May 2025.

## Rent

The monthly rent is 1,300 euros, due on the third working day.

## Garden

The tenant looks after the garden.
"""

pytestmark = [pytest.mark.model, pytest.mark.slow]


@pytest.fixture
def environ(smollm2_path: Path, tmp_path: Path) -> dict[str, str]:
    """An empty home with the embedded model and the program in reach."""
    (tmp_path / "old.md").write_text(OLD)
    (tmp_path / "new.md").write_text(NEW)
    program = tmp_path / "bin" / "localctx"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nfrom localctx.cli.entry import run\nrun()\n")
    program.chmod(0o755)
    home = str(tmp_path / "home")
    return {
        **os.environ,
        "LOCALCTX_MODELS_DIR": str(smollm2_path.parent),
        "PATH": f"{program.parent}:{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": home,
        "XDG_CACHE_HOME": home,
        "XDG_CONFIG_HOME": home,
    }


def run(environ: dict[str, str], folder: Path, *words: str, text: str = "") -> str:
    """The script's output."""
    done = subprocess.run(
        words, env=environ, cwd=folder, input=text, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_batch_qa_answers_all_and_goes_on_where_it_was(environ: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "questions.txt").write_text("How long does the lease run?\n\nWhat is the monthly rent?\n")
    out = tmp_path / "answers.jsonl"
    script, documents = str(EXAMPLES / "batch_qa.py"), ["old.md", "gone.md", "new.md"]
    words = [sys.executable, script, "questions.txt", *documents, "-o", str(out)]
    run(environ, tmp_path, *words)
    lines = out.read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [(row["document"], "error" in row) for row in rows] == [
        ("old.md", False), ("old.md", False), ("gone.md", True), ("new.md", False), ("new.md", False),
    ]  # fmt: skip
    assert "three years" in rows[0]["answer"]
    assert ("1,250" in rows[1]["answer"], "1,300" in rows[4]["answer"]) == (True, True)
    assert "no such file" in rows[2]["error"]
    out.write_text("".join(f"{line}\n" for line in lines[:-1]) + lines[-1][:20])
    run(environ, tmp_path, *words)
    again = [json.loads(line) for line in out.read_text().splitlines()]
    assert again[:4] == rows[:4]
    assert [(row["document"], row["question"]) for row in again[4:]] == [
        ("gone.md", None),
        ("new.md", "What is the monthly rent?"),
    ]


def test_compare_contracts_says_what_changed(environ: dict[str, str], tmp_path: Path) -> None:
    script = str(EXAMPLES / "compare_contracts.py")
    said = run(
        environ, tmp_path, sys.executable, script, "old.md", "new.md", "-q", "What is the monthly rent?"
    )
    assert said.splitlines()[:4] == [
        "number   Lease › Rent",
        "  1,250 euros → 1,300 euros",
        "added    Lease › Garden",
        "removed  Lease › Pets",
    ]
    old, new = said.splitlines()[-2:]
    assert ("1,250" in old, "1,300" in new) == (True, True)


def test_pipe_passes_the_answer_on(environ: dict[str, str], tmp_path: Path) -> None:
    said = run(environ, tmp_path, "sh", str(EXAMPLES / "pipe.sh"), "How long does the lease run?", text=OLD)
    answer, support, quote, count = said.splitlines()
    assert "three years" in answer
    assert support == "support: supported"
    assert quote == "quote: The lease runs for three years from 1 May 2025."
    assert count == "lines of text: 7"


def test_records_to_csv_reads_tables_and_prose(environ: dict[str, str], tmp_path: Path) -> None:
    schema = {
        "properties": {"name": {"type": "string"}, "amount": {"type": "integer", "description": "euros"}},
        "required": ["name", "amount"],
    }
    (tmp_path / "schema.json").write_text(json.dumps(schema))
    (tmp_path / "gifts.csv").write_text("name,amount,note\nAnna Feld,1200,\nBert Lee,75,late\n")
    (tmp_path / "gifts.txt").write_text(
        "It rained. Carla Ortiz gave 340 euros to the fund. The sun came out.\n"
    )
    script = str(EXAMPLES / "records_to_csv.py")
    said = run(environ, tmp_path, sys.executable, script, "schema.json", "gifts.csv", "gifts.txt")
    assert said.splitlines() == [
        "name,amount,source,page,quote",
        'Anna Feld,1200,gifts.csv,,"Anna Feld,1200,"',
        'Bert Lee,75,gifts.csv,,"Bert Lee,75,late"',
        "Carla Ortiz,340,gifts.txt,,Carla Ortiz gave 340 euros to the fund.",
    ]
