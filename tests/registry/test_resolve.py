"""What --model means: names, paths, other tools' caches, and what is refused."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from localctx.engine.gguf import open_model
from localctx.errors import LocalctxError, ModelError, UsageError
from localctx.registry import list_models, models_dir, resolve
from localctx.registry.places import hub_cache

Q4, Q8 = "qwen3-8b-Q4_K_M.gguf", "qwen3-8b-Q8_0.gguf"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "models"
    path.mkdir()
    return path


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "hub"


def put(path: Path, text: str = "GGUF") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def snapshot(cache: Path, repo: str, *names: str, revision: str = "abc") -> Path:
    """A repository as huggingface_hub lays it out: snapshot entries are links to blobs."""
    root = cache / f"models--{repo.replace('/', '--')}"
    for name in names:
        blob = put(root / "blobs" / f"{revision}-{name.replace('/', '-')}")
        link = root / "snapshots" / revision / name
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(blob)
    return root / "snapshots" / revision


def refusal(spec: str, folder: Path, cache: Path) -> LocalctxError:
    with pytest.raises(LocalctxError) as caught:
        resolve(spec, folder, cache)
    assert "\n" not in caught.value.message
    assert caught.value.hint
    return caught.value


def test_an_installed_name_and_its_alias_resolve(folder: Path, cache: Path) -> None:
    path = put(folder / "smollm2-135m.gguf")
    for spec in ("smollm2-135m", "SmolLM2-135M", "smollm2"):
        found = resolve(spec, folder, cache)
        assert (found.path, found.name) == (path, "smollm2-135m")
        assert found.manifest is not None


def test_the_missing_embedded_model_names_the_command(folder: Path, cache: Path) -> None:
    error = refusal("smollm2-135m", folder, cache)
    assert isinstance(error, ModelError)
    assert "localctx models pull smollm2-135m" in error.hint


def test_a_missing_known_model_says_where_to_get_it(folder: Path, cache: Path) -> None:
    error = refusal("qwen3-8b", folder, cache)
    assert isinstance(error, ModelError)
    assert "localctx models pull qwen3-8b" in error.hint


def test_a_known_model_is_found_in_the_hub_cache(folder: Path, cache: Path) -> None:
    files = snapshot(cache, "Qwen/Qwen3-8B-GGUF", Q8, Q4)
    found = resolve("qwen3-8b", folder, cache)
    assert found.path == files / Q4
    assert found.name == "qwen3-8b"


def test_an_unknown_name_is_a_usage_error_with_the_nearest(folder: Path, cache: Path) -> None:
    error = refusal("smolm2-135m", folder, cache)
    assert isinstance(error, UsageError)
    assert "did you mean 'smollm2-135m'" in error.message
    assert "localctx models ls" in error.hint


def test_a_family_asks_for_a_size(folder: Path, cache: Path) -> None:
    error = refusal("qwen3", folder, cache)
    assert isinstance(error, UsageError)
    assert "qwen3-8b" in error.hint


@pytest.mark.parametrize("spec", ["", "a\0b"])
def test_no_name_at_all_is_a_usage_error(spec: str, folder: Path, cache: Path) -> None:
    assert isinstance(refusal(spec, folder, cache), UsageError)


def test_a_file_of_the_models_folder_resolves_by_its_name(folder: Path, cache: Path) -> None:
    path = put(folder / "my-model.gguf")
    assert resolve("my-model", folder, cache).path == path


def test_a_known_name_comes_before_a_path_of_that_spelling(
    folder: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    put(tmp_path / "smollm2-135m")
    put(tmp_path / "other")
    installed = put(folder / "smollm2-135m.gguf")
    assert resolve("smollm2-135m", folder, cache).path == installed
    assert resolve("./smollm2-135m", folder, cache).path == Path("smollm2-135m")
    assert resolve("other", folder, cache).path == Path("other")


def test_a_folder_with_one_model_resolves_and_projectors_do_not_count(folder: Path, cache: Path) -> None:
    path = put(folder / "sub" / "model.gguf")
    put(folder / "sub" / "mmproj-model-f16.gguf")
    put(folder / "sub" / "README.md")
    assert resolve(str(folder / "sub"), folder, cache).path == path


def test_a_folder_with_several_models_lists_them(folder: Path, cache: Path) -> None:
    put(folder / "a.gguf")
    put(folder / "b.gguf")
    error = refusal(str(folder), folder, cache)
    assert isinstance(error, UsageError)
    assert "a.gguf, b.gguf" in error.message


def test_an_empty_folder_is_a_model_error(folder: Path, cache: Path) -> None:
    assert "no GGUF" in refusal(str(folder), folder, cache).message


def test_any_shard_resolves_to_the_first(folder: Path, cache: Path) -> None:
    shards = [put(folder / f"m-0000{number}-of-00003.gguf") for number in (1, 2, 3)]
    assert resolve(str(shards[1]), folder, cache).path == shards[0]
    assert resolve(str(folder), folder, cache).path == shards[0]
    assert [row.name for row in list_models(folder, cache) if row.manifest is None] == ["m-00001-of-00003"]


def test_missing_shards_are_listed(folder: Path, cache: Path) -> None:
    path = put(folder / "m-00002-of-00003.gguf")
    error = refusal(str(path), folder, cache)
    assert isinstance(error, ModelError)
    assert "m-00001-of-00003.gguf" in error.message
    assert "m-00003-of-00003.gguf" in error.message


@pytest.mark.parametrize(
    "spec", ["./nothing.gguf", "no/such/file", "~nobody-of-this-name/m.gguf", "x" * 300 + ".gguf"]
)
def test_a_missing_path_is_a_model_error(spec: str, folder: Path, cache: Path) -> None:
    assert isinstance(refusal(spec, folder, cache), ModelError)


def test_a_name_that_is_not_utf8_is_shown_escaped(folder: Path, cache: Path, tmp_path: Path) -> None:
    assert "\\xff" in refusal(os.fsdecode(b"./caf\xff.gguf"), folder, cache).message
    assert "\\xff" in refusal(os.fsdecode(b"caf\xff"), folder, cache).message


def test_pipes_and_devices_are_refused_without_reading(folder: Path, cache: Path, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.gguf"
    os.mkfifo(pipe)
    for path in (str(pipe), os.devnull):
        assert "not a regular file" in refusal(path, folder, cache).message


def test_a_path_out_of_the_folder_is_a_path_and_no_gguf(
    folder: Path, cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = put(tmp_path / "etc" / "passwd", "root:x:0:0:root:/root:/bin/bash\n")
    put(folder / "passwd.gguf")
    (tmp_path / "a" / "b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a" / "b")
    found = resolve("../../etc/passwd", folder, cache)
    assert found.path.samefile(secret)
    with pytest.raises(ModelError) as caught:
        open_model(found.path)
    assert "\n" not in caught.value.message
    assert "root:" not in caught.value.message


@pytest.mark.parametrize("repo", ["../../etc", "a/../b", "/etc/passwd", "a", "a/b/c", "a/.b", "a/b..c", ""])
def test_a_repository_name_cannot_leave_the_cache(repo: str, folder: Path, cache: Path) -> None:
    assert type(refusal(f"hf:{repo}", folder, cache)) is UsageError


def test_the_hub_cache_is_read_by_file_and_by_quantisation(folder: Path, cache: Path) -> None:
    files = snapshot(cache, "Qwen/Qwen3-8B-GGUF", Q4, Q8, "sub/other-Q6_K.gguf", "mmproj-F16.gguf")
    assert resolve(f"hf:Qwen/Qwen3-8B-GGUF:{Q8}", folder, cache).path == files / Q8
    assert resolve("hf:Qwen/Qwen3-8B-GGUF:q4_k_m", folder, cache).path == files / Q4
    assert resolve("hf:Qwen/Qwen3-8B-GGUF:Q6_K", folder, cache).path == files / "sub/other-Q6_K.gguf"
    assert "several models" in refusal("hf:Qwen/Qwen3-8B-GGUF", folder, cache).message


def test_the_main_revision_of_the_hub_cache_comes_first(folder: Path, cache: Path) -> None:
    snapshot(cache, "a/b", "m.gguf", revision="aaa")
    newer = snapshot(cache, "a/b", "m.gguf", revision="bbb")
    put(cache / "models--a--b" / "refs" / "main", "bbb")
    assert resolve("hf:a/b", folder, cache).path == newer / "m.gguf"


@pytest.mark.parametrize("spec", ["hf:a/b", "hf:a/b:m.gguf", "hf:a/b:Q4_K_M"])
def test_what_is_not_here_names_the_command_and_is_not_fetched(spec: str, folder: Path, cache: Path) -> None:
    snapshot(cache, "a/b")
    error = refusal(spec, folder, cache)
    assert isinstance(error, ModelError)
    assert error.hint == f"run: localctx models pull {spec}"


def test_what_was_pulled_comes_before_the_hub_cache(folder: Path, cache: Path) -> None:
    snapshot(cache, "a/b", "m-Q8_0.gguf", "m-Q6_K.gguf")
    pulled = put(folder / "hf" / "a" / "b" / "m-Q8_0.gguf")
    assert resolve("hf:a/b:Q8_0", folder, cache).path == pulled
    assert "several models here" in refusal("hf:a/b", folder, cache).message


def test_a_missing_shard_of_a_repository_is_named(folder: Path, cache: Path) -> None:
    put(folder / "hf" / "a" / "b" / "m-00002-of-00002.gguf")
    error = refusal("hf:a/b:m-00002-of-00002.gguf", folder, cache)
    assert isinstance(error, ModelError)
    assert "m-00001-of-00002.gguf" in error.message


def test_models_are_listed_with_what_is_installed(folder: Path, cache: Path) -> None:
    path = put(folder / "smollm2-135m.gguf", "GGUF and more")
    put(folder / "mine.gguf")
    rows = {row.name: row for row in list_models(folder, cache)}
    assert rows["smollm2-135m"].path == path
    assert rows["smollm2-135m"].size_bytes == 13
    assert rows["mine"].installed
    assert rows["mine"].manifest is None
    assert not rows["qwen3-8b"].installed
    assert "qwen3" not in rows


def test_a_folder_that_cannot_be_looked_at_holds_nothing(tmp_path: Path, cache: Path) -> None:
    unusable = tmp_path / ("x" * 300)  # fails for root too, unlike a missing permission
    assert "models pull" in refusal("smollm2-135m", unusable, cache).hint
    assert not any(row.installed for row in list_models(unusable, unusable))


def test_folders_follow_the_environment(tmp_path: Path) -> None:
    assert models_dir({"LOCALCTX_MODELS_DIR": str(tmp_path)}) == tmp_path
    assert hub_cache({"HF_HUB_CACHE": "/h", "HF_HOME": "/x"}) == Path("/h")
    assert hub_cache({"HF_HOME": "/x"}) == Path("/x/hub")
    assert hub_cache({"XDG_CACHE_HOME": "/c"}) == Path("/c/huggingface/hub")
