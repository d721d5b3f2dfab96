"""Six-turn scripts about made things: each turn as it is asked, as it would be asked alone, and its fact.

Pronouns, ellipsis, ordinals, persons from an answer, changes of topic. Data and dice; no files, no model.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from localctx.eval.language import lines, terms

__all__ = ["LANGUAGES", "Aspect", "Script", "Speech", "Thing", "Turn", "scripts_of", "things_of"]

N_TURNS = 6


@dataclass(frozen=True, slots=True)
class Aspect:
    """What can be asked of a thing: the sentence that tells it, with {e} and {v}, and the question in full,
    by a pronoun, and cut short.
    """

    tells: str
    asks: str
    by_pronoun: str
    cut_short: str
    value: str = "number"


@dataclass(frozen=True, slots=True)
class Speech:
    """One language: kinds and towns that things are made of, their aspects, and how topics change."""

    code: str
    named: str
    kinds: tuple[str, ...]
    towns: tuple[str, ...]
    people: tuple[str, ...]
    aspects: tuple[Aspect, ...]
    others: tuple[str, ...]
    lead: str
    joiner: str = " "


@dataclass(frozen=True, slots=True)
class Thing:
    """A thing and the value of each aspect, by number."""

    kind: str
    town: str
    name: str
    values: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """form: what is left out · fact: (thing, aspect), by number, that answers it."""

    form: str
    asked: str
    alone: str
    fact: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Script:
    """Six turns."""

    turns: tuple[Turn, ...]


def _aspects(text: str) -> tuple[Aspect, ...]:
    """The fields of one a line, with a blank line between them."""
    return tuple(Aspect(*lines(row)) for row in text.strip().split("\n\n"))


_ENGLISH = Speech(
    "en",
    "the {kind} at {town}",
    terms("""
        mill, bridge, library, lighthouse, brewery, school,
        theatre, quarry, hospital, harbour, tower, chapel
    """),
    terms("Denby, Ashford, Tannau, Corrin, Welbeck, Ostrava, Lynn, Marden, Hexley, Quarz, Selby, Varne"),
    terms("Anna Feld, Tomas Reyl, Ines Okoro, Paul Crane, Mira Holt, Jonas Brand, Edda Lund, Hugo Marsh"),
    _aspects("""
{e} was built in {v}.
When was {e} built?
When was it built?
And when was it built?
number

{e} was designed by {v}.
Who designed {e}?
Who designed it?
And by whom was it designed?
person

The building of {e} cost {v} crowns.
How much did {e} cost to build?
What did it cost to build?
And what did its building cost?
number

{e} employs {v} workers.
How many workers does {e} employ?
How many workers does it employ?
And how many workers?
number

{e} is {v} metres high.
How high is {e}?
How high is it?
And its height?
number

The stones of {e} were brought from {v}.
Where were the stones of {e} brought from?
Where were its stones brought from?
And where did they bring the stones from?
town

{e} burnt down in {v}.
When did {e} burn down?
Did it ever burn down, and when?
And when did it burn down?
number

{e} draws {v} visitors a year.
How many visitors does {e} draw a year?
How many visitors does it draw?
And the number of visitors?
number
"""),
    ("And {e}?", "What about {e}?", "And the one at {town}?", "How about {e}?", "And that at {town}?"),
    "{v} is what the papers say.",
)

_GERMAN = Speech(
    "de",
    "die {kind} von {town}",
    terms("""
        Mühle, Brücke, Bibliothek, Brauerei, Schule, Kapelle,
        Werft, Burg, Fabrik, Halle, Schmiede, Kirche
    """),
    terms("""
        Denbach, Aschau, Tannau, Korrin, Wellnitz, Ostrau,
        Lynn, Marden, Hexlingen, Quarz, Selbach, Varna
    """),
    terms("Anna Feld, Tomas Reyl, Ines Okoro, Paul Kran, Mira Holt, Jonas Brand, Edda Lund, Hugo Marsch"),
    _aspects("""
Im Jahr {v} wurde {e} gebaut.
Wann wurde {e} gebaut?
Wann wurde sie gebaut?
Und wann wurde sie gebaut?
number

Entworfen wurde {e} durch {v}.
Wer hat {e} entworfen?
Wer hat sie entworfen?
Und wer hat sie entworfen?
person

Gekostet hat {e} beim Bau {v} Kronen.
Wie viel hat {e} beim Bau gekostet?
Wie viel hat sie gekostet?
Und was hat ihr Bau gekostet?
number

Derzeit beschäftigt {e} {v} Arbeiter.
Wie viele Arbeiter beschäftigt {e}?
Wie viele Arbeiter beschäftigt sie?
Und wie viele Arbeiter?
number

Mit {v} Metern ist {e} recht hoch.
Wie hoch ist {e}?
Wie hoch ist sie?
Und ihre Höhe?
number

Jedes Jahr zieht {e} {v} Besucher an.
Wie viele Besucher zieht {e} im Jahr an?
Wie viele Besucher zieht sie an?
Und die Zahl der Besucher?
number
"""),
    ("Und {e}?", "Was ist mit {e}?", "Und die von {town}?", "Und wie ist es mit der von {town}?"),
    "{v}, so steht es in den Akten.",
)

_CHINESE = Speech(
    "zh",
    "{town}{kind}",
    terms("磨坊, 大桥, 图书馆, 灯塔, 酒厂, 学校, 剧院, 采石场, 医院, 码头, 钟楼, 礼堂"),
    terms("登比, 阿福, 塔瑙, 科林, 维贝, 奥斯, 林恩, 马登, 海利, 夸兹, 塞比, 瓦恩"),
    terms("安菲德, 雷托马, 奥英内, 克保罗, 霍米拉, 布约纳, 隆爱达, 马雨果"),
    _aspects("""
{e}建于{v}年。
{e}建于哪一年？
它建于哪一年？
那它是什么时候建的？
number

{e}由{v}设计。
{e}由谁设计？
它由谁设计？
那它的设计者是谁？
person

{e}的造价是{v}克朗。
{e}的造价是多少？
它的造价是多少？
造价多少？
number

{e}雇用了{v}名工人。
{e}雇用了多少工人？
它雇用了多少工人？
工人有多少？
number

{e}高{v}米。
{e}有多高？
它有多高？
有多高？
number

{e}每年有{v}名游客。
{e}每年有多少游客？
它每年有多少游客？
那游客呢？
number
"""),
    ("{e}呢？", "那{e}呢？", "{e}怎么样？"),
    "{v}，档案里是这么写的。",
    "",
)

LANGUAGES = {speech.code: speech for speech in (_ENGLISH, _GERMAN, _CHINESE)}


def things_of(speech: Speech, n_things: int, dice: random.Random) -> list[Thing]:
    """Things of different kinds and towns, no two of one name; kinds and towns come several times."""
    pairs = [(kind, town) for kind in speech.kinds for town in speech.towns]
    found = []
    for kind, town in dice.sample(pairs, n_things):
        values = []
        for aspect in speech.aspects:
            choices: dict[str, Callable[[], str]] = {
                "number": lambda: str(dice.randrange(100, 9999)),
                "person": lambda: dice.choice(speech.people),
                "town": lambda: dice.choice(speech.towns),
            }
            values.append(choices[aspect.value]())
        found.append(Thing(kind, town, speech.named.format(kind=kind, town=town), tuple(values)))
    return found


def scripts_of(speech: Speech, things: list[Thing], n_scripts: int, dice: random.Random) -> Iterator[Script]:
    """Scripts of six turns, each beginning with a question in full."""
    for _ in range(n_scripts):
        yield Script(tuple(_turns(speech, things, dice)))


def _turns(speech: Speech, things: list[Thing], dice: random.Random) -> Iterator[Turn]:
    thing, aspect = dice.randrange(len(things)), dice.randrange(len(speech.aspects))
    yield Turn(
        "full", _full(speech, things, thing, aspect), _full(speech, things, thing, aspect), (thing, aspect)
    )
    seen = {(thing, aspect)}
    for _ in range(N_TURNS - 1):
        form = dice.choices(("pronoun", "cut short", "another", "full"), (4, 3, 4, 1))[0]
        if form in ("another", "full"):
            alike = [n for n, one in enumerate(things) if n != thing and one.kind == things[thing].kind]
            thing = dice.choice(alike or [n for n in range(len(things)) if n != thing])
        if form != "another":
            left = [n for n in range(len(speech.aspects)) if (thing, n) not in seen]
            aspect = dice.choice(left or [aspect])
        seen.add((thing, aspect))
        alone = _full(speech, things, thing, aspect)
        yield Turn(form, _asked(speech, form, things[thing], aspect, alone, dice), alone, (thing, aspect))


def _full(speech: Speech, things: list[Thing], thing: int, aspect: int) -> str:
    return speech.aspects[aspect].asks.format(e=things[thing].name)


def _asked(speech: Speech, form: str, thing: Thing, aspect: int, alone: str, dice: random.Random) -> str:
    if form == "pronoun":
        return speech.aspects[aspect].by_pronoun
    if form == "cut short":
        return speech.aspects[aspect].cut_short
    if form == "another":
        return dice.choice(speech.others).format(e=thing.name, town=thing.town)
    return alone
