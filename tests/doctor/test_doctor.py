"""The examination: what is seen of the machine, and a trial child that dies in every way it can."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from localctx.doctor import Finding, Report, examine
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
    assert {"python", "cpu", "memory", "cache folder", "models folder", "model", "llama.cpp", "trial"} <= set(
        findings
    )
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
