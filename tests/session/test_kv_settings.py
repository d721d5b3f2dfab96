"""What --kv may say: typed, in range, merged key by key."""

from __future__ import annotations

from pathlib import Path

import pytest

from localctx import _native
from localctx.errors import NotYetAvailable, UsageError
from localctx.kv import PrefillPolicy
from localctx.kv_settings import CODEC_NAMES, LATER_KEYS, KVSettings, parse_kv
from localctx.settings import load_settings


def test_nothing_said_is_the_default() -> None:
    assert parse_kv("") == KVSettings()
    assert KVSettings().prefill_policy == PrefillPolicy("window", 4096)
    assert KVSettings().stored_codec == "int4"


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("policy=exact", "policy", "exact"),
        ("window=2_048", "window", 2048),
        ("sinks=256", "sinks", 256),
        ("routed=4", "routed", 4),
        ("stride=1024", "stride", 1024),
        ("block=64", "block", 64),
        ("codec=INT8", "codec", "int8"),
        ("error_bound=0.05", "error_bound", 0.05),
        ("error-bound=none", "error_bound", None),
        ("head_group=3", "head_group", 3),
        ("budget=700", "budget", 700),
        ("refresh=33%", "refresh", 0.33),
        ("refresh=0", "refresh", 0.0),
        ("refresh=auto", "refresh", None),
        ("lazy=on", "lazy", "on"),
        ("rank=Fused", "rank", ("lexical", "dense", "maxsim")),
        ("rank=landmarks+lexical", "rank", ("lexical", "landmarks")),
        ("cache_type=streaming", "streams", True),
        (" window = 256 , window=512,", "window", 512),
    ],
)
def test_every_key_is_typed(text: str, name: str, value: object) -> None:
    assert getattr(parse_kv(text), name) == value


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("windw=3", "unknown key 'windw'; did you mean 'window'"),
        ("attn_layer=3", "did you mean 'attn_layers'"),
        ("window", "is not KEY=VALUE"),
        ("window=", "is not KEY=VALUE"),
        ("window=100", "out of range"),
        ("window=-128", "out of range"),
        ("window=1e3", "out of range"),
        ("window=٣", "out of range"),
        ("sinks=100", "out of range"),
        ("policy=independent,sinks=128", "nothing else is attended"),
        ("policy=exact,routed=2", "no text leaves the window"),
        ("stride=256,policy=independent", "no text leaves the window"),
        ("routed=65", "out of range"),
        ("stride=100", "out of range"),
        ("block=8", "out of range"),
        ("codec=int5", "did you mean 'int"),
        ("policy=windows", "did you mean 'window'"),
        ("refresh=101", "out of range"),
        ("refresh=nan", "out of range"),
        ("refresh=much", "no number"),
        ("error_bound=0", "out of range"),
        ("lazy=maybe", "not understood"),
    ],
)
def test_what_is_not_understood_is_one_line(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        parse_kv(text)
    assert "\n" not in raised.value.message + raised.value.hint


@pytest.mark.parametrize("key", [*LATER_KEYS, "cache_type"])
def test_later_keys_say_so(key: str) -> None:
    with pytest.raises(NotYetAvailable, match=f"{key}.* is not available yet"):
        parse_kv(f"{key}=8")


def test_the_codecs_are_those_of_the_core() -> None:
    assert set(CODEC_NAMES) == set(_native.CODECS)


def test_layers_are_merged_key_by_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    config = tmp_path / "my.toml"
    config.write_text('kv = "window=256,codec=int8"\n')
    settings = load_settings({"kv": "window=512"}, config=config, environ={"LOCALCTX_KV": "lazy=on"})
    assert settings.cache == KVSettings(window=512, codec="int8", lazy="on")


def test_cache_type_streaming_is_the_strategy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert load_settings({"kv": "cache_type=streaming"}, environ={}).strategy == "stream"
    with pytest.raises(UsageError, match="means --strategy stream"):
        load_settings({"kv": "cache_type=streaming", "strategy": "exact"}, environ={})
    config = tmp_path / "my.toml"
    config.write_text('kv = "cache_type=streaming"\n')
    with pytest.raises(UsageError, match="means --strategy stream, not retrieve"):
        load_settings({"strategy": "retrieve"}, config=config, environ={})


def test_how_blocks_are_found_is_part_of_the_policy_where_some_are() -> None:
    assert parse_kv("routed=4,stride=512").prefill_policy == PrefillPolicy(
        "window", 4096, 0, 4, 512, "lexical"
    )
    assert parse_kv("stride=512").prefill_policy == PrefillPolicy("window", 4096, 0, 0, 512, "")
    assert parse_kv("routed=0,stride=0").prefill_policy == PrefillPolicy("window", 4096)
