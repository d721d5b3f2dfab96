"""Model files are understood, and whatever else is given as one is refused in one line, fast and small."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from engine import gguf_bytes as gb
from gguf.constants import GGML_QUANT_SIZES
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine import gguf
from localctx.engine.ggml_types import TYPE_SIZES, row_bytes
from localctx.engine.model_facts import kv_shape, model_facts
from localctx.errors import ModelError

HUGE = 1 << 63
ARRAY_OF_ARRAYS = gb.head(0, 1) + gb.pair("x", gb.ARRAY, struct.pack("<IQ", 9, 1) * 4000)

# name of the file, its bytes, words the message must hold
REFUSED = {
    "zero.gguf": (b"", "empty"),
    "zeros.gguf": (bytes(5000), "zeros"),
    "page.gguf": (b"<!DOCTYPE html><html>", "HTML"),
    "bom.gguf": (b"\xef\xbb\xbf\n <HTML>", "HTML"),
    "lfs.gguf": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 4\n", "LFS pointer"),
    "error.gguf": (b'{"error": "not found"}', "JSON"),
    "notes.gguf": (b"just some words\n" * 9, "text"),
    "torch.gguf": (b"PK\x03\x04" + bytes(26) + b"archive/data.pkl", "PyTorch"),
    "old.gguf": (b"\x80\x02}q\x00", "PyTorch"),
    "safe.gguf": (struct.pack("<Q", 60) + b'{"__metadata__":{}}', "safetensors"),
    "ggjt.gguf": (b"tjgg" + bytes(64), "GGML/GGJT"),
    "noise.gguf": (bytes(range(1, 32)) * 9, "unknown content"),
    "v1.gguf": (b"GGUF" + struct.pack("<I", 1), "version 1"),
    "v9.gguf": (gb.head(0, 0, 9), "version 9"),
    "big.gguf": (b"GGUF" + struct.pack(">IQQ", 3, 0, 0), "big-endian"),
    "stub.gguf": (b"GGUF\x03\0", "cut short"),
    "huge_array.gguf": (gb.head(0, 1) + gb.pair("x", 9, struct.pack("<IQ", 4, HUGE)), "elements"),
    "huge_strings.gguf": (gb.head(0, 1) + gb.pair("x", 9, struct.pack("<IQ", 8, HUGE)), "elements"),
    "huge_str.gguf": (gb.head(0, 1) + gb.pair("x", 8, struct.pack("<Q", 1 << 62)), "'x'"),
    "huge_key.gguf": (gb.head(0, 1) + struct.pack("<Q", HUGE) + bytes(9), "a key"),
    "huge_kvcount.gguf": (gb.head(0, HUGE), "keys"),
    "huge_tensors.gguf": (gb.head(HUGE, 0), "tensors"),
    "nest.gguf": (ARRAY_OF_ARRAYS, "holds arrays"),
    "type.gguf": (gb.head(0, 1) + gb.pair("x", 99, b"12345678"), "value type 99"),
    "align.gguf": (gb.file({"general.alignment": 1 << 30}), "alignment"),
    "align3.gguf": (gb.file({"general.alignment": 3}), "alignment"),
    "align0.gguf": (gb.file({"general.alignment": 0}), "alignment"),
    "twice.gguf": (gb.head(0, 2) + gb.typed("x", 1) + gb.typed("x", 2), "twice"),
    "dims.gguf": (gb.file(gb.LLAMA, [gb.tensor("t", (1, 1, 1, 1, 1), 0, 0)]), "dimensions"),
    "product.gguf": (gb.file(gb.LLAMA, [gb.tensor("t", (1 << 40, 1 << 40), 0, 0)]), "shape"),
    "ragged.gguf": (gb.file(gb.LLAMA, [gb.tensor("t", (33, 2), 2, 0)], bytes(64)), "rows of 33"),
    "unaligned.gguf": (gb.file(gb.LLAMA, [gb.tensor("t", (4,), 0, 7)], bytes(64)), "not aligned"),
    "clip.gguf": (gb.file({"general.architecture": "clip"}), "vision projector"),
    "mmproj.gguf": (gb.file({"general.architecture": "llama", "general.type": "mmproj"}), "vision projector"),
    "lora.gguf": (gb.file({"general.architecture": "llama", "general.type": "adapter"}), "LoRA adapter"),
    "imatrix.gguf": (gb.file({"general.type": "imatrix"}), "importance matrix"),
    "bert.gguf": (gb.file({"general.architecture": "nomic-bert"}), "embedding model"),
    "pooled.gguf": (gb.file({"general.architecture": "qwen3", "qwen3.pooling_type": 3}), "embedding model"),
    "vocab.gguf": (gb.file(gb.LLAMA), "without weights"),
    "nosucharch.gguf": (gb.file({"general.architecture": "zzz9"}), "'zzz9'"),
    "anonymous.gguf": (gb.file({"general.name": "x"}), "architecture"),
}


@pytest.fixture
def tiny(tmp_path: Path) -> Path:
    path = tmp_path / "tiny.gguf"
    path.write_bytes(gb.llama())
    return path


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_model_is_refused_in_one_line(tmp_path: Path, name: str) -> None:
    data, words = REFUSED[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(ModelError) as caught:
        gguf.open_model(path)
    assert words in caught.value.message
    assert name in caught.value.message
    assert "\n" not in caught.value.message + caught.value.hint
    assert len(caught.value.message) < 400 + len(str(path))


LIMITED = """
import resource, sys
from pathlib import Path
import psutil
from localctx.engine.gguf import open_model
from localctx.errors import ModelError
limit = psutil.Process().memory_info().vms + (64 << 20)
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
for name in sys.argv[1:]:
    try:
        open_model(Path(name))
    except ModelError as error:
        print(name, error.message)
"""


def test_hostile_headers_cost_neither_time_nor_memory(tmp_path: Path) -> None:
    paths = []
    for name in (
        "huge_array",
        "huge_strings",
        "huge_str",
        "huge_key",
        "huge_kvcount",
        "huge_tensors",
        "nest",
        "align",
    ):
        paths.append(tmp_path / f"{name}.gguf")
        paths[-1].write_bytes(REFUSED[f"{name}.gguf"][0])
    sparse = tmp_path / "sparse.gguf"  # counts that a 1 TB file would bear out
    sparse.write_bytes(gb.head(0, 1) + gb.pair("x", gb.ARRAY, struct.pack("<IQ", gb.STRING, 1 << 25)))
    os.truncate(sparse, 1 << 40)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *map(str, paths), str(sparse)],
        capture_output=True,
        text=True,
        timeout=30,
        env=environment,
        check=True,
    )
    lines = done.stdout.splitlines()
    assert len(lines) == len(paths) + 1
    assert "strings" in lines[-1]


def test_a_file_cut_anywhere_is_refused(tmp_path: Path) -> None:
    whole = gb.llama()
    path = tmp_path / "cut.gguf"
    for size in (*range(0, 900, 13), len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError):
            gguf.open_model(path)
    with pytest.raises(ModelError, match=f"has {len(whole) - 1:,} of {len(whole):,} bytes"):
        gguf.open_model(path)


@settings(deadline=None, max_examples=150)
@given(st.lists(st.tuples(st.integers(0, 800), st.binary(min_size=1, max_size=8)), min_size=1, max_size=3))
def test_damage_anywhere_ends_in_a_model_error_or_a_header(
    tmp_path_factory: pytest.TempPathFactory, damage: list[tuple[int, bytes]]
) -> None:
    data = bytearray(gb.llama())
    for at, patch in damage:
        data[at : at + len(patch)] = patch
    path = tmp_path_factory.getbasetemp() / "damaged.gguf"
    path.write_bytes(data)
    try:
        header = gguf.open_model(path)
        info = model_facts(header)
    except ModelError as error:
        assert "\n" not in error.message
    else:
        assert header.size_expected <= header.size_bytes == info.size_bytes


def test_reading_finds_what_was_written(tiny: Path) -> None:
    header = gguf.open_model(tiny)
    assert (header.version, header.architecture, header.is_known_architecture) == (3, "llama", True)
    assert header.metadata["tokenizer.ggml.tokens"] == ("a", "b", "c")
    assert [(t.name, t.shape, t.type_name, t.offset, t.size_bytes) for t in header.tensors] == [
        ("token_embd.weight", (64, 64), "f16", 0, 8192),
        ("blk.1.attn_q.weight", (64, 64), "f16", 8192, 8192),
    ]
    assert header.weights_bytes == 16384
    assert header.size_bytes == header.size_expected == tiny.stat().st_size


def test_a_long_array_stays_in_the_file(tmp_path: Path) -> None:
    words = [f"word{i}" * (i % 7) for i in range(5000)]
    numbers = list(range(3000))
    path = tmp_path / "long.gguf"
    tensors = [gb.tensor("t", (4,), 0, 0)]
    path.write_bytes(
        gb.file({**gb.LLAMA, "tokenizer.ggml.tokens": words, "n": numbers, "last": "x"}, tensors, bytes(16))
    )
    header = gguf.open_model(path)
    tokens, listed = header.metadata["tokenizer.ggml.tokens"], header.metadata["n"]
    assert isinstance(tokens, gguf.LazyArray)
    assert isinstance(listed, gguf.LazyArray)
    assert (tokens.count, tokens.size_bytes) == (5000, sum(8 + len(word) for word in words))
    assert (listed.count, listed.size_bytes, header.metadata["last"]) == (3000, 3000 * 4, "x")
    assert model_facts(header).n_vocab == 5000


@pytest.mark.parametrize("type_id", TYPE_SIZES)
def test_complete_files_of_every_tensor_type_pass(tmp_path: Path, type_id: int) -> None:
    """Experts in three dimensions, exactly as many bytes as the blocks need, no padding at the end."""
    name, per_block, block_bytes = TYPE_SIZES[type_id]
    data = bytes(per_block * 2 * 3 * 4 // per_block * block_bytes)
    path = tmp_path / "moe.gguf"
    path.write_bytes(
        gb.file(gb.LLAMA, [gb.tensor("blk.0.ffn_up_exps.weight", (per_block * 2, 3, 4), type_id, 0)], data)
    )
    assert gguf.open_model(path).weights_bytes == len(data) == 12 * row_bytes(name, per_block * 2)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelError, match="cut short"):
        gguf.open_model(path)


def test_block_sizes_agree_with_the_gguf_package() -> None:
    for kind, sizes in GGML_QUANT_SIZES.items():
        if kind.name != "Q8_1":  # never in files; the package counts an older block
            assert TYPE_SIZES[kind.value] == (TYPE_SIZES[kind.value][0], *sizes), kind


def test_an_unknown_tensor_type_is_not_called_truncated(tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    path.write_bytes(gb.file(gb.LLAMA, [gb.tensor("t", (4096, 4096), 77, 0)], bytes(100)))
    header = gguf.open_model(path)
    assert (header.tensors[0].type_name, header.tensors[0].size_bytes, header.weights_bytes) == (
        "type 77",
        None,
        100,
    )


def test_an_unknown_architecture_with_weights_is_left_to_llama_cpp(tmp_path: Path) -> None:
    path = tmp_path / "new.gguf"
    path.write_bytes(gb.file({"general.architecture": "zzz9"}, [gb.tensor("t", (4,), 0, 0)], bytes(16)))
    header = gguf.open_model(path)
    assert not header.is_known_architecture
    assert "zzz9" in model_facts(header).notices[0]


def test_missing_folders_and_pipes_are_named(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="no such model file"):
        gguf.open_model(tmp_path / "none.gguf")
    with pytest.raises(ModelError, match="is a folder"):
        gguf.open_model(tmp_path)
    os.mkfifo(tmp_path / "pipe.gguf")
    with pytest.raises(ModelError, match="not a regular file"):
        gguf.open_model(tmp_path / "pipe.gguf")


def test_a_name_that_is_not_utf8_can_be_printed(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/bad\xff.gguf"))
    path.write_bytes(gb.llama(**{"general.name": ""}))
    info = model_facts(gguf.open_model(path))
    assert info.name == "bad\\xff"
    info.path.encode("utf-8")


def shards(folder: Path, n: int = 3) -> list[Path]:
    paths = []
    for i in range(n):
        own = {"split.no": i, "split.count": n, "split.tensors.count": n}
        metadata = {**(gb.LLAMA if i == 0 else {}), **own}
        paths.append(folder / f"m-{i + 1:05d}-of-{n:05d}.gguf")
        paths[-1].write_bytes(gb.file(metadata, [gb.tensor(f"blk.{i}.w", (64,), 0, 0)], bytes(256)))
    return paths


def test_any_shard_stands_for_the_whole_model(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    header = gguf.open_model(paths[1])
    assert list(header.paths) == gguf.resolve(paths[2]) == paths
    assert header.path == paths[0]
    assert [t.name for t in header.tensors] == ["blk.0.w", "blk.1.w", "blk.2.w"]
    assert header.size_bytes == sum(path.stat().st_size for path in paths)


def test_missing_shards_are_listed(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    paths[0].unlink()
    paths[2].unlink()
    with pytest.raises(ModelError) as caught:
        gguf.open_model(paths[1])
    assert "m-00001-of-00003.gguf, m-00003-of-00003.gguf" in caught.value.message


def test_wrong_sets_of_shards_are_refused(tmp_path: Path) -> None:
    paths = shards(tmp_path)
    joined = tmp_path / "joined.gguf"
    joined.write_bytes(gb.llama() + gb.llama())
    with pytest.raises(ModelError, match="joined end to end"):
        gguf.open_model(joined)
    joined.write_bytes(b"".join(path.read_bytes() for path in paths))
    with pytest.raises(ModelError, match="split model"):
        gguf.open_model(joined)
    paths[1].write_bytes(paths[2].read_bytes())
    with pytest.raises(ModelError, match="by its name"):
        gguf.open_model(paths[0])


def test_the_fingerprint_sees_metadata_weights_and_size(tmp_path: Path) -> None:
    path = tmp_path / "m.gguf"
    seen = set()
    whole = gb.llama()
    flipped = whole[:-5000] + bytes([whole[-5000] ^ 1]) + whole[-4999:]
    for data in (whole, gb.llama(**{"llama.rope.freq_base": 10000.0}), flipped, whole + b"\0"):
        path.write_bytes(data)
        seen.add(gguf.fingerprint(gguf.open_model(path)))
    assert len(seen) == 4
    assert all(len(digest) == 32 for digest in seen)
    path.write_bytes(whole)
    copy = tmp_path / "renamed.gguf"
    copy.write_bytes(whole)
    assert gguf.fingerprint(gguf.open_model(path)) == gguf.fingerprint(gguf.open_model(copy))


def test_the_fingerprint_of_a_huge_file_reads_little(tmp_path: Path) -> None:
    path = tmp_path / "huge.gguf"
    n_rows = 1 << 22  # 32 GiB of f32 rows of 2,048, sparse
    path.write_bytes(gb.file(gb.LLAMA, [gb.tensor("t", (2048, n_rows), 0, 0)]))
    os.truncate(path, path.stat().st_size + 2048 * n_rows * 4)
    header = gguf.open_model(path)
    before = gguf.fingerprint(header)
    with path.open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x01")
    assert gguf.fingerprint(header) != before


def facts(tmp_path: Path, metadata: dict[str, object]) -> gguf.GGUFHeader:
    path = tmp_path / "facts.gguf"
    path.write_bytes(gb.file(metadata, [gb.tensor("t", (4,), 0, 0)], bytes(16)))
    return gguf.open_model(path)


def test_facts_of_a_plain_model(tiny: Path) -> None:
    info = model_facts(gguf.open_model(tiny))
    assert (info.name, info.n_ctx_train, info.n_layer, info.n_vocab) == ("tiny", 4096, 2, 3)
    assert info.kv_bytes_per_token == 2 * 2 * (2 * 16) * 2  # layers, K and V, heads × dims, f16
    assert (info.rope.type, info.rope.scaling, info.rope.freq_base, info.rope.freq_scale) == (
        "norm",
        "none",
        5e5,
        1.0,
    )


def test_facts_of_scaled_rope(tmp_path: Path) -> None:
    metadata = {
        "general.architecture": "qwen2",
        "qwen2.rope.scaling.type": "yarn",
        "qwen2.rope.scaling.factor": 4.0,
        "qwen2.rope.freq_base": 1000000.0,
    }
    rope = model_facts(facts(tmp_path, metadata)).rope
    assert (rope.type, rope.scaling, rope.freq_scale) == ("neox", "yarn", 0.25)


def test_old_llama_3_conversions_are_noticed(tmp_path: Path) -> None:
    notices = model_facts(facts(tmp_path, {**gb.LLAMA, "llama.context_length": 131072})).notices
    assert any("rope_freqs" in notice for notice in notices)


@pytest.mark.parametrize(
    ("metadata", "why"),
    [
        ({"general.architecture": "mamba", "mamba.block_count": 4}, "recurrent layers keep a state"),
        (
            {
                "general.architecture": "gemma3",
                "gemma3.block_count": 12,
                "gemma3.attention.sliding_window": 512,
            },
            "10 of 12 layers see only 512 tokens back",
        ),
        ({"general.architecture": "new\nmodel" * 99}, "memory estimates are guesses"),
    ],
)
def test_notices_are_for_the_user_one_line_each(
    metadata: dict[str, object], why: str, tmp_path: Path
) -> None:
    (notice,) = model_facts(facts(tmp_path, metadata)).notices
    assert why in notice
    assert "\n" not in notice
    assert len(notice) < 200


def test_heads_per_layer_windows_and_shared_caches(tmp_path: Path) -> None:
    metadata = {
        "general.architecture": "gemma3",
        "gemma3.block_count": 12,
        "gemma3.embedding_length": 640,
        "gemma3.attention.head_count": 4,
        "gemma3.attention.head_count_kv": [1] * 12,
        "gemma3.attention.key_length": 256,
        "gemma3.attention.value_length": 256,
        "gemma3.attention.sliding_window": 512,
    }
    shape = kv_shape(facts(tmp_path, metadata))
    assert shape.k_elements == (256,) * 12
    assert [i for i, windowed in enumerate(shape.windowed) if not windowed] == [5, 11]
    assert (shape.window, shape.has_window, shape.is_plain) == (512, True, False)


def test_hybrid_layers_without_heads_keep_no_cache(tmp_path: Path) -> None:
    metadata = {
        "general.architecture": "lfm2",
        "lfm2.block_count": 3,
        "lfm2.embedding_length": 64,
        "lfm2.attention.head_count": 4,
        "lfm2.attention.head_count_kv": [0, 2, 0],
    }
    shape = kv_shape(facts(tmp_path, metadata))
    assert shape.k_elements == (0, 32, 0)
    assert (shape.is_hybrid, shape.is_plain) == (True, False)


def test_mla_keeps_one_latent_row(tmp_path: Path) -> None:
    key = "deepseek2.attention."
    metadata = {
        "general.architecture": "deepseek2",
        "deepseek2.block_count": 1,
        "deepseek2.embedding_length": 64,
    }
    metadata |= {
        key + "head_count": 16,
        key + "head_count_kv": 1,
        key + "key_length": 576,
        key + "value_length": 512,
    }
    metadata |= {key + "key_length_mla": 192, key + "value_length_mla": 128}
    shape = kv_shape(facts(tmp_path, metadata))
    assert (shape.k_elements, shape.v_elements, shape.is_mla) == ((576,), (0,), True)


def test_absurd_layer_counts_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="layers"):
        kv_shape(facts(tmp_path, {**gb.LLAMA, "llama.block_count": 100000}))


def test_the_default_of_several_templates_is_used(tmp_path: Path) -> None:
    named = {"tokenizer.chat_template.tool_use": "T", "tokenizer.chat_template.default": "D"}
    assert gguf.chat_template(facts(tmp_path, {**gb.LLAMA, **named})) == "D"
    assert gguf.chat_template(facts(tmp_path, {**gb.LLAMA, **named, "tokenizer.chat_template": "C"})) == "C"
    assert gguf.chat_template(facts(tmp_path, gb.LLAMA)) is None
