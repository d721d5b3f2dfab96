"""`localctx plan` and `localctx models suggest` as a user types them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from engine.tiny_architectures import write_architecture

from localctx.forecast.calibration import kept

Run = Callable[..., Any]
PROSE = "The harbour of Tannau was built in 1871 by Anna Feld. The council paid for it in salt. "


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "x.txt"
    path.write_text(PROSE * 200)
    return str(path)


def test_the_plan_of_a_document(localctx: Run, file: str, tiny_model_path: Path) -> None:
    result = localctx("plan", file, "-m", str(tiny_model_path), "-t", "1")
    assert result.code == 0, result.err
    lines = result.out.splitlines()
    assert lines[0].startswith("retrieve: does not fit:")
    assert sum(line.startswith("→ retrieve") for line in lines) == 1
    for word in ("exact-f16", "streamed-store", "lazy-store", "condense", "first answer after", "window"):
        assert word in result.out
    assert "indexing all of it first pays after about" in result.out
    shown = localctx("plan", file, "-m", str(tiny_model_path), "--json", "--for", "summarize", "-t", "1").json
    assert (shown["schema"], shown["command"], shown["strategy"]) == (
        "localctx.plan/1", "summarize", "map-reduce",
    )  # fmt: skip


def test_standard_input_and_pages(localctx: Run, tiny_model_path: Path) -> None:
    result = localctx("plan", "-", "-m", str(tiny_model_path), "--json", stdin=PROSE.encode())
    assert (result.code, result.json["rung"]) == (0, "exact-f16")
    paged = localctx("plan", "-", "-m", str(tiny_model_path), "--pages", "1-2", stdin=PROSE.encode())
    assert paged.code == 2


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--vram", "8Q"], 2, "--vram = '8Q' is no size"),
        (["--ram", "much"], 2, "--ram = 'much' is no size"),
        (["--disk", "-3"], 2, "--disk = '-3' is no size"),
        (["--for", "chat"], 2, "--for chat is not understood"),
        (["--gpu-layers", "all"], 2, "there is no GPU"),
        (["--ctx", "4096"], 2, "trained for"),
        (["--strategy", "exact"], 2, "exact attention does not fit"),
        (["--strategy", "map-reduce"], 2, "is not for ask"),
        (["--ram", "1M"], 1, "left by --ram"),
        (["--gpu-layers", "2", "--vram", "1K"], 1, "GPU memory"),
        (["--n-cpu-moe", "3"], 2, "no mixture of experts"),
        (["-m", "smollm"], 2, "unknown model"),
        (["-m", "/nowhere.gguf"], 1, "/nowhere.gguf"),
    ],
)  # fmt: skip
def test_what_cannot_be_is_one_line(
    localctx: Run, file: str, tiny_model_path: Path, words: list[str], code: int, said: str
) -> None:
    model = [] if "-m" in words else ["-m", str(tiny_model_path)]
    result = localctx("plan", file, *model, "-t", "1", *words)
    assert (result.code, result.out) == (code, "")
    assert said in result.err
    assert result.err.count("\n") == 1


def test_what_cannot_be_read(localctx: Run, tmp_path: Path, tiny_model_path: Path) -> None:
    missing = localctx("plan", str(tmp_path / "nowhere.txt"), "-m", str(tiny_model_path))
    assert (missing.code, missing.err.count("\n")) == (3, 1)
    (tmp_path / "empty.txt").write_text("")
    assert localctx("plan", str(tmp_path / "empty.txt"), "-m", str(tiny_model_path)).code == 3
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "good.txt").write_text(PROSE)
    (folder / "gone.txt").symlink_to(tmp_path / "nowhere.txt")
    partly = localctx("plan", str(folder), "-m", str(tiny_model_path), "--json")
    assert partly.code == 4
    assert partly.json["strategy"] == "exact" and any("gone.txt" in one for one in partly.json["warnings"])


def test_a_hybrid_model_is_planned_without_the_store(localctx: Run, file: str, tmp_path: Path) -> None:
    path = write_architecture(tmp_path / "m.gguf", "lfm2")
    shown = localctx("plan", file, "-m", str(path), "--json", "-t", "1").json
    assert shown["model"]["store"] is False and "recurrent layers" in shown["model"]["why_no_store"]
    refused = localctx("plan", file, "-m", str(path), "--strategy", "stream")
    assert (refused.code, refused.err.count("\n")) == (1, 1)


MEASURE = """
import json, pathlib, resource, sys
from localctx.cli.main import run
try:
    run(sys.argv[1:])
except SystemExit as done:
    assert done.code == 0, done.code
own, child = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
status = pathlib.Path("/proc/self/status")
if status.exists():  # the other figure begins with what the starting process had
    own = int(status.read_text().partition("VmHWM:")[2].split()[0])
print(json.dumps([own, child]), file=sys.stderr)
"""


@pytest.mark.model
def test_a_plan_loads_no_weights_and_stays_small(
    file: str, smollm2_path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    Path(file).write_text(PROSE * 3000)
    words = ["plan", file, "-m", str(smollm2_path), "--json", "--quiet"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, *words], capture_output=True, text=True, check=True, env=environment
    )
    own, child = (kib * 1024 for kib in json.loads(done.stderr.splitlines()[-1]))
    assert own < 300_000_000 and child < 300_000_000
    shown = json.loads(done.stdout)
    assert shown["tokens"]["total"] > 50_000 and shown["model"]["weights_bytes"] > 90_000_000


def test_a_plan_after_benchmarks_is_calibrated(localctx: Run, tiny_model_path: Path, tmp_path: Path) -> None:
    store, words = str(tmp_path / "store"), ["-m", str(tiny_model_path), "-t", "1", "--json"]
    done = localctx("bench", "prefill", "--tokens", "700", "--repeats", "1", "--store", store, *words)
    assert done.code == 0, done.err
    (found,) = kept(Path(store))
    assert len(found.prefill) >= 1 and len(found.decode) >= 1
    deepest = max(depth for depth, _ in found.prefill)
    assert 128 < deepest < 700 and found.prefill[0][1] > 0
    done = localctx(
        "bench", "decode", "--tokens", "300", "--steps", "4", "--repeats", "1", "--store", store, *words
    )
    assert done.code == 0, done.err
    (after,) = kept(Path(store))
    assert 300.0 in [depth for depth, _ in after.decode] and after.prefill == found.prefill
    (tmp_path / "x.txt").write_text("The harbour of Tannau was built in 1871. " * 40)
    shown = localctx("plan", str(tmp_path / "x.txt"), "--store", store, *words).json
    assert shown["speed"]["source"] == "calibrated"
    assert localctx("plan", str(tmp_path / "x.txt"), *words).json["speed"]["source"] == "uncalibrated"


def test_known_models_for_a_machine(localctx: Run) -> None:
    result = localctx("models", "suggest", "--vram", "8G", "--ram", "16G", "-h")
    assert result.code == 0
    shown = localctx("models", "suggest", "--vram", "8G", "--ram", "16G", "--json").json
    assert shown["schema"] == "localctx.suggest/1"
    assert [one["fits"] for one in shown["models"]] == sorted(
        (one["fits"] for one in shown["models"]), reverse=True
    )
    by_name = {one["name"]: one for one in shown["models"]}
    assert by_name["llama-3.2-3b"]["fits"] and not by_name["gpt-oss-120b"]["fits"]
    assert by_name["llama-3.1-8b"]["gb_per_million_tokens"] == 38.0
    assert set(by_name["smollm2-135m"]) >= {
        "prefill_tokens_per_s", "decode_tokens_per_s", "languages", "store", "fits", "gb_per_million_tokens",
    }  # fmt: skip
    lines = localctx("models", "suggest", "--vram", "0", "--ram", "4G").out.splitlines()
    assert lines[1].startswith("fits") and lines[-1].startswith("no")
    wrong = localctx("models", "suggest", "--ram", "lots")
    assert (wrong.code, wrong.err.count("\n")) == (2, 1)
