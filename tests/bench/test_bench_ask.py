"""First tokens from a tiny model: what each way evaluated and restored adds up."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localctx.bench import ask
from localctx.bench.ask import STORED, WAYS, Asking, measure
from localctx.bench.ask_report import PARTS
from localctx.bench.ask_session import disk_bytes
from localctx.bench.inputs import BUILT_IN
from localctx.engine import EngineOptions, open_model
from localctx.engine.llama import LlamaModel
from localctx.errors import UsageError
from localctx.settings import Settings


@pytest.fixture
def model(tiny_model_path: Path) -> Iterator[LlamaModel]:
    with open_model(tiny_model_path, EngineOptions(n_threads=1)) as opened:
        yield opened


def silent(_: str) -> None:
    pass


def test_counts_add_up(model: LlamaModel, tmp_path: Path) -> None:
    settings = Settings(store=str(tmp_path), max_tokens=16)
    shown = measure(model, settings, None, 3000, Asking(n_made=2, n_repeats=2), silent).to_json()
    assert shown["schema"] == "localctx.bench.ask/1"
    assert (shown["n_questions"], shown["n_repeats"]) == (2, 2)
    assert "runs read and checked" in shown["ttft"]
    indexed = shown["indexed"]
    assert indexed["source"] == BUILT_IN
    assert 2500 < indexed["tokens_stored"] == indexed["tokens_total"] <= 3000
    assert [row["way"] for row in shown["ways"]] == list(WAYS)
    assert {row["ttft_s"]["n"] for row in shown["ways"]} == {4}
    assert len(shown["questions"]) == 2 * len(WAYS)
    for row in shown["ways"]:
        asked = [one["n_evaluated"] for one in shown["questions"] if one["way"] == row["way"]]
        assert row["n_evaluated"] == sum(asked) / 2
    for question in {row["question"] for row in shown["questions"]}:
        rows = {row["way"]: row for row in shown["questions"] if row["question"] == question}
        assert all(row["n_evaluated"] + row["n_restored"] == row["n_prompt"] for row in rows.values())
        zero, cold, auto, again, dense, retrieve = (rows[way] for way in WAYS)
        assert zero["n_prompt"] == auto["n_prompt"] == again["n_prompt"] == dense["n_evaluated"]
        assert cold["n_evaluated"] == zero["n_evaluated"]
        assert zero["n_restored"] > 128  # passages, not the prefix alone
        assert again["n_evaluated"] < zero["n_evaluated"] < auto["n_evaluated"] < dense["n_evaluated"]
        assert dense["n_restored"] == retrieve["n_restored"] == 0
        assert {way for way, row in rows.items() if "n_passages" in row} == set(STORED)
        assert {way for way, row in rows.items() if "n_disk_bytes" in row} <= set(STORED)
        assert 0 < zero["n_named"] == zero["n_passages"] == auto["n_passages"]  # few: all are
        assert 0 < zero["n_header_tokens"] < zero["n_evaluated"]
    assert shown["indexing"]["peak_memory_bytes"] > 1e6
    assert shown["tokens_per_s_first_quarter"] > 0 < shown["tokens_per_s_last_quarter"]
    parts = {row["way"]: row["parts_ms"] for row in shown["ways"]}
    assert all(parts[way][part] > 0 for way in STORED for part in ("select", "assemble", "question"))
    assert all(parts[way][part] >= 0 for way in STORED for part in PARTS)
    assert parts["re-prefill"]["compose"] == parts["retrieve"]["read"] == 0
    assert list(tmp_path.iterdir()) == []


def test_own_questions_of_an_own_document(model: LlamaModel, tmp_path: Path) -> None:
    path = tmp_path / "book.md"
    chapters = (
        f"# Gate {n}\n\nThe code of gate {n} is {1000 + 37 * n}, says the clerk of the harbour. "
        f"The ships that come to gate {n} bring salt, rope and news from town {n}.\n\n"
        for n in range(40)
    )
    path.write_text("".join(chapters), "utf-8")
    told: list[str] = []
    asking = Asking(("What is the code of gate 7?",), n_repeats=1)
    report = measure(model, Settings(kv="refresh=100%"), str(path), None, asking, told.append)
    assert {row.question for row in report.rows} == {"What is the code of gate 7?"}
    zero = next(row for row in report.rows if row.way == WAYS[0])
    assert zero.n_evaluated < zero.n_prompt  # --kv refresh does not rule here
    assert len(told) == 1 + len(WAYS)
    assert len(report.lines) == 4 + len(WAYS) + 2 * len(STORED)
    headed = zero.headed
    assert headed is not None
    assert report.lines[-4].startswith(
        f"{WAYS[0]:<24}{headed.n_passages} passages, {headed.n_named} of them led by header lines, "
        f"{headed.n_header_tokens} tokens"
    )
    assert report.lines[-3].endswith("MB attended") == (disk_bytes() is not None)


COLD_READ = """
import os, sys
from localctx.bench.ask_session import disk_bytes
with open(sys.argv[1], "rb") as file:
    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = disk_bytes()
    n_read = len(file.read())
print(n_read, disk_bytes() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/io").exists(), reason="Linux counts it")
def test_what_is_read_from_disks_is_counted(tmp_path: Path) -> None:
    """In a process of its own: the count has what ended children read. A file in memory counts as nothing."""
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(os.urandom(8 << 20))
        file.flush()
        os.fsync(file.fileno())
    done = subprocess.run(
        [sys.executable, "-c", COLD_READ, str(path)], capture_output=True, text=True, check=True
    )
    n_read, counted = map(int, done.stdout.split())
    assert n_read == 8 << 20
    assert counted == 0 or counted >= n_read


@pytest.mark.parametrize(
    ("asking", "said"),
    [
        (Asking(("x", " ")), "no question"),
        (Asking(n_made=0), "no question"),
        (Asking(n_repeats=0), "--repeats"),
    ],
)
def test_what_makes_no_sense_is_refused(model: LlamaModel, asking: Asking, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        measure(model, Settings(), None, 600, asking, silent)


def test_texts_that_cannot_be_asked(model: LlamaModel, tmp_path: Path) -> None:
    path = tmp_path / "text.txt"
    path.write_text("12 34 56 78\n" * 400)
    with pytest.raises(UsageError, match="no question can be made"):
        measure(model, Settings(), str(path), None, Asking(), silent)
    long = Asking(("why " * 3000,))
    with pytest.raises(UsageError, match="does not fit"):
        measure(model, Settings(), None, 600, long, silent)


def test_the_clock_starts_when_all_is_counted(
    model: LlamaModel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps: list[str] = []
    for name in ("_sizes", "_new_run"):
        work = getattr(ask._Asker, name)

        def noted(*given: Any, name: str = name, work: Any = work, **more: Any) -> Any:
            steps.append(name)
            return work(*given, **more)

        monkeypatch.setattr(ask._Asker, name, noted)
    measure(
        model, Settings(store=str(tmp_path), max_tokens=4), None, 3000, Asking(n_made=1, n_repeats=1), silent
    )
    n_asked = 2 * (len(WAYS) + 3) + 1  # once before it counts; another question goes before in sessions
    assert steps == ["_sizes", "_new_run"] * n_asked
