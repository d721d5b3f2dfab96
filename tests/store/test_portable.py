"""A document's KV carried to another store, and files that were made to harm."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from store.stored import document_of, encoded_run, ids_of, tokens_of, write

from localctx.errors import InputError, UsageError
from localctx.store import KVStore, StoreUnusable
from localctx.store.segments import MAGIC, PREFIX, VERSION, aligned, checksum_of

TOKENS = tokens_of(1000)


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    """An exported document with two encodings of one run."""
    with KVStore.open(tmp_path / "from") as store:
        ids = write(store, "a.txt", TOKENS)
        with store.writing(document_of(TOKENS), ids) as writer:
            writer.add(0, ids[0], encoded_run(0, codec="f16"), n_tokens=128, codec="f16")
        size_bytes = store.export(document_of(TOKENS).key, tmp_path / "a.kv")
    assert size_bytes == (tmp_path / "a.kv").stat().st_size
    return tmp_path / "a.kv"


def read(path: Path) -> tuple[dict[str, Any], bytes]:
    """(header, data) of such a file."""
    whole = path.read_bytes()
    length = PREFIX.unpack(whole[: PREFIX.size])[3]
    return json.loads(whole[PREFIX.size : PREFIX.size + length]), whole[aligned(PREFIX.size + length) :]


def rewrite(path: Path, header: object, data: bytes) -> None:
    """The same file with another header, its checksums right."""
    body = json.dumps(header).encode()
    pad = bytes(aligned(PREFIX.size + len(body)) - PREFIX.size - len(body))
    entries = (
        header["entries"] if isinstance(header, dict) and isinstance(header.get("entries"), list) else []
    )
    size = PREFIX.size + len(body) + len(pad) + len(data)
    path.write_bytes(
        PREFIX.pack(MAGIC, VERSION, len(entries), len(body), size, checksum_of(body)) + body + pad + data
    )


def test_there_and_back(exported: Path, tmp_path: Path) -> None:
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path / "to") as store:
        document = store.import_(exported)
        assert document.identity == document_of(TOKENS)
        assert (document.share_stored, document.codecs) == (1.0, ("f16", "int4"))
        with store.reading(ids, "int4") as runs:
            assert [bytes(runs[run_id]) for run_id in ids[:7]] == [encoded_run(n) for n in range(7)]
        with store.reading(ids, "f16") as runs:
            assert bytes(runs[ids[0]]) == encoded_run(0, codec="f16")
        assert store.verify().is_clean
        size = store.size_bytes
        store.import_(exported)  # again: nothing is written twice
        assert store.size_bytes == size
        store.export(document.key, tmp_path / "b.kv")
    (there, data), (back, data_back) = read(exported), read(tmp_path / "b.kv")
    assert (there["facts"], data) == (back["facts"], data_back)
    for entry in [*there["entries"], *back["entries"]]:
        del entry["max_error"]  # an import takes those that the run itself tells
    assert there["entries"] == back["entries"]


def test_a_document_that_is_partly_here_is_completed_and_nothing_replaced(
    exported: Path, tmp_path: Path
) -> None:
    ids = ids_of(TOKENS)
    with KVStore.open(tmp_path / "to") as store:
        with store.writing(document_of(TOKENS), ids) as writer:
            writer.add(2, ids[2], encoded_run(77), n_tokens=128, codec="int4")
        assert store.import_(exported).share_stored == 1.0
        with store.reading(ids, "int4") as runs:
            assert bytes(runs[ids[2]]) == encoded_run(77)


def test_no_path_of_the_exporter_travels(tmp_path: Path) -> None:
    from dataclasses import replace

    document = replace(document_of(TOKENS), path="/home/someone/a.txt")
    with KVStore.open(tmp_path) as store:
        with store.writing(document, ids_of(TOKENS)) as writer:
            writer.add(0, ids_of(TOKENS)[0], encoded_run(0), n_tokens=128, codec="int4")
        store.export(document.key, tmp_path / "a.kv")
    assert b"someone" not in (tmp_path / "a.kv").read_bytes()


def change(*names: str, value: object) -> Callable[[dict[str, Any]], None]:
    """A change of one value of a header."""

    def apply(header: dict[str, Any]) -> None:
        place: Any = header
        for name in names[:-1]:
            place = place[int(name) if isinstance(place, list) else name]
        place[int(names[-1]) if isinstance(place, list) else names[-1]] = value

    return apply


HOSTILE = [
    change("facts", "version", value=2),
    change("facts", "format", value="other"),
    change("facts", "document", value=None),
    change("facts", "document", "n_tokens", value=1 << 70),
    change("facts", "document", "n_tokens", value=-1),
    change("facts", "document", "n_tokens", value="many"),
    change("facts", "document", "name", value=7),
    change("facts", "document", "name", value="x" * 100_000),
    change("facts", "document", "policy", value={"kind": "os.system", "window": 1}),
    change("facts", "document", "policy", value={"kind": ["exact"], "window": 1}),
    change("facts", "document", "policy", value=[]),
    change("facts", "document", "space", "prefix", value=["1"]),
    change("facts", "document", "space", "prefix", value=5),
    change("facts", "run_ids", value=["zz"]),
    change("facts", "run_ids", value=["00"]),
    change("facts", "run_ids", value=[]),
    change("facts", "run_ids", "2", value="00" * 16),
    change("entries", "0", "id", value="../../etc/passwd"),
    change("entries", "0", "id", value=5),
    change("entries", "0", "codec", value="f16'; DROP TABLE runs; --"),
    change("entries", "0", "codec", value=None),
    change("entries", "0", "n_tokens", value=127),
    change("entries", "0", "n_tokens", value=1 << 40),
    change("entries", "0", "checksum", value="00" * 16),
    change("entries", "0", "offset", value=64),
    change("entries", "0", "size", value=1 << 50),
    change("facts", "document", "n_tokens", value=1025),
]


@pytest.mark.parametrize("harm", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_headers_are_refused_whole(
    exported: Path, tmp_path: Path, harm: Callable[[Any], None]
) -> None:
    header, data = read(exported)
    harm(header)
    rewrite(exported, header, data)
    with KVStore.open(tmp_path / "to") as store:
        with pytest.raises(InputError, match=r"a\.kv: cannot be imported, ") as caught:
            store.import_(exported)
        assert "\n" not in caught.value.message
        assert (store.documents(), store.size_bytes) == ([], 0)


def test_bytes_that_are_no_run_are_refused(exported: Path, tmp_path: Path) -> None:
    """The checksums are right, what they cover is not what the C++ core calls a run."""
    header, data = read(exported)
    entry = header["entries"][3]
    start, end = entry["offset"], entry["offset"] + entry["size"]
    run = data[start:end]
    for bad in (os.urandom(len(run)), bytes(len(run)), b"\xff" * 64 + run[64:]):
        entry["checksum"] = checksum_of(bad).hex()
        rewrite(exported, header, data[:start] + bad + data[end:])
        with KVStore.open(tmp_path / "to") as store:
            with pytest.raises(InputError, match="cannot be imported"):
                store.import_(exported)
            assert store.documents() == []


@pytest.mark.parametrize("share", [0, 0.01, 0.5, 0.999])
def test_a_cut_file_is_refused(exported: Path, tmp_path: Path, share: float) -> None:
    os.truncate(exported, int(exported.stat().st_size * share))
    with KVStore.open(tmp_path / "to") as store, pytest.raises(InputError, match="cannot be imported"):
        store.import_(exported)


@pytest.mark.parametrize("offset", [0, 8, 20, 100, -100])
def test_a_flipped_byte_is_refused(exported: Path, tmp_path: Path, offset: int) -> None:
    whole = bytearray(exported.read_bytes())
    whole[offset] ^= 1
    exported.write_bytes(whole)
    with KVStore.open(tmp_path / "to") as store, pytest.raises(InputError, match="cannot be imported"):
        store.import_(exported)


def test_a_name_cannot_harm_a_terminal(exported: Path, tmp_path: Path) -> None:
    header, data = read(exported)
    header["facts"]["document"]["name"] = "a\x1b[2J\nb"
    rewrite(exported, header, data)
    with KVStore.open(tmp_path / "to") as store:
        assert store.import_(exported).identity.name == "a\\x1b[2J\\nb"


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    said = {
        tmp_path: "is a directory",
        tmp_path / "none": "no such file",
        tmp_path / "pipe": "a named pipe",
        Path("/dev/zero"): "a device",
    }
    with KVStore.open(tmp_path / "to") as store:
        for path, what in said.items():
            with pytest.raises(InputError, match=what):
                store.import_(path)


def test_an_export_is_whole_or_absent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with KVStore.open(tmp_path / "store") as store:
        with pytest.raises(UsageError, match="no document"):
            store.export("0" * 32, tmp_path / "a.kv")
        write(store, "a.txt", TOKENS)
        key = document_of(TOKENS).key
        with pytest.raises(StoreUnusable, match=r"cannot write .*: no such file"):
            store.export(key, tmp_path / "none" / "a.kv")
        (tmp_path / "out").mkdir()
        (tmp_path / "out" / "a.kv").write_text("old")

        def fail(*_: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "fsync", fail)
        with pytest.raises(StoreUnusable, match="no space left"):
            store.export(key, tmp_path / "out" / "a.kv")
        assert [(path.name, path.read_text()) for path in (tmp_path / "out").iterdir()] == [("a.kv", "old")]
