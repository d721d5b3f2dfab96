"""The key file, read and refused; keys are compared by their digests."""

from __future__ import annotations

from hashlib import sha256
from pathlib import Path

import pytest

from localctx.errors import UsageError
from localctx.serve.keys import ANYONE, KeyRing, Tenant, read_keys

KEY = "a-key-of-20-letters!"


def ring_of(tmp_path: Path, text: str) -> KeyRing:
    path = tmp_path / "keys.toml"
    path.write_text(text)
    return read_keys(path)


def test_a_key_is_found_and_another_is_not(tmp_path: Path) -> None:
    text = f'[[keys]]\nname = "gold"\nkey = "{KEY}"\nmax_tokens_per_sec = 50\ntenant_weight = 4.5\n'
    digest = sha256(b"second").hexdigest()
    ring = ring_of(tmp_path, f'{text}[[keys]]\nname = "s"\nkey_sha256 = "{digest.upper()}"\n')
    assert ring.find(KEY) == Tenant("gold", max_tokens_per_sec=50, tenant_weight=4.5)
    assert ring.find("second") == Tenant("s")
    for wrong in (None, "", KEY[:-1], KEY + "x", digest, "\udcff"):
        assert ring.find(wrong) is None
    assert [tenant.name for tenant in ring.tenants] == ["gold", "s"]


def test_a_tenant_may_have_two_keys(tmp_path: Path) -> None:
    rows = "".join(f'[[keys]]\nname = "a"\nkey = "{KEY}{n}"\n' for n in range(2))
    ring = ring_of(tmp_path, rows)
    assert ring.find(KEY + "0") == ring.find(KEY + "1") == Tenant("a")
    assert ring.tenants == (Tenant("a"),)


def test_without_a_file_anyone_may_ask() -> None:
    assert KeyRing().is_open
    assert KeyRing().find(None) is ANYONE


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no .*keys.* table"),
        ("keys = 3\n", "no .*keys.* table"),
        ("[[keys]\n", "cannot read the key file"),
        (f'[[kees]]\nname = "a"\nkey = "{KEY}"\n', "did you mean 'keys'"),
        ('[[keys]]\nname = "a"\nkey = "short"\n', "key 1: no usable key"),
        ('[[keys]]\nname = "a"\n', "no usable key"),
        (f'[[keys]]\nname = "a"\nkey = "{KEY}"\nkey_sha256 = "{"0" * 64}"\n', "no usable key"),
        ('[[keys]]\nname = "a"\nkey_sha256 = "123"\n', "no usable key"),
        (f'[[keys]]\nname = "../a"\nkey = "{KEY}"\n', "no usable name"),
        (f'[[keys]]\nkey = "{KEY}"\n', "no usable name"),
        (
            f'[[keys]]\nname = "a"\nkey = "{KEY}"\nmax_token_per_sec = 3\n',
            "did you mean 'max_tokens_per_sec'",
        ),
        (f'[[keys]]\nname = "a"\nkey = "{KEY}"\ntenant_weight = 0\n', "tenant_weight = 0 is no positive"),
        (f'[[keys]]\nname = "a"\nkey = "{KEY}"\nlatency_slo_ms = true\n', "latency_slo_ms = True"),
        (f'[[keys]]\nname = "a"\nkey = "{KEY}"\nmetrics = 1\n', "neither true nor false"),
        (f'[[keys]]\nname = "a"\nkey = "{KEY}"\n' * 2, "the same key as an earlier one"),
        (
            f'[[keys]]\nname = "a"\nkey = "{KEY}"\n[[keys]]\nname = "a"\nkey = "{KEY}2"\ntenant_weight = 2\n',
            "has other limits above",
        ),
    ],
)
def test_a_file_that_is_not_understood_is_refused(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        ring_of(tmp_path, text)
