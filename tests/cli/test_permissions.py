"""Stores that a user may not write, or not read, or that are another's: asked through the program as typed.

All commands run in one child that gives its user up, since root ignores modes.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from session.test_kept_kv import LONG, QUESTION, chapters

pytestmark = pytest.mark.slow  # three commands to import everything, and then forty
AS_USER = Path(__file__).with_name("as_user.py")
IS_ROOT = os.geteuid() == 0
NOBODY, SOMEONE = 65534, 12345
ASK, INDEX = "ask", "index"
FILES = ("long.md", "short.md")
STORES = ("off", "closed", "home", "read-only", *(("root's", "private", "someone's") if IS_ROOT else ()))
"""No store · a folder that cannot be written · none named, with HOME=/ · a store that can only be read; and
what root alone can make: one of root's for all to read · one for root alone · one of another user.
"""
Told = dict[tuple[str, str, str], dict[str, Any]]


class Setting:
    """Documents and stores in a folder that every user can reach, and what the commands said there."""

    def __init__(self, folder: Path, model: Path) -> None:
        self.folder = folder
        (folder / "long.md").write_text(LONG, "utf-8")
        (folder / "short.md").write_text(chapters(3, seed=5), "utf-8")
        shutil.copy(model, folder / "tiny.gguf")
        folder.chmod(0o755)
        for path in folder.iterdir():
            path.chmod(0o644)

    def root(self, store: str) -> str:
        return "off" if store == "off" else str(self.folder / store / "store")

    def words(self, command: str, file: str, store: str) -> list[str]:
        if command not in (ASK, INDEX):
            return ["store", command, "--store", self.root(store), *(["--all"] if command == "rm" else [])]
        place = ["HOME=/", "XDG_CACHE_HOME="] if store == "home" else []
        named = ["--store", self.root(store)] if store != "home" else []
        words = [
            *place, command, str(self.folder / file), "-m", str(self.folder / "tiny.gguf"), "-t", "1", *named,
            "--strategy", "stream", "--kv", "refresh=0,codec=f16,lazy=off",
        ]  # fmt: skip
        return [*words, "-q", QUESTION, "-n", "12", "--json"] if command == ASK else words

    def make_stores(self) -> None:
        """Of the store "warm", in which the long text is indexed."""
        modes = {
            "read-only": (NOBODY, 0o555, 0o444),
            "root's": (0, 0o755, 0o644),
            "private": (0, 0o700, 0o600),
            "someone's": (SOMEONE, 0o755, 0o644),
        }
        for name in STORES[3:]:
            user, folders, files = modes[name]
            place = self.folder / name
            place.mkdir(mode=0o755)
            shutil.copytree(self.folder / "warm" / "store", place / "store")
            for path in (place / "store", *(place / "store").rglob("*")):
                path.chmod(folders if path.is_dir() else files)
                if IS_ROOT:
                    os.chown(path, user, user)
        (self.folder / "closed").mkdir(mode=0o555)

    def files(self) -> dict[str, tuple[int, int]]:
        """Size and time of everything there."""
        paths = (path for store in STORES for path in (self.folder / store).rglob("*"))
        return {str(path): (path.stat().st_size, path.stat().st_mtime_ns) for path in paths}


@pytest.fixture(scope="module")
def told(tiny_model_path: Path) -> Iterator[Told]:
    """What every command said, by command, file and store."""
    # Not under pytest's own folder: another session that starts would close it to the child.
    with tempfile.TemporaryDirectory() as folder:
        yield tell(Setting(Path(folder), tiny_model_path))


def tell(setting: Setting) -> Told:
    """Run everything."""
    warm = [setting.words(*words) for words in ((INDEX, "long.md", "warm"), (ASK, "long.md", "warm"))]
    run(warm, [])
    setting.make_stores()
    kinds = list(itertools.product((ASK, INDEX), FILES, STORES))
    kinds += itertools.product(("ls", "verify", "gc", "rm"), ("",), STORES[3:])
    before = setting.files()
    results = run([*warm, setting.words(ASK, "short.md", "off")], [setting.words(*kind) for kind in kinds])
    assert setting.files() == before  # nothing was written or touched, whatever was asked
    return dict(zip(kinds, results, strict=True))


def run(warm: list[list[str]], commands: list[list[str]]) -> list[dict[str, Any]]:
    """Let the child do it."""
    done = subprocess.run(
        [sys.executable, str(AS_USER)],
        input=json.dumps({"user": NOBODY, "warm": warm, "commands": commands}),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: list[dict[str, Any]] = json.loads(done.stdout)
    return results


def answer(told: Told, file: str, store: str) -> dict[str, Any]:
    """An answer, which has to be there."""
    result = told[ASK, file, store]
    assert result["code"] == 0, result["err"]
    found: dict[str, Any] = json.loads(result["out"])
    return found


def about_the_store(found: dict[str, Any]) -> list[str]:
    return [warning for warning in found["warnings"] if "store" in warning or "kept" in warning]


@pytest.mark.parametrize("store", STORES[3:5])
def test_what_can_only_be_read_is_restored_from(told: Told, store: str) -> None:
    found = answer(told, "long.md", store)
    assert found["tokens"]["evaluated"] < 200 < found["coverage"]["tokens_read"]
    assert about_the_store(found) == []  # there was nothing to keep
    assert found["answer"] == answer(told, "long.md", "off")["answer"]


@pytest.mark.parametrize("store", STORES[1:])
def test_without_a_place_to_keep_it_the_answer_comes_with_one_warning(told: Told, store: str) -> None:
    said = {
        "closed": "permission denied",
        "home": "permission denied",
        "private": "permission denied",
        "someone's": "is not a folder of",
    }
    found = answer(told, "short.md", store)
    (warning,) = about_the_store(found)
    assert said.get(store, "can only be read") in warning
    assert warning.endswith("what is computed now is not kept")
    assert told[ASK, "short.md", store]["err"].count(warning) == 1
    assert found["tokens"]["restored"] > 100
    assert found["coverage"]["tokens_read"] == found["coverage"]["tokens_total"]


@pytest.mark.parametrize("store", ["closed", "home", *STORES[5:]])
def test_another_s_kv_is_not_read(told: Told, store: str) -> None:
    found, wanted = answer(told, "long.md", store), answer(told, "long.md", "off")
    assert (found["answer"], found["tokens"]) == (wanted["answer"], wanted["tokens"])
    assert found["tokens"]["evaluated"] > found["coverage"]["tokens_total"]
    assert len(about_the_store(found)) == 1


@pytest.mark.parametrize("file", FILES)
@pytest.mark.parametrize("store", STORES)
def test_index_refuses_in_one_line(told: Told, file: str, store: str) -> None:
    result = told[INDEX, file, store]
    assert (result["code"], result["out"]) == (2 if store == "off" else 1, "")
    assert result["err"].startswith("localctx: ")
    assert result["err"].count("\n") == 1
    assert "--store" in result["err"]


@pytest.mark.parametrize(
    ("command", "codes"),
    [("ls", (0, 0, 1, 1)), ("verify", (0, 0, 1, 1)), ("gc", (1, 1, 1, 1)), ("rm", (1, 1, 1, 1))],
)
def test_the_commands_of_the_store_say_what_they_may_not_do(
    told: Told, command: str, codes: tuple[int, ...]
) -> None:
    for store, code in zip(STORES[3:], codes, strict=False):
        result = told[command, "", store]
        assert (store, result["code"]) == (store, code)
        assert (result["err"].count("\n"), bool(result["out"])) == ((1, False) if code else (0, True))
        assert "unexpected" not in result["err"]
