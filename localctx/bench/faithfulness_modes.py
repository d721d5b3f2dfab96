"""The ways of summarising that `bench faithfulness` compares, on texts cut from a document or in a folder.

The baseline is the plain prompt that most programs send: the text, then "Summarize". It goes to the model
directly and is cut to the context; the other modes are what `localctx summarize --strategy` does.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from localctx.bench.faithfulness import Report, TextFigures, excerpts, run, texts_in
from localctx.document import open_document
from localctx.errors import UsageError
from localctx.session.events import Finished
from localctx.session.prompts import document_messages
from localctx.session.summarize import summarize
from localctx.settings import Settings, nearest
from localctx.values import Model, Prompt, Request, Sampling

__all__ = ["MODES", "PLAIN_PROMPT", "Inputs", "measure"]

PLAIN_PROMPT = "plain-prompt"
MODES = ("map-reduce", "condense", "exact", PLAIN_PROMPT)
PLAIN_TOKENS = 192
DEFAULT_SAMPLE = "docs/samples/state-of-the-union.pdf"


@dataclass(frozen=True, slots=True)
class Inputs:
    """The texts of the folder `texts`, or `count` texts cut from `sample` (default: the sources' own)."""

    texts: str | None = None
    sample: str | None = None
    count: int = 10

    def check(self) -> None:
        """Raises UsageError where there is nothing to cut from, or a number of texts that makes no sense."""
        if self.count < 1:
            raise UsageError(f"--count {self.count} is out of range", "1 or more")
        if self.texts is None and self.sample is None and not Path(DEFAULT_SAMPLE).is_file():
            raise UsageError(
                f"{DEFAULT_SAMPLE} is not here: only the source tree has it",
                "pass --texts DIR or --sample FILE",
            )

    def paths(self, folder: Path) -> list[Path]:
        """The texts; what has to be cut out is written into `folder`."""
        self.check()
        if self.texts is not None:
            return texts_in(Path(self.texts))
        return list(_cut(self.sample or DEFAULT_SAMPLE, self.count, folder))


def measure(
    model: Model, settings: Settings, inputs: Inputs, modes: Sequence[str], say: Callable[[str], None]
) -> Report:
    """Summarise the texts in each mode; `say` is told each result."""
    for mode in modes:
        if mode not in MODES:
            raise UsageError(f"unknown mode {mode!r}{nearest(mode, MODES)}", f"one of {', '.join(MODES)}")
    with tempfile.TemporaryDirectory(prefix="localctx-") as folder:
        return run(
            inputs.paths(Path(folder)),
            modes,
            lambda path, mode: _summary(path, mode, model, settings),
            _text,
            lambda row: say(_row(row)),
        )


def _cut(sample: str, count: int, folder: Path) -> Iterator[Path]:
    """Excerpts of the sample document as text files."""
    with open_document(sample, cache_dir=None) as document:
        for number, (title, text) in enumerate(excerpts(document.text, document.sections, count), 1):
            path = folder / f"{number:02} {title.replace('/', ' ')[:60]}.txt"
            path.write_text(text, "utf-8")
            yield path


def _text(path: Path) -> Iterator[str]:
    with open_document(str(path), cache_dir=None) as document:
        yield from document.text.stream()


def _summary(path: Path, mode: str, model: Model, settings: Settings) -> str:
    with open_document(str(path), cache_dir=None) as document:
        if mode == PLAIN_PROMPT:
            return _plain(document.read(0, document.text.n_code_points), model, settings.ctx)
        wanted = replace(settings, strategy=mode)
        for event in summarize([document], model, wanted, length="long"):
            if isinstance(event, Finished):
                return "\n".join(line.rpartition(" [")[0] for line in event.answer.text.splitlines())
    return ""


def _plain(text: str, model: Model, n_ctx_wanted: int | None) -> str:
    """What the model writes when it is only told to summarise; the text's end is dropped where it must be.

    Raises UsageError where the context does not even hold the task.
    """
    n_ctx = model.usable_n_ctx(n_ctx_wanted)
    prompt = _plain_prompt(text, model)
    while len(prompt.tokens) + PLAIN_TOKENS > n_ctx:
        if not text:
            raise UsageError(
                f"a context of {n_ctx:,} tokens is too small for the plain prompt", "raise --ctx"
            )
        text = text[: len(text) * 9 // 10]
        prompt = _plain_prompt(text, model)
    context = model.open_context(len(prompt.tokens) + PLAIN_TOKENS)
    try:
        pieces = context.generate([Request(prompt, Sampling(max_tokens=PLAIN_TOKENS))])
        return "".join(piece.text for piece in pieces)
    finally:
        context.close()


def _plain_prompt(text: str, model: Model) -> Prompt:
    return model.prompt(document_messages([text], ["Summarize the text above."]))


def _row(row: TextFigures) -> str:
    share = row.figures.share
    held = "no claims" if share is None else f"{share:.0%} of {row.figures.n_claims}"
    missing = f"; not in the source: {', '.join(row.figures.examples)}" if row.figures.examples else ""
    return f"{row.mode}: {row.text}: {held}{missing or (row.error and f'; {row.error}')}"
