"""What is opened is what is read: renamed files, pipes that a shell hands over, names that hold escapes."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from document.inputs import SENTENCE, docx, epub, line, paragraph, pdf, text_of

from localctx.document import open_document, source, walk
from localctx.document.pdf import extract_pdf
from localctx.engine.gguf import display
from localctx.errors import InputError, LocalctxError, UnknownFormat
from localctx.given_files import is_open_pipe
from localctx.names import display_name
from localctx.registry.resolve import resolve

OLD, NEW = pdf(line(b"The old text.")), pdf(line(b"The new text."))
HOSTILE = "a\x1b[31mred\nline\u202e\x9b2J\udcff"


def renamed_over(path: Path, data: bytes) -> None:
    """Gives the name to another file, as editors and downloads do."""
    other = path.with_name("other")
    other.write_bytes(data)
    other.replace(path)


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("a.pdf", OLD, NEW),
        ("a.epub", *(epub({"c": f"<p>The {word} text.</p>"}, ["c"]) for word in ("old", "new"))),
    ],
)
def test_a_file_renamed_over_does_not_poison_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, old: bytes, new: bytes
) -> None:
    path, cache = tmp_path / name, tmp_path / "cache"
    path.write_bytes(old)
    named_path = source.Source.named_path

    def late(self: source.Source) -> object:  # after the key was made, before the child opens the file
        renamed_over(path, new)
        return named_path(self)

    with monkeypatch.context() as patch:
        patch.setattr(source.Source, "named_path", late)
        with open_document(path, cache_dir=cache) as document:
            assert text_of(document).strip() == "The old text."
    path.write_bytes(old)
    with open_document(path, cache_dir=cache) as document:
        assert text_of(document).strip() == "The old text."
    with monkeypatch.context() as patch:  # a system that does not name what is open
        patch.setattr(source.Source, "named_path", late)
        patch.setattr(source, "DESCRIPTORS", "/nowhere/{}/fd")
        (tmp_path / "second").mkdir(mode=0o700)
        with pytest.raises(InputError, match="changed while it was being read"):
            open_document(path, cache_dir=tmp_path / "second")
        assert not list((tmp_path / "second" / "text").iterdir())


@pytest.mark.parametrize("form", ["/dev/fd/{}", "/proc/self/fd/{}", "/proc/thread-self/fd/{}"])
@pytest.mark.parametrize("data", [SENTENCE.encode(), docx(paragraph("Through a pipe"))])
def test_a_pipe_that_was_handed_over_is_read(tmp_path: Path, form: str, data: bytes) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    os.write(writing, data)
    os.close(writing)
    path = form.format(reading)
    try:
        assert list(walk(path)) == [Path(path)]
        with open_document(path, cache_dir=tmp_path / "cache") as document:
            assert text_of(document) in (SENTENCE, "Through a pipe\n\n")
            assert document.source == path
        assert not (tmp_path / "cache").exists()
        os.fstat(reading)  # still the caller's
    finally:
        os.close(reading)
    with pytest.raises(InputError, match="no such file"):
        open_document(path)


def test_standard_input_by_its_file_name(tmp_path: Path) -> None:
    code = "import sys\nfrom localctx.document import open_document\n"
    code += "for path in sys.argv[1:]: print(open_document(path, cache_dir=None).read(0, 99), end='')"
    run = [sys.executable, "-c", code, "/dev/stdin"]
    assert subprocess.run(run, input=b"piped", capture_output=True, check=True).stdout == b"piped"
    (tmp_path / "a.txt").write_text("a file")
    with (tmp_path / "a.txt").open() as file:
        assert subprocess.run(run, stdin=file, capture_output=True, check=True).stdout == b"a file"


def test_other_pipes_stay_refused(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    (tmp_path / "link").symlink_to(fifo)
    for path in (fifo, tmp_path / "link"):
        with pytest.raises(InputError, match="named pipe"):
            open_document(path)
        assert not is_open_pipe(path)


def test_no_name_reaches_the_terminal_raw(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = tmp_path / f"{HOSTILE}.pdf"
    path.write_bytes(b"%PDF-1.7\ngarbage")
    stream = io.BytesIO(bytes([0, 1, 2]) * 99)
    stream.name = HOSTILE
    errors: list[LocalctxError] = []
    for failing in (
        lambda: list(extract_pdf(path)),
        lambda: open_document(path, cache_dir=None),
        lambda: open_document(tmp_path / HOSTILE),
        lambda: open_document(stream),
        lambda: resolve(HOSTILE, tmp_path, tmp_path),
        lambda: resolve(f"{HOSTILE}.gguf", tmp_path, tmp_path),
        lambda: resolve(f"hf:a/{HOSTILE}", tmp_path, tmp_path),
    ):
        with pytest.raises(LocalctxError) as caught:
            failing()
        errors.append(caught.value)
    assert all(error.message.isprintable() and error.hint.isprintable() for error in errors)
    assert all("x1b[31mred" in error.message for error in errors)
    assert isinstance(errors[3], UnknownFormat)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Größe 日本 😀.txt", "Größe 日本 😀.txt"),
        (HOSTILE, r"a\x1b[31mred\nline\u202e\x9b2J\xff"),
        (b"a\xff\x07", r"a\xff\x07"),
        (Path("x\u2028y"), r"x\u2028y"),
        ("lone \ud800", r"lone \ud800"),
    ],
)
def test_names_are_shown_printable(name: str | bytes | Path, shown: str) -> None:
    assert display_name(name) == shown
    assert shown.isprintable()
    if isinstance(name, Path):
        assert display(name) == shown


def test_a_file_whose_first_byte_cannot_be_read_is_no_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    path = tmp_path / "a.txt"
    path.touch()
    monkeypatch.setattr(os, "pread", fail)
    with pytest.raises(InputError, match=r"a\.txt: cannot be read \(input/output error\)"):
        open_document(path, cache_dir=None)
