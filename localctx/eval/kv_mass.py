"""Which share of a model's attention falls on the cells that are attended to: the KV hit rate.

Queries of the exact model meet all keys; the softmax goes over all of them, and what of it falls on the cells
of a named set is that set's mass. Keys come in pieces, so that memory does not grow with the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from localctx._native import Rope, Run
from localctx.engine.query_capture import QueryModel
from localctx.errors import ModelError

__all__ = ["Asked", "Hits", "Mass", "add_keys", "asked_of", "hits_of", "summed"]

N_ASKED = 8
"""Predicted tokens of a stretch whose queries are looked at."""
Floats = NDArray[np.float32]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """Queries, un-rotated, [n_queries, n_heads, head_dim], all heads of layer after layer, which stand at
    `positions`. heads: (query heads, KV heads) of each layer · scale: of products before the softmax.
    """

    queries: Floats
    positions: NDArray[np.int32]
    heads: tuple[tuple[int, int], ...]
    scale: float

    def layer(self, number: int) -> slice:
        """Where the heads of a layer are."""
        first = sum(n for n, _ in self.heads[:number])
        return slice(first, first + self.heads[number][0])


@dataclass(frozen=True, slots=True)
class Hits:
    """Shares of attention. all: of what falls on any cell, the prefix included, which is always there ·
    document: of what falls on the document · by_layer: the latter, layer by layer · cells: of the document's
    cells, how many are attended to.
    """

    all: float
    document: float
    by_layer: tuple[float, ...]
    cells: float

    @classmethod
    def mean(cls, found: Sequence[Hits]) -> Hits | None:
        """Over several stretches; None of none."""
        if not found:
            return None
        layers = np.mean([one.by_layer for one in found], axis=0)
        return cls(
            float(np.mean([one.all for one in found])),
            float(np.mean([one.document for one in found])),
            tuple(map(float, layers)),
            float(np.mean([one.cells for one in found])),
        )


def asked_of(model: QueryModel, tokens: Sequence[int], n_target: int) -> Asked:
    """The queries of N_ASKED of the last n_target tokens, evenly spread, all tokens evaluated exactly.

    Raises NotComposable for a model whose queries cannot be read, and what the engine raises.
    """
    heads = model.queries.heads
    names = [(layer, head) for layer, (n, _) in enumerate(heads) for head in range(n)]
    first = len(tokens) - n_target
    places = np.unique(np.linspace(0, n_target - 1, N_ASKED).round().astype(np.int32))
    rows = model.queries.capture(tokens[: first + int(places[-1]) + 1], names, first)
    return Asked(rows[places], (first + places).astype(np.int32), heads, model.queries.scale)


class Mass:
    """Sums of exp(query · key) over cells, of each query and head: of all cells, and of those of each set."""

    def __init__(self, n_queries: int, n_heads: int, n_sets: int) -> None:
        self._highest = np.full((n_queries, n_heads), -np.inf, np.float64)
        self._sums = np.zeros((n_queries, n_heads, 1 + n_sets), np.float64)
        self._n_sets = n_sets

    def add(self, scores: Floats, heads: slice, members: NDArray[np.bool_] | None = None) -> None:
        """Scores [n_queries, n_heads, n_cells] of some heads, which are overwritten; `members` [n_sets,
        n_cells]: which cells are of which set, None: of none.
        """
        n_cells = scores.shape[2]
        columns = np.ones((1 + self._n_sets, n_cells), np.float32)
        columns[1:] = 0.0 if members is None else members
        highest = np.maximum(self._highest[:, heads], scores.max(axis=2))
        scores -= highest[..., None].astype(np.float32)
        weights = np.exp(scores, out=scores)
        kept = np.exp(self._highest[:, heads] - highest)
        self._sums[:, heads] = self._sums[:, heads] * kept[..., None] + weights @ columns.T
        self._highest[:, heads] = highest

    def empty(self) -> Mass:
        """One like it, of no cells."""
        return Mass(*self._highest.shape, self._n_sets)

    def merge(self, other: Mass) -> None:
        """Take the cells of another one."""
        highest = np.maximum(self._highest, other._highest)
        for one in (self, other):
            one._sums *= np.exp(one._highest - highest)[..., None]
            one._highest = highest
        self._sums += other._sums

    def shares(self) -> NDArray[np.float64]:
        """[n_queries, n_heads, n_sets]."""
        result: NDArray[np.float64] = self._sums[..., 1:] / self._sums[..., :1]
        return result


def add_keys(
    mass: Mass,
    asked: Asked,
    rope: Rope,
    layers: Iterable[NDArray[np.float16]],
    positions: NDArray[np.int32],
    members: NDArray[np.bool_] | None = None,
) -> None:
    """Un-rotated keys of each layer, [n_cells, KV heads * head_dim], where they stand in the exact model."""
    n_queries, _, head_dim = asked.queries.shape
    for number, keys in enumerate(layers):
        here, n_kv = asked.layer(number), asked.heads[number][1]
        queries = asked.queries[:, here].reshape(n_queries, -1).astype(np.float16)
        turned = rope.turn(queries, asked.positions).astype(np.float32)
        grouped = turned.reshape(n_queries, n_kv, -1, head_dim).transpose(1, 0, 2, 3)
        standing = rope.turn(keys, positions).astype(np.float32).reshape(len(keys), n_kv, head_dim)
        scores = grouped.reshape(n_kv, -1, head_dim) @ standing.transpose(1, 2, 0)
        by_head = scores.reshape(n_kv, n_queries, -1, len(keys)).transpose(1, 0, 2, 3)
        mass.add(by_head.reshape(n_queries, -1, len(keys)) * np.float32(asked.scale), here, members)


def hits_of(
    asked: Asked,
    rope: Rope,
    prefix: Sequence[Run],
    document: Sequence[Run],
    sets: Sequence[Sequence[int]],
) -> list[Hits]:
    """Of each set of the document's runs. Prefix and document are f16 runs of the exact model, one after the
    other from position 0 on.
    """
    n_cells = sum(run.n_tokens for run in document)
    mass = Mass(len(asked.positions), asked.queries.shape[1], 1 + len(sets))
    position = 0
    for number, run in enumerate([*prefix, *document]):
        at = np.arange(position, position + run.n_tokens, dtype=np.int32)
        members = np.zeros((1 + len(sets), run.n_tokens), bool)
        if (of_document := number - len(prefix)) >= 0:
            members[0] = True
            members[1:] = np.array([of_document in chosen for chosen in sets])[:, None]
        add_keys(mass, asked, rope, (run.keys(layer) for layer in range(run.n_layer)), at, members)
        position += run.n_tokens
    held = [sum(document[run].n_tokens for run in chosen) / n_cells for chosen in sets]
    return summed(mass, asked, held)


def summed(mass: Mass, asked: Asked, cells: Sequence[float]) -> list[Hits]:
    """What a mass whose first set is the document says of its other sets; cells: the share of each."""
    shares = mass.shares()
    if not np.isfinite(shares).all():
        raise ModelError("the model's attention is not finite", "a file of other quantisation")
    document = shares[..., 0]
    found = []
    for number, share in enumerate(cells, 1):
        hit = shares[..., number]
        by_layer = []
        for layer in range(len(asked.heads)):
            here = asked.layer(layer)
            by_layer.append(float(hit[:, here].sum() / document[:, here].sum()))
        total = float((1.0 - document + hit).mean())
        found.append(Hits(total, float(hit.sum() / document.sum()), tuple(by_layer), share))
    return found
