"""The examination: what is seen of the machine, and a trial child that dies in every way it can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localctx.doctor import Finding, Report, examine
from localctx.doctor.disk import check_disk
from localctx.doctor.machine import check_cpu, check_folders
from localctx.doctor.trial import check_engine

BUILD = {"system_info": "CPU : AVX2 = 1", "devices": [], "gpu_offload": False}
TRIAL = {"model": "Tiny", "token": 7, "finite": True, "tokens_per_s": 41.25}


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file of a module `fake_trial` that the child process can import."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    return tmp_path / "fake_trial.py"


def trial(code: Path, text: str, timeout_s: float = 30.0) -> list[Finding]:
    code.write_text(text)
    return list(check_engine(Path("model.gguf"), "fake_trial", timeout_s))


def answer(build: dict[str, object], result: dict[str, object]) -> str:
    """A child that prints what the real one prints, and noise."""
    lines = ("noise", json.dumps({**BUILD, **build, **TRIAL, **result}))
    return "\n".join(f"print({line!r})" for line in lines)


def test_a_good_trial_tells_speed_and_build(child: Path) -> None:
    gpu, first = trial(child, answer({}, {}))
    assert (first.name, first.status) == ("trial", "ok")
    assert "41.2 tokens/s" in first.detail
    assert (gpu.name, gpu.status) == ("gpu", "ok")
    assert "CPU only" in gpu.detail
    assert "AVX2 = 1" in gpu.detail


def test_the_child_gets_the_path_of_the_model(child: Path) -> None:
    (finding,) = trial(child, "import sys\nsys.exit('got ' + sys.argv[1])")
    assert "got model.gguf" in finding.detail


def test_the_childs_own_error_is_passed_on(child: Path) -> None:
    _, finding = trial(child, answer({}, {"error": "half a file", "hint": "download it again"}))
    assert (finding.status, finding.detail, finding.suggestion) == (
        "fail",
        "half a file",
        "download it again",
    )


def test_numbers_that_are_none_fail(child: Path) -> None:
    _, finding = trial(child, answer({}, {"finite": False}))
    assert finding.status == "fail"
    assert "make install GPU=cpu" in finding.suggestion


@pytest.mark.parametrize("name", ["SIGILL", "SIGSEGV", "SIGABRT"])
def test_a_child_that_dies_of_its_build_names_what_to_rebuild(child: Path, name: str) -> None:
    build = f"print({json.dumps(BUILD)!r}, flush=True)"
    _, finding = trial(child, f"{build}\nimport os, signal\nos.kill(os.getpid(), signal.{name})")
    assert finding.status == "fail"
    assert "AVX2 = 1" in finding.detail
    assert name in finding.detail
    assert "make install GPU=cpu" in finding.suggestion


def test_a_killed_child_points_at_memory(child: Path) -> None:
    (finding,) = trial(child, "import os\nos.kill(os.getpid(), 9)")
    assert finding.status == "fail"
    assert "memory" in finding.suggestion


def test_a_child_that_hangs_is_ended(child: Path) -> None:
    (finding,) = trial(child, "import time\ntime.sleep(60)", timeout_s=0.5)
    assert finding.status == "fail"
    assert "no token within" in finding.detail


def test_a_library_that_cannot_be_loaded_is_told(child: Path) -> None:
    text = "raise ImportError('libcudart.so.13: cannot open shared object file (llama_cpp)')"
    (finding,) = trial(child, text)
    assert finding.status == "fail"
    assert "libcudart.so.13" in finding.detail
    assert "make install" in finding.suggestion


@pytest.mark.parametrize(
    "text",
    ["", "print('[1]')", "print('{}')", "print('{')", "import sys\nsys.exit(3)", "import no_such_module"],
)
def test_a_child_that_says_nothing_sensible_fails_in_one_line(child: Path, text: str) -> None:
    (finding,) = trial(child, text)
    assert finding.status == "fail"
    assert "\n" not in finding.detail


def test_a_gpu_build_lists_devices_or_warns_that_none_is_seen(child: Path) -> None:
    seen, _ = trial(child, answer({"gpu_offload": True, "devices": ["CUDA0 (H200)"]}, {}))
    assert seen.status == "ok"
    assert "CUDA0 (H200)" in seen.detail
    none, _ = trial(child, answer({"gpu_offload": True}, {}))
    assert none.status == "warn"
    assert "CUDA_VISIBLE_DEVICES" in none.suggestion


def test_an_examination_without_a_model_still_reports_all(tmp_path: Path) -> None:
    report = examine(folder=tmp_path)
    findings = {finding.name: finding for finding in report.findings}
    names = {"python", "cpu", "memory", "cache folder", "models folder", "store disk", "model", "llama.cpp"}
    assert {*names, "trial"} <= set(findings)
    assert findings["model"].status == "warn"
    assert findings["embedder"].status == "warn"
    assert "by words alone" in findings["embedder"].detail
    assert "localctx models pull all-minilm-l6-v2" in findings["embedder"].suggestion
    assert findings["trial"].status == "fail"
    assert "localctx models pull smollm2-135m" in findings["trial"].suggestion
    assert report.status == "fail"
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_cannot_be_looked_at_stops_no_check(tmp_path: Path) -> None:
    findings = {finding.name: finding for finding in examine(folder=tmp_path / ("x" * 300)).findings}
    assert findings["model"].status == "warn"
    assert not any("this check stopped" in finding.detail for finding in findings.values())


def test_a_wrong_model_file_is_told(tmp_path: Path) -> None:
    for name in ("smollm2-135m", "all-minilm-l6-v2"):
        (tmp_path / f"{name}.gguf").write_bytes(b"GGUF")
    findings = {
        finding.name: finding for finding in examine(folder=tmp_path, trial_module="no_such_trial").findings
    }
    assert findings["model"].status == findings["embedder"].status == "fail"
    assert "models pull" in findings["model"].suggestion


def test_a_check_that_raises_becomes_a_finding(tmp_path: Path) -> None:
    (tmp_path / "smollm2-135m.gguf").write_bytes(b"GGUF")
    report = examine(folder=tmp_path, trial_module="impossible\0name")
    assert any("this check stopped" in finding.detail for finding in report.findings)
    assert {finding.name for finding in report.findings} >= {"python", "cpu", "memory", "llama.cpp"}


def test_an_examination_loads_no_llama_cpp(tmp_path: Path) -> None:
    code = (
        "import sys, pathlib, localctx.doctor\n"
        f"localctx.doctor.examine(folder=pathlib.Path({str(tmp_path)!r}))\n"
        "assert 'llama_cpp' not in sys.modules"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def test_the_worst_finding_is_the_status() -> None:
    ok, warn, fail = (Finding("x", status, "") for status in ("ok", "warn", "fail"))
    assert Report((ok,)).status == "ok"
    assert Report((ok, warn)).status == "warn"
    assert Report((fail, ok, warn)).status == "fail"


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="instruction sets of x86-64")
def test_instruction_sets_are_read(tmp_path: Path) -> None:
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("processor : 0\nmodel name : Old CPU\nflags : fpu sse2 avx\n")
    (old,) = check_cpu(cpuinfo)
    assert (old.status, "Old CPU" in old.detail) == ("warn", True)
    cpuinfo.write_text("model name : New CPU\nflags : avx2 fma f16c amx_tile amx_int8\n")
    (new,) = check_cpu(cpuinfo)
    assert new.status == "ok"
    assert "GGML_NATIVE" in new.detail
    assert "; AVX2, has avx2, fma, f16c, amx_tile" in new.detail
    cpuinfo.write_text("model name : Wide CPU\nflags : avx2 fma f16c avx512f\n")
    (wide,) = check_cpu(cpuinfo)
    assert "; AVX-512, has " in wide.detail
    assert "make install CPU=all" in wide.detail
    (unknown,) = check_cpu(tmp_path / "missing")
    assert unknown.status == "ok"


@pytest.mark.model
def test_the_real_child_gives_a_token() -> None:
    findings = {finding.name: finding for finding in examine().findings}
    assert findings["model"].status == "ok"
    assert findings["trial"].status == "ok"
    assert "gave a token" in findings["trial"].detail


def test_a_folder_that_cannot_be_written_names_its_variable(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    findings = {finding.name: finding for finding in check_folders(tmp_path / "file" / "models")}
    assert findings["models folder"].status == "warn"
    assert "LOCALCTX_MODELS_DIR" in findings["models folder"].suggestion


def test_files_of_the_current_folder_are_not_imported(
    child: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hostile = tmp_path / "hostile"
    hostile.mkdir()
    for name in ("numpy.py", "json.py", "localctx.py"):
        (hostile / name).write_text("raise SystemExit('the hostile file was imported')")
    monkeypatch.chdir(hostile)
    for python_path in (str(tmp_path), f"{tmp_path}{os.pathsep}"):  # an empty entry means the current folder
        monkeypatch.setenv("PYTHONPATH", python_path)
        _, finding = trial(child, f"import json, numpy, localctx\n{answer({}, {})}")
        assert (finding.status, finding.detail[:4]) == ("ok", "Tiny")


def test_every_gpu_and_the_cpu_give_a_token_of_their_own(child: Path) -> None:
    build = {**BUILD, "gpu_names": ["CUDA0", "CUDA1"], "devices": ["CUDA0 (H200)", "CUDA1 (H200)"]}
    copy = {"device": "x", "memory": "page-locked", "to_bytes_per_s": 43.2e9, "from_bytes_per_s": 47e9}
    text = f"""
import json, os, sys
said = {{**{build!r}, **{TRIAL!r}}}
where = sys.argv[2:]
if where == ["1"]:
    print(json.dumps({build!r}), flush=True)
    os.abort()
print(json.dumps(said))
if where == ["0"]:
    print(json.dumps({{"copy": {copy!r}}}))
"""
    findings = {finding.name: finding for finding in trial(child, text)}
    assert list(findings) == ["gpu", "trial", "trial CUDA0", "copy CUDA0", "trial CUDA1", "trial CPU"]
    assert [name for name, finding in findings.items() if finding.status != "ok"] == ["trial CUDA1"]
    assert "SIGABRT" in findings["trial CUDA1"].detail
    assert "43.2 GB/s to CUDA0 from page-locked, 47.0 GB/s back" in findings["copy CUDA0"].detail
    assert findings["copy CUDA0"].measured["from_bytes_per_s"] == 47_000_000_000
    assert findings["trial"].measured == {"tokens_per_s": 41.25}


def test_copies_from_plain_memory_are_a_warning(child: Path) -> None:
    copy = {"device": "x", "memory": "plain memory", "to_bytes_per_s": 6e9, "from_bytes_per_s": 7e9}
    findings = trial(child, answer({"gpu_names": ["CUDA0"]}, {"copy": copy}))
    (copied,) = (finding for finding in findings if finding.name == "copy CUDA0")
    assert copied.status == "warn"
    assert "ulimit -l" in copied.suggestion


def test_backends_and_version_are_named(child: Path) -> None:
    gpu, _ = trial(child, answer({"ggml": "0.25.3", "backends": ["CUDA", "CPU"]}, {}))
    assert "ggml 0.25.3, backends CUDA, CPU; CPU : AVX2 = 1" in gpu.detail


def test_the_disk_of_the_store_is_measured(tmp_path: Path) -> None:
    (finding,) = check_disk(tmp_path / "not" / "made" / "yet", 1 << 20)
    assert finding.name == "store disk"
    assert finding.measured["write_bytes_per_s"] > 0
    assert finding.measured["read_bytes_per_s"] > 0
    assert "/s written" in finding.detail
    assert list(tmp_path.iterdir()) == []
    (off,) = check_disk(None)
    assert (off.status, off.measured) == ("ok", {})


def test_a_slow_disk_names_the_way_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("localctx.doctor.disk.file_speeds", lambda folder, n_bytes: (9e7, 8e7))
    (slow,) = check_disk(tmp_path)
    assert slow.status == "warn"
    assert "LOCALCTX_STORE" in slow.suggestion


def test_a_store_on_a_folder_that_cannot_be_written_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(folder: Path, n_bytes: int) -> tuple[float, float]:
        raise PermissionError(13, "denied", str(folder))

    monkeypatch.setattr("localctx.doctor.disk.file_speeds", refuse)
    (finding,) = check_disk(tmp_path / "store")
    assert finding.status == "warn"
    assert "Permission denied" in finding.detail
    assert "LOCALCTX_STORE" in finding.suggestion


@pytest.mark.model
def test_the_real_child_runs_on_a_named_device(smollm2_path: Path) -> None:
    command = [sys.executable, "-P", "-m", "localctx.engine.trial", str(smollm2_path)]
    cpu = subprocess.run([*command, "cpu"], capture_output=True, text=True, check=False)
    assert json.loads(cpu.stdout)["finite"] is True
    none = subprocess.run([*command, "0"], capture_output=True, text=True, check=False)
    if not json.loads(none.stdout.splitlines()[0])["gpu_names"]:
        assert none.returncode == 1
        assert "no GPU can be used" in json.loads(none.stdout)["error"]


def test_json_has_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from localctx.cli.main import run

    finding = Finding("store disk", "ok", "fast", measured={"read_bytes_per_s": 9e8})
    monkeypatch.setattr("localctx.doctor.examine", lambda model, store: Report((finding,)))
    with pytest.raises(SystemExit):
        run(["doctor", "--json"])
    (shown,) = json.loads(capfd.readouterr().out)["findings"]
    assert shown == {
        "name": "store disk", "status": "ok", "detail": "fast", "suggestion": "",
        "measured": {"read_bytes_per_s": 9e8},
    }  # fmt: skip
