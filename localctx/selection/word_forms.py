"""Word tables for comparing texts: weak words, English irregular forms, German number words. Data only."""

from __future__ import annotations

from localctx.index.terms import fold

__all__ = ["BASE_FORMS", "GERMAN_NUMBERS", "WEAK_WORDS"]

_WEAK = (
    "also amount amounts amounted called come comes equal equals exist exists has had have include "
    "includes located named total totals namely respectively there therefore therein beträgt betrug "
    "betragen beläuft bestand besteht gilt gelten galt gibt gab hat hatte haben hatten heißt hieß lag "
    "liegt lagen liegen muss müssen nämlich somit wurden worden werden sowie"
)
WEAK_WORDS = frozenset(map(fold, _WEAK.split()))
"""Content words, folded, that say nothing by themselves."""

_IRREGULAR = (
    "begin began begun|break broke broken|bring brought|build built|buy bought|catch caught|"
    "choose chose chosen|draw drew drawn|drink drank|drive drove driven|eat ate eaten|"
    "fall fell fallen|feed fed|fight fought|fly flew flown|forget forgot|give gave given|"
    "grow grew grown|hear heard|hide hid hidden|hold held|keep kept|know knew known|lay laid|"
    "lead led|leave left|lend lent|lose lost|make made|mean meant|meet met|pay paid|ride rode|"
    "rise rose risen|run ran|see saw seen|sell sold|send sent|shake shook|shoot shot|sing sang|"
    "sink sank sunk|sit sat|sleep slept|speak spoke spoken|spend spent|stand stood|steal stole|"
    "strike struck|swear swore|teach taught|tear tore|think thought|throw threw|wear wore worn|"
    "win won|write wrote written|weigh weight"
)
BASE_FORMS = {form: group.split()[0] for group in _IRREGULAR.split("|") for form in group.split()[1:]}
"""English irregular forms → the base form."""

_TO_TWELVE = "zwei drei vier fünf sechs sieben acht neun zehn elf zwölf"
_TENS = "zwanzig dreißig vierzig fünfzig sechzig siebzig achtzig neunzig"
GERMAN_NUMBERS = {
    **{fold(word): value for value, word in enumerate(_TO_TWELVE.split(), 2)},
    **{fold(word): 10 * value for value, word in enumerate(_TENS.split(), 2)},
    "hundert": 100,
    "tausend": 1000,
}
"""Simple German number words, folded → value."""
