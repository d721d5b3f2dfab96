"""Paths, names, streams, and texts kept between runs."""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from document.inputs import SENTENCE, docx, paragraph, text_of

from localctx.document import Limits, open_document, opening
from localctx.document import cache as cache_module
from localctx.document.cache import TextCache
from localctx.errors import InputError, LimitExceeded, LocalctxError, NoTextError

NAMES = [b"bad\xff\xf0name.txt", "名前 mit ü & 'q' $(x).txt".encode(), b"empty#hash%20.txt", b"-n.txt",
         b"a" * 250 + b".txt", b"-", b"new\nline\x1b[31m.txt"]  # fmt: skip


def entries(folder: Path) -> list[Path]:
    """The cache's entries."""
    return sorted((folder / "text").iterdir())


@pytest.mark.parametrize("name", NAMES)
def test_every_name_opens_and_can_be_shown(tmp_path: Path, name: bytes) -> None:
    path = tmp_path / os.fsdecode(name)
    path.write_bytes(SENTENCE.encode("utf-16"))
    for form in (path, str(path), os.fsencode(path)):
        with open_document(form, cache_dir=tmp_path / "cache") as document:
            assert text_of(document) == SENTENCE
            document.source.encode("utf-8")
            assert document.source.isprintable()


def test_utf8_is_used_where_it_lies(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(SENTENCE)
    with open_document(path, cache_dir=tmp_path / "cache") as document:
        assert (text_of(document), document.size_bytes) == (SENTENCE, len(SENTENCE.encode()))
        assert not (tmp_path / "cache").exists()
        path.write_text("other")
        with pytest.raises(InputError, match="changed"):
            document.read(0, 1)


def test_equal_texts_have_equal_hashes(tmp_path: Path) -> None:
    hashes = set()
    for name, data in {
        "a.txt": SENTENCE.encode(),
        "b.md": SENTENCE.encode("utf-16"),
        "c.gz": gzip.compress(SENTENCE.encode()),
    }.items():
        (tmp_path / name).write_bytes(data)
        with open_document(tmp_path / name, cache_dir=None) as document:
            hashes.add(document.content_hash)
    assert len(hashes) == 1


def test_missing_unreadable_and_special_files(tmp_path: Path) -> None:
    for bad in (tmp_path / "none.txt", tmp_path / "x" / ".." / ".." / "none", "nul\0.txt"):
        with pytest.raises(InputError, match="no such file"):
            open_document(bad)
    with pytest.raises(InputError, match="is a directory"):
        open_document(tmp_path)
    os.mkfifo(tmp_path / "fifo.txt")
    with pytest.raises(InputError, match="named pipe"):
        open_document(tmp_path / "fifo.txt")
    with pytest.raises(InputError, match="device"):
        open_document("/dev/zero")
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(InputError, match="loop"):
        open_document(tmp_path / "loop")


@pytest.mark.parametrize("text", [" \n", "\u200b\u200b\n\ufeff\n", "\u2060 \r\n"])
def test_what_shows_nothing_is_no_document(tmp_path: Path, text: str) -> None:
    (tmp_path / "blank.txt").write_text(text, "utf-8")
    with pytest.raises(NoTextError, match="no text"):
        open_document(tmp_path / "blank.txt", cache_dir=None)


def test_standard_input_and_streams(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for data in (SENTENCE.encode(), SENTENCE.encode("utf-16"), gzip.compress(SENTENCE.encode())):
        with open_document("-", stdin=io.BytesIO(data), cache_dir=folder) as document:
            assert (text_of(document), document.source) == (SENTENCE, "-")
    with open_document(io.BytesIO(docx(paragraph("In memory"))), cache_dir=folder) as document:
        assert (text_of(document), document.format) == ("In memory\n\n", "docx")
    assert not folder.exists()
    with pytest.raises(LimitExceeded):
        open_document("-", stdin=io.BytesIO(b"x" * 100), limits=Limits(stream_bytes=99))


def test_a_pipe_is_read_to_its_end() -> None:
    code = (
        "from localctx.document import open_document\n"
        "print(ascii(open_document('-', cache_dir=None).read(0, 99)))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], input="“Price” – 5 € café\n".encode("cp1252") * 2,
        capture_output=True, check=True, env={**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0"},
    )  # fmt: skip
    assert run.stdout.decode().strip() == ascii("“Price” – 5 € café\n" * 2)


def test_conversions_are_kept_and_used_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, folder = tmp_path / "a.docx", tmp_path / "cache"
    path.write_bytes(docx(paragraph("Kept text")))
    with open_document(path, cache_dir=folder) as first:
        text = text_of(first)
    (entry,) = entries(folder)
    assert stat.S_IMODE(entry.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder / "text").stat().st_mode) == 0o700
    assert sorted(item.name for item in entry.iterdir()) == ["meta.json", "text.utf8"]

    def must_not_run(*_: object) -> None:
        raise AssertionError("converted again")

    monkeypatch.setattr(opening, "converted", must_not_run)
    path.rename(tmp_path / "other name.docx")
    with open_document(tmp_path / "other name.docx", cache_dir=folder) as second:
        assert (text_of(second), second.format, second.content_hash) == (text, "docx", first.content_hash)
        assert second.source.endswith("other name.docx")


@pytest.mark.parametrize(
    "damage", ["flip", "cut", "empty", "no meta", "bad meta", "changed meta", "link", "pickle"]
)
def test_damaged_entries_are_made_again(tmp_path: Path, damage: str) -> None:
    path, folder = tmp_path / "a.txt", tmp_path / "cache"
    path.write_bytes(SENTENCE.encode("utf-16"))
    open_document(path, cache_dir=folder).close()
    (entry,) = entries(folder)
    text, meta = entry / "text.utf8", entry / "meta.json"
    good_meta = meta.read_bytes()
    if damage == "flip":
        text.write_bytes(b"k" + text.read_bytes()[1:])
    elif damage == "cut":
        os.truncate(text, 5)
    elif damage == "empty":
        text.write_bytes(b"")
    elif damage == "no meta":
        meta.unlink()
    elif damage == "bad meta":
        meta.write_text("[1")
    elif damage == "changed meta":
        fields = json.loads(good_meta)
        fields["layout"]["replaced_characters"] = 99
        meta.write_text(json.dumps(fields))
    elif damage == "link":
        (tmp_path / "elsewhere").write_bytes(text.read_bytes())
        text.unlink()
        text.symlink_to(tmp_path / "elsewhere")
    else:
        meta.write_bytes(b"cos\nsystem\n(S'touch PWNED'\ntR.")
    with open_document(path, cache_dir=folder) as document:
        assert (text_of(document), document.replaced_characters) == (SENTENCE, 0)
    (again,) = entries(folder)
    assert (again / "text.utf8").read_text() == SENTENCE
    assert (again / "meta.json").read_bytes() == good_meta
    assert not (again / "text.utf8").is_symlink()


def test_options_and_names_that_shape_the_text_make_other_entries(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.txt", tmp_path / "cache"
    path.write_bytes("Größe".encode("utf-16"))
    open_document(path, cache_dir=folder).close()
    open_document(path, cache_dir=folder, encoding="latin-1").close()
    assert len(entries(folder)) == 2


def test_an_unusable_cache_costs_one_warning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(SENTENCE.encode("utf-16"))
    (tmp_path / "file").write_text("")
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "text").symlink_to(tmp_path)
    for folder in (tmp_path / "file" / "x", Path("/proc/none"), tmp_path / "cache"):
        with open_document(path, cache_dir=folder) as document:
            assert text_of(document) == SENTENCE
            assert len(document.warnings) == 1 and "cache cannot be written" in document.warnings[0]

    def full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with open_document(path, cache_dir=tmp_path / "full") as document:
        assert text_of(document) == SENTENCE
        assert "no space left" in document.warnings[0]
    assert entries(tmp_path / "full") == []


def test_no_room_anywhere_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(SENTENCE.encode("utf-16"))

    class Full(io.BytesIO):
        def write(self, _: Any) -> int:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(opening, "temporary_file", Full)
    with pytest.raises(LocalctxError, match="no room") as caught:
        open_document(path, cache_dir=None)
    assert "TMPDIR" in caught.value.hint


def test_a_password_keeps_the_text_off_the_disk(tmp_path: Path) -> None:
    path = tmp_path / "a.docx"
    path.write_bytes(docx(paragraph("Secret")))
    with open_document(path, cache_dir=tmp_path / "cache", password="x") as document:
        assert text_of(document) == "Secret\n\n"
    assert not (tmp_path / "cache").exists()


def test_the_least_recently_used_entries_go(tmp_path: Path) -> None:
    cache = TextCache(tmp_path, max_bytes=5000)
    for number in range(6):

        def write(out: Any, number: int = number) -> tuple[Any, dict[str, str]]:
            out.write(b"%d" % number * 1000)
            return opening.Layout(1000), {"format": "text"}

        cache.save(f"key{number}", "x", write)[0].close()
        os.utime(tmp_path / "text" / f"key{number}", (number, number))
        if number:
            found = cache.load("key0", "x")  # used again and again: must stay
            assert found is not None
            found[0].close()
    names = [item.name for item in entries(tmp_path)]
    assert "key0" in names and "key5" in names
    assert "key1" not in names
    size = sum(file.stat().st_size for item in entries(tmp_path) for file in item.iterdir())
    assert size <= 5000


def test_two_readers_may_race(tmp_path: Path) -> None:
    path, folder = tmp_path / "a.txt", tmp_path / "cache"
    path.write_bytes((SENTENCE * 2000).encode("utf-16"))
    texts: list[str] = []

    def read() -> None:
        for _ in range(4):
            with open_document(path, cache_dir=folder) as document:
                texts.append(text_of(document))
            for entry in entries(folder):
                (entry / "text.utf8").unlink(missing_ok=True)  # and somebody clears the cache meanwhile

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert texts == [SENTENCE * 2000] * 16
    assert not [item for item in entries(folder) if item.name.startswith(cache_module.TEMPORARY_PREFIX)]


def test_progress_reaches_the_end(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(SENTENCE.encode("utf-16") * 9)
    seen: list[tuple[int, int]] = []
    open_document(path, cache_dir=None, on_progress=lambda done, total: seen.append((done, total))).close()
    assert seen[-1][0] == seen[-1][1] == path.stat().st_size
