"""Directories and several files: what is read, what is passed over, what counts as failed."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from localctx.cli.documents import could_not_be_read, open_documents, page_range
from localctx.document import SkippedEntry, open_document, walk
from localctx.errors import InputError, UsageError

Run = Callable[..., Any]


def opened(*sources: Path | str, **options: Any) -> tuple[list[str], int, list[str]]:
    """Names of what was opened, how many failed, what was told."""
    told: list[str] = []
    words = [os.fspath(source) for source in sources]
    with open_documents(words, lambda s: open_document(s, cache_dir=None), told.append, **options) as result:
        assert list(result.warnings) == told
        return [Path(d.source).name for d in result.documents], result.n_failed, told


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    path.mkdir()
    (path / "a.txt").write_text("One two three.")
    return path


def test_what_is_no_document_is_no_failure(folder: Path) -> None:
    (folder / "b.bin").write_bytes(bytes(range(256)) * 8)
    (folder / "empty.py").write_bytes(b"")
    (folder / "blank.md").write_text(" \n\n")
    (folder / ".hidden").symlink_to("nowhere")
    (folder / ".git").mkdir()
    os.mkfifo(folder / "pipe")
    names, n_failed, told = opened(folder)
    assert (names, n_failed) == (["a.txt"], 0)
    assert {Path(line.split(": ")[1]).name for line in told} == {
        "b.bin", "empty.py", "blank.md", ".hidden", ".git", "pipe",
    }  # fmt: skip


def test_what_cannot_be_read_is_a_failure(folder: Path) -> None:
    (folder / "dangling.txt").symlink_to("nowhere")
    (folder / "broken.docx").write_bytes(b"PK\x03\x04" + bytes(60))
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4\nnothing")
    names, n_failed, told = opened(folder)
    assert (names, n_failed, len(told)) == (["a.txt"], 3, 3)


def test_no_permission_is_a_failure(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")

    (folder / "closed").mkdir()
    monkeypatch.setattr(os, "access", lambda *_: False)  # chmod would not keep root out
    monkeypatch.setattr(os, "open", refuse)
    for name in ("a.txt", "closed"):
        assert could_not_be_read(SkippedEntry(folder / name, "permission denied"))


def test_a_file_that_came_back_is_no_failure(folder: Path) -> None:
    assert not could_not_be_read(SkippedEntry(folder / "a.txt", "no such file"))


def test_one_file_under_several_names_is_read_once(folder: Path) -> None:
    (folder / "again.txt").hardlink_to(folder / "a.txt")
    (folder / "link.txt").symlink_to("a.txt")
    path = str(folder / "a.txt")
    names, n_failed, told = opened(path, path, folder)
    assert (names, n_failed, len(told)) == (["a.txt"], 0, 4)
    assert all("read once" in line for line in told)


def test_standard_input_can_be_named_once(localctx: Run, tiny_model_path: Path) -> None:
    result = localctx("summarize", "-", "-", "--model", str(tiny_model_path), stdin=b"text")
    assert (result.code, result.out) == (2, "")
    assert "named twice" in result.err


def test_pages_pass_over_what_has_none_in_a_folder(
    localctx: Run, tiny_model_path: Path, folder: Path
) -> None:
    sample = Path(__file__).parents[2] / "docs" / "samples" / "state-of-the-union.pdf"
    (folder / "b.pdf").symlink_to(sample)
    words = ["--pages", "1", "--model", str(tiny_model_path), "--ctx", "2048", "-n", "4", "--json"]
    result = localctx("ask", str(folder), "-q", "What?", *words)
    assert result.code == 0, result.err
    assert result.json["coverage"]["pages_total"] == 1
    assert any("a.txt" in line and "has no pages" in line for line in result.json["warnings"])
    named = localctx("ask", str(folder / "a.txt"), "-q", "What?", *words)
    assert named.code == 2
    unknown = localctx("ask", str(folder), "-q", "What?", *words, "--encoding", "klingon")
    assert (unknown.code, "klingon" in unknown.json["error"]["message"]) == (2, True)


def test_a_folder_without_documents_is_an_error(folder: Path) -> None:
    (folder / "a.txt").unlink()
    with pytest.raises(InputError, match="nothing to read"):
        opened(folder)


@pytest.fixture
def few_descriptors() -> Iterator[None]:
    """A soft limit that a folder easily exhausts."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (64, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.mark.usefixtures("few_descriptors")
def test_a_low_limit_of_open_files_is_raised(folder: Path) -> None:
    for number in range(100):
        (folder / f"{number}.txt").write_text(f"File {number}.")
    assert len(opened(folder)[0]) == 101


def test_more_files_than_can_be_open_are_refused_in_one_line(folder: Path, tiny_model_path: Path) -> None:
    for number in range(100):
        (folder / f"{number}.txt").write_text(f"File {number}.")
    code = (
        "import resource; resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        "from localctx.cli.main import run; run()"
    )
    words = ["ask", str(folder), "-q", "?", "--model", str(tiny_model_path)]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "too many files: 101" in done.stderr
    assert done.stderr.count("\n") == 1


def test_walking_gives_names_in_order(folder: Path) -> None:
    (folder / "0.txt").write_text("x")
    assert [Path(str(entry)).name for entry in walk(folder)] == ["0.txt", "a.txt"]


@pytest.mark.parametrize(
    ("text", "pages"),
    [("10-40", (10, 40)), ("7", (7, 7)), ("10-", (10, 1 << 30)), ("-5", (1, 5)), (None, None)],
)
def test_page_ranges(text: str | None, pages: tuple[int, int] | None) -> None:
    assert page_range(text) == pages


@pytest.mark.parametrize("text", ["", "-", "0", "5-2", "a", "1-b", "1-2-3", "-0"])
def test_what_is_no_page_range(text: str) -> None:
    with pytest.raises(UsageError, match="not a page range"):
        page_range(text)
