"""What went wrong elsewhere with kept KV, tried here as typed: other settings, damage, no place, no space."""

from __future__ import annotations

import json
import os
import random
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import gguf
import pytest
from engine.tiny_gguf import bpe_vocabulary, write_tiny_gguf
from session.test_kept_kv import QUESTION, chapters

from localctx.engine import open_model
from localctx.session.verdicts import VERDICT_FACT
from localctx.store import KVStore

Run = Callable[..., Any]
F16 = "codec=f16,refresh=0"


class Desk:
    """One text, one model, one store, and the program."""

    def __init__(self, folder: Path, model: Path, localctx: Run | None) -> None:
        self.folder, self.model, self.localctx = folder, model, localctx
        self.store = folder / "store"
        self.file = folder / "book.md"

    def words(self, command: str, store: str = "", kv: str = F16, *more: str) -> list[str]:
        words = [
            command, str(self.file), "-m", str(self.model), "--store", store or str(self.store), "-t", "1",
            "--strategy", "stream", "--kv", kv, "--json",
        ]  # fmt: skip
        return [*words, *(("-q", QUESTION, "-n", "8") if command == "ask" else ()), *more]

    def run(self, command: str, store: str = "", kv: str = F16, *more: str) -> Any:
        assert self.localctx is not None
        result = self.localctx(*self.words(command, store, kv, *more))
        assert result.code == 0, (result.out, result.err)
        return result.json

    def verify(self) -> bool:
        assert self.localctx is not None
        return bool(self.localctx("store", "verify", "--store", str(self.store)).code == 0)


@pytest.fixture(scope="module")
def indexed_once(tmp_path_factory: pytest.TempPathFactory, tiny_model_path: Path) -> Path:
    """A folder with a text of 2,700 tokens, indexed by a process of its own; to be copied."""
    desk = Desk(tmp_path_factory.mktemp("indexed"), tiny_model_path, None)
    desk.file.write_text(chapters(20), "utf-8")
    trust(desk)
    done = subprocess.run(program(desk.words("index")), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return desk.folder


def trust(desk: Desk) -> None:
    """Say that the model passed its check."""
    with open_model(desk.model) as model, KVStore.open(desk.store) as store:
        store.set_model_fact(model.info.fingerprint, VERDICT_FACT, {"stream": {"passes": True}})


def program(words: list[str]) -> list[str]:
    return [sys.executable, "-c", "from localctx.cli.entry import run; run()", *words]


@pytest.fixture
def desk(indexed_once: Path, tmp_path: Path, tiny_model_path: Path, localctx: Run) -> Desk:
    """A copy of the indexed folder."""
    shutil.copytree(indexed_once, tmp_path / "desk")
    return Desk(tmp_path / "desk", tiny_model_path, localctx)


# --- what differs between keeping and asking ----------------------------------------------------------


def test_a_restore_counts_by_what_is_not_evaluated(desk: Desk) -> None:
    stored, fresh = desk.run("ask"), desk.run("ask", "off", f"{F16},lazy=off")
    assert stored["answer"] == fresh["answer"]
    assert stored["tokens"]["evaluated"] < 200
    assert fresh["tokens"]["evaluated"] > 10 * stored["tokens"]["evaluated"]


def test_only_kv_is_stored(desk: Desk) -> None:
    """No logits: the bytes are those of the KV."""
    assert desk.localctx is not None
    (document,) = desk.localctx("store", "ls", "--store", str(desk.store), "--json").json["documents"]
    kv_bytes = document["tokens_total"] * 2 * 2 * 2 * 16 * 2  # layers, K and V, KV heads, head size, f16
    assert kv_bytes <= document["size_bytes"] < 1.05 * kv_bytes


@pytest.mark.parametrize(
    "more", [("--ctx", "512"), ("--ctx", "1024"), ("--ctx", "2048"), ("-t", "2"), ("--seed", "5")]
)
def test_a_context_of_another_size_restores_the_same(desk: Desk, more: tuple[str, ...]) -> None:
    wanted, found = desk.run("ask"), desk.run("ask", "", F16, *more)
    assert found["answer"] == wanted["answer"]
    assert found["tokens"]["evaluated"] < 200


@pytest.mark.parametrize(
    ("kv", "said"),
    [
        ("codec=int8", "another codec"),
        ("codec=f16,window=256", "window 1,4"),
        ("policy=independent", "policy window"),
    ],
)
def test_other_settings_are_a_miss_that_is_said(desk: Desk, kv: str, said: str) -> None:
    found = desk.run("ask", "", f"{kv},refresh=0")
    assert found["tokens"]["evaluated"] > found["coverage"]["tokens_total"]
    assert len([warning for warning in found["warnings"] if said in warning]) == 1
    assert found["answer"] == desk.run("ask", "off", f"{kv},refresh=0,lazy=off")["answer"]


@pytest.mark.parametrize("how", ["another seed", "another quantisation", "same name"])
def test_another_model_is_a_miss_that_is_said(desk: Desk, how: str) -> None:
    kept = desk.model
    desk.model = desk.folder / (kept.name if how == "same name" else "other.gguf")
    kind = gguf.GGMLQuantizationType.Q8_0 if "quant" in how else gguf.GGMLQuantizationType.F32
    write_tiny_gguf(desk.model, bpe_vocabulary(), seed=7 if "quant" in how else 8, weight_type=kind)
    trust(desk)
    found = desk.run("ask")
    assert found["tokens"]["evaluated"] > found["coverage"]["tokens_total"]
    assert "another model" in " ".join(found["warnings"])
    assert found["answer"] == desk.run("ask", "off", f"{F16},lazy=off")["answer"]
    desk.model = kept
    assert desk.run("ask")["tokens"]["evaluated"] < 200  # and the first one's is still there


# --- damage ------------------------------------------------------------------------------------------


def flip(path: Path, at: float) -> None:
    """Change one byte."""
    data = bytearray(path.read_bytes())
    data[int(at * (len(data) - 1))] ^= 0x10
    path.write_bytes(data)


HARMS: dict[str, Callable[[Path], object]] = {
    "head": lambda path: flip(path, 0),
    "middle": lambda path: flip(path, 0.5),
    "end": lambda path: flip(path, 1),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "empty": lambda path: os.truncate(path, 0),
    "noise": lambda path: path.write_bytes(random.Random(1).randbytes(path.stat().st_size)),
    "gone": Path.unlink,
}


@pytest.mark.parametrize("what", ["segments", "catalogue"])
@pytest.mark.parametrize("harm", HARMS)
def test_damage_costs_time_and_not_the_answer(desk: Desk, what: str, harm: str) -> None:
    wanted = desk.run("ask")["answer"]
    evaluated = desk.run("ask", "", "codec=f16,refresh=100")["answer"]
    kv = desk.store / "kv"
    paths = list((kv / "segments").glob("*.seg")) if what == "segments" else [kv / "catalogue.sqlite3"]
    assert paths
    for path in paths:
        HARMS[harm](path)
    first = desk.run("ask")
    assert first["answer"] in (wanted, evaluated)  # what is damaged is evaluated where it stands
    if first["tokens"]["evaluated"] > 200 and what == "segments":
        assert len([warning for warning in first["warnings"] if "stored KV" in warning]) >= 1
    again = [desk.run("ask") for _ in range(2)]
    assert [answer["answer"] for answer in again] == [wanted] * 2
    if what == "segments":
        assert again[1]["tokens"]["evaluated"] < 200  # it was computed once more, and kept
        assert desk.localctx is not None
        assert desk.localctx("store", "verify", "--repair", "--store", str(desk.store)).code == 0
        assert desk.verify()


# --- no place, no space ------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["/proc/x", "/dev/null", "/dev/full"])
def test_a_cache_folder_that_cannot_be(desk: Desk, place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = desk.run("ask")["answer"]
    monkeypatch.setenv("XDG_CACHE_HOME", place)
    assert desk.localctx is not None
    words = (desk.words(command, "NONE", f"{F16},lazy=off") for command in ("ask", "index"))
    asked, refused = (
        desk.localctx(*(word for word in command if word not in ("--store", "NONE"))) for command in words
    )
    assert (asked.code, asked.json["answer"]) == (0, wanted)
    assert len([w for w in asked.json["warnings"] if "what is computed now is not kept" in w]) == 1
    assert (refused.code, refused.json["error"]["type"]) == (1, "StoreUnusable")


@contextmanager
def files_at_most(n_bytes: int) -> Iterator[None]:
    """No file can grow beyond that, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("kilobytes", [20, 60, 100, 200, 400])
def test_without_space_there_is_an_answer_and_with_space_it_goes_on(desk: Desk, kilobytes: int) -> None:
    wanted = desk.run("ask")["answer"]
    desk.store = desk.folder / "new"
    assert desk.localctx is not None
    with files_at_most(kilobytes << 10):
        index = desk.localctx(*desk.words("index"))
        assert (index.code, index.json["schema"]) == (1, "localctx.error/1")
        assert index.json["error"]["type"] == "StoreUnusable"
        asked = desk.run("ask", "", f"{F16},lazy=off")
        assert asked["answer"] == wanted
        assert len([w for w in asked["warnings"] if "what is computed now is not kept" in w]) <= 1
    assert desk.verify()
    assert list(desk.store.glob("kv/segments/tmp-*")) == []
    row = desk.run("index")["documents"][0]
    assert row["tokens_stored"] == row["tokens_total"]
    again = desk.run("ask")
    assert (again["answer"], again["tokens"]["evaluated"] < 200) == (wanted, True)
    assert desk.verify()


@pytest.mark.slow
def test_a_context_beyond_memory_is_one_line(desk: Desk) -> None:
    """A model that takes a million tokens, and a process that may have 4 GB."""
    desk.model = desk.folder / "long.gguf"
    write_tiny_gguf(desk.model, bpe_vocabulary(), n_ctx_train=1 << 20, n_layer=32)
    words = ["ask", str(desk.file), "-q", "?", "-m", str(desk.model), "--store", "off"]
    limited = ["bash", "-c", 'ulimit -v 4000000; exec "$@"', "bash"]
    refused, served = (
        subprocess.run(
            [*limited, *program([*words, *more])], capture_output=True, text=True, timeout=120, check=False
        )
        for more in (("--ctx", "1000000"), ("-n", "4"))
    )
    assert (refused.returncode, refused.stdout) == (1, "")
    (line,) = [line for line in refused.stderr.splitlines() if line.startswith("localctx: ")]
    assert "KV cache" in line
    assert "--ctx" in line
    assert "Traceback" not in refused.stderr
    assert (served.returncode, bool(served.stdout)) == (0, True), served.stderr  # no such context unasked


# --- several processes -------------------------------------------------------------------------------


@pytest.mark.slow
def test_eight_on_a_cold_store_that_is_cleared_meanwhile(desk: Desk) -> None:
    kv, commands = f"{F16},lazy=off", ("ask", "summarize") * 4
    desk.file.write_bytes(desk.file.read_text("utf-8").encode("utf-16"))  # its conversion is kept as well

    def words(command: str, store: str = "") -> list[str]:
        found = desk.words(command, store, kv)
        return [{"stream": "auto"}.get(word, word) for word in found] if command == "summarize" else found

    assert desk.localctx is not None
    wanted = {command: desk.localctx(*words(command, "off")).json["answer"] for command in commands[:2]}
    desk.store = desk.folder / "cold"
    running = [
        subprocess.Popen(program(words(command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for command in commands
    ]
    n_cleared = 0
    while n_cleared < 6 or any(process.poll() is None for process in running):
        for tidy in (["gc"], ["rm", "--all"], ["ls"]):
            assert desk.localctx("store", *tidy, "--store", str(desk.store)).code == 0
            n_cleared += 1
        time.sleep(0.05)
    for command, process in zip(commands, running, strict=True):
        out, err = process.communicate()
        assert process.returncode == 0, err
        assert "locked" not in err
        assert json.loads(out)["answer"] == wanted[command]
    assert desk.verify()
