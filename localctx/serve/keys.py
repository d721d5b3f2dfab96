"""The key file: who may use the server, and how much of it. Knows no HTTP, no queue."""

from __future__ import annotations

import hmac
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from hashlib import sha256
from pathlib import Path
from typing import Any

from localctx.errors import UsageError
from localctx.settings import nearest
from localctx.small_text import read_small_text, reason_of

__all__ = ["ANYONE", "KeyRing", "Tenant", "read_keys"]

LEAST_KEY_CHARACTERS = 16
HEX_DIGEST = re.compile(r"[0-9a-f]{64}")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Tenant:
    """Whose requests they are. None means: no limit, no target.

    max_tokens_per_sec: prompt tokens that were evaluated and tokens that were generated, on average ·
    latency_slo_ms: target for the first token of an answer · tenant_weight: its share where several wait,
    in proportion · metrics: whether its key may read /metrics, where all keys have their rows.
    """

    name: str
    max_tokens_per_sec: float | None = None
    latency_slo_ms: float | None = None
    tenant_weight: float = 1.0
    metrics: bool = False

    @property
    def folder(self) -> str:
        """The name of its folder on disk: no path, whatever the name."""
        return sha256(self.name.encode()).hexdigest()[:32]


ANYONE = Tenant("anyone", metrics=True)
"""Who asks where there are no keys."""


class KeyRing:
    """Keys by their digests; the keys themselves are not kept."""

    def __init__(self, tenants: Mapping[bytes, Tenant] | None = None) -> None:
        """`tenants` by the SHA-256 of their keys; None: no key is asked for."""
        self._tenants = None if tenants is None else tuple(tenants.items())

    @property
    def is_open(self) -> bool:
        """Whether no key is asked for."""
        return self._tenants is None

    @property
    def tenants(self) -> tuple[Tenant, ...]:
        """Everyone who may ask, once each."""
        if self._tenants is None:
            return (ANYONE,)
        return tuple(dict.fromkeys(tenant for _, tenant in self._tenants))

    def find(self, key: str | None) -> Tenant | None:
        """Whose key it is, None for a wrong one: as long for a right key as for a wrong one."""
        if self._tenants is None:
            return ANYONE
        digest = sha256((key or "").encode("utf-8", "surrogateescape")).digest()
        found: Tenant | None = None
        for known, tenant in self._tenants:
            if hmac.compare_digest(known, digest):
                found = tenant
        return found


def read_keys(path: Path) -> KeyRing:
    """The keys of a TOML file (docs/serve.md). Raises UsageError for what is not understood."""
    try:
        table = tomllib.loads(read_small_text(path))
    except (OSError, ValueError) as error:
        raise UsageError(
            f"cannot read the key file {path}: {reason_of(error)}", "a TOML file of [[keys]], docs/serve.md"
        ) from None
    rows = table.pop("keys", None)
    if table:
        name = next(iter(table))
        raise UsageError(f"unknown key {name!r} in {path}{nearest(name, ['keys'])}", "[[keys]] tables alone")
    if not isinstance(rows, list) or not rows or not all(isinstance(row, dict) for row in rows):
        raise UsageError(f"{path} holds no [[keys]] table", 'each with name = "..." and key = "..."')
    return KeyRing(_tenants(path, rows))


def _tenants(path: Path, rows: Sequence[dict[str, Any]]) -> dict[bytes, Tenant]:
    """Tenants by digest; a name may have several keys if all else is equal."""
    found: dict[bytes, Tenant] = {}
    by_name: dict[str, Tenant] = {}
    for number, row in enumerate(rows, 1):
        where = f"{path}, key {number}"
        digest, tenant = _digest(row, where), _tenant(row, where)
        if digest in found:
            raise UsageError(f"{where}: the same key as an earlier one", "one [[keys]] table a key")
        if by_name.setdefault(tenant.name, tenant) != tenant:
            raise UsageError(f"{where}: {tenant.name!r} has other limits above", "the same limits, or a name")
        found[digest] = tenant
    return found


def _digest(row: dict[str, Any], where: str) -> bytes:
    """The SHA-256 that `key` has or `key_sha256` gives."""
    key, digest = row.pop("key", None), row.pop("key_sha256", None)
    if isinstance(digest, str) and key is None and HEX_DIGEST.fullmatch(digest.lower()):
        return bytes.fromhex(digest)
    if isinstance(key, str) and digest is None and len(key) >= LEAST_KEY_CHARACTERS and key.isascii():
        return sha256(key.encode()).digest()
    raise UsageError(
        f"{where}: no usable key",
        f"key = TEXT ({LEAST_KEY_CHARACTERS} ASCII characters or more), or key_sha256",
    )


def _tenant(row: dict[str, Any], where: str) -> Tenant:
    known = [field.name for field in fields(Tenant)]
    for given in row:
        if given not in known:
            raise UsageError(f"{where}: unknown {given!r}{nearest(given, [*known, 'key', 'key_sha256'])}")
    name = row.get("name")
    if not isinstance(name, str) or not NAME.fullmatch(name):
        raise UsageError(f"{where}: no usable name", "letters, digits, '.', '_' and '-', 64 at most")
    for limit in ("max_tokens_per_sec", "latency_slo_ms", "tenant_weight"):
        value = row.get(limit, 1)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e12:
            raise UsageError(f"{where}: {limit} = {value!r} is no positive number")
    if not isinstance(row.get("metrics", False), bool):
        raise UsageError(f"{where}: metrics = {row['metrics']!r} is neither true nor false")
    return Tenant(**row)
