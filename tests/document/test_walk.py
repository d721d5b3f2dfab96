"""Directories: order, and every entry that is not read is named with its reason."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localctx.document import SkippedEntry, walk
from localctx.errors import InputError


def test_walk_yields_readable_files_and_reasons(tmp_path: Path) -> None:
    for name in (
        "b.txt",
        "a.md",
        "sub/c.PDF",
        ".git/config",
        ".hidden/x.txt",
        ".env",
        "sub/.secret.md",
        "sub/deep/d.py",
        "CVS/x",
        "#1.txt",
    ):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%PDF-1.4\n1 0 obj" if name.endswith("PDF") else b"text\n")
    (tmp_path / "empty.txt").touch()
    (tmp_path / "blank.txt").write_text("\n\n  \t\n")
    (tmp_path / "p.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    os.mkfifo(tmp_path / "fifo.txt")
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "sub" / "up").symlink_to("..")
    (tmp_path / "link.txt").symlink_to("b.txt")
    (tmp_path / "dangling").symlink_to("nowhere")
    (tmp_path / os.fsdecode(b"bad\xff.txt")).write_text("text")
    found = list(walk(tmp_path))
    files = [str(item.relative_to(tmp_path)) for item in found if isinstance(item, Path)]
    assert files == [
        "#1.txt",
        "a.md",
        "b.txt",
        os.fsdecode(b"bad\xff.txt"),
        "link.txt",
        "sub/c.PDF",
        "sub/deep/d.py",
    ]
    skipped = {
        str(item.path.relative_to(tmp_path)): item.reason for item in found if isinstance(item, SkippedEntry)
    }
    assert skipped == {
        ".env": "hidden file",
        ".git": "folder of a version control system",
        ".hidden": "hidden folder",
        "CVS": "folder of a version control system",
        "blank.txt": "no text, only white space",
        "dangling": "no such file",
        "empty.txt": "is empty",
        "fifo.txt": "is a named pipe, not a file",
        "loop": skipped["loop"],
        "p.png": "is a PNG image",
        "sub/.secret.md": "hidden file",
        "sub/up": "link to a folder (not followed)",
    }
    assert "symbolic link" in skipped["loop"]


def test_walk_of_a_file_a_hidden_root_and_nothing(tmp_path: Path) -> None:
    root = tmp_path / ".cache"
    root.mkdir()
    (root / "a.txt").write_text("x")
    assert list(walk(root)) == [root / "a.txt"]
    assert list(walk(root / "a.txt")) == [root / "a.txt"]
    (root / ".env").write_text("x")
    assert list(walk(root / ".env")) == [root / ".env"]
    (tmp_path / "link").symlink_to(root)
    found = list(walk(tmp_path / "link"))
    assert found == [SkippedEntry(tmp_path / "link" / ".env", "hidden file"), tmp_path / "link" / "a.txt"]
    with pytest.raises(InputError, match="no such file"):
        list(walk(tmp_path / "none"))


def test_an_unreadable_folder_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "locked").mkdir()
    (tmp_path / "z.txt").write_text("x")
    listdir = os.listdir

    def refusing(path: Path) -> list[str]:
        if path.name == "locked":
            raise PermissionError(13, "Permission denied")
        return listdir(path)

    monkeypatch.setattr(os, "listdir", refusing)
    assert list(walk(tmp_path)) == [
        SkippedEntry(tmp_path / "locked", "permission denied"),
        tmp_path / "z.txt",
    ]
