"""Documents with needles at chosen distances, and changed: what is asked stands in every copy, once."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.errors import UsageError
from localctx.eval.drafts import Draft, anchored, distances_of, draft_of, places_of, write_draft
from localctx.eval.generate import LANGUAGES, Wanted
from localctx.eval.leader_documents import Copies, write_copies
from localctx.eval.perturbations import PERTURBATIONS, register_perturbation
from localctx.eval.plans import PROSE_TASKS, make_plan, register_task
from localctx.eval.planting import source_of
from localctx.eval.prose import made_sentences

N_TOKENS = 3_000
TASKS = ("single", "multikey", "multivalue", "qa")


def tokenize(text: str, first: bool) -> Sequence[int]:
    """A token is four characters."""
    return range(-(-len(text) // 4))


def drafted(code: str, seed: int, tasks: Sequence[str] = TASKS, turn: int = 0) -> Draft:
    language = LANGUAGES[code]
    plan = make_plan(language, LANGUAGES["zh" if code == "en" else "en"], seed, 4096, tasks, 4)
    places = places_of(plan, distances_of(N_TOKENS), turn)
    prose = made_sentences(language, source_of(seed, "prose"))
    return draft_of(plan, language, prose, N_TOKENS, tokenize, places)


def copies(
    folder: Path, code: str = "en", tasks: tuple[str, ...] = TASKS, perturb: tuple[str, ...] = ()
) -> Copies:
    wanted = Wanted(3, (4096,), (code,), tasks, 4)
    (one,) = write_copies(wanted, perturb, folder, tokenize, None)
    return one


@pytest.mark.parametrize(
    ("n_tokens", "distances"),
    [
        (704, (704,)),
        (1_752, (1_024, 1_752)),
        (7_808, (1_024, 4_096, 7_808)),
        (130_688, (1_024, 4_096, 16_384, 65_536, 130_688)),
    ],
)
def test_distances_go_from_1k_to_the_beginning(n_tokens: int, distances: tuple[int, ...]) -> None:
    assert distances_of(n_tokens) == distances


def test_each_needle_stands_once_at_each_distance(tmp_path: Path) -> None:
    found: dict[int, list[int]] = {}
    one = copies(tmp_path)
    assert [copy.name for copy in one.copies] == ["base", "turn-1"]
    for copy in one.copies:
        for number, distance in enumerate(copy.distances):
            if distance is not None:
                n_behind = copy.written.n_behind[number]
                assert n_behind is not None
                assert 0.85 * distance - 40 <= n_behind <= distance + 40, (copy.name, number)
                found.setdefault(number, []).append(distance)
    assert len(found) == len(anchored(one.plan)) > 6
    assert all(sorted(distances) == list(one.distances) for distances in found.values())


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    code=st.sampled_from(["en", "zh", "de"]),
    name=st.sampled_from([*PERTURBATIONS]),
)
def test_a_perturbation_keeps_every_needle(seed: int, code: str, name: str) -> None:
    draft = drafted(code, seed)
    changed = PERTURBATIONS[name](draft, source_of(seed, name))
    planted = sorted(one.planted for one in changed.sentences if one.planted is not None)
    assert planted == list(range(len(draft.plan.sentences)))
    assert changed == PERTURBATIONS[name](draft, source_of(seed, name))
    assert abs(changed.n_tokens - draft.n_tokens) <= 0.05 * N_TOKENS
    text_of = {one.planted: one.text for one in changed.sentences if one.planted is not None}
    for number, question in enumerate(draft.plan.questions):
        if changed.asked is None or number in changed.asked:
            for gold, sentence in zip(question.gold, question.sentences, strict=False):
                assert question.task == "qa" or gold in text_of[sentence]


def test_shuffling_moves_every_segment_and_changes_no_word() -> None:
    for seed in range(4):
        draft = drafted("en", seed)
        changed = PERTURBATIONS["shuffle"](draft, source_of(seed, "shuffle"))
        assert Counter(changed.sentences) == Counter(draft.sentences)
        places = {one: place for place, one in enumerate(changed.sentences)}
        moved = [places[one] - place for place, one in enumerate(draft.sentences)]
        assert all(abs(by) >= len(moved) / 4 for by in moved)
        assert len(set(moved)) == 2  # three segments in a circle


def test_noise_takes_the_place_of_a_tenth_of_the_prose() -> None:
    draft = drafted("zh", 1)
    changed = PERTURBATIONS["noise"](draft, source_of(1, "noise"))
    before, after = Counter(draft.sentences), Counter(changed.sentences)
    gone, new = before - after, after - before
    n_prose = sum(one.planted is None for one in draft.sentences)
    assert gone.total() == new.total() == round(0.1 * n_prose)
    assert sorted("".join(sorted(one.text)) for one in gone) == sorted(
        "".join(sorted(one.text)) for one in new
    )


def test_a_paraphrase_asks_only_about_what_is_reworded(tmp_path: Path) -> None:
    one = copies(tmp_path, tasks=("single", "paraphrased", "multikey"), perturb=("paraphrase",))
    base, changed = one.copies[0].written, one.copies[-1].written
    assert changed.asked == {n for n, q in enumerate(one.plan.questions) if q.task == "single" and q.gold}
    for number in changed.asked:
        texts = []
        for document in (base.document, changed.document):
            (start, end) = document.questions[number].spans[0]
            texts.append(document.path.read_text("utf-8")[start:end])
        assert texts[0] != texts[1]
        assert all(one.plan.questions[number].gold[0] in text for text in texts)


def test_without_other_words_there_is_no_paraphrase(tmp_path: Path) -> None:
    names = [copy.name for copy in copies(tmp_path, "de", perturb=("shuffle", "paraphrase")).copies]
    assert names == ["base", "turn-1", "shuffle"]


def test_the_value_of_a_reference_answer_is_known(tmp_path: Path) -> None:
    one = copies(tmp_path, tasks=("single", "vt"))
    for question, reference in zip(one.plan.questions, one.references(tokenize, 96), strict=True):
        assert bool(reference.tokens) == bool(question.gold)
        first, end = reference.value
        assert (first < end <= len(reference.tokens)) == (question.task == "single" and bool(question.gold))
    assert all(len(reference.tokens) <= 5 for reference in one.references(tokenize, 5))


def test_a_perturbation_that_loses_a_needle_is_refused(tmp_path: Path) -> None:
    draft = drafted("en", 0)
    broken = replace(draft, sentences=tuple(one for one in draft.sentences if one.planted != 0))
    with pytest.raises(UsageError, match=r"cut: not every planted sentence stands in the document once"):
        write_draft(tmp_path / "x.txt", broken, "cut", 4096)


@pytest.fixture
def registries() -> Iterator[None]:
    """Whatever a test registers is gone afterwards."""
    before = dict(PROSE_TASKS), dict(PERTURBATIONS)
    yield
    for registry, kept in zip((PROSE_TASKS, PERTURBATIONS), before, strict=True):
        registry.clear()
        registry.update(kept)


@pytest.mark.usefixtures("registries")
def test_tasks_and_perturbations_can_be_added(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "eval.md").read_text("utf-8")
    (example,) = re.findall(r"```python\n(.*?register_perturbation\(\"back.*?)```", page, re.DOTALL)
    exec(example, {})  # the page's own
    one = copies(tmp_path, tasks=("doors",), perturb=("backwards",))
    document = one.copies[-1].written.document
    assert [question.task for question in document.questions] == ["doors"] * 4
    assert one.copies[-1].name == "backwards"
    with pytest.raises(UsageError, match="cannot be called 'doors'"):
        register_task("doors", lambda maker: None)
    for name in ("shuffle", "two words"):
        with pytest.raises(UsageError, match=f"cannot be called '{name}'"):
            register_perturbation(name, lambda draft, source: draft)
