"""Which encoding a text is read in, what is replaced, what is refused."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from document.conftest import Open
from document.inputs import SENTENCE, text_of

from localctx.document import Limits, open_document
from localctx.errors import NoTextError, UnknownFormat, UsageError

FRENCH = "Préfecture de l'Hérault, où déjà.\n"
CHINESE = "保险箱的密码是七七三四。\n"
QUOTES = "“Price” – 5 € café\n"


@pytest.mark.parametrize(
    ("data", "encoding", "text"),
    [
        (SENTENCE.encode(), "utf-8", SENTENCE),
        (b"\xef\xbb\xbf" + SENTENCE.encode(), "utf-8", SENTENCE),
        (b"\xff\xfe" + SENTENCE.encode("utf-16-le"), "utf-16-le", SENTENCE),
        (b"\xfe\xff" + SENTENCE.encode("utf-16-be"), "utf-16-be", SENTENCE),
        (b"\xff\xfe\0\0" + SENTENCE.encode("utf-32-le"), "utf-32-le", SENTENCE),
        (SENTENCE.encode("utf-16-le"), "utf-16-le", SENTENCE),
        (SENTENCE.encode("utf-16-be"), "utf-16-be", SENTENCE),
        (SENTENCE.encode("utf-32-be"), "utf-32-be", SENTENCE),
        (("plain words\n" * 9).encode("utf-16-le"), "utf-16-le", "plain words\n" * 9),
        ((CHINESE * 200).encode("gbk"), "gb18030", CHINESE * 200),
        ((QUOTES * 50).encode("cp1252"), "cp1252", QUOTES * 50),
        ((FRENCH * 50).encode("latin-1"), "cp1252", FRENCH * 50),
        ((("Договор заключён в городе Москве.\n") * 9).encode("koi8-r"), "koi8-r", None),
        ((("この契約は東京で締結されました。\n") * 9).encode("shift_jis"), "cp932", None),
    ],
)
def test_encodings_are_found(open_bytes: Open, data: bytes, encoding: str, text: str | None) -> None:
    document = open_bytes(data)
    assert document.encoding == encoding
    assert text_of(document) == (data.decode(encoding) if text is None else text)
    assert document.replaced_characters == 0


def test_one_latin1_byte_deep_in_a_large_file_is_read(
    open_bytes: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = "The quick brown fox jumps over the dog. " * 60_000
    data = start.encode() + "L'été dernier, à la préfecture.".encode("latin-1")
    document = open_bytes(data, limits=Limits(detect_bytes=1 << 16))  # smaller than the file: windows
    assert document.read(len(start), len(start) + 31) == "L'été dernier, à la préfecture."
    assert document.replaced_characters == 0


def test_undecodable_bytes_are_counted_and_said(open_bytes: Open) -> None:
    document = open_bytes(b"ok \xff\xfe\xc3( bad \x80\n" * 10)
    assert text_of(document) == "ok \ufffd\ufffd\ufffd( bad \ufffd\n" * 10
    assert document.replaced_characters == 40
    assert any("40 characters could not be decoded" in warning for warning in document.warnings)


def test_a_few_bad_bytes_do_not_change_the_encoding_of_utf8(open_bytes: Open) -> None:
    document = open_bytes((SENTENCE * 40).encode() + b"\xff end")
    assert (document.encoding, document.replaced_characters) == ("utf-8", 1)
    assert text_of(document) == SENTENCE * 40 + "\ufffd end"


def test_replacement_characters_of_the_text_itself_are_not_counted(open_bytes: Open) -> None:
    document = open_bytes("a \ufffd b".encode("utf-16"))
    assert (text_of(document), document.replaced_characters) == ("a \ufffd b", 0)


def test_nuls_are_removed_before_offsets_and_hash(open_bytes: Open) -> None:
    document = open_bytes(b"abc\0def\n" * 100)
    assert text_of(document) == "abcdef\n" * 100
    assert document.content_hash == open_bytes(b"abcdef\n" * 100, "b.txt").content_hash
    assert any("100 NUL" in warning for warning in document.warnings)


def test_line_ends_and_odd_breaks_are_kept(open_bytes: Open) -> None:
    assert text_of(open_bytes(b"a\r\nb\rc\nd\x0be\x0cf\n")) == "a\r\nb\rc\nd\x0be\x0cf\n"


def test_the_named_encoding_wins(open_bytes: Open) -> None:
    document = open_bytes("Größe".encode(), encoding="latin1")
    assert (text_of(document), document.encoding) == ("GrÃ¶Ã\x9fe", "iso8859-1")
    cut = open_bytes(b"ab\xe4", "b.txt", encoding="utf-8")
    assert (text_of(cut), cut.replaced_characters) == ("ab\ufffd", 1)


@pytest.mark.parametrize("name", ["nosuch", "rot13", "base64", "a\0b", "idna", "punycode", "undefined"])
def test_an_unknown_encoding_is_a_usage_error(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match="unknown encoding"):
        open_document(tmp_path / "x", encoding=name)


@pytest.mark.parametrize("data", [b"", b" \n\t\r\n" * 5000, b"\xef\xbb\xbf", b"\xff\xfe \0\n\0"])
def test_empty_and_blank_files_have_no_text(open_bytes: Open, data: bytes) -> None:
    with pytest.raises(NoTextError) as caught:
        open_bytes(data)
    assert caught.value.exit_code == 3
    assert "file.txt" in caught.value.message


def test_binary_is_refused_whatever_its_name(open_bytes: Open) -> None:
    data = random.Random(1).randbytes(200_000)
    for name in ("bin.txt", "bin.md", "bin"):
        with pytest.raises(UnknownFormat, match="binary"):
            open_bytes(data, name)
    with pytest.raises(UnknownFormat):
        open_bytes(b"\0" * 5000)


def test_a_text_that_turns_binary_later_is_refused(open_bytes: Open) -> None:
    data = b"#!/bin/sh\n" + b"echo words\n" * 8000 + random.Random(1).randbytes(300_000)
    with pytest.raises(UnknownFormat, match="no text"):
        open_bytes(data)
