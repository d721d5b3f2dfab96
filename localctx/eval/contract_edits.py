"""Edits of a generated contract, each noted with the key of what it touched. Knows no text as written."""

from __future__ import annotations

from dataclasses import replace

from localctx.alignment.values import Kind
from localctx.eval.contract_parts import Clause, Making, Sentence

__all__ = ["edited_clauses"]

TRIES = 40
MOVED_LEAST = 3
"""Clauses that a moved clause passes at least."""
SHARES: tuple[tuple[Kind, str, int], ...] = (
    ("number", "", 18), ("date", "", 9), ("party", "", 10), ("reworded", "", 19), ("added", "sentence", 8),
    ("removed", "sentence", 8), ("added", "clause", 6), ("removed", "clause", 6), ("moved", "clause", 16),
)  # fmt: skip


def edited_clauses(making: Making, clauses: list[Clause], n_edits: int) -> list[Clause]:
    """B: the clauses after edits, each noted with the key of what it touched."""
    edited = [
        Clause(c.key, c.title, [replace(s, values=dict(s.values)) for s in c.sentences]) for c in clauses
    ]
    weights = [weight for _, _, weight in SHARES]
    for kind, level, _ in making.rng.choices(SHARES, weights, k=4 * n_edits):
        n_before = len(making.edits)
        if n_before >= n_edits:
            break
        for _ in range(TRIES):
            _edit(making, edited, kind, level)
            if len(making.edits) > n_before:
                break
    return edited


def _edit(making: Making, edited: list[Clause], kind: Kind, level: str) -> None:
    """Make one edit, or none where what was drawn does not allow it."""
    rng = making.rng
    place = rng.randrange(1, len(edited))
    clause = edited[place]
    if kind == "moved":
        to = rng.randrange(1, len(edited))
        if abs(to - place) < MOVED_LEAST or clause.key in making.touched or clause.key.startswith("new"):
            return
        edited.insert(to, edited.pop(place))
        making.touched.add(clause.key)
        making.edits.append(("moved", "clause", clause.key))
    elif level == "clause":
        _edit_clause(making, edited, place, kind)
    elif level == "sentence":
        _edit_sentences(making, clause, kind)
    else:
        target = edited[0] if kind == "party" and rng.random() < 0.2 else clause
        sentence = rng.choice(target.sentences)
        if sentence.key not in making.touched and _reword(making, sentence, kind):
            making.touched.add(sentence.key)
            making.edits.append((kind, "entity" if kind != "reworded" else "paragraph", sentence.key))


def _edit_clause(making: Making, edited: list[Clause], place: int, kind: Kind) -> None:
    clause = edited[place]
    if kind == "added" and making.spare:
        new = making.spare.pop()
        for sentence in new.sentences:
            sentence.reference = edited[1].key
        edited.insert(place, new)
        keys = {sentence.key for sentence in new.sentences}
        making.touched |= {new.key, *keys}
        making.edits.append(("added", "clause", new.key))
    elif kind == "removed":
        keys = {clause.key, *(sentence.key for sentence in clause.sentences)}
        is_named = any(s.reference == clause.key and "{R}" in s.template for c in edited for s in c.sentences)
        if not keys & making.touched and not is_named and len(edited) > MOVED_LEAST:
            edited.remove(clause)
            making.touched |= keys
            making.edits.append(("removed", "clause", clause.key))


def _edit_sentences(making: Making, clause: Clause, kind: Kind) -> None:
    at = making.rng.randrange(len(clause.sentences) + (kind == "added"))
    if kind == "removed":
        sentence = clause.sentences[at]
        if len(clause.sentences) > 1 and sentence.key not in making.touched:
            clause.sentences.remove(sentence)
            making.touched.add(sentence.key)
            making.edits.append(("removed", "sentence", sentence.key))
    elif making.spare and (taken := making.rng.choice(making.spare)).sentences:
        if clause.key in making.touched and clause.key.startswith("new"):
            return
        sentence = taken.sentences.pop()
        sentence.reference = clause.key
        if not taken.sentences:
            making.spare.remove(taken)
        clause.sentences.insert(at, sentence)
        making.touched.add(sentence.key)
        making.edits.append(("added", "sentence", sentence.key))


def _reword(making: Making, sentence: Sentence, kind: Kind) -> bool:
    """Change a sentence; False where it has nothing of that kind."""
    rng = making.rng
    if kind in ("number", "date"):
        slots = [slot for slot in sentence.values if slot in ("T" if kind == "date" else "DSMP")]
        if not slots:
            return False
        slot = rng.choice(slots)
        old = sentence.values[slot]
        while sentence.values[slot] == old:
            sentence.values[slot] = making.value(slot)
        return True
    if kind == "party":
        return _change_party(making, sentence)
    way = rng.random()
    if way < 0.5:
        sentence.template = sentence.wordings[1]
    elif way < 0.75:
        pairs = [pair for pair in making.data["not"] if pair[0] in sentence.template]
        if pairs and "不" not in sentence.template:
            sentence.template = _swapped(sentence.template, rng.choice(pairs))
    else:
        pairs = [pair for pair in making.data["words"] if pair[0] in sentence.template]
        if pairs:
            sentence.template = _swapped(sentence.template, rng.choice(pairs))
    return sentence.template != sentence.wordings[0]


def _swapped(text: str, pair: list[str]) -> str:
    return text.replace(pair[0], pair[1], 1)


def _change_party(making: Making, sentence: Sentence) -> bool:
    if "C1" in sentence.values:
        others = [name for name in making.data["companies"] if name not in sentence.values.values()]
        sentence.values[making.rng.choice(("C1", "C2"))] = making.rng.choice(others)
        return True
    if "{A}" not in sentence.template and "{B}" not in sentence.template:
        return False
    swapped = sentence.template.replace("{A}", "\0").replace("{B}", "{A}").replace("\0", "{B}")
    sentence.template = swapped
    return True
