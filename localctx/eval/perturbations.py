"""Changes of a document that leave every answer as it was, and a registry of them.

Each is a function of a draft and a source of random numbers. Knows no model.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from localctx.errors import UsageError
from localctx.eval.drafts import Draft, Sentence
from localctx.index.terms import content_words, stem

__all__ = ["PERTURBATIONS", "Perturbation", "register_perturbation"]

N_SEGMENTS = 3
NOISE_SHARE = 0.1
"""Of the prose: sentences of noise that are put in, and those that make room for them."""

Perturbation: TypeAlias = Callable[[Draft, random.Random], Draft]


def register_perturbation(name: str, change: Perturbation) -> None:
    """Add a change, which `--perturb` then knows by its name. Raises UsageError for a name that is taken."""
    if name in PERTURBATIONS or not name.isidentifier():
        raise UsageError(f"a perturbation cannot be called {name!r}", "a word that no other one has")
    PERTURBATIONS[name] = change


def _shuffle(draft: Draft, source: random.Random) -> Draft:
    """Three segments of equal length, none of them where it was."""
    total, n_reached = draft.n_tokens, 0
    segments: list[list[Sentence]] = [[] for _ in range(N_SEGMENTS)]
    for one in draft.sentences:
        segments[min(N_SEGMENTS - 1, n_reached * N_SEGMENTS // max(1, total))].append(one)
        n_reached += one.n_tokens
    first = source.randrange(1, N_SEGMENTS)
    order = [*range(first, N_SEGMENTS), *range(first)]
    return replace(draft, sentences=tuple(one for number in order for one in segments[number]))


def _noise(draft: Draft, source: random.Random) -> Draft:
    """One sentence in ten of the prose gives way, and as many of noise stand in other places: the words of a
    sentence, in Chinese its characters, in no order.
    """
    prose = [place for place, one in enumerate(draft.sentences) if one.planted is None]
    n_noise = round(NOISE_SHARE * len(prose))
    dropped = set(source.sample(prose, n_noise))
    behind: dict[int, list[Sentence]] = {}
    for place in sorted(dropped):
        at = source.choice(prose)
        behind.setdefault(at, []).append(draft.sentence(_mixed(draft, draft.sentences[place].text, source)))
    sentences = []
    for place, one in enumerate(draft.sentences):
        sentences += [] if place in dropped else [one]
        sentences += behind.get(place, [])
    return replace(draft, sentences=tuple(sentences))


def _mixed(draft: Draft, text: str, source: random.Random) -> str:
    """The parts of a sentence in no order, its last sign kept."""
    space = draft.language.space
    parts = text[:-1].split() if space else list(text[:-1])
    source.shuffle(parts)
    return space.join(parts) + text[-1]


def _paraphrase(draft: Draft, _: random.Random) -> Draft:
    """Planted sentences in other words, where there are any; asked are questions that share none of these."""
    reworded = draft.plan.reworded
    sentences = tuple(
        one if one.planted is None or one.planted not in reworded
        else draft.sentence(reworded[one.planted], one.planted)
        for one in draft.sentences
    )  # fmt: skip
    asked = (
        place
        for place, one in enumerate(draft.plan.questions)
        if one.sentences
        and all(
            number in reworded and not _stems(one.text) & _stems(reworded[number]) for number in one.sentences
        )
    )
    return replace(draft, sentences=sentences, asked=frozenset(asked))


def _stems(text: str) -> set[str]:
    return set(map(stem, content_words(text)))


PERTURBATIONS: dict[str, Perturbation] = {"shuffle": _shuffle, "noise": _noise, "paraphrase": _paraphrase}
