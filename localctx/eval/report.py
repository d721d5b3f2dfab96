"""What `eval niah` found, for a person and for a program: every mode and every selector beside the others."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from localctx.bench.repeats import rounded
from localctx.eval.asking import Answered, Asked, Examined
from localctx.eval.documents import GeneratedDocument
from localctx.eval.modes import MODES, RANKS
from localctx.eval.scoring import mean
from localctx.values import ModelInfo

__all__ = ["FIRST_N", "Report", "asked_json"]

FIRST_N = (1, 4, 16)
OTHER_WORDS = ("paraphrased", "translated")
"""Tasks whose questions share no content word with what answers them."""
ALL, COMMON, SHARED, UNSHARED = "all", "asked in all modes", "words shared", "no word shared"
"""COMMON: only these can be compared across modes, where some could not ask every question."""
WIDTH = 15


@dataclass(frozen=True, slots=True)
class _Row:
    """Questions that are counted together."""

    length: int
    language: str
    task: str
    asked: tuple[Asked, ...]

    @property
    def n_without(self) -> int:
        return sum(not one.question.gold for one in self.asked)

    def modes(self, names: Iterable[str]) -> dict[str, dict[str, Any]]:
        """Of each mode, its figures."""
        found = {name: [one.answers[name] for one in self.asked if name in one.answers] for name in names}
        return {name: _figures(answers) for name, answers in found.items() if answers}

    def selection(self) -> dict[str, dict[str, float]]:
        """Of each selector, the share of right blocks among its first ones."""
        found: dict[str, dict[str, float]] = {}
        for name in RANKS:
            ranks = [rank for one in self.asked for rank in one.ranks.get(name, ())]
            if ranks:
                found[name] = {
                    str(n): rounded(sum(rank is not None and rank < n for rank in ranks) / len(ranks))
                    for n in FIRST_N
                }
        return found


def _figures(answers: Sequence[Answered]) -> dict[str, Any]:
    """recall and match of questions that have an answer, false_answers of those that have none."""
    scores = [answer.score for answer in answers]
    return {
        "n": len(answers),
        "recall": _rounded(mean(score.recall for score in scores)),
        "match": _rounded(mean(score.is_match for score in scores)),
        "declined": _rounded(mean(score.is_declined for score in scores if score.recall is not None)),
        "false_answers": _rounded(mean(score.is_false for score in scores)),
        "ttft_ms": rounded(statistics.median(answer.ttft_ms for answer in answers)),
        "n_evaluated": round(statistics.fmean(answer.n_evaluated for answer in answers), 1),
        "n_attended": round(statistics.fmean(answer.n_attended for answer in answers), 1),
    }


def _rounded(value: float | None) -> float | None:
    return None if value is None else rounded(value)


@dataclass(frozen=True, slots=True)
class Report:
    """`options`: what was asked for, as JSON values · kv: the cache settings, as typed."""

    model: ModelInfo
    machine: dict[str, Any]
    options: dict[str, Any]
    kv: str
    examined: tuple[Examined, ...]

    def _rows(self) -> Iterator[_Row]:
        """A row a length, task and language."""
        asked: dict[tuple[int, str, str], list[Asked]] = {}
        for one in self.examined:
            for question in one.asked:
                key = (one.document.length, question.question.task, one.document.language)
                asked.setdefault(key, []).append(question)
        order = {task: place for place, task in enumerate(self.options["tasks"])}
        for length, task, language in sorted(asked, key=lambda key: (key[0], order[key[1]], key[2])):
            yield _Row(length, language, task, tuple(asked[length, task, language]))

    def _sums(self, length: int) -> Iterator[_Row]:
        """All questions of a length; those asked in all modes, where that is not all of them; those that
        do or do not share words with what answers them.
        """
        rows = [row for row in self._rows() if row.length == length]
        every = tuple(one for row in rows for one in row.asked)
        yield _Row(length, "", ALL, every)
        common = _asked_alike(every)
        if 0 < len(common) < len(every):
            yield _Row(length, "", COMMON, common)
        for kind in (SHARED, UNSHARED):
            asked = [one for one in every if (one.question.task in OTHER_WORDS) == (kind == UNSHARED)]
            if asked:
                yield _Row(length, "", kind, tuple(asked))

    def _compared(self, length: int) -> _Row:
        """The questions of a length over which modes can be compared."""
        sums = {row.task: row for row in self._sums(length)}
        return sums.get(COMMON, sums[ALL])

    @property
    def _modes(self) -> list[str]:
        """In the order of MODES, those that were asked in."""
        there = {name for one in self.examined for question in one.asked for name in question.answers}
        return [name for name in MODES if name in there]

    def to_json(self) -> dict[str, Any]:
        """The object of schema `localctx.eval.niah/1` (docs/eval.md)."""
        modes = self._modes
        return {
            "schema": "localctx.eval.niah/1",
            **self.options,
            "kv": self.kv,
            "machine": self.machine,
            "model": {"name": self.model.name, "fingerprint": self.model.fingerprint},
            "rows": [self._row_json(row, modes) for row in self._rows()],
            "totals": [
                self._row_json(row, modes)
                for length in dict.fromkeys(one.document.length for one in self.examined)
                for row in self._sums(length)
            ],
            "documents": [_document_json(one) for one in self.examined],
            "questions": [asked_json(one.document, asked) for one in self.examined for asked in one.asked],
        }

    @staticmethod
    def _row_json(row: _Row, modes: Sequence[str]) -> dict[str, Any]:
        return {
            "length": row.length,
            "language": row.language or None,
            "task": row.task,
            "n": len(row.asked),
            "n_without_answer": row.n_without,
            "modes": row.modes(modes),
            "selection": row.selection(),
        }

    @property
    def lines(self) -> list[str]:
        """The tables for a person."""
        lines: list[str] = []
        for length in dict.fromkeys(one.document.length for one in self.examined):
            for part in (self._documents(length), self._table(length), self._selection(length)):
                found = list(part)
                lines += [*found, ""] if found else []
        skipped = {text: None for one in self.examined for text in _skipped(one)}
        return [*lines, *skipped] if skipped else lines[:-1]

    def _documents(self, length: int) -> Iterator[str]:
        for one in self.examined:
            if one.document.length == length:
                text, stored = f"{one.document.path.name}: {one.n_tokens:,} tokens", one.stored
                if stored is not None:
                    text += (
                        f", prefilled in {stored.seconds:,.0f} s, {stored.size_bytes / 1e6:,.1f} MB stored "
                        f"({stored.policy}, {stored.codec})"
                    )
                yield text

    def _table(self, length: int) -> Iterator[str]:
        modes = self._modes
        if not modes:
            return
        yield f"{length:,} tokens: share of the right strings in the answers"
        yield _line("task", "", "n", modes)
        for row in (row for row in self._rows() if row.length == length):
            yield _mode_line(row, row.task, modes, "recall")
        for row in self._sums(length):
            yield _mode_line(row, row.task, modes, "recall")
        whole = self._compared(length)
        for name, label in (
            ("match", "all and no other"),
            ("declined", "declined"),
            ("false_answers", "false"),
        ):
            yield _mode_line(whole, label, modes, name)
        yield _mode_line(whole, "first token, s", modes, "ttft_ms", 1 / 1000)
        yield _mode_line(whole, "evaluated", modes, "n_evaluated", digits=0)

    def _selection(self, length: int) -> Iterator[str]:
        rows = [row for row in (*self._rows(), *self._sums(length)) if row.length == length]
        names = [name for name in RANKS if any(name in row.selection() for row in rows)]
        if not names:
            return
        yield f"right passages among the first {' / '.join(map(str, FIRST_N))}"
        yield _line("task", "", "n", names)
        for row in rows:
            found = row.selection()
            if found:
                shares = [" / ".join(map(_share, found.get(name, {}).values())) or "–" for name in names]
                yield _line(row.task, row.language, str(len(row.asked) - row.n_without), shares)


def _asked_alike(asked: Sequence[Asked]) -> tuple[Asked, ...]:
    """Those that were asked in every mode in which any was."""
    modes = {mode for one in asked for mode in one.answers}
    return tuple(one for one in asked if modes <= one.answers.keys())


def _line(task: str, language: str, n: str, cells: Iterable[str]) -> str:
    return f"{task:<19}{language:<4}{n:>4}" + "".join(f"{cell:>{WIDTH + 5}}" for cell in cells)


def _mode_line(
    row: _Row, label: str, modes: Sequence[str], name: str, scale: float = 1, digits: int = 2
) -> str:
    """A figure of each mode; – where there is none."""
    found = row.modes(modes)
    n_with = len(row.asked) - row.n_without
    n = {"false_answers": row.n_without, "ttft_ms": len(row.asked), "n_evaluated": len(row.asked)}.get(
        name, n_with
    )
    values = [found.get(mode, {}).get(name) for mode in modes]
    cells = ["–" if value is None else f"{value * scale:,.{digits}f}" for value in values]
    return _line(label, row.language, str(n), cells)


def _share(value: float) -> str:
    """1.00, .33"""
    return f"{value:.2f}"[-4:]


def _skipped(one: Examined) -> Iterator[str]:
    """Why a mode or a selector is not in the tables."""
    for name, reason in one.skipped.items():
        where = f" of {one.document.path.name}" if name in MODES else ""
        yield f"no {name}{where}: {reason}"


def _document_json(one: Examined) -> dict[str, Any]:
    document = one.document
    return {
        "name": document.path.name,
        "length": document.length,
        "language": document.language,
        "n_tokens": one.n_tokens,
        "sha256": document.sha256,
        "stored": None if one.stored is None else {**asdict(one.stored), "source": document.path.name},
        "skipped": dict(one.skipped),
    }


def asked_json(document: GeneratedDocument, asked: Asked) -> dict[str, Any]:
    """One question and its answers."""
    question = asked.question
    return {
        "document": document.path.name,
        "task": question.task,
        "language": question.language,
        "question": question.text,
        "gold": list(question.gold),
        "spans": [list(span) for span in question.spans],
        "ranks": {name: list(ranks) for name, ranks in asked.ranks.items()},
        "answers": {
            mode: {
                "answer": answer.text,
                "support": answer.support,
                **asdict(answer.score),
                "ttft_ms": rounded(answer.ttft_ms),
                "n_evaluated": answer.n_evaluated,
                "n_restored": answer.n_restored,
                "n_attended": answer.n_attended,
            }
            for mode, answer in asked.answers.items()
        },
    }
