"""Sections of a document that are summarised one by one, each into a point, and how points are kept.

What a section's point depends on is in its key: its tokens, what of the text they have seen and in which
codec, the model, the focus, the sampling. A document that grew keeps the points of what is the same.
"""

from __future__ import annotations

import json
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TypeAlias

from localctx.kv import PrefillPolicy
from localctx.kv_settings import CODEC_NAMES
from localctx.session.cache import EXACT, Cache
from localctx.session.citing import cite
from localctx.session.parts import Part, cut_parts
from localctx.session.points import Point, pointed
from localctx.session.reading import Reading
from localctx.store import DocumentIdentity, StoreUnusable
from localctx.values import ModelInfo

__all__ = [
    "GPU_N_SIDE",
    "KEY_SECTION_TOKENS",
    "N_SIDE",
    "SECTION_TOKENS",
    "Section",
    "is_small",
    "keep_points",
    "kept_points",
    "sections_of",
]

SECTION_TOKENS, MIN_SHARE = 1024, 0.5
"""Of a section at most, and the share of that which it has at least: every task takes a hundred tokens."""
KEY_SECTION_TOKENS = 256
"""The same where a section's point is its key sentence: those take no task, and more are told from."""
N_SIDE, GPU_N_SIDE = 4, 8
"""Sections decoded side by side. A GPU waits less often for more of them, but attends to all their cells."""
POINTS_KIND = "summary"
POINTS_VERSION = 3
"""Part of every key: raise it whenever tasks, key sentences or checks change."""
SMALL_B = 1.0
"""Models of fewer thousand million weights word no section."""
SMALL_BYTES = 700 << 20
"""The same, where the file does not say how many weights there are."""

Way: TypeAlias = tuple[PrefillPolicy, str | None]
"""What a worded point depends on beside the section: the policy of the prefill, and its codec."""


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a reading, and its tokens [first, end) of the reading's stream."""

    part: Part
    first: int
    end: int

    @property
    def reading(self) -> Reading:
        """Whose it is."""
        return self.part.reading

    @property
    def tokens(self) -> array[int]:
        """Its tokens."""
        return self.reading.stream[self.first : self.end]


def sections_of(reading: Reading, n_tokens: int = SECTION_TOKENS) -> list[Section]:
    """The reading's sections of at most n_tokens in order, all tokens in one of them."""
    sections = []
    for part in cut_parts([reading], n_tokens, MIN_SHARE):
        first = reading.first_tokens[part.first]
        sections.append(Section(part, first, first + part.n_tokens))
    return sections


def is_small(info: ModelInfo) -> bool:
    """Whether a model is one that invents more than it says: its sections are told in their own sentences."""
    label = re.search(r"\b(\d+(?:\.\d+)?)([MB])\b", info.description)
    if label is None:
        return info.size_bytes < SMALL_BYTES
    return float(label[1]) < (SMALL_B if label[2] == "B" else SMALL_B * 1000)


def kept_points(cache: Cache, sections: Sequence[Section], focus: str | None) -> list[Point | None]:
    """The points of one reading's sections as far as they are kept, under any way that serves."""
    store, found = cache.kept.store, dict[int, Point]()
    if store is None or not sections:
        return [None] * len(sections)
    try:
        for way in _serving(cache, sections[0].reading):
            keys = {
                number: _key(cache, section, focus, way)
                for number, section in enumerate(sections)
                if number not in found
            }
            with store.reading_artifacts(POINTS_KIND, list(dict.fromkeys(keys.values()))) as views:
                data = {number: bytes(views[key]) for number, key in keys.items() if key in views}
            read = {number: _restored(sections[number], one) for number, one in data.items()}
            found |= {number: point for number, point in read.items() if point is not None}
            if len(found) == len(sections):
                break
    except StoreUnusable as error:
        cache.run.note(f"{error.message}; kept summaries are not used")
    return [found.get(number) for number in range(len(sections))]


def keep_points(
    cache: Cache,
    identity: DocumentIdentity,
    points: Mapping[int, Point],
    sections: Sequence[Section],
    focus: str | None,
) -> None:
    """Keep points, by the numbers of their sections, with their document as it was prefilled, where that can
    be.
    """
    kept = cache.kept
    if not points or not kept.can_write or kept.store is None:
        return
    way = None if is_small(cache.run.model.info) else (identity.policy, cache.codec)
    items = {
        _key(cache, sections[number], focus, way): _bytes(sections[number], point)
        for number, point in points.items()
    }
    try:
        kept.store.put_artifacts(POINTS_KIND, items, identity)
    except StoreUnusable as error:
        cache.run.note(f"{error.message}; the summaries are not kept")


def _serving(cache: Cache, reading: Reading) -> Iterator[Way | None]:
    """The ways whose points serve under the settings in force, as stored KV would: sentences, always."""
    if is_small(cache.run.model.info):
        yield None
        return
    codecs = (None, *CODEC_NAMES) if cache.codec is None else (cache.codec,)
    for policy in dict.fromkeys((EXACT, cache.whole_stream(reading).policy, cache.policy)):
        yield from ((policy, codec) for codec in codecs)


def _key(cache: Cache, section: Section, focus: str | None, way: Way | None) -> str:
    settings, info = cache.run.settings, cache.run.model.info
    facts: tuple[object, ...] = (
        POINTS_VERSION,
        info.fingerprint,
        focus,
        section.reading.document.language,
        cache.space,
    )
    if way is not None:
        sampling = (settings.temp, settings.top_p, settings.top_k, settings.min_p, settings.seed)
        facts += (settings.max_tokens, sampling, _seen(section, way[0]), way[1])
    hasher = blake2b(repr(facts).encode("utf-8", "surrogatepass"), digest_size=16)
    hasher.update(section.tokens.tobytes())
    return hasher.hexdigest()


def _seen(section: Section, policy: PrefillPolicy) -> tuple[PrefillPolicy, tuple[int, ...]]:
    """What a section's tokens have seen; under any window that holds all before them it is the same."""
    if policy.kind == "exact" or (policy.kind == "window" and section.end <= policy.window):
        return EXACT, ()
    if policy.kind != "independent":
        return policy, ()
    units = section.reading.first_tokens
    inside = units[bisect_right(units, section.first) : bisect_left(units, section.end)]
    return policy, tuple(unit - section.first for unit in inside)


def _bytes(section: Section, point: Point) -> bytes:
    """A point as it is kept: its key sentence as a span of the section, and its words."""
    start = section.part.span[0]
    citation = point.citation
    facts = [citation.start - start, citation.end - start, citation.score, point.text]
    return json.dumps(facts).encode()


def _restored(section: Section, data: bytes) -> Point | None:
    """The point of a section from what was kept; None where that is not of this section."""
    try:
        first, last, score, text = json.loads(data)
        start, end = section.part.span
        if not (isinstance(text, str) and 0 <= first < last and start + last <= end):
            return None
        point = pointed(
            section.part, cite(section.reading.document, start + first, start + last, float(score))
        )
    except (ValueError, TypeError):
        return None
    return replace(point, text=text)
