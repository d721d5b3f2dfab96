"""Six-turn scripts with pronouns and ellipsis → how often the right passage is chosen, beside the same
questions in full. A leaf.

Each script is about made things in a made document; every turn is asked as it stands, as it is rewritten
(selection.followup), and in full, the bound. With --rewriter the model writes the question anew instead. Run
it with

    python -m localctx.eval.followups [--languages en,de,zh] [--scripts N] [--embedder NAME|off] [--rewriter]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from localctx.bench.program import run_as_program
from localctx.document import open_document
from localctx.errors import UsageError
from localctx.eval.followup_scripts import LANGUAGES, Script, Speech, Thing, scripts_of, things_of
from localctx.eval.generate import LANGUAGES as PROSE
from localctx.eval.prose import made_sentences
from localctx.from_settings import choose_model, open_model_for
from localctx.index import LexicalIndex
from localctx.registry.selectors import opened_embedder
from localctx.selection.followup import Exchange, standalone
from localctx.session.events import Event, ignore_progress
from localctx.session.filling import Filling, retrieved
from localctx.session.opening import index_all
from localctx.session.run import Run, start
from localctx.settings import nearest
from localctx.values import Message, Model, Request, Sampling

__all__ = ["Outcome", "Wanted", "checked_languages", "main", "measure", "table", "written"]

N_THINGS = 24
FILLER_SENTENCES = 4
"""Between two facts: each has a passage of its own, about."""
BUDGET_TOKENS = 2048
WAYS = ("asked", "rewritten", "alone")
REWRITE = "Rewrite the last question so that it stands alone. Answer with the question only."
REWRITE_TOKENS = 48


@dataclass(frozen=True, slots=True)
class Wanted:
    """n_scripts: of each language · by_model: the model rewrites the questions."""

    languages: tuple[str, ...] = ("en", "de", "zh")
    n_scripts: int = 40
    seed: int = 0
    model: str | None = None
    embedder: str | None = None
    by_model: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """One later turn: its form, and for each way of asking whether the right passage was chosen."""

    language: str
    form: str
    found: dict[str, bool]


def written(
    speech: Speech,
    things: Sequence[Thing],
    folder: Path,
    dice: random.Random,
    n_filler: int = FILLER_SENTENCES,
) -> tuple[Path, dict[tuple[int, int], int]]:
    """A document that tells everything about the things, a section each, and the offset of each fact.

    n_filler: sentences of other matters before each fact.
    """
    prose = made_sentences(PROSE[speech.code], dice)
    text, offsets = "", dict[tuple[int, int], int]()
    for number, thing in enumerate(things):
        text += f"# {thing.name[0].upper()}{thing.name[1:]}\n\n"
        order = list(range(len(speech.aspects)))
        dice.shuffle(order)
        for aspect in order:
            told = speech.aspects[aspect].tells.format(e=thing.name, v=thing.values[aspect])
            filler = speech.joiner.join(next(prose) for _ in range(n_filler))
            text += f"{filler}{speech.joiner}" if filler else ""
            offsets[number, aspect] = len(text)
            text += f"{told[0].upper()}{told[1:]}\n\n"
    path = folder / f"{speech.code}.md"
    path.write_text(text, "utf-8", newline="")
    return path, offsets


def checked_languages(languages: Sequence[str]) -> None:
    """Raises UsageError for a language that has no scripts."""
    for language in languages:
        if language not in LANGUAGES:
            raise UsageError(
                f"unknown language {language!r}{nearest(language, LANGUAGES)}", ",".join(LANGUAGES)
            )


def measure(wanted: Wanted) -> Iterator[Outcome]:
    """The outcomes of all scripts. Raises UsageError for a language, and what localctx.errors names for
    models and settings.
    """
    checked_languages(wanted.languages)
    flags: dict[str, object] = {"model": wanted.model, "embedder": wanted.embedder, "store": "off"}
    settings, chosen = choose_model(flags)
    with (
        tempfile.TemporaryDirectory(prefix="localctx-eval-") as folder,
        closing(open_model_for(settings, chosen)) as model,
        opened_embedder(settings) as file,
    ):
        for language in wanted.languages:
            dice, speech = random.Random(wanted.seed), LANGUAGES[language]  # noqa: S311  # dice, no secret
            things = things_of(speech, N_THINGS, dice)
            path, offsets = written(speech, things, Path(folder), dice)
            with open_document(str(path), cache_dir=None) as document:
                run = start([document], model, settings, ignore_progress)
                run.embedder = file
                with index_all(run) as index:
                    rewrite = partial(_by_model, model) if wanted.by_model else _by_words
                    for script in scripts_of(speech, things, wanted.n_scripts, dice):
                        yield from _outcomes(run, index, speech, things, script, offsets, rewrite)


def _outcomes(
    run: Run,
    index: LexicalIndex,
    speech: Speech,
    things: Sequence[Thing],
    script: Script,
    offsets: dict[tuple[int, int], int],
    rewrite: Callable[[str, Sequence[Exchange]], str],
) -> Iterator[Outcome]:
    """Of the turns after the first, which passages each way of asking chooses."""
    earlier: list[Exchange] = []
    for place, turn in enumerate(script.turns):
        thing, aspect = turn.fact
        rewritten = rewrite(turn.asked, earlier)
        if place:
            texts = dict(zip(WAYS, (turn.asked, rewritten, turn.alone), strict=True))
            at = offsets[turn.fact]
            yield Outcome(
                speech.code, turn.form, {way: _chosen(run, index, text, at) for way, text in texts.items()}
            )
        earlier.append(Exchange(rewritten, speech.lead.format(v=things[thing].values[aspect])))


def _chosen(run: Run, index: LexicalIndex, question: str, offset: int) -> bool:
    """Whether the passage with the offset is among those chosen for the question."""
    run.warnings.clear()
    filling = _returned(retrieved(run, index, question, BUDGET_TOKENS))
    return any(passage.start <= offset < passage.end for passage in filling.passages)


def _returned(steps: Generator[Event, None, Filling]) -> Filling:
    """What the steps return; nobody is told of them."""
    while True:
        try:
            next(steps)
        except StopIteration as done:
            filling: Filling = done.value
            return filling


def _by_words(asked: str, earlier: Sequence[Exchange]) -> str:
    return standalone(asked, earlier).text


def _by_model(model: Model, asked: str, earlier: Sequence[Exchange]) -> str:
    """What the model makes of the question after the last three; the first needs nothing."""
    if not earlier:
        return asked
    lines = [f"Question: {one.question}\nAnswer: {one.answer}" for one in earlier[-3:]]
    prompt = model.prompt([Message("user", (REWRITE, "\n\n", "\n".join(lines), "\nLast question: ", asked))])
    with closing(model.open_context(len(prompt.tokens) + REWRITE_TOKENS + 1)) as context:
        pieces = context.generate([Request(prompt, Sampling(max_tokens=REWRITE_TOKENS))])
        text = "".join(piece.text for piece in pieces).strip()
    return text.splitlines()[0] if text else asked


def table(outcomes: Sequence[Outcome]) -> list[str]:
    """Recall by language and form, and what the rewritten questions keep of the full ones'."""
    groups = dict[tuple[str, str], list[Outcome]]()
    for outcome in outcomes:
        for form in (outcome.form, "all"):
            groups.setdefault((outcome.language, form), []).append(outcome)
    lines = [f"{'':<4}{'form':<12}{'n':>5}" + "".join(f"{way:>11}" for way in WAYS) + f"{'kept':>8}"]
    for (language, form), some in sorted(groups.items()):
        shares = {way: sum(outcome.found[way] for outcome in some) / len(some) for way in WAYS}
        kept = shares["rewritten"] / shares["alone"] if shares["alone"] else 0.0
        numbers = "".join(f"{share:>11.3f}" for share in shares.values())
        lines.append(f"{language:<4}{form:<12}{len(some):>5}{numbers}{kept:>8.1%}")
    return lines


def main(words: Sequence[str]) -> int:
    """The table, on standard output."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.followups")
    parser.add_argument("--languages", default="en,de,zh")
    parser.add_argument("--scripts", type=int, default=40)
    parser.add_argument("--model")
    parser.add_argument("--embedder")
    parser.add_argument("--rewriter", action="store_true", help="let the model rewrite, not the words")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    wanted = Wanted(
        tuple(given.languages.split(",")),
        given.scripts,
        given.seed,
        given.model,
        given.embedder,
        given.rewriter,
    )
    sys.stdout.write("\n".join(table(list(measure(wanted)))) + "\n")
    return 0


if __name__ == "__main__":
    run_as_program(lambda: main(sys.argv[1:]))
