"""Which file of a repository is meant: `hf:OWNER/REPO[:FILE|:QUANT]` and the names that are there.

Pure functions of names; knows neither folders nor the network.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from localctx.errors import ModelError, UsageError
from localctx.names import display_name

__all__ = [
    "HUB_PREFIX",
    "HubName",
    "choose",
    "is_projector",
    "matching",
    "parse_hub_name",
    "preferred",
    "shards_of",
]

HUB_PREFIX = "hf:"
_PREFERRED = "q4_k_m"  # what llama.cpp takes where nothing is said
_REPO_PART = re.compile(r"[A-Za-z0-9_](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9_])?")
_SHARD = re.compile(r"-(\d{5})-of-(\d{5})(?=\.gguf\Z)", re.IGNORECASE)
_PROJECTOR = re.compile(r"(?:^|[-_.])mmproj(?:[-_.]|$)", re.IGNORECASE)
_MAX_SHARDS = 999
_MAX_LISTED = 8


@dataclass(frozen=True, slots=True)
class HubName:
    """What `hf:OWNER/REPO[:FILE|:QUANT]` says; `wanted` is empty where only the repository is named."""

    repo: str
    wanted: str = ""

    def __str__(self) -> str:
        return display_name(f"{HUB_PREFIX}{self.repo}" + (f":{self.wanted}" if self.wanted else ""))


def parse_hub_name(spec: str) -> HubName:
    """Raises UsageError when it names no repository, so that no other folder or address can be reached."""
    repo, _, wanted = spec.removeprefix(HUB_PREFIX).partition(":")
    parts = repo.split("/")
    if len(parts) != 2 or not all(
        _REPO_PART.fullmatch(part) and ".." not in part and "--" not in part for part in parts
    ):
        raise UsageError(f"not a repository name: {repo!r}", "write hf:OWNER/REPO, or hf:OWNER/REPO:FILE")
    return HubName(repo, wanted)


def is_projector(name: str) -> bool:
    """Whether a file's name says that it holds a vision projector."""
    return _PROJECTOR.search(name.rpartition("/")[2].removesuffix(".gguf")) is not None


def matching(names: Iterable[str], wanted: str = "") -> list[str]:
    """The models among the names that `wanted` (a file, or a quantisation such as Q4_K_M) means, sorted; all
    of them without it. A set of shards is known by its first name, also where another was asked for.
    """
    found = sorted({name for name in names if name.lower().endswith(".gguf")})
    if wanted in found:
        return [_first(wanted)]
    models = sorted({_first(name) for name in found if not is_projector(name)})
    if not wanted:
        return models
    token = re.compile(rf"(?<![A-Za-z0-9]){re.escape(wanted)}(?![A-Za-z0-9_])", re.IGNORECASE)
    return [name for name in models if token.search(name.removesuffix(".gguf"))]


def preferred(models: Iterable[str]) -> str | None:
    """Of several files of one model, Q4_K_M where there is one, else the first by name."""
    models = sorted(models)
    return next((name for name in models if _PREFERRED in name.lower()), models[0] if models else None)


def choose(names: Iterable[str], hub_name: HubName, where: str) -> str | None:
    """The one model that is meant; None without any. Raises UsageError that lists them when several fit."""
    models = matching(names, hub_name.wanted)
    if len(models) > 1:
        listed = ", ".join(map(display_name, models[:_MAX_LISTED]))
        more = f" and {len(models) - _MAX_LISTED} more" if len(models) > _MAX_LISTED else ""
        raise UsageError(
            f"{hub_name} means several models {where}: {listed}{more}",
            f"write hf:{hub_name.repo}:FILE or :QUANT",
        )
    return next(iter(models), None)


def shards_of(name: str) -> list[str]:
    """The names of all files of a model, given any one of them, the first one first.

    Raises ModelError for a number of files that cannot be.
    """
    match = _SHARD.search(name)
    if match is None:
        return [name]
    n_shards = int(match[2])
    if not 1 <= int(match[1]) <= n_shards <= _MAX_SHARDS:
        raise ModelError(f"{display_name(name)}: not a shard of a model by its name", "name another file")
    return [_numbered(name, match, number) for number in range(1, n_shards + 1)]


def _first(name: str) -> str:
    """The first file of the set that the name belongs to."""
    match = _SHARD.search(name)
    return name if match is None else _numbered(name, match, 1)


def _numbered(name: str, match: re.Match[str], number: int) -> str:
    return f"{name[: match.start()]}-{number:05d}-of-{match[2]}{name[match.end() :]}"
