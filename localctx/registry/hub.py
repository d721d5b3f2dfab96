"""The Hugging Face hub through its own library: what a repository holds, a file's bytes from any place on.

The only importer of huggingface_hub, which is imported when something is asked. Knows no folders; what goes
wrong becomes one line that names the hub, the proxy in force, and what to do.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from localctx.errors import LocalctxError, ModelError
from localctx.names import display_name

__all__ = ["ConnectionLost", "RemoteFile", "Repository", "look_up", "opened"]

_ENDPOINT = "https://huggingface.co"
_SHA256 = re.compile(r"[0-9a-f]{64}")
_TIMEOUT_SECONDS = 30.0
_RANGE = re.compile(r"bytes (\d+)-")


class ConnectionLost(ModelError):
    """The hub could not be reached, or stopped sending: worth another try."""


@dataclass(frozen=True, slots=True)
class RemoteFile:
    """One file: its name inside the repository, its bytes, its SHA-256 in hex (None: the hub says none)."""

    name: str
    size_bytes: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Repository:
    """What the hub says of a repository at one revision (a commit)."""

    repo: str
    revision: str
    files: tuple[RemoteFile, ...]


def look_up(repo: str) -> Repository:
    """The files of the repository's main revision. Raises ModelError, one line."""
    with _told(repo):
        from huggingface_hub import HfApi

        try:
            found = HfApi(endpoint=_endpoint()).model_info(
                repo, files_metadata=True, timeout=_TIMEOUT_SECONDS
            )
        except (json.JSONDecodeError, KeyError, TypeError) as error:  # of the library, which expects a hub
            raise ModelError(
                f"{_host()} answers, but not as a hub does: a login page of the network, perhaps",
                _elsewhere(),
            ) from error
    if not found.sha:
        raise ModelError(f"{_host()} does not say which revision of {repo} it has", _elsewhere())
    files = tuple(
        RemoteFile(item.rfilename, item.size or 0, _sha256_of(item)) for item in found.siblings or ()
    )
    return Repository(repo, found.sha, files)


def _sha256_of(item: Any) -> str | None:
    """The hash of a file that is kept as a large object."""
    digest = str(getattr(item.lfs, "sha256", None) or "").lower()
    return digest if _SHA256.fullmatch(digest) else None


@contextmanager
def opened(repository: Repository, file: RemoteFile, start: int) -> Iterator[tuple[int, Iterator[bytes]]]:
    """The file's bytes from `start` on: (where they really begin: `start`, or 0 where the server sends all,
    pieces as they come). Raises ConnectionLost, ModelError, also while the pieces are read.
    """
    with _told(repository.repo):
        from huggingface_hub import get_session, get_token, hf_hub_url, hf_raise_for_status

        url = hf_hub_url(repository.repo, file.name, revision=repository.revision, endpoint=_endpoint())
        headers = {"Accept-Encoding": "identity", "User-Agent": "localctx"}
        token = get_token()
        if token:  # not handed on where the hub redirects to another host
            headers["Authorization"] = f"Bearer {token}"
        if start:
            headers["Range"] = f"bytes={start}-"
        with get_session().stream("GET", url, headers=headers, timeout=_TIMEOUT_SECONDS) as response:
            if response.status_code >= 400:
                response.read()
            hf_raise_for_status(response)
            yield _begin(response, start), response.iter_bytes()


def _begin(response: Any, start: int) -> int:
    """Where the body of the response begins in the file."""
    if response.status_code != 206:
        return 0
    match = _RANGE.match(response.headers.get("Content-Range", ""))
    if match is None or int(match[1]) != start:
        raise ModelError(f"{_host()} sends another part of the file than was asked for", _elsewhere())
    return start


def _endpoint() -> str:
    """The hub's address; its library is told not to report what it is used for."""
    os.environ["HF_HUB_DISABLE_TELEMETRY"] = "1"
    return (os.environ.get("HF_ENDPOINT") or _ENDPOINT).rstrip("/")


def _host() -> str:
    """The hub as messages name it."""
    return display_name(urlsplit(_endpoint()).netloc.rpartition("@")[2] or _endpoint())


def _elsewhere() -> str:
    return "HF_ENDPOINT names another hub" if "HF_ENDPOINT" not in os.environ else "check HF_ENDPOINT"


@contextmanager
def _told(repo: str) -> Iterator[None]:
    """What the library raises becomes one line."""
    _endpoint()
    try:
        import httpx2
        from huggingface_hub import errors
    except ImportError as error:
        raise ModelError(
            f"huggingface_hub is missing in this Python ({error.name})", "install localctx again"
        ) from error
    try:
        yield
    except LocalctxError:
        raise
    except errors.OfflineModeIsEnabled as error:
        raise ModelError(f"{repo} cannot be fetched: HF_HUB_OFFLINE is set", "unset it") from error
    except errors.HfHubHTTPError as error:
        raise _refused(error, repo, errors) from error
    except httpx2.HTTPError as error:
        raise _unreached(error) from error


def _refused(error: Any, repo: str, errors: Any) -> ModelError:
    """What the hub's refusal means."""
    status = error.response.status_code
    if isinstance(error, errors.GatedRepoError):
        return ModelError(
            f"{repo} is gated: its owner wants its terms accepted first",
            f"accept them at {_endpoint()}/{repo}, then set HF_TOKEN",
        )
    if isinstance(error, errors.RevisionNotFoundError | errors.EntryNotFoundError):
        return ModelError(f"{_host()} no longer has this file of {repo}", "pull it again")
    if isinstance(error, errors.RepositoryNotFoundError) or status in (401, 403, 404):
        return ModelError(
            f"{_host()} has no repository {repo}, or does not show it to you (HTTP {status})",
            "check the name; a private one needs HF_TOKEN",
        )
    if status == 407:
        return ModelError(f"the proxy{_proxy()} wants a user name and password (HTTP 407)", _PROXY_HINT)
    kind = ConnectionLost if status >= 500 or status in (408, 429) else ModelError
    wait = " (too many requests)" if status == 429 else ""
    return kind(f"{_host()} answers with HTTP {status}{wait}", "try again later")


_PROXY_HINT = "set HTTPS_PROXY=http://USER:PASSWORD@HOST:PORT, or NO_PROXY for this host"


def _unreached(error: Exception) -> ModelError:
    """What the lack of an answer means."""
    reason = " ".join(str(error).split())[:200] or type(error).__name__
    proxy = _proxy()
    if type(error).__name__ == "ProxyError":
        return ModelError(f"the proxy{proxy} refuses: {reason}", _PROXY_HINT)
    if "CERTIFICATE_VERIFY_FAILED" in reason:
        return ModelError(
            f"{_host()} shows a certificate that is not trusted: {reason}",
            "a proxy that reads along, perhaps: set SSL_CERT_FILE to its certificate",
        )
    through = f" through the proxy{proxy}" if proxy else ""
    hint = (
        "check the proxy (HTTPS_PROXY, NO_PROXY)" if proxy else "check the network; HTTPS_PROXY names a proxy"
    )
    return ConnectionLost(f"{_host()} cannot be reached{through}: {reason}", hint)


def _proxy() -> str:
    """The proxy in force for the hub with a space before it, without its password; empty without one."""
    parts = urlsplit(_endpoint())
    proxies = getproxies()
    address = proxies.get(parts.scheme) or proxies.get("all")
    if not address or proxy_bypass(parts.hostname or ""):
        return ""
    return " " + display_name(urlsplit(address).netloc.rpartition("@")[2] or address.rpartition("@")[2])
