"""Text → the code of its main language, from a few samples. Knows no formats."""

from __future__ import annotations

from localctx.values import TextSource

__all__ = ["language_of", "language_of_sample"]

N_SAMPLES = 8
SAMPLE_CHARACTERS = 600
NO_LANGUAGE = "zxx"
MIN_LETTERS = 50


def language_of(text: TextSource) -> str | None:
    """ISO 639-1 code, None where the samples hold hardly any letters."""
    return language_of_sample("\n".join(samples(text)))


def language_of_sample(sample: str) -> str | None:
    """The same for a text that is at hand; its beginning decides."""
    sample = sample[: N_SAMPLES * SAMPLE_CHARACTERS]
    if sum(map(str.isalpha, sample)) < MIN_LETTERS:
        return None
    import py3langid

    code: str = py3langid.classify(sample)[0]
    return None if code == NO_LANGUAGE else code


def samples(text: TextSource) -> list[str]:
    """Pieces from evenly spread places; the whole of a short text."""
    n = text.n_code_points
    if n <= N_SAMPLES * SAMPLE_CHARACTERS:
        return [text.read(0, n)]
    step = (n - SAMPLE_CHARACTERS) // (N_SAMPLES - 1)
    return [text.read(place * step, place * step + SAMPLE_CHARACTERS) for place in range(N_SAMPLES)]
