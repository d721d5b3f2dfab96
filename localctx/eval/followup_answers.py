"""Six-turn scripts put to a conversation → how often an answer holds the right value, beside the same
questions in full. A leaf.

Each turn is asked as it stands ("chat"), in full at the same place of a conversation ("in full"), and in full
with nothing before it ("alone"). Run it with

    python -m localctx.eval.followup_answers [--languages en] [--scripts N] [--ctx N] [--strategy NAME]
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from localctx.bench.program import run_as_program
from localctx.document import Document, open_document
from localctx.eval.followup_scripts import LANGUAGES, Script, Thing, scripts_of, things_of
from localctx.eval.followups import FILLER_SENTENCES, N_THINGS, checked_languages, written
from localctx.from_settings import choose_model, open_model_for
from localctx.session.answer import Answer
from localctx.session.conversation import Conversation
from localctx.session.events import Finished
from localctx.settings import Settings
from localctx.values import Model

__all__ = ["Asked", "Wanted", "holds", "main", "measure", "table"]

WAYS = ("chat", "in full", "alone")


@dataclass(frozen=True, slots=True)
class Wanted:
    """n_scripts, n_things: of each language · n_filler: sentences of other matters before each fact."""

    languages: tuple[str, ...] = ("en",)
    n_scripts: int = 8
    n_things: int = N_THINGS
    n_filler: int = FILLER_SENTENCES
    seed: int = 0
    model: str | None = None
    ctx: int = 1024
    strategy: str = "retrieve"
    max_tokens: int = 48


@dataclass(frozen=True, slots=True)
class Asked:
    """One turn: its form, and for each way of asking whether the answer held the value, and its tokens."""

    language: str
    form: str
    right: dict[str, bool]
    n_evaluated: dict[str, int]


def holds(text: str, value: str, joiner: str = " ") -> bool:
    """Whether a text says a value, and not as a part of another number or word."""
    if not joiner:  # no spaces between words
        return re.search(rf"(?<!\d){re.escape(value)}(?!\d)", text) is not None
    return re.search(rf"(?<!\w){re.escape(value)}(?!\w)", text) is not None


def measure(wanted: Wanted) -> Iterator[Asked]:
    """The turns of all scripts. Raises UsageError for a language, and what localctx.errors names."""
    checked_languages(wanted.languages)
    flags: dict[str, object] = {
        "model": wanted.model, "embedder": "off", "store": "off", "ctx": wanted.ctx,
        "strategy": wanted.strategy, "max_tokens": wanted.max_tokens,
    }  # fmt: skip
    settings, chosen = choose_model(flags)
    with (
        tempfile.TemporaryDirectory(prefix="localctx-eval-") as folder,
        closing(open_model_for(settings, chosen)) as model,
    ):
        for language in wanted.languages:
            dice, speech = random.Random(wanted.seed), LANGUAGES[language]  # noqa: S311  # dice, no secret
            things = things_of(speech, wanted.n_things, dice)
            path, _ = written(speech, things, Path(folder), dice, wanted.n_filler)
            with open_document(str(path), cache_dir=None) as document:
                for script in scripts_of(speech, things, wanted.n_scripts, dice):
                    yield from _script(document, model, settings, language, things, script)


def _script(
    document: Document,
    model: Model,
    settings: Settings,
    language: str,
    things: Sequence[Thing],
    script: Script,
) -> Iterator[Asked]:
    """Each turn of a script, the first among them as "first"."""
    joiner = LANGUAGES[language].joiner
    with (
        Conversation([document], model, settings) as chat,
        Conversation([document], model, settings) as in_full,
        Conversation([document], model, settings) as alone,
    ):
        for place, turn in enumerate(script.turns):
            alone.clear()
            value = things[turn.fact[0]].values[turn.fact[1]]
            answers = {
                "chat": _answer(chat, turn.asked),
                "in full": _answer(in_full, turn.alone),
                "alone": _answer(alone, turn.alone),
            }
            yield Asked(
                language,
                turn.form if place else "first",
                {way: holds(answer.text, value, joiner) for way, answer in answers.items()},
                {way: answer.tokens.evaluated for way, answer in answers.items()},
            )


def _answer(talk: Conversation, question: str) -> Answer:
    (answer,) = [event.answer for event in talk.say(question) if isinstance(event, Finished)]
    return answer


def table(asked: Sequence[Asked]) -> list[str]:
    """Right answers by language and form; "later" are all but the first turns."""
    groups = dict[tuple[str, str], list[Asked]]()
    for one in asked:
        for form in (one.form, *(("later",) if one.form != "first" else ())):
            groups.setdefault((one.language, form), []).append(one)
    lines = [f"{'':<4}{'form':<12}{'n':>5}" + "".join(f"{way:>10}" for way in WAYS) + f"{'evaluated':>12}"]
    for (language, form), some in sorted(groups.items()):
        shares = "".join(f"{sum(one.right[way] for one in some) / len(some):>10.3f}" for way in WAYS)
        n_evaluated = sum(one.n_evaluated["chat"] for one in some) / len(some)
        lines.append(f"{language:<4}{form:<12}{len(some):>5}{shares}{n_evaluated:>12.0f}")
    return lines


def main(words: Sequence[str]) -> int:
    """The table, on standard output."""
    parser = argparse.ArgumentParser(prog="python -m localctx.eval.followup_answers")
    parser.add_argument("--languages", default="en")
    parser.add_argument("--scripts", type=int, default=8)
    parser.add_argument("--things", type=int, default=N_THINGS)
    parser.add_argument("--filler", type=int, default=FILLER_SENTENCES)
    parser.add_argument("--model")
    parser.add_argument("--ctx", type=int, default=1024)
    parser.add_argument("--strategy", default="retrieve")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args(words)
    wanted = Wanted(
        tuple(given.languages.split(",")),
        given.scripts,
        given.things,
        given.filler,
        given.seed,
        given.model,
        given.ctx,
        given.strategy,
    )
    sys.stdout.write("\n".join(table(list(measure(wanted)))) + "\n")
    return 0


if __name__ == "__main__":
    run_as_program(lambda: main(sys.argv[1:]))
