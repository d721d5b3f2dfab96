"""What the cache holds when a conversion starts again, when others may write to it, and with passwords."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pikepdf
import pytest
from document.inputs import SENTENCE, line, pdf, text_of

from localctx.document import open_document
from localctx.errors import PasswordNeeded


def test_broken_xml_is_kept_as_the_plain_text_that_it_is(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.xml", tmp_path / "cache"
    path.write_bytes(b"<a><b>words</a>" + b" " * 9)
    for _ in range(2):
        with open_document(path, cache_dir=cache) as document:
            assert (document.format, text_of(document)) == ("text", "<a><b>words</a>" + " " * 9)
            assert "not well-formed" in document.warnings[0] and len(document.warnings) == 1
    (entry,) = (cache / "text").iterdir()
    assert (entry / "text.utf8").read_bytes() == path.read_bytes()


def test_xml_that_breaks_late_leaves_nothing_of_the_first_attempt(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.xml", tmp_path / "cache"
    path.write_text("<a>" + "<b>some words</b>" * 20_000 + "</wrong>")
    with open_document(path, cache_dir=cache) as document:
        assert text_of(document) == path.read_text()


@pytest.mark.parametrize("mode", [0o720, 0o702, 0o777])
@pytest.mark.parametrize("which", ["", "text"])
def test_a_cache_that_others_may_write_to_is_not_used(tmp_path: Path, mode: int, which: str) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "cache"
    path.write_bytes(SENTENCE.encode("utf-16"))
    open_document(path, cache_dir=cache).close()
    (cache / which).chmod(mode)
    with open_document(path, cache_dir=cache) as document:
        assert text_of(document) == SENTENCE
        assert "others may write to" in document.warnings[0]
    (cache / which).chmod(0o700)
    with open_document(path, cache_dir=cache) as document:
        assert document.warnings == ()


def test_metadata_nested_beyond_reason_is_made_again(tmp_path: Path) -> None:
    path, cache = tmp_path / "a.txt", tmp_path / "cache"
    path.write_bytes(SENTENCE.encode("utf-16"))
    open_document(path, cache_dir=cache).close()
    (entry,) = (cache / "text").iterdir()
    good = (entry / "meta.json").read_bytes()
    for bad in (b"[" * 200_000, b'{"a":' * 100_000):
        (entry / "meta.json").write_bytes(bad)
        with open_document(path, cache_dir=cache) as document:
            assert text_of(document) == SENTENCE
        assert json.loads((entry / "meta.json").read_bytes()) == json.loads(good)


def test_only_what_opens_without_a_password_is_kept(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    for name, user in (("open.pdf", ""), ("closed.pdf", "geheim")):
        buffer = io.BytesIO()
        with pikepdf.open(io.BytesIO(pdf(line(b"Some words.")))) as document:
            document.save(buffer, encryption=pikepdf.Encryption(user=user, owner="owner", R=6))
        (tmp_path / name).write_bytes(buffer.getvalue())
    with pytest.raises(PasswordNeeded, match=r"closed\.pdf"):
        open_document(tmp_path / "closed.pdf", cache_dir=cache)
    assert list((cache / "text").iterdir()) == []
    with open_document(tmp_path / "closed.pdf", cache_dir=cache, password="geheim") as opened:
        assert text_of(opened) == "Some words.\n\n"
    assert list((cache / "text").iterdir()) == []
    with open_document(tmp_path / "open.pdf", cache_dir=cache) as opened:
        assert text_of(opened) == "Some words.\n\n"
    assert len(list((cache / "text").iterdir())) == 1


def test_a_full_disk_is_told_as_an_unusable_cache(tmp_path: Path) -> None:
    """Closing the half-written text fails too and must not hide why; a size limit plays the full disk."""
    code = """
import resource, sys
from pathlib import Path
from localctx.document.cache import CacheUnusable, TextCache
resource.setrlimit(resource.RLIMIT_FSIZE, (65536, 65536))
def convert(out):
    for _ in range(100):
        out.write(b"x" * 3000)
try:
    TextCache(Path(sys.argv[1])).save("0" * 32, "a.txt", convert)
except CacheUnusable as error:
    print("unusable:", error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.stdout.startswith("unusable:"), done.stderr
