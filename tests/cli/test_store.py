"""`localctx store`: what is kept is listed, shown, checked, removed and carried away."""

from __future__ import annotations

import os
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import xxhash
from document.inputs import SENTENCE
from store.stored import document_of, encoded_run, ids_of, segment_files, tokens_of

from localctx.document import open_document
from localctx.document.cache import full_name
from localctx.kv import PrefillPolicy
from localctx.store import WHOLE_STATE, DocumentIdentity, KVStore
from localctx.store.derived import DerivedFiles

Run = Callable[..., Any]
TOKENS = tokens_of(1000)


def keep(
    root: Path, path: Path, *, model: str = "tiny", n_runs: int = 8, place: str = ""
) -> DocumentIdentity:
    """Read the file as a command does, and keep KV of its text."""
    with open_document(path, cache_dir=root) as opened:
        text_hash = opened.content_hash
    space = replace(document_of(TOKENS).space, model=f"fingerprint of {model}")
    identity = replace(
        document_of(TOKENS, path.name), space=space, text_hash=text_hash, model=model, path=place
    )
    ids = ids_of(TOKENS)
    with KVStore.open(root) as store, store.writing(identity, ids) as writer:
        for ordinal in range(n_runs):
            n_tokens = min(128, 1000 - 128 * ordinal)
            data = encoded_run(ordinal, n_tokens)
            writer.add(ordinal, ids[ordinal], data, n_tokens=n_tokens, codec="int4")
    return identity


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Where the commands of the `localctx` fixture keep things."""
    return tmp_path / "home" / "localctx"


@pytest.fixture
def converted(tmp_path: Path) -> Path:
    """A file whose text is kept."""
    path = tmp_path / "report.txt"
    path.write_bytes(SENTENCE.encode("utf-16"))
    return path


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    """A file that is read where it is."""
    path = tmp_path / "plain.txt"
    path.write_text("Plain words.\n")
    return path


def test_nothing_is_stored_and_nothing_is_made(localctx: Run, root: Path) -> None:
    assert "no KV is stored; 0 converted texts" in localctx("store", "ls").out
    assert localctx("store", "ls", "--json").json == {
        **{"schema": "localctx.store/1", "path": str(root), "size_bytes": 0, "limit_bytes": None},
        **{"read_only": False, "documents": [], "texts": [], "indexes": []},
    }
    assert localctx("store", "path").out == f"{root}\n"
    for words in (["verify"], ["gc"], ["rm", "--all"]):
        assert localctx("store", *words).code == 0
        assert localctx("store", *words, "--json").code == 0
    assert not root.exists()


def test_ls_shows_documents_and_texts(localctx: Run, root: Path, converted: Path) -> None:
    identity = keep(root, converted, n_runs=4)
    out = localctx("store", "ls").out
    assert f"{identity.key[:10]}  report.txt  1,000 tokens, 51% stored, " in out
    assert "int4  tiny, window 4,096  20" in out
    assert f"{converted}  text of text" in out
    found = localctx("store", "ls", "--json").json
    (document,) = found["documents"]
    assert (document["key"], document["tokens_stored"], document["tokens_total"]) == (identity.key, 512, 1000)
    assert (document["model"], document["policy"], document["window"]) == ("tiny", "window", 4096)
    assert found["texts"][0]["text_hash"] == document["text_hash"]
    assert found["size_bytes"] > document["size_bytes"] > 0


@pytest.mark.parametrize("by", ["path", "relative path", "key", "start of the key", "copy", "old place"])
def test_a_document_is_found_by_file_or_key(
    localctx: Run, root: Path, converted: Path, by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    identity = keep(root, converted, place=full_name(str(converted)))
    target = {
        "key": identity.key,
        "start of the key": identity.key[:6],
        "copy": str(converted) + "2.txt",
    }.get(by)
    if by == "relative path":
        monkeypatch.chdir(converted.parent)
        target = converted.name
    if by == "copy":
        converted.rename(f"{converted}2.txt")
    if by == "old place":
        converted.write_text("Other words now.")
    shown = localctx("store", "show", target or str(converted), "--json").json
    assert [document["key"] for document in shown["documents"]] == [identity.key]
    assert f"key: {identity.key}" in localctx("store", "show", target or str(converted)).out
    removed = localctx("store", "rm", target or str(converted), "--json").json
    assert (removed["documents"], removed["texts"]) == (1, 1)
    assert removed["freed_bytes"] > 1000
    assert (segment_files(root), list((root / "text").iterdir())) == ([], [])


def test_a_plain_file_is_found_by_its_content(localctx: Run, root: Path, plain: Path) -> None:
    identity = keep(root, plain)
    assert identity.text_hash == xxhash.xxh3_128_hexdigest(plain.read_bytes())
    assert localctx("store", "rm", str(plain)).out.startswith("removed 1 document (plain.txt) and 0 texts")


def test_a_text_stays_while_another_model_s_kv_needs_it(localctx: Run, root: Path, converted: Path) -> None:
    keys = [keep(root, converted, model=model).key for model in ("tiny", "other")]
    several = localctx("store", "export", str(converted), "-o", str(root / "x"))
    assert (several.code, "KV of 2 models or policies" in several.err) == (2, True)
    assert localctx("store", "rm", keys[0], "--json").json["texts"] == 0
    assert localctx("store", "rm", keys[1], "--json").json["texts"] == 1


def test_rm_all(localctx: Run, root: Path, converted: Path, plain: Path) -> None:
    keep(root, converted)
    keep(root, plain)
    removed = localctx("store", "rm", "--all", "--json").json
    assert (removed["documents"], removed["texts"]) == (2, 1)
    assert (segment_files(root), list((root / "text").iterdir())) == ([], [])
    assert localctx("store", "ls", "--json").json["documents"] == []


@pytest.mark.parametrize("words", [["rm"], ["rm", "x", "--all"], ["rm", "nowhere.txt"], ["show", "abcdef"]])
def test_what_is_not_there_is_bad_usage(localctx: Run, words: list[str]) -> None:
    result = localctx("store", *words)
    assert (result.code, result.out, result.err.count("\n")) == (2, "", 1)


def test_verify_tells_and_repairs(localctx: Run, root: Path, plain: Path) -> None:
    keep(root, plain)
    good = localctx("store", "verify")
    assert (good.code, "8 runs and 0 derived files of 1 document checked" in good.out) == (0, True)
    assert localctx("store", "verify", "--json").json["clean"] is True
    path = segment_files(root)[0]
    data = bytearray(path.read_bytes())
    data[-10] ^= 1
    path.write_bytes(data)
    bad = localctx("store", "verify")
    assert (bad.code, f"segments/{path.name}: damaged (1 entries lost)" in bad.out) == (1, True)
    assert "1 problems in the store (localctx store verify --repair)" in bad.err
    as_json = localctx("store", "verify", "--json")
    assert (as_json.code, as_json.json["clean"], len(as_json.json["problems"])) == (1, False, 1)
    repaired = localctx("store", "verify", "--repair")
    assert (repaired.code, "1 damaged entries forgotten" in repaired.out) == (0, True)
    assert localctx("store", "verify").code == 0
    assert localctx("store", "ls", "--json").json["documents"][0]["runs"] == 7


def test_gc(localctx: Run, root: Path, plain: Path) -> None:
    keep(root, plain)
    (root / "kv" / "segments" / f"{'0' * 32}.seg").write_bytes(b"left by a killed run")
    assert localctx("store", "gc", "--json").json["n_leftovers_removed"] == 0  # opening the store swept it
    assert len(segment_files(root)) == 1
    assert "freed 0 B" in localctx("store", "gc").out


def test_export_and_import(localctx: Run, root: Path, plain: Path, tmp_path: Path) -> None:
    identity = keep(root, plain)
    out = tmp_path / "plain.kv"
    told = localctx("store", "export", str(plain), "-o", str(out), "--json").json
    assert told["size_bytes"] == out.stat().st_size
    other = ["--store", str(tmp_path / "other")]
    assert localctx("store", "import", str(out), *other).out.startswith(f"{identity.key[:10]}  plain.txt")
    assert localctx("store", "import", str(out), *other, "--json").json["key"] == identity.key
    assert localctx("store", "ls", "--json", *other).json["documents"][0]["share_stored"] == 1.0
    out.write_bytes(out.read_bytes()[:-1])
    cut = localctx("store", "import", str(out), *other)
    assert (cut.code, cut.err.count("\n"), "cannot be imported" in cut.err) == (3, 1, True)
    nowhere = localctx("store", "export", str(plain), "-o", str(tmp_path / "none" / "x"))
    assert (nowhere.code, "cannot write" in nowhere.err) == (2, True)


def test_a_store_of_another_version_can_be_removed(localctx: Run, root: Path, converted: Path) -> None:
    keep(root, converted)
    with sqlite3.connect(root / "kv" / "catalogue.sqlite3") as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    result = localctx("store", "ls")
    assert (result.code, result.err.count("\n")) == (1, 1)
    assert "made by a newer localctx (version 99" in result.err
    assert localctx("store", "ls", "--json").json["error"]["type"] == "StoreUnusable"
    assert localctx("store", "rm", "--all").code == 0
    assert segment_files(root) == []
    assert localctx("store", "ls").code == 0


def test_a_foreign_folder_is_left_alone(localctx: Run, root: Path) -> None:
    (root / "kv").mkdir(parents=True)
    (root / "kv" / "catalogue.sqlite3").write_text("mine, and no database")
    for words in (["ls"], ["rm", "--all"], ["gc"]):
        result = localctx("store", *words)
        assert (result.code, "was not made by localctx" in result.err) == (1, True), words
    assert (root / "kv" / "catalogue.sqlite3").read_text() == "mine, and no database"
    assert [path.name for path in root.rglob("*")] == [
        "kv",
        "catalogue.sqlite3",
    ]  # nothing was made beside it


def test_a_store_that_is_off_has_nothing_to_show(localctx: Run) -> None:
    result = localctx("store", "ls", "--store", "off")
    assert (result.code, "the store is off" in result.err) == (2, True)


def test_the_conversion_of_a_removed_file_is_made_again(localctx: Run, root: Path, converted: Path) -> None:
    with open_document(converted, cache_dir=root) as document:
        assert document.read(0, 100).startswith(SENTENCE[:20])
    assert localctx("store", "rm", str(converted)).code == 0
    with open_document(converted, cache_dir=root) as document:
        assert document.read(0, 100).startswith(SENTENCE[:20])
    assert localctx("store", "ls", "--json").json["texts"][0]["path"] == str(converted)


def test_a_changed_file_is_found_by_its_place(localctx: Run, root: Path, plain: Path, tmp_path: Path) -> None:
    old = keep(root, plain, place=full_name(str(plain)))
    plain.write_text("Other words now.\n")
    new = keep(root, plain, place=full_name(str(plain)))
    link = tmp_path / "link.txt"
    link.symlink_to(plain)
    assert str(plain) in localctx("store", "ls").out
    shown = localctx("store", "show", str(link), "--json").json["documents"]
    assert {document["key"] for document in shown} == {old.key, new.key}
    plain.unlink()  # a link to nothing still says where it lay
    assert localctx("store", "rm", str(link), "--json").json["documents"] == 2


def test_what_no_file_had_has_no_place(localctx: Run, root: Path, plain: Path) -> None:
    identity = keep(root, plain, place=full_name("-"))
    assert (identity.path, full_name("/dev/fd/63"), full_name("/proc/self/fd/0")) == ("", "", "")
    assert localctx("store", "rm", "-").code == 2
    assert "plain.txt" in localctx("store", "ls").out


def test_a_file_below_dev_has_a_place_and_a_pipe_has_none(tmp_path: Path) -> None:
    with tempfile.NamedTemporaryFile(dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as file:
        assert full_name(file.name) == file.name
    os.mkfifo(tmp_path / "pipe")
    assert (full_name(str(tmp_path / "pipe")), full_name("/dev/null")) == ("", "")


def test_whole_states_are_shown_as_such_and_not_exported(localctx: Run, root: Path, tmp_path: Path) -> None:
    identity = document_of(TOKENS, "story.txt")
    identity = replace(identity, space=replace(identity.space, rope=WHOLE_STATE))
    lazy = document_of(TOKENS, "lazy.txt", PrefillPolicy("lazy", 256))
    with KVStore.open(root) as store:
        store.put_artifacts("snapshot", {"x": bytes(2000)}, identity)
        with store.writing(lazy) as writer:
            writer.add(0, b"x" * 16, encoded_run(0), n_tokens=128, codec="int4")
    assert "1,000 tokens, 2.0 kB of state" in localctx("store", "ls").out
    document = localctx("store", "show", identity.key, "--json").json["documents"][0]
    assert (document["codecs"], document["tokens_stored"], document["share_stored"]) == (["state"], 1000, 1.0)
    for key in (identity.key, lazy.key):
        result = localctx("store", "export", key, "-o", str(tmp_path / "out"))
        assert (result.code, result.err.count("\n"), "not exported" in result.err) == (2, 1, True)
    assert not (tmp_path / "out").exists()


def test_rm_all_says_that_a_store_can_only_be_read(
    localctx: Run, root: Path, plain: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(root, plain)
    monkeypatch.setattr("localctx.store.folder.os.access", lambda path, mode: False)
    result = localctx("store", "rm", "--all")
    assert (result.code, "can only be read" in result.err, len(segment_files(root))) == (1, True, 1)


def test_indexes_of_words_are_listed_and_removed_with_their_text(
    localctx: Run, root: Path, plain: Path, converted: Path
) -> None:
    derived = DerivedFiles(root)

    def put(text_hash: str) -> None:
        derived.write(text_hash, "0" * 32, lambda path: path.write_bytes(b"words" * 100) and None)

    gone, kept = keep(root, plain), keep(root, converted)
    alone = xxhash.xxh3_128_hexdigest(b"searched, never prefilled")
    (plain.parent / "alone.txt").write_bytes(b"searched, never prefilled")
    for text_hash in (gone.text_hash, kept.text_hash, alone):
        put(text_hash)
    size_bytes = derived.size_bytes
    assert "words of 3 texts indexed" in localctx("store", "ls").out
    facts = localctx("store", "ls", "--json").json
    assert {one["text_hash"] for one in facts["indexes"]} == {gone.text_hash, kept.text_hash, alone}
    assert facts["size_bytes"] == size_bytes + sum(path.stat().st_size for path in segment_files(root))
    assert localctx("store", "show", str(plain.parent / "alone.txt"), "--json").json["indexes"][0][
        "size_bytes"
    ]
    assert localctx("store", "rm", str(plain)).code == 0
    assert set(derived.sizes()) == {kept.text_hash, alone}
    assert localctx("store", "rm", str(plain.parent / "alone.txt")).code == 0
    assert set(derived.sizes()) == {kept.text_hash}
    put(alone)
    assert localctx("store", "gc", "--json").json["n_leftovers_removed"] == 1
    assert set(derived.sizes()) == {kept.text_hash}
    put(alone)
    assert localctx("store", "rm", "--all").code == 0
    assert derived.sizes() == {}


def test_verify_looks_into_indexes(localctx: Run, root: Path, plain: Path) -> None:
    text_hash = keep(root, plain).text_hash
    derived = DerivedFiles(root)
    derived.write(text_hash, "0" * 32, lambda path: path.write_bytes(b"words" * 100) and None)
    assert localctx("store", "verify").code == 0
    path = root / "index" / f"{text_hash}-{'0' * 32}"
    path.write_bytes(path.read_bytes()[:-1])
    bad = localctx("store", "verify")
    assert (bad.code, f"index/{path.name}: damaged" in bad.out) == (1, True)
    assert localctx("store", "verify", "--repair").code == 0
    assert not path.exists()
