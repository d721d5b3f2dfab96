"""Do references inside a document help the choice of passages? Contracts whose answer stands elsewhere.

A clause that holds the question's words says where the figure is; the place that it names shares no word with
the question. English, German and Chinese; annexes, sections, tables and paragraphs.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from localctx.document import open_document
from localctx.index import Hits
from localctx.session.events import ignore_progress
from localctx.session.filling import pointed_blocks
from localctx.session.opening import index_all
from localctx.session.run import Run, start
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["ReferenceReport", "measure_references"]

BUDGET_TOKENS = 2000
N_CLAUSES = 12

_SUBJECTS = {
    "en": ("deposit", "penalty", "premium", "royalty", "surcharge", "allowance"),
    "de": ("Kaution", "Vertragsstrafe", "Prämie", "Lizenzgebühr", "Zulage", "Pauschale"),
    "zh": ("押金", "违约金", "保险费", "许可费", "补贴", "附加费"),
}
_SAID = {
    "en": ("The {} is set out in {}.", "How high is the {}?", "Guests bring {} euros to the gate."),
    "de": ("Die {} steht in {}.", "Wie hoch ist die {}?", "Gäste bringen {} Euro ans Tor."),
    "zh": ("{}见{}。", "{}是多少？", "客人带来{}元到门口。"),
}
_PLACES = {
    "en": ("Annex B|Annex B", "section 9.2.1|9.2.1 Guests", "Table 4|Table 4: Guests", "§ 31(2)|§ 31 Guests"),
    "de": (
        "Anhang B|Anhang B",
        "Abschnitt 9.2|9.2 Gäste",
        "Tabelle 4|Tabelle 4: Gäste",
        "§ 31 Abs. 2|§ 31 Gäste",
    ),
    "zh": ("附件二|附件二", "第三十一条|第三十一条 客人", "表4|表4 客人", "附录B|附录B"),
}
"""As a clause names the place, and the line that begins it."""
_FILLER = {
    "en": "The weather was mild and nothing else happened in the village on that day. ",
    "de": "Das Wetter war mild, und sonst geschah an diesem Tag nichts im Dorf. ",
    "zh": "那天村里天气温和，别的什么事也没有发生。",
}


@dataclass(frozen=True, slots=True)
class ReferenceReport:
    """Of n questions, how often the figure is in the passages, with references followed and without; and the
    tokens that following them costs a question.
    """

    n: int
    n_with: int
    n_without: int
    tokens_pulled: float

    def lines(self) -> Iterator[str]:
        """The figures for people."""
        yield f"figure in the passages: {self.n_with} of {self.n}, references not followed: {self.n_without}"
        yield f"tokens pulled in: {self.tokens_pulled:.0f} a question"


def measure_references(model: Model, *, n_seeds: int = 4) -> ReferenceReport:
    """Choose passages for every generated question; the model only counts tokens."""
    n = n_with = n_without = n_tokens = 0
    for language in _SAID:
        for seed in range(n_seeds):
            for place in range(len(_PLACES[language])):
                rng = Random(100 * seed + place)  # noqa: S311  # test data
                found, alone, tokens = _measured(model, language, place, rng)
                n, n_with, n_without, n_tokens = n + 1, n_with + found, n_without + alone, n_tokens + tokens
    return ReferenceReport(n, n_with, n_without, n_tokens / max(1, n))


def _measured(model: Model, language: str, place: int, rng: Random) -> tuple[bool, bool, int]:
    """(figure found, found without following references, tokens pulled in) of one document."""
    subject, figure = rng.choice(_SUBJECTS[language]), str(rng.randrange(1000, 9999))
    question = _SAID[language][1].format(subject)
    with tempfile.TemporaryDirectory(prefix="localctx-") as folder:
        path = Path(folder, "contract.txt")
        path.write_text(_contract(language, subject, figure, place, rng), "utf-8")
        with open_document(str(path), cache_dir=None) as document:
            run = start([document], model, Settings(store="off"), ignore_progress)
            with index_all(run) as index:
                chosen = _returned(run, index.search(question), question)
            texts = {number: run.passage(number) for number in chosen}
            pulled = {(one.start, one.end) for one in run.pulled}
            found = any(figure in one.text for one in texts.values())
            alone = any(figure in one.text and (one.start, one.end) not in pulled for one in texts.values())
            return found, alone, sum(one.tokens for one in run.pulled)


def _returned(run: Run, hits: Hits, question: str) -> list[int]:
    """What pointed_blocks() returns; its warnings are not shown."""
    steps = pointed_blocks(run, hits, question, BUDGET_TOKENS, lambda number: len(run.passage(number).text))
    while True:
        try:
            next(steps)
        except StopIteration as end:
            chosen: list[int] = end.value
            return chosen


def _contract(language: str, subject: str, figure: str, place: int, rng: Random) -> str:
    """Clauses, one of which refers to a place near the end."""
    said, _, told = _SAID[language]
    reference, heading = _PLACES[language][place].split("|")
    clauses = [_FILLER[language] * rng.randrange(4, 9) for _ in range(N_CLAUSES)]
    clauses[rng.randrange(N_CLAUSES // 2)] += said.format(subject, reference)
    clauses.insert(rng.randrange(N_CLAUSES // 2 + 1, N_CLAUSES), f"{heading}\n\n{told.format(figure)}")
    return "\n\n".join(clauses)
