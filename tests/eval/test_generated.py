"""Generated documents and questions: what is asked stands where it is said to stand, and nowhere else."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.errors import UsageError
from localctx.eval.documents import GeneratedDocument, Question
from localctx.eval.generate import LANGUAGES, N_ANSWER, PROMPT_TOKENS, TASKS, TRANSLATED, Wanted, generate
from localctx.eval.language import Language
from localctx.eval.plans import PROSE_TASKS, make_plan
from localctx.eval.planting import source_of
from localctx.eval.prose import made_sentences, sentences_of, without
from localctx.index.terms import content_words, stem

LENGTH = 9_000
TOKEN = re.compile(r"[\u4e00-\u9fff]|\d|[^\W\d]{1,5}|[^\w\s]|\n")


def tokenize(text: str, first: bool) -> range:
    """A few letters, a digit or a mark a token, so that sentences add up to their text."""
    return range(len(TOKEN.findall(text)))


EVERY = list(LANGUAGES.values())
CODES = sorted(LANGUAGES)


def documents_in(
    folder: Path, wanted: Wanted, haystack: Iterable[str] | None = None
) -> list[GeneratedDocument]:
    texts = None if haystack is None else list(haystack)
    return list(generate(wanted, folder, tokenize, None if texts is None else lambda: texts))


@pytest.fixture(scope="module", params=CODES)
def documents(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> list[GeneratedDocument]:
    wanted = Wanted(seed=3, lengths=(LENGTH,), languages=(request.param,), n_questions=8)
    return documents_in(tmp_path_factory.mktemp("generated"), wanted)


def questions_of(documents: list[GeneratedDocument]) -> list[tuple[str, Question]]:
    return [(one.path.read_text("utf-8"), question) for one in documents for question in one.questions]


def test_gold_stands_in_its_spans_and_nowhere_else(documents: list[GeneratedDocument]) -> None:
    for text, question in questions_of(documents):
        held = " ".join(text[start:end] for start, end in question.spans)
        for value in question.gold:
            assert question.task in ("cwe", "fwe") or value in held, question.text
            if value.isdecimal():
                assert len(re.findall(rf"(?<!\d){value}(?!\d)", text)) == 1
        for start, end in question.spans:
            assert text[start:end].strip() == text[start:end]
            assert text[start:end][-1] in ".。"


def test_one_in_four_has_no_answer(documents: list[GeneratedDocument]) -> None:
    by_task: dict[str, list[Question]] = {}
    for _, question in questions_of(documents):
        by_task.setdefault(question.task, []).append(question)
    assert list(by_task) == list(TASKS)
    for task, asked in by_task.items():
        assert len(asked) == (8 if task in PROSE_TASKS else 4)
        absent = [question for question in asked if not question.gold]
        assert len(absent) == len(asked) // 4
        assert not any(question.spans for question in absent)
        assert len({question.text for question in asked}) == len(asked)


def test_what_is_asked_in_vain_is_not_there(documents: list[GeneratedDocument]) -> None:
    for text, question in questions_of(documents):
        if question.gold or question.task in ("single", "paraphrased", "translated"):
            continue
        names = re.findall(
            r"\d{5}|[A-Z][a-z]+ [A-Z][a-z]+|word \w+|“\w+”|the \w+ \w+(?=\?| seen)", question.text
        )
        for name in names:
            bare = name.removeprefix("word ").removeprefix("the ").strip("“”")
            assert bare not in text, question.text


def test_lengths_are_met_and_leave_room(documents: list[GeneratedDocument]) -> None:
    for one in documents:
        n_tokens = len(tokenize(one.path.read_text("utf-8"), True))
        assert n_tokens <= LENGTH - PROMPT_TOKENS - N_ANSWER + 1
        assert n_tokens >= 0.8 * LENGTH, one.kind


def test_chains_stand_in_order(documents: list[GeneratedDocument]) -> None:
    for _, question in questions_of(documents):
        if question.task == "vt":
            assert list(question.spans) == sorted(question.spans)


def test_needles_are_spread_over_the_document(documents: list[GeneratedDocument]) -> None:
    prose = documents[0]
    length = len(prose.path.read_text("utf-8"))
    depths = sorted({start / length for question in prose.questions for start, _ in question.spans})
    assert depths[0] < 0.1
    assert depths[-1] > 0.9
    assert max(b - a for a, b in pairwise(depths)) < 0.1


def test_lists_hold_what_is_said_of_them(documents: list[GeneratedDocument]) -> None:
    for one in documents:
        counts = Counter(one.path.read_text("utf-8").split())
        if one.kind == "cwe":
            first = one.questions[0].gold
            assert {word for word, _ in counts.most_common(10)} == set(first)
            assert len({counts[word] for word in first}) == 1
            assert counts[first[0]] == 10 * counts[one.questions[0].wrong[0]]
        if one.kind == "fwe":
            assert tuple(word for word, _ in counts.most_common(3)) == one.questions[0].gold


def test_the_questions_are_a_file_too(tmp_path: Path) -> None:
    wanted = Wanted(lengths=(8192,), tasks=("multikey", "fwe"), n_questions=4)
    found = documents_in(tmp_path, wanted)
    rows = [json.loads(line) for line in (tmp_path / "questions.jsonl").read_text("utf-8").splitlines()]
    assert [row["text"] for row in rows] == [question.text for one in found for question in one.questions]
    text = (tmp_path / rows[0]["document"]).read_text("utf-8")
    ((start, end),) = rows[0]["spans"]
    assert rows[0]["gold"][0] in text[start:end]


@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 2**32), code=st.sampled_from(CODES), n=st.sampled_from([4, 8]))
def test_the_seed_decides_everything(
    tmp_path_factory: pytest.TempPathFactory, seed: int, code: str, n: int
) -> None:
    wanted = Wanted(seed=seed, lengths=(9_000,), languages=(code,), n_questions=n)
    folders = [tmp_path_factory.mktemp("one"), tmp_path_factory.mktemp("two")]
    first, second = (documents_in(folder, wanted) for folder in folders)
    assert [one.to_json() for one in first] == [one.to_json() for one in second]
    for one in first:
        assert one.path.read_bytes() == (folders[1] / one.path.name).read_bytes()
    other = documents_in(folders[0], Wanted(seed + 1, (9_000,), (code,), n_questions=n))
    assert {one.sha256 for one in other}.isdisjoint(one.sha256 for one in second)


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    tasks=st.sets(st.sampled_from(list(PROSE_TASKS)), min_size=1),
    code=st.sampled_from(CODES),
)
def test_a_plan_is_whole_and_tasks_do_not_depend_on_each_other(seed: int, tasks: set[str], code: str) -> None:
    language, other = LANGUAGES[code], EVERY[code == EVERY[0].code]
    chosen = [task for task in PROSE_TASKS if task in tasks]
    plan = make_plan(language, other, seed, 4096, chosen, 8)
    assert sorted(n for _, numbers in plan.groups for n in numbers) == list(range(len(plan.sentences)))
    depths = [depth for depth, _ in plan.groups]
    assert depths == sorted(depths)
    assert all(0 <= depth < 1 for depth in depths)
    alone = make_plan(language, other, seed, 4096, chosen[-1:], 8)
    asked = [question for question in plan.questions if question.task == chosen[-1]]
    assert [(q.text, q.gold) for q in asked] == [(q.text, q.gold) for q in alone.questions]


@pytest.mark.parametrize("language", EVERY, ids=lambda language: language.code)
def test_facts_are_asked_in_their_words_and_in_others(language: Language) -> None:
    assert len(language.facts) == len(EVERY[0].facts) >= 32
    for fact in language.facts:
        held = set(map(stem, content_words(fact.sentence)))
        assert fact.sentence.count("{n}") == 1
        assert len(held & set(map(stem, content_words(fact.asked)))) >= 2, fact.sentence
        assert not held & set(map(stem, content_words(fact.paraphrased))), fact.sentence
        if language.code != "de":  # there are none
            asked = set(map(stem, content_words(fact.asked)))
            assert fact.reworded.count("{n}") == 1
            assert not asked & set(map(stem, content_words(fact.reworded))), fact.reworded


def test_a_fact_translated_shares_no_word_with_its_question() -> None:
    for code, language in LANGUAGES.items():
        for one, other in zip(language.facts, LANGUAGES[TRANSLATED[code]].facts, strict=True):
            assert not set(content_words(one.sentence)) & set(content_words(other.asked))


@pytest.mark.parametrize("language", EVERY, ids=lambda language: language.code)
def test_names_are_not_in_the_prose(language: Language) -> None:
    prose = " ".join(" ".join(words) for words in language.prose.slots.values())
    for parts in (language.names.thing, language.names.person, language.names.town):
        for name in parts[0]:
            assert not re.search(rf"\b{re.escape(name)}\b", prose), name


@pytest.mark.parametrize("language", EVERY, ids=lambda language: language.code)
def test_made_prose_hardly_repeats(language: Language) -> None:
    made = made_sentences(language, source_of(1, "prose"))
    found = [next(made) for _ in range(3000)]
    assert len(set(found)) > 0.97 * len(found)
    assert not any("{" in text or re.search(r"\d", text) for text in found)


def test_sentences_of_a_text_come_whole_from_any_pieces() -> None:
    text = "".join(
        f"Sentence number {n} tells\nof rain. It goes on, as it did before.\n\n" for n in range(1500)
    )
    found = list(sentences_of([text], "en"))
    assert found[:2] == ["Sentence number 0 tells of rain.", "It goes on, as it did before."]
    pieces = [text[at : at + 777] for at in range(0, len(text), 777)]
    assert list(sentences_of(pieces, "en")) == found
    assert len(found) == 3000


def test_sentences_that_hold_a_value_are_left_out() -> None:
    texts = ["It has 123 pages.", "It has 1234 pages.", "没有松岗镇的消息。", "A pilot came."]
    assert list(without({"123", "松岗镇", "pilot"}, texts)) == ["It has 1234 pages."]
    assert list(without(set(), texts)) == texts


def test_an_own_haystack_is_used_up_in_order(tmp_path: Path) -> None:
    own = [f"Own sentence {word} speaks of nothing at all." for word in map(str, range(1200))]
    wanted = Wanted(lengths=(8_192,), tasks=("single",), n_questions=4)
    (document,) = documents_in(tmp_path, wanted, own)
    text = document.path.read_text("utf-8")
    at = [text.find(sentence) for sentence in own[:100]]
    assert at[0] > -1
    assert at == sorted(at)
    with pytest.raises(UsageError, match="the haystack ends after"):
        documents_in(tmp_path, wanted, own[:20])


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        (Wanted(n_questions=6), "multiple of 4"),
        (Wanted(n_questions=36), "there are 32 different facts"),
        (Wanted(lengths=(4096,), n_questions=32), "planted sentences take"),
        (Wanted(lengths=(1000,)), "out of range"),
        (Wanted(tasks=("multikeys",)), "did you mean 'multikey'"),
        (Wanted(tasks=()), "--tasks names nothing"),
        (Wanted(languages=("xx",)), "unknown 'xx'"),
        (Wanted(lengths=(1 << 22,), tasks=("multikey",), n_questions=400), "names are needed"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, wanted: Wanted, said: str) -> None:
    with pytest.raises(UsageError, match=re.escape(said)):
        documents_in(tmp_path, wanted)
