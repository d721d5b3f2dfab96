"""The file of results: whole lines, a torn end repaired, nothing of anybody else's touched."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from localctx.batch.plan import DoneRow
from localctx.batch.results import Results, is_stream
from localctx.errors import LocalctxError, UsageError


def row(key: str, *, is_error: bool = False, **more: Any) -> dict[str, Any]:
    schema = "localctx.error/1" if is_error else "localctx.answer/1"
    return {"schema": schema, "id": key, "line": 1, "key": key, "model": {"fingerprint": "f"}, **more}


def written(path: Path, *rows: dict[str, Any]) -> list[DoneRow]:
    with Results(path) as results:
        for one in rows:
            results.append(one)
    with Results(path) as results:
        return results.rows


def keys(path: Path) -> list[str]:
    return [json.loads(line)["key"] for line in path.read_bytes().splitlines()]


def test_rows_come_back(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    rows = written(path, row("a", answer="é\n😀"), row("b", is_error=True))
    assert [(one.key, one.is_error, one.fingerprint) for one in rows] == [("a", False, "f"), ("b", True, "f")]
    with Results(path) as results:
        assert results.read(results.rows[0])["answer"] == "é\n😀"
        results.append(row("c"))
    assert keys(path) == ["a", "b", "c"]


@pytest.mark.parametrize("n_cut", [1, 2, 30, 10_000])
def test_a_torn_end_is_taken_off_at_any_byte(tmp_path: Path, n_cut: int) -> None:
    path = tmp_path / "out.jsonl"
    written(path, row("a"), row("b"))
    size = path.stat().st_size
    first = len(path.read_bytes().splitlines(keepends=True)[0])
    os.truncate(path, max(size - n_cut, first + 1))
    is_whole = n_cut == 1  # only its newline is lost
    with Results(path) as results:
        assert [one.key for one in results.rows] == (["a", "b"] if is_whole else ["a"])
        assert bool(results.n_torn) is not is_whole
        results.append(row("c"))
    assert keys(path) == (["a", "b", "c"] if is_whole else ["a", "c"])


def test_zeros_that_a_power_failure_leaves_are_taken_off(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    written(path, row("a"))
    with path.open("ab") as file:
        file.write(bytes(500))
    assert [one.key for one in written(path, row("b"))] == ["a", "b"]


@pytest.mark.parametrize(
    "text",
    [
        "my diary",
        "my diary\n",
        "{}\n",
        '{"schema": "localctx.answer/1"}\n',
        '{"schema": "other/1", "key": "a"}\n',
        "\n",
    ],
)
def test_a_file_that_holds_something_else_is_refused_and_stays(tmp_path: Path, text: str) -> None:
    path = tmp_path / "out.jsonl"
    for before in ("", json.dumps(row("a")) + "\n"):
        path.write_text(before + text)
        with pytest.raises(UsageError, match="is not a line of batch"):
            Results(path)
        assert path.read_text() == before + text


def test_rows_are_taken_out_all_at_once(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    link = tmp_path / "link.jsonl"
    link.symlink_to(path)
    written(path, row("a", is_error=True), row("b"), row("c", is_error=True), row("d"))
    path.chmod(0o640)
    with Results(link) as results:
        a, _, c, d = results.rows
        results.drop([a, c])
        assert results.read(d)["key"] == "d"
        results.append(row("e"))
    assert keys(path) == ["b", "d", "e"]
    assert link.is_symlink()
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(one.name for one in tmp_path.iterdir()) == ["link.jsonl", "out.jsonl"]


def test_one_process_writes_at_a_time(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    written(path, row("a", is_error=True))
    with Results(path) as results:
        with pytest.raises(LocalctxError, match="another process writes"):
            Results(path)
        results.drop(results.rows)
        with pytest.raises(LocalctxError, match="another process writes"):
            Results(path)
    Results(path).close()


def test_a_full_disk_is_one_error_and_names_what_to_do() -> None:
    assert is_stream("/dev/full")
    with (
        Results(Path("/dev/full"), is_stream=True) as results,
        pytest.raises(LocalctxError, match="no space left"),
    ):
        results.append(row("a"))


def test_what_does_not_fit_is_taken_back(tmp_path: Path) -> None:
    resource = pytest.importorskip("resource")
    path = tmp_path / "out.jsonl"
    written(path, row("a"))
    size = path.stat().st_size
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    import signal

    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    try:
        with Results(path) as results:
            resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, limits[1]))
            with pytest.raises(LocalctxError, match="cannot write"):
                results.append(row("b", answer="x" * 1000))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert keys(path) == ["a"]


def test_places_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="it is a directory"):
        Results(tmp_path)
    with pytest.raises(UsageError, match="no such file"):
        Results(tmp_path / "none" / "out.jsonl")


def test_names_that_are_no_text_are_escaped(tmp_path: Path) -> None:
    path = tmp_path / "out.jsonl"
    (one,) = written(path, row("a", name="caf\udce9"))
    with Results(path) as results:
        assert results.read(one)["name"] == "caf\udce9"
