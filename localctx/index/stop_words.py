"""Words that carry no search evidence, by language. Data and one rule; knows nothing of blocks or indexes.

The lists are kept apart because one language's stop word is another's subject: "war", "die", "door", "son".
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable

__all__ = ["ASKING_PAIRS", "EVERY_STOP_WORD", "likely_language", "stop_word_counts", "stop_words"]

SAMPLE_WORDS = 500

_LISTS = {
    "en": (
        "a about after again all also am an and any are as at be because been before being between both but "
        "by can could did do does doing done during each else for from further get give had has have having "
        "he her here hers him his how i if in into is it its itself just let like me might more most much "
        "must my no nor not of off on once only or other our out over own please same say says she should "
        "so some such tell than that the their them then there these they this those through to too under "
        "until up us very was we were what when where whether which while who whom whose why will with "
        "would you your don doesn didn isn aren wasn weren"
    ),
    "de": (
        "aber alle als am an auch auf aus bei bin bis bist da dann das dass dein dem den der des die dies "
        "diese dieser du durch ein eine einem einen einer eines er es für hat haben ich ihr im in ist ja "
        "kann kein keine mein mich mit nach nicht noch nun nur ob oder sein seine sich sie sind so über um "
        "und uns unter vom von vor war waren warum was welche welcher welches wenn wer wie viel viele wird "
        "wo wurde zu zum zur zwischen"
    ),
    "fr": (
        "ai au aux avec ce ces cette combien comme dans de des du elle en est et eux fait il ils je la le "
        "les leur lui ma mais me même mes moi ne nos notre nous on ont ou où par pas pour pourquoi quand qu "
        "que quel quelle quelles quels qui quoi sa sans se ses son sont sur ta te tes toi ton tu un une vos "
        "votre vous y été être"
    ),
    "es": (
        "al algo como con cual cuando cuál cuándo cómo cuánto cuántos cuántas de del desde donde dónde e el "
        "ella ellos en entre era es esta este esto está fue ha hay la las le lo los me mi muy más ni no nos "
        "o para pero por porque que quien quién qué se ser si sin sobre son su sus también te tiene un una "
        "uno y ya"
    ),
    "pt": (
        "a ao aos as como da das de do dos e ela ele em entre era essa esse esta este foi há isso isto já "
        "mais mas na nas nem no nos não o os ou para pela pelo por porque qual quais quando quantas quantos "
        "que quem se sem ser seu sua são só também tem um uma"
    ),
    "it": (
        "agli ai al alla alle anche che chi ci come con cosa cui da dai dal dalla degli dei del della delle "
        "di dove e è era gli ha hanno i il in io la le lo loro ma nei nel nella non o per perché più quale "
        "quali quando quanti quante quanto questa questo se si sono su sua suo sul sulla tra un una uno"
    ),
    "nl": (
        "aan als bij dan dat de deze die dit door een en er hebben heeft het hij hoe hoeveel hun ik in is "
        "je kan maar met naar niet nog of om onder ook op over te tot uit van veel voor waar waarom wanneer "
        "was wat we welke werd wie wij wordt ze zij zijn zo zou"
    ),
    "ru": (
        "а без был была были было быть в вам вас во вот все всё вы где да для до его ее её если есть же за "
        "и из или им их к как какая какие какой какое когда кто ли мы на над не него нет но о об он она они "
        "оно от по под почему при с сколько со так такой там то того только ты у уже что чтобы это эта эти "
        "я"
    ),
}

_SETS = {language: frozenset(words.split()) for language, words in _LISTS.items()}

_PAIRS = (
    "什么 怎么 如何 多少 哪些 哪个 哪里 为什 是什 么是 的是 我们 他们 这个 那个 是否 请问 "
    "有哪 些是 です ます した から まで なに 何で とは は何 すか でし ある いる どの どこ "
    "いつ これ それ という 무엇 인가 니까 입니 습니"
)
EVERY_STOP_WORD = frozenset[str]().union(*_SETS.values())
"""The stop words of all languages together."""
_LANGUAGES_OF = {
    word: tuple(language for language, members in _SETS.items() if word in members)
    for word in EVERY_STOP_WORD
}

ASKING_PAIRS = frozenset(_PAIRS.split())
"""Chinese, Japanese and Korean character pairs that only ask or bind."""


def stop_words(words: Iterable[str]) -> frozenset[str]:
    """The list of the language with the most stop words among `words` (folded), English when in doubt."""
    return _SETS[likely_language(words)[0]]


def likely_language(words: Iterable[str]) -> tuple[str, int]:
    """The language with the most stop words among the first 500 `words` (folded), and how many.

    ("en", 0) when there are none.
    """
    counts = stop_word_counts(words)
    language = max(counts, key=lambda language: (counts[language], language == "en"))
    return language, counts[language]


def stop_word_counts(words: Iterable[str]) -> dict[str, int]:
    """How many of the first 500 `words` (folded) are stop words, by language."""
    counts = dict.fromkeys(_SETS, 0)
    of_each = filter(None, map(_LANGUAGES_OF.get, itertools.islice(words, SAMPLE_WORDS)))
    for languages, n in Counter(of_each).items():
        for language in languages:
            counts[language] += n
    return counts
