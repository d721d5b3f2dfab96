"""A question of many documents, read by several actors: each ranks its own, one threshold cuts over all,
and one actor answers from the documents that passages were taken of.

Knows no Ray: what the parts' actors say comes from `calls`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from localctx.batch.tasks import Task
from localctx.selection.shards import common_weights, merged

__all__ = ["MIN_DOCUMENTS", "Chosen", "choose_passages", "is_spread", "parts_of", "with_unread"]

MIN_DOCUMENTS = 8
"""Fewer are read by one actor."""
N_PASSAGES = 12
"""Passages over all documents, as many as fit the context."""
Calls = Callable[[str, Sequence[tuple[Any, ...]]], list[Any]]
"""(method, arguments for each part) → what each part's actor says."""


@dataclass(frozen=True, slots=True)
class Chosen:
    """task: what one actor answers, of the documents that passages were taken of · unread: (path, tokens) of
    the others · part: whose documents most of them are.
    """

    task: Task
    unread: tuple[tuple[str, int], ...]
    part: int


def is_spread(task: Task, n_actors: int) -> bool:
    """Whether a task's documents are read by several actors."""
    return n_actors > 1 and len(task.documents) >= MIN_DOCUMENTS


def parts_of(documents: Sequence[str], n_parts: int, home: Callable[[str], int]) -> list[list[str]]:
    """Documents by the part that is their home; a part without any takes from the largest."""
    parts: list[list[str]] = [[] for _ in range(n_parts)]
    for path in documents:
        parts[home(path) % n_parts].append(path)
    while min(map(len, parts)) == 0 and max(map(len, parts)) > 1:
        next(part for part in parts if not part).append(max(parts, key=len).pop())
    return [part for part in parts if part]


def choose_passages(task: Task, parts: Sequence[Sequence[str]], calls: Calls) -> Chosen:
    """Have the parts counted and ranked, and cut by one threshold. What fits the context whole, and what no
    part holds a word of, is left as it is.
    """
    counts = calls("count", [(part, task.question) for part in parts])
    n_tokens = {
        path: n
        for part, one in zip(parts, counts, strict=True)
        for path, n in zip(part, one["n_tokens"], strict=True)
    }
    whole = Chosen(task, (), 0)
    if sum(n_tokens.values()) < min(one["limit"] for one in counts) // 2:
        return whole
    n_blocks = [one["n_blocks"] for one in counts]
    weights = common_weights(
        counts[0]["terms"], [sum(n) for n in n_blocks], [one["n_holding"] for one in counts]
    )
    best = calls("best", [(part, task.question, weights, N_PASSAGES) for part in parts])
    scored = [[(score, n) for n, (score, _, _) in enumerate(shard)] for shard in best]
    _, kept = merged(scored, N_PASSAGES)
    taken = [
        (score, parts[number][document], n_blocks[number][document], block)
        for number, shard in enumerate(kept)
        for score, (_, document, block) in ((score, best[number][n]) for score, n in shard)
    ]
    if not taken:
        return whole
    return Chosen(
        _of_passages(task, taken), _unread(n_tokens, taken), max(range(len(kept)), key=lambda n: len(kept[n]))
    )


def _of_passages(task: Task, taken: Sequence[tuple[float, str, int, int]]) -> Task:
    """The task on the documents that passages were taken of, with the passages' numbers, best first."""
    sizes = {path: n_blocks for _, path, n_blocks, _ in taken}
    documents = [path for path in dict.fromkeys(task.documents) if path in sizes]
    first = {path: sum(sizes[other] for other in documents[:n]) for n, path in enumerate(documents)}
    ranked = sorted(taken, key=lambda one: -one[0])
    return replace(
        task, documents=tuple(documents), blocks=tuple(first[path] + block for _, path, _, block in ranked)
    )


def _unread(
    n_tokens: dict[str, int], taken: Sequence[tuple[float, str, int, int]]
) -> tuple[tuple[str, int], ...]:
    read = {path for _, path, _, _ in taken}
    return tuple((path, n) for path, n in n_tokens.items() if path not in read)


def with_unread(row: dict[str, Any], chosen: Chosen) -> dict[str, Any]:
    """The answer's row whose coverage also counts the documents that no passage was taken of."""
    if "coverage" not in row or not chosen.unread:
        return row
    coverage = dict(row["coverage"])
    n_unread = sum(n for _, n in chosen.unread)
    coverage["tokens_total"] += n_unread
    coverage["tokens_dropped"] += n_unread
    n_all = len(chosen.task.documents) + len(chosen.unread)
    warning = f"{len(chosen.unread)} of {n_all} documents hold none of the best passages and were not read"
    return {**row, "coverage": coverage, "warnings": [*row["warnings"], warning]}
