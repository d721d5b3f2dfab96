"""-o: files whole or not at all, links kept, pipes and devices written."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from localctx.cli.output_file import check_writable, write_whole
from localctx.errors import LocalctxError, UsageError


def test_a_file_is_replaced_and_keeps_its_permissions(tmp_path: Path) -> None:
    out, part = tmp_path / "out.md", tmp_path / "out.md.part"
    out.write_text("old")
    out.chmod(0o640)
    part.write_text("the user's own")
    check_writable(out)
    write_whole(out, "new €\n")
    assert out.read_text("utf-8") == "new €\n"
    assert stat.S_IMODE(out.stat().st_mode) == 0o640
    assert part.read_text() == "the user's own"
    assert {path.name for path in tmp_path.iterdir()} == {"out.md", "out.md.part"}


def test_a_new_file_gets_the_usual_permissions(tmp_path: Path) -> None:
    write_whole(tmp_path / "new", "x")
    (tmp_path / "usual").write_text("x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_link_keeps_pointing_where_it_did(tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    link = tmp_path / "link"
    link.symlink_to("there/out.md")
    for text in ("first", "second"):  # the target is made, then replaced
        check_writable(link)
        write_whole(link, text)
        assert link.is_symlink()
        assert (tmp_path / "there" / "out.md").read_text() == text


def test_pipes_and_devices_are_written_as_they_are(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    check_writable(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_whole(pipe, "through the pipe")
    reader.join(10)
    assert read == ["through the pipe"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    check_writable(Path("/dev/null"))
    write_whole(Path("/dev/null"), "x")
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)


def test_standard_output_by_name(capfd: pytest.CaptureFixture[str]) -> None:
    check_writable(Path("/dev/stdout"))
    write_whole(Path("/dev/stdout"), "said\n")
    assert capfd.readouterr().out == "said\n"


@pytest.mark.parametrize("name", [".", "no/out.md", "file/out.md", "x" * 300])
def test_what_cannot_be_written_is_refused_at_once(tmp_path: Path, name: str) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot write"):
        check_writable(tmp_path / name)


def test_a_name_is_told_on_one_line(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot write") as refused:
        check_writable(tmp_path / "no" / "a\nb\x1b[31m")
    assert refused.value.message.isprintable()


def test_a_failure_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "out").write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(LocalctxError, match="no space left") as failed:
        write_whole(tmp_path / "out", "new")
    assert (failed.value.exit_code, "free some space" in failed.value.hint) == (1, True)
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("out", "old")]
