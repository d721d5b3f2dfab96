"""Pulling from the hub, against a server that speaks its endpoints."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from registry.fake_hub import REVISION, FakeHub

from localctx.errors import ModelError, UsageError
from localctx.registry import fetch, pull, resolve
from localctx.registry.fetch import parts_of
from localctx.registry.hub_pull import read_record

REPO = "someone/Tiny-GGUF"
PROGRAM = "from localctx.cli.entry import run; run()"
NAMES = ("tiny-Q4_K_M.gguf", "tiny-Q8_0.gguf", "mmproj-tiny-f16.gguf")


def content(name: str, n_bytes: int = 300_000) -> bytes:
    """Bytes that differ from name to name and from place to place."""
    return b"GGUF" + hashlib.shake_256(name.encode()).digest(n_bytes)


@pytest.fixture
def hub(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[FakeHub]:
    """A hub with one repository, and nothing else of this machine in reach."""
    for name in list(os.environ):
        if name.lower().endswith("_proxy") or name.startswith(("HF_", "HUGGINGFACE_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf-home"))
    monkeypatch.setattr(fetch, "RETRY_SECONDS", (0.0, 0.0))
    root = tmp_path_factory.mktemp("hub")
    for name in NAMES:
        put(root / REPO / name, content(name))
    put(root / REPO / "README.md", b"# Tiny\n")
    with FakeHub(root) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.address)
        yield server


def put(path: Path, data: bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return path


def files(folder: Path) -> list[str]:
    """What a folder holds, by name inside it."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())


def refusal(spec: str, folder: Path) -> ModelError | UsageError:
    """The error of a pull that leaves no file with a final name."""
    with pytest.raises((ModelError, UsageError)) as caught:
        pull(spec, folder)
    assert not [name for name in files(folder) if name.endswith(".gguf")]
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_a_file_is_fetched_checked_and_recorded(hub: FakeHub, tmp_path: Path) -> None:
    said: list[str] = []
    seen: list[tuple[int, int]] = []
    spec = f"hf:{REPO}:tiny-Q8_0.gguf"
    path = pull(
        spec, tmp_path / "m", say=said.append, on_progress=lambda done, total: seen.append((done, total))
    )
    data = content("tiny-Q8_0.gguf")
    assert path.read_bytes() == data
    assert files(tmp_path / "m") == [f"hf/{REPO}/tiny-Q8_0.gguf", f"hf/{REPO}/tiny-Q8_0.gguf.json"]
    record = read_record(path)
    assert record is not None
    assert (record.repo, record.revision, record.sha256) == (REPO, REVISION, hashlib.sha256(data).hexdigest())
    assert seen[0] == (0, len(data))
    assert seen[-1] == (len(data), len(data))
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert "fetching tiny-Q8_0.gguf (300.0 kB)" in said
    assert resolve(spec, tmp_path / "m", tmp_path / "none").path == path


def test_what_is_there_is_not_fetched_again_and_what_is_damaged_is(hub: FakeHub, tmp_path: Path) -> None:
    path = pull(f"hf:{REPO}:Q8_0", tmp_path)
    pull(f"hf:{REPO}:Q8_0", tmp_path)
    assert len(hub.asked) == 1
    path.write_bytes(b"X" + path.read_bytes()[1:])
    pull(f"hf:{REPO}:Q8_0", tmp_path)
    assert path.read_bytes() == content("tiny-Q8_0.gguf")
    assert len(hub.asked) == 2


def test_a_repository_alone_means_q4_k_m_and_a_quantisation_its_file(hub: FakeHub, tmp_path: Path) -> None:
    said: list[str] = []
    assert pull(f"hf:{REPO}", tmp_path, say=said.append).name == "tiny-Q4_K_M.gguf"
    assert f"{REPO} has 2 models: taking tiny-Q4_K_M.gguf" in said
    assert pull(f"hf:{REPO}:q8_0", tmp_path).name == "tiny-Q8_0.gguf"
    assert pull(f"hf:{REPO}:mmproj-tiny-f16.gguf", tmp_path).name == "mmproj-tiny-f16.gguf"


def test_what_is_not_there_is_named_with_what_is(hub: FakeHub, tmp_path: Path) -> None:
    error = refusal(f"hf:{REPO}:Q2_K", tmp_path)
    assert "has no Q2_K" in error.message
    assert "tiny-Q4_K_M.gguf" in error.hint
    (hub.root / REPO / "tiny-Q4_K_M.gguf").unlink()
    put(hub.root / REPO / "tiny-Q5_0.gguf", content("x"))
    several = refusal(f"hf:{REPO}", tmp_path)
    assert isinstance(several, UsageError)
    assert "tiny-Q5_0.gguf, tiny-Q8_0.gguf" in several.message
    put(hub.root / "someone" / "weights" / "model.safetensors", b"x")
    assert "has no GGUF file" in refusal("hf:someone/weights", tmp_path).message


def test_a_known_model_is_pulled_from_its_repository(hub: FakeHub, tmp_path: Path) -> None:
    put(hub.root / "Qwen" / "Qwen3-8B-GGUF" / "Qwen3-8B-Q4_K_M.gguf", content("q4"))
    put(hub.root / "Qwen" / "Qwen3-8B-GGUF" / "Qwen3-8B-Q8_0.gguf", content("q8"))
    path = pull("qwen3-8b", tmp_path)
    assert path.read_bytes() == content("q4")
    assert resolve("qwen3-8b", tmp_path, tmp_path / "none").path == path
    with pytest.raises(UsageError, match="family"):
        pull("qwen3", tmp_path)


def test_all_shards_are_fetched_whichever_is_named(hub: FakeHub, tmp_path: Path) -> None:
    names = [f"Q6_K/big-Q6_K-0000{number}-of-00003.gguf" for number in (1, 2, 3)]
    for name in names:
        put(hub.root / REPO / name, content(name, 50_000))
    total: set[int] = set()
    path = pull(f"hf:{REPO}:{names[1]}", tmp_path, on_progress=lambda done, n: total.add(n))
    assert path == tmp_path / "hf" / REPO / names[0]
    assert [(tmp_path / "hf" / REPO / name).read_bytes() for name in names] == [
        content(n, 50_000) for n in names
    ]
    assert total == {3 * 50_004}
    assert resolve(f"hf:{REPO}:Q6_K", tmp_path, tmp_path / "none").path == path
    (hub.root / REPO / names[2]).unlink()
    assert names[2] in refusal(f"hf:{REPO}:Q6_K", tmp_path / "other").message


def test_a_wrong_hash_is_refused_and_nothing_is_left(hub: FakeHub, tmp_path: Path) -> None:
    hub.hashes["tiny-Q8_0.gguf"] = "ab" * 32
    assert "SHA-256 is not abababababab" in refusal(f"hf:{REPO}:Q8_0", tmp_path).message
    assert files(tmp_path / "hf") == []
    hub.hashes.clear()
    assert pull(f"hf:{REPO}:Q8_0", tmp_path).read_bytes() == content("tiny-Q8_0.gguf")


def test_what_came_instead_is_named(hub: FakeHub, tmp_path: Path) -> None:
    page = put(hub.root / REPO / "page.gguf", b"<!doctype html><title>Log in</title>")
    hub.hashes["page.gguf"] = "cd" * 32
    assert "an HTML or XML page" in refusal(f"hf:{REPO}:page.gguf", tmp_path).message
    hub.sizes["page.gguf"] = 10
    page.write_bytes(b"GGUF" + bytes(5_000_000))
    assert "longer than the 10 bytes" in refusal(f"hf:{REPO}:page.gguf", tmp_path).message
    assert hub.n_sent < 5_000_000
    hub.without_hash.add("page.gguf")
    assert "no SHA-256" in refusal(f"hf:{REPO}:page.gguf", tmp_path).message
    assert files(tmp_path / "hf") == []


def test_a_lost_connection_goes_on_where_it_stopped(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after = [100_000, 50_000]
    said: list[str] = []
    path = pull(f"hf:{REPO}:Q8_0", tmp_path, say=said.append)
    assert path.read_bytes() == content("tiny-Q8_0.gguf")
    assert hub.asked == [("tiny-Q8_0.gguf", start) for start in (0, 100_000, 150_000)]
    assert sum("trying again" in line for line in said) == 2


def test_what_came_is_kept_when_the_hub_stays_silent(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after = [100_000, 0, 0, 0, 0, 0]
    error = refusal(f"hf:{REPO}:Q8_0", tmp_path)
    assert "100,000 of 300,004 bytes are here" in error.message
    assert "run it again to go on" in error.hint
    hub.cut_after = []
    hub.asked.clear()
    pull(f"hf:{REPO}:Q8_0", tmp_path)
    assert hub.asked == [("tiny-Q8_0.gguf", 100_000)]


def test_a_server_without_ranges_begins_anew(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after, hub.ignores_ranges = [100_000], True
    said: list[str] = []
    assert pull(f"hf:{REPO}:Q8_0", tmp_path, say=said.append).read_bytes() == content("tiny-Q8_0.gguf")
    assert any("from the beginning" in line for line in said)


def test_the_part_of_another_revision_is_not_gone_on_with(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after = [100_000, 0, 0, 0]
    refusal(f"hf:{REPO}:Q8_0", tmp_path)
    (left,) = parts_of(tmp_path / "hf" / REPO / "tiny-Q8_0.gguf")
    put(hub.root / REPO / "tiny-Q8_0.gguf", content("newer"))
    hub.asked.clear()
    assert pull(f"hf:{REPO}:Q8_0", tmp_path).read_bytes() == content("newer")
    assert hub.asked == [("tiny-Q8_0.gguf", 0)]
    assert not left.exists()


def test_a_damaged_part_costs_one_fetch_not_the_file(hub: FakeHub, tmp_path: Path) -> None:
    hub.cut_after = [100_000, 0, 0, 0]
    refusal(f"hf:{REPO}:Q8_0", tmp_path)
    (part,) = parts_of(tmp_path / "hf" / REPO / "tiny-Q8_0.gguf")
    part.write_bytes(bytes(300_004))  # a power cut leaves zeros
    assert pull(f"hf:{REPO}:Q8_0", tmp_path).read_bytes() == content("tiny-Q8_0.gguf")
    put(part, bytes(400_000))
    (tmp_path / "hf" / REPO / "tiny-Q8_0.gguf").unlink()
    assert pull(f"hf:{REPO}:Q8_0", tmp_path).read_bytes() == content("tiny-Q8_0.gguf")


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(hub: FakeHub, tmp_path: Path) -> None:
    hub.sizes["tiny-Q8_0.gguf"] = 10**17
    error = refusal(f"hf:{REPO}:Q8_0", tmp_path)
    assert "100000.0 TB to be fetched" in error.message
    assert "LOCALCTX_MODELS_DIR" in error.hint
    assert hub.asked == []


def test_names_of_the_hub_cannot_leave_the_folder(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = hub.info
    for name in ("../../../evil.gguf", "/etc/evil.gguf", "a//b.gguf", "a\\..\\b.gguf", "x" * 250 + ".gguf"):
        sibling = {"rfilename": name, "size": 9, "lfs": {"sha256": "0" * 64, "size": 9, "pointerSize": 1}}
        monkeypatch.setattr(hub, "info", lambda repo, item=sibling: {**honest(repo), "siblings": [item]})
        assert "cannot be kept" in refusal(f"hf:{REPO}", tmp_path / "m").message
    assert hub.asked == []


def test_offline_uses_what_is_here_and_asks_nobody(hub: FakeHub, tmp_path: Path) -> None:
    path = pull(f"hf:{REPO}:Q8_0", tmp_path)
    hub.status = 500
    assert pull(f"hf:{REPO}:Q8_0", tmp_path, offline=True) == path
    with pytest.raises(ModelError, match="not here and --offline is set"):
        pull(f"hf:{REPO}:Q4_K_M", tmp_path, offline=True)


def test_the_cache_of_the_hubs_own_tool_is_used(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = content("tiny-Q8_0.gguf")
    root = tmp_path / "cache" / f"models--{REPO.replace('/', '--')}"
    blob = put(root / "blobs" / hashlib.sha256(data).hexdigest(), data)
    link = root / "snapshots" / "abc" / "tiny-Q8_0.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    assert pull(f"hf:{REPO}:Q8_0", tmp_path / "m") == link
    assert hub.asked == []
    put(hub.root / REPO / "tiny-Q8_0.gguf", content("newer"))  # the cache holds an older version
    assert pull(f"hf:{REPO}:Q8_0", tmp_path / "m").read_bytes() == content("newer")


@pytest.mark.parametrize(
    ("status", "code", "said", "hint"),
    [
        (404, "RepoNotFound", "has no repository someone/Tiny-GGUF", "HF_TOKEN"),
        (401, "", "does not show it to you (HTTP 401)", "HF_TOKEN"),
        (403, "GatedRepo", "someone/Tiny-GGUF is gated", "accept them at"),
        (429, "", "HTTP 429 (too many requests)", "later"),
        (503, "", "answers with HTTP 503", "later"),
        (407, "", "wants a user name and password", "HTTPS_PROXY"),
    ],
)
def test_refusals_of_the_hub_are_one_line(
    hub: FakeHub, tmp_path: Path, status: int, code: str, said: str, hint: str
) -> None:
    hub.status, hub.headers_of_status = status, {"X-Error-Code": code}
    error = refusal(f"hf:{REPO}:Q8_0", tmp_path)
    assert said in error.message
    assert hint in error.hint


def test_a_login_page_is_no_hub(hub: FakeHub, tmp_path: Path) -> None:
    hub.page = b"<html>Please log in</html>"
    assert "not as a hub does" in refusal(f"hf:{REPO}", tmp_path).message
    hub.page = b'"text"'
    assert "not as a hub does" in refusal(f"hf:{REPO}", tmp_path).message


def test_no_network_and_no_proxy_are_named(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    error = refusal(f"hf:{REPO}", tmp_path)
    assert "127.0.0.1:9 cannot be reached" in error.message
    assert "HTTPS_PROXY" in error.hint


def said_elsewhere(folder: Path, **environ: str) -> str:
    """What a process says of a pull under other variables, which the hub's library reads when imported."""
    code = f"""
from pathlib import Path
from localctx.errors import ModelError
from localctx.registry import pull
try:
    pull("hf:{REPO}", Path({str(folder)!r}))
except ModelError as error:
    print(error.message, error.hint, sep="\\n")
"""
    rest = {name: value for name, value in os.environ.items() if not name.lower().endswith("_proxy")}
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, capture_output=True, text=True, env={**rest, **environ}, check=True)
    assert done.stderr == ""
    return done.stdout


def test_a_proxy_is_named_without_its_password(tmp_path: Path, hub: FakeHub) -> None:
    there = {"HF_ENDPOINT": "https://hub.example"}
    said = said_elsewhere(tmp_path, HTTPS_PROXY="http://joe:secret@127.0.0.1:9", **there)
    assert "hub.example cannot be reached through the proxy 127.0.0.1:9" in said
    assert "NO_PROXY" in said
    port = hub.server_port
    refused = said_elsewhere(tmp_path, HTTPS_PROXY=f"http://joe:secret@127.0.0.1:{port}", **there)
    assert f"the proxy 127.0.0.1:{port} refuses: 407" in refused
    assert "HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT" in refused
    assert "secret" not in said + refused


def test_the_hubs_own_offline_switch_is_named(tmp_path: Path, hub: FakeHub) -> None:
    assert "HF_HUB_OFFLINE is set" in said_elsewhere(tmp_path, HF_HUB_OFFLINE="1")
    assert hub.asked == []


def test_the_token_goes_to_the_hub_and_not_to_where_it_redirects(
    hub: FakeHub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    with FakeHub(hub.root) as cdn:
        hub.redirects_to = cdn.address.replace("127.0.0.1", "localhost")
        pull(f"hf:{REPO}:Q8_0", tmp_path)
        assert cdn.tokens == [None]
    assert hub.tokens == ["Bearer hf_secret"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("how", "code", "said"),
    [
        (signal.SIGKILL, -9, ""),
        (signal.SIGINT, 130, "interrupted"),
        (signal.SIGTERM, 143, "interrupted"),
    ],
)
def test_a_pull_ended_at_a_third_goes_on_from_there(
    tmp_path: Path, hub: FakeHub, how: signal.Signals, code: int, said: str
) -> None:
    name, n_bytes = "slow-Q4_0.gguf", 8_000_000
    put(hub.root / REPO / name, content(name, n_bytes))
    hub.piece_bytes, hub.holds_at = 100_000, n_bytes // 2
    folder = tmp_path / "m"
    environ = {**os.environ, "LOCALCTX_MODELS_DIR": str(folder)}
    command = [sys.executable, "-c", PROGRAM, "models", "pull", f"hf:{REPO}:{name}", "--json"]
    process = subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    target = folder / "hf" / REPO / name
    while process.poll() is None and sum(path.stat().st_size for path in parts_of(target)) < 0.3 * n_bytes:
        time.sleep(0.01)
    process.send_signal(how)
    first = "".join(process.communicate())
    hub.holds_at = None
    assert (process.returncode, said in first, "Traceback" in first) == (code, True, False)
    assert not target.exists()
    (part,) = parts_of(target)
    n_kept = part.stat().st_size
    assert 0.3 * n_bytes <= n_kept < n_bytes
    hub.asked.clear()
    hub.n_sent = 0
    done = subprocess.run(command, env=environ, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["path"] == str(target)
    assert f"going on at {n_kept / (n_bytes + 4):.0%}" in done.stderr
    assert hub.asked == [(name, n_kept)]
    n_left = n_bytes + 4 - n_kept
    assert n_left <= hub.n_sent <= n_left + hub.piece_bytes  # one more may be under way to who was ended
    assert target.read_bytes() == content(name, n_bytes)
    assert parts_of(target) == []
    shutil.rmtree(folder)


@pytest.mark.slow
def test_two_processes_fetch_a_file_once(tmp_path: Path, hub: FakeHub) -> None:
    hub.piece_bytes, hub.pause_seconds = 50_000, 0.05
    environ = {**os.environ, "LOCALCTX_MODELS_DIR": str(tmp_path / "m")}
    command = [sys.executable, "-c", PROGRAM, "models", "pull", f"hf:{REPO}:Q8_0"]
    running = [subprocess.Popen(command, env=environ, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0, 0], said
    assert len(hub.asked) == 1
    assert files(tmp_path / "m") == [f"hf/{REPO}/tiny-Q8_0.gguf", f"hf/{REPO}/tiny-Q8_0.gguf.json"]
