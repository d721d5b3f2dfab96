"""Checking files against what is known of them, and removing what is localctx's own."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from localctx.errors import ModelError, UsageError
from localctx.registry import check_file, plan_removal, remove
from localctx.registry.hub_pull import read_record, record_path

DATA = b"GGUF" + bytes(range(200))


def put(path: Path, data: bytes = DATA) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def pulled(folder: Path, name: str = "a/b/m.gguf", data: bytes = DATA) -> Path:
    """A file as `models pull` leaves it."""
    path = put(folder / "hf" / name, data)
    value = {
        "schema": "localctx.pulled/1", "repo": "a/b", "revision": "0123456789abcdef", "name": name,
        "size_bytes": len(data), "sha256": hashlib.sha256(data).hexdigest(),
    }  # fmt: skip
    put(record_path(path), json.dumps(value).encode())
    return path


def test_a_pulled_file_is_compared_with_its_record(tmp_path: Path) -> None:
    path = pulled(tmp_path)
    check = check_file(path, tmp_path)
    assert (check.status, check.detail) == ("ok", "SHA-256 as a/b at 0123456789ab says")
    path.write_bytes(DATA[:-1] + b"x")
    assert check_file(path, tmp_path).status == "damaged"


def test_caches_that_name_content_by_its_hash_are_taken_at_their_word(tmp_path: Path) -> None:
    digest = hashlib.sha256(DATA).hexdigest()
    blob = put(tmp_path / "ollama" / "blobs" / f"sha256-{digest}")
    hub = put(tmp_path / "hub" / "blobs" / digest)
    link = tmp_path / "hub" / "snapshots" / "abc" / "m.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(hub)
    for path in (blob, link):
        assert check_file(path, tmp_path / "m").status == "ok"
        path.write_bytes(DATA + b"x")
        assert check_file(path, tmp_path / "m").status == "damaged"


def test_without_a_hash_the_files_own_table_is_looked_at(tmp_path: Path, tiny_model_path: Path) -> None:
    data = tiny_model_path.read_bytes()
    whole = put(tmp_path / "whole.gguf", data)
    assert check_file(whole, tmp_path).status == "unknown"
    cut = put(tmp_path / "cut.gguf", data[:-1000])
    check = check_file(cut, tmp_path)
    assert (check.status, "cut short" in check.detail) == ("damaged", True)
    gone = pulled(tmp_path)
    gone.unlink()
    with pytest.raises(ModelError, match="no such file"):
        check_file(gone, tmp_path)


DAMAGED = ("", "[]", "{}", '{"schema": "localctx.pulled/1"}', "[" * 50_000, '{"schema": 1}')


@pytest.mark.parametrize("text", DAMAGED)
def test_a_damaged_record_is_none(tmp_path: Path, text: str) -> None:
    path = pulled(tmp_path)
    record_path(path).write_text(text)
    assert read_record(path) is None


def test_removing_takes_all_that_belongs_to_a_model_and_no_more(tmp_path: Path) -> None:
    shards = [pulled(tmp_path, f"a/b/Q8/m-0000{number}-of-00002.gguf") for number in (1, 2)]
    part = put(shards[1].with_name(f"{shards[1].name}.0123456789ab.part"), b"1234")
    other = put(tmp_path / "other.gguf")
    removal = plan_removal("hf:a/b:Q8", tmp_path, tmp_path / "none")
    assert set(removal.paths) == {*shards, *map(record_path, shards), part}
    assert removal.size_bytes == sum(path.stat().st_size for path in removal.paths)
    remove(removal, tmp_path)
    assert list(tmp_path.rglob("*")) == [other]
    remove(plan_removal("other", tmp_path, tmp_path / "none"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_what_an_unfinished_pull_left_can_be_removed(tmp_path: Path) -> None:
    put(tmp_path / "hf" / "a" / "b" / "m.gguf.0123456789ab.part")
    remove(plan_removal("hf:a/b:m.gguf", tmp_path, tmp_path / "none"), tmp_path)
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(ModelError, match="not here"):
        plan_removal("hf:a/b:m.gguf", tmp_path, tmp_path / "none")


def test_other_tools_files_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, cache = tmp_path / "models", tmp_path / "hub"
    folder.mkdir()
    cached = put(cache / "models--a--b" / "snapshots" / "abc" / "m.gguf")
    given = put(tmp_path / "mine.gguf")
    digest = hashlib.sha256(DATA).hexdigest()
    blob = put(tmp_path / "ollama" / "blobs" / f"sha256-{digest}")
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": f"sha256:{digest}"}
    manifest = tmp_path / "ollama" / "manifests" / "registry.ollama.ai" / "library" / "llama3.2" / "1b"
    put(manifest, json.dumps({"layers": [layer]}).encode())
    monkeypatch.setenv("OLLAMA_MODELS", str(tmp_path / "ollama"))
    way_out = folder / "link"
    way_out.symlink_to(tmp_path, target_is_directory=True)
    theirs = "with the tool"
    specs = {
        "hf:a/b:m.gguf": theirs,
        str(given): theirs,
        "ollama:llama3.2:1b": "ollama rm llama3.2:1b",
        str(way_out / "mine.gguf"): theirs,
    }
    for spec, how in specs.items():
        with pytest.raises(ModelError, match="it stays") as caught:
            plan_removal(spec, folder, cache)
        assert how in caught.value.hint
    assert all(path.exists() for path in (cached, given, blob))
    with pytest.raises(UsageError):
        plan_removal("hf:../../x:m.gguf", folder, cache)


def test_a_link_in_the_models_folder_goes_and_what_it_leads_to_stays(tmp_path: Path) -> None:
    given = put(tmp_path / "mine.gguf")
    folder = tmp_path / "models"
    folder.mkdir()
    (folder / "linked.gguf").symlink_to(given)
    remove(plan_removal("linked", folder, tmp_path / "none"), folder)
    assert given.read_bytes() == DATA
    assert list(folder.iterdir()) == []
