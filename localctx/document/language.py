"""Text → the code of its main language, from a few samples. Knows no formats."""

from __future__ import annotations

import contextlib
import threading

from localctx.values import TextSource

__all__ = ["language_of", "language_of_sample", "load_early"]

N_SAMPLES = 8
SAMPLE_CHARACTERS = 600
NO_LANGUAGE = "zxx"
MIN_LETTERS = 50

_lock = threading.Lock()
"""The library loads its model (0.7 s) at the first call, with no lock of its own."""


def load_early() -> None:
    """Begin to load the language model beside other work, so that the first question need not wait for it."""
    threading.Thread(target=_load, name="language model", daemon=True).start()


def _load() -> None:
    with contextlib.suppress(Exception):  # raised again where a language is asked for
        _classify("")


def language_of(text: TextSource) -> str | None:
    """ISO 639-1 code, None where the samples hold hardly any letters."""
    return language_of_sample("\n".join(samples(text)))


def language_of_sample(sample: str) -> str | None:
    """The same for a text that is at hand; its beginning decides. None also where the language library cannot
    unpack its model: it does so in a temporary file, and a full disk costs no answer.
    """
    sample = sample[: N_SAMPLES * SAMPLE_CHARACTERS]
    if sum(map(str.isalpha, sample)) < MIN_LETTERS:
        return None
    try:
        code = _classify(sample)
    except OSError:
        return None
    return None if code == NO_LANGUAGE else code


def _classify(sample: str) -> str:
    with _lock:
        import py3langid

        code: str = py3langid.classify(sample)[0]
        return code


def samples(text: TextSource) -> list[str]:
    """Pieces from evenly spread places; the whole of a short text."""
    n = text.n_code_points
    if n <= N_SAMPLES * SAMPLE_CHARACTERS:
        return [text.read(0, n)]
    step = (n - SAMPLE_CHARACTERS) // (N_SAMPLES - 1)
    return [text.read(place * step, place * step + SAMPLE_CHARACTERS) for place in range(N_SAMPLES)]
