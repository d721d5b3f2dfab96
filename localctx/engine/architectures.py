"""What llama.cpp knows of each architecture, as tables: RoPE type, memory kind, what is no language model.

After llama-arch.cpp and llama-model.cpp of the pinned llama-cpp-python. A name missing here is only flagged:
llama.cpp decides when the weights are loaded.
"""

from __future__ import annotations

__all__ = [
    "FULL_EVERY",
    "HYBRID",
    "NOT_LANGUAGE_MODELS",
    "RECURRENT",
    "ROPE_TYPES",
    "WINDOW_DEFAULT",
    "WINDOW_DISABLED",
]


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ROPE = {
    "none": """
        clip gpt2 gptj mpt refact bloom mamba mamba2 jamba jina-bert-v2 t5 t5encoder jais rwkv6 rwkv6qwen2
        rwkv7 arwkv7 wavtokenizer-dec nemotron_h nemotron_h_moe kimi-linear kimi-k3 glm5-next""",
    "norm": """
        llama llada llama4 deci baichuan starcoder internlm2 minicpm xverse command-r cohere2 cohere2moe
        olmo arctic deepseek deepseek2 deepseek2-ocr deepseek32 deepseek4 muse-glimmer plm chatglm granite
        granitemoe granitehybrid graniteswitch granite_swa chameleon bailingmoe neo-bert smollm3 arcee
        ernie4_5 ernie4_5-moe mistral3 eagle3 mistral4 llama-embed maincoder glm-dsa dots3note nanbeige
        pockettts bailingmoe3 hy_v4 glm4""",
    "neox": """
        falcon falcon-h1 grok dbrx bert jina-bert-v3 modern-bert nomic-bert nomic-bert-moe eurobert stablelm
        bitnet qwen qwen2 dream qwen2moe qwen3 qwen3moe llada-moe rnd1 olmo2 olmoe phi2 phi3 phimoe plamo
        plamo2 plamo3 gemma gemma2 gemma3 gemma3n gemma4 gemma4-assistant gemma-embedding starcoder2 openelm
        gptneox codeshell orion nemotron exaone exaone4 exaone-moe minicpm3 bailingmoe2 dots1 hunyuan-moe
        jais2 gpt-oss hunyuan-dense hy_v3 lfm2 lfm2moe smallthinker seed_oss grovemoe apertus minimax-01
        minimax-m2 minimax-m3 cogvlm pangu-embedded afmoe laguna qwen3next mimo2 step35 spark2_5 talkie
        mellum maple hrm_text glm4moe hunyuan_vl""",
    "mrope": "dflash qwen2vl paddleocr",
    "imrope": "qwen3vl qwen3vlmoe qwen35 qwen35moe qwen4exp qwen3tts",
}
ROPE_TYPES = {name: rope for rope, names in _ROPE.items() for name in names.split()}

RECURRENT = _names("mamba mamba2 rwkv6 rwkv6qwen2 rwkv7 arwkv7")
HYBRID = _names(
    """jamba falcon-h1 plamo2 granitehybrid lfm2 lfm2moe nemotron_h nemotron_h_moe qwen3next kimi-linear
    bailingmoe3 kimi-k3 glm5-next qwen35 qwen35moe qwen4exp deepseek4 minimax-01"""
)

FULL_EVERY: dict[str, tuple[int, bool]] = {
    # (n, first): of n layers in turn one attends to everything, the first or the last; the rest see a window
    "afmoe": (4, False),
    "cohere2": (4, False),
    "cohere2moe": (4, True),
    "exaone-moe": (4, False),
    "exaone4": (4, False),
    "gemma2": (2, False),
    "gemma3": (6, False),
    "gemma3n": (5, False),
    "gpt-oss": (2, False),
    "laguna": (4, True),
    "llama4": (4, False),
    "mellum": (4, False),
    "muse-glimmer": (4, False),
    "olmo2": (4, False),
    "plamo3": (8, False),
    "smallthinker": (4, True),
}
WINDOW_DEFAULT = {"exaone-moe": 128, "gemma2": 4096, "llama4": 8192}
"""Window where the file does not give one, in tokens."""
WINDOW_DISABLED = frozenset({"llama", "mistral3", "phi3", "qwen2", "qwen2moe", "qwen3", "qwen3moe"})
"""Files that carry a window which llama.cpp does not apply."""

_EMBEDDING = "an embedding model"
_PICTURES = "an image or video generator"
NOT_LANGUAGE_MODELS = {
    "clip": "a vision projector (mmproj)",
    "wavtokenizer-dec": "a speech decoder",
    "pockettts": "a speech generator",
    "qwen3tts": "a speech generator",
    "whisper": "a speech recogniser",
    "t5": "an encoder-decoder model",
    "controlvector": "a control vector",
    "imatrix": "an importance matrix",
    "eagle3": "a draft model for speculative decoding",
    "dflash": "a draft model for speculative decoding",
    **dict.fromkeys(
        _names(
            """bert modern-bert nomic-bert nomic-bert-moe neo-bert jina-bert-v2 jina-bert-v3 eurobert
            gemma-embedding t5encoder llama-embed"""
        ),
        _EMBEDDING,
    ),
    **dict.fromkeys(
        _names("flux sd1 sd3 sdxl aura ltxv hyvid wan hidream cosmos lumina2 qwen_image"), _PICTURES
    ),
}
