"""The builder of llama.cpp wheels: what the folder's name holds, exactness, atomicity. Builds nothing."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPT = Path(__file__).parents[2] / "native" / "llama_wheel.py"


@pytest.fixture(scope="module")
def builder() -> ModuleType:
    spec = importlib.util.spec_from_file_location("llama_wheel", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_backend_is_portable_and_has_its_own_folder(builder: ModuleType) -> None:
    names = {builder.key(builder.cmake_args(gpu)) for gpu in builder.CMAKE_ARGS}
    assert len(names) == len(builder.CMAKE_ARGS) == 5
    assert all("-DGGML_NATIVE=OFF" in args for args in builder.CMAKE_ARGS.values())
    version = f"cp{sys.version_info.major}{sys.version_info.minor}"
    assert all(name.startswith(f"llama_cpp_python-{builder.VERSION}-{version}-") for name in names)


def test_arguments_of_the_environment_come_last_and_change_the_folder(
    builder: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMAKE_ARGS", "")
    plain = builder.cmake_args("cpu")
    monkeypatch.setenv("CMAKE_ARGS", "-DGGML_NATIVE=ON  -DX=1")
    changed = builder.cmake_args("cpu")
    assert changed.endswith("-DGGML_NATIVE=ON -DX=1")
    assert builder.key(plain) != builder.key(changed)
    assert builder.key(plain) == builder.key(f"  {plain} ")


def test_all_generations_of_cpus_are_built_without_amx(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CMAKE_ARGS", "")
    monkeypatch.setattr(builder, "lacks_avx2", lambda: True)  # the variants say for themselves
    args = builder.cmake_args("cuda", "all")
    for flag in ("GGML_CUDA=ON", "GGML_CPU_ALL_VARIANTS=ON", "GGML_BACKEND_DL=ON", "GGML_NATIVE=OFF"):
        assert f"-D{flag}" in args
    assert "-DGGML_AVX2=OFF" not in args
    assert builder.key(args) != builder.key(builder.cmake_args("cuda"))
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\necho "exclude=$SKBUILD_WHEEL_EXCLUDE args=$CMAKE_ARGS"\n')
    fake.chmod(0o755)
    monkeypatch.setattr(builder.sys, "executable", str(fake))
    monkeypatch.setenv("SKBUILD_WHEEL_EXCLUDE", "")
    for wanted, excluded in ((args, "exclude=**/libggml-cpu-sapphirerapids* "), ("-DA=1", "exclude= ")):
        builder.build(tmp_path, wanted, tmp_path / "log")
        assert (tmp_path / "log").read_text().startswith(excluded)
    with pytest.raises(builder.BuildError, match="CPU=native is not known"):
        builder.cmake_args("cpu", "native")


def test_a_cpu_without_avx2_gets_none(
    builder: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(builder.platform, "machine", lambda: "x86_64")
    cpuinfo = tmp_path / "cpuinfo"
    cpuinfo.write_text("flags\t\t: sse2 avx avx2 fma\n")
    assert not builder.lacks_avx2(cpuinfo)
    cpuinfo.write_text("flags\t\t: sse2 avx\n")
    assert builder.lacks_avx2(cpuinfo)
    assert not builder.lacks_avx2(tmp_path / "missing")
    monkeypatch.setattr(builder, "lacks_avx2", lambda: True)
    assert "-DGGML_AVX2=OFF" in builder.cmake_args("cpu")


def test_a_ready_made_wheel_is_taken_once(builder: ModuleType, tmp_path: Path) -> None:
    ready = tmp_path / "llama_cpp_python-0-py3-none-any.whl"
    ready.write_bytes(b"one")
    folder = tmp_path / "wheels"
    folder.mkdir()
    wheel = builder.obtain(folder, "-DA=1", ready)
    ready.write_bytes(b"two")
    assert builder.obtain(folder, "-DA=1", ready) == wheel
    assert wheel.read_bytes() == b"one"
    assert (wheel.parent / "CMAKE_ARGS").read_text() == "-DA=1\n"
    assert builder.obtain(folder, "-DA=2", ready).read_bytes() == b"two"
    assert not list(folder.glob(".part-*"))


def test_a_build_that_fails_says_why_and_leaves_no_folder(tmp_path: Path) -> None:
    environment = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(tmp_path), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, str(SCRIPT), "build", "--gpu", "cpu", "--wheel-dir", str(tmp_path / "wheels")]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert "No matching distribution found for llama-cpp-python" in result.stderr
    assert "Traceback" not in result.stderr
    assert not [path for path in (tmp_path / "wheels").iterdir() if path.is_dir()]


def test_an_unknown_backend_is_one_line(tmp_path: Path) -> None:
    command = [sys.executable, str(SCRIPT), "path", "--gpu", "cdua"]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 1
    assert result.stderr == "llama_wheel.py: GPU=cdua is not known; one of cpu, cuda, hip, vulkan, metal\n"


def test_two_at_once_make_one_wheel(tmp_path: Path) -> None:
    code = (
        f"import sys, time; sys.path.insert(0, {str(SCRIPT.parent)!r})\n"
        "import llama_wheel, pathlib\n"
        "def build(scratch, args, log):\n"
        "    with log.open('a') as file: file.write('built\\n')\n"
        "    time.sleep(0.5)\n"
        "    (scratch / 'x-1-py3-none-any.whl').write_text('w')\n"
        "llama_wheel.build = build\n"
        f"print(llama_wheel.obtain(pathlib.Path({str(tmp_path)!r}), '-DA=1', None))\n"
    )
    command = [sys.executable, "-c", code]
    first, second = (subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(2))
    outputs = [process.communicate()[0].splitlines()[-1] for process in (first, second)]
    assert outputs[0] == outputs[1]
    (log,) = tmp_path.glob("*.log")
    assert log.read_text() == "built\n"


def test_progress_lines_of_both_generators_are_understood(builder: ModuleType) -> None:
    ninja = builder._STEP.match("  [12/345] Building CXX object a.o")
    make = builder._STEP.match("[  7%] Building CXX object a.o")
    assert (ninja["done"], ninja["total"]) == ("12", "345")
    assert make["percent"] == "7"
    assert builder._STEP.match("[notice] something") is None
