"""What make says and in which order it works. Installs nothing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PREREQUISITES = "apt install python3-venv python3-dev g++ make"

pytestmark = pytest.mark.skipif(shutil.which("make") is None, reason="needs make")


def make(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["make", "--no-print-directory", f"PYTHON={sys.executable}", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def test_help_is_the_default_and_prints_the_one_table() -> None:
    result = make()
    assert result.returncode == 0, result.stderr
    for word in ("make demo", "make test", "make install", "LITE=1", "WHEEL_DIR", "PREFIX"):
        assert word in result.stdout
    assert result.stdout.count("-DGGML_CUDA=ON") == 1
    assert all(f"  {gpu}" in result.stdout for gpu in ("cpu", "cuda", "hip", "vulkan", "metal"))


def test_a_missing_compiler_gives_the_one_line_to_type() -> None:
    result = make("check", CXX="no-such-compiler")
    assert result.returncode != 0
    assert PREREQUISITES in result.stderr.splitlines()
    assert "no-such-compiler" in result.stderr


def test_a_missing_python_gives_the_same_line() -> None:
    result = make("check", "PYTHON=no-such-python")
    assert result.returncode != 0
    assert PREREQUISITES in result.stderr.splitlines()


def test_an_old_python_is_named(tmp_path: Path) -> None:
    old = tmp_path / "python3"
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.9.2\nexit 1\n')
    old.chmod(0o755)
    result = make("check", f"PYTHON={old}")
    assert result.returncode != 0
    assert "3.11 or newer" in result.stderr
    assert "3.9.2" in result.stderr


def test_an_environment_that_is_there_needs_no_venv(tmp_path: Path) -> None:
    without_venv = tmp_path / "python3"
    without_venv.write_text(
        f'#!/bin/sh\ncase "$2" in *ensurepip*) exit 1;; esac\nexec {sys.executable} "$@"\n'
    )
    without_venv.chmod(0o755)
    result = make("check", f"PYTHON={without_venv}", f"PREFIX={tmp_path / 'env'}")
    assert "missing: venv" in result.stderr
    there = tmp_path / "env" / "bin"
    there.mkdir(parents=True)
    (there / "python").write_text("#!/bin/sh\nexit 0\n")
    (there / "python").chmod(0o755)
    result = make("check", f"PYTHON={without_venv}", f"PREFIX={tmp_path / 'env'}")
    assert "venv" not in result.stderr


def test_llama_cpp_is_installed_before_the_package_that_needs_it(tmp_path: Path) -> None:
    result = make("-n", "install", "GPU=cuda", f"PREFIX={tmp_path / 'venv'}", f"WHEEL_DIR={tmp_path / 'w'}")
    assert result.returncode == 0, result.stderr
    lines = result.stdout.splitlines()
    llama = next(i for i, line in enumerate(lines) if "llama_wheel.py install" in line)
    package = next(i for i, line in enumerate(lines) if "pip install" in line)
    model = next(i for i, line in enumerate(lines) if "models pull smollm2-135m" in line)
    assert llama < package < model
    assert "--gpu cuda" in lines[llama]
    assert str(tmp_path / "w") in lines[llama]


def test_every_way_of_building_reaches_the_builder(tmp_path: Path) -> None:
    for gpu in ("cpu", "cuda", "hip", "vulkan", "metal"):
        result = make("-n", "install", f"GPU={gpu}", "CPU=all", f"PREFIX={tmp_path / 'venv'}")
        assert result.returncode == 0, result.stderr
        (line,) = (line for line in result.stdout.splitlines() if "llama_wheel.py install" in line)
        assert f"--gpu {gpu} --cpu all" in line


def test_models_can_come_from_a_file_or_later(tmp_path: Path) -> None:
    prefix = f"PREFIX={tmp_path / 'venv'}"
    off = make("-n", "install", "MODEL=off", prefix)
    assert off.returncode == 0, off.stderr
    assert "models pull smollm2-135m" not in off.stdout.replace("later: localctx models pull", "")
    given = make("-n", "install", f"MODEL={tmp_path / 'm.gguf'}", "LITE=1", prefix).stdout
    assert given.index(f'cp "{tmp_path / "m.gguf"}"') < given.index("models pull smollm2-135m")
    assert "models pull all-minilm-l6-v2" not in given
    assert "cp " not in make("-n", "install", prefix).stdout


def test_the_installed_program_is_asked_where_models_lie_not_the_sources(tmp_path: Path) -> None:
    """The sources lie in the folder that make runs in, and have no compiled core."""
    given = make("-n", "install", f"MODEL={tmp_path / 'm.gguf'}", f"PREFIX={tmp_path / 'venv'}").stdout
    asked = [line for line in given.splitlines() if "import models_dir" in line]
    assert asked
    assert all("python -P -c" in line for line in asked)


def test_the_page_of_gpu_builds_says_what_was_not_run() -> None:
    page = (ROOT / "docs" / "install.md").read_text("utf-8")
    rows = {row.split("`")[1]: row for row in page.splitlines() if row.startswith("| `")}
    for backend in ("hip", "vulkan", "metal"):
        assert "**not built here, not run" in rows[backend]
    assert "ROCm 6.1 or newer" in rows["hip"]
    assert "HIPCXX=" in rows["hip"]


@pytest.mark.parametrize("goal", ["demo", "test"])
def test_the_two_commands_do_all_the_set_up(goal: str, tmp_path: Path) -> None:
    result = make("-n", goal, f"PREFIX={tmp_path / 'venv'}")
    assert result.returncode == 0, result.stderr
    for step in ("-m venv", "llama_wheel.py install", "pip install", "models pull smollm2-135m"):
        assert step in result.stdout
    last = {"demo": "summarize docs/samples/state-of-the-union.pdf --length short", "test": "elsewhere"}[goal]
    assert last in result.stdout
    assert "torch" not in result.stdout


def test_ci_runs_make_test_from_the_root_without_input(tmp_path: Path) -> None:
    fake = tmp_path / "make"
    fake.write_text('#!/bin/sh\necho "$PWD: make $*"\n[ -t 0 ] || cat\n')
    fake.chmod(0o755)
    result = subprocess.run(
        ["bash", str(ROOT / ".ci" / "run")],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"},
        input="typed",
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{ROOT}: make test\n"
