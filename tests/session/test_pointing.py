"""Which sentences a question points at, as token ranges that cover the passages exactly."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.document import Document
from localctx.engine import EchoModel
from localctx.session.pointing import Likeness, pointed_sentences
from localctx.session.reading import Passage, Reading

MODEL = EchoModel()
words = st.sampled_from(
    ["The mine", "of Quarz", "was opened", "in 1742.", "Boats carry\n", "timber!", " – ", "x."]
)


def passages_of(document: Document) -> tuple[Reading, list[Passage]]:
    reading = Reading(document)
    for _ in reading.read(MODEL.tokenize):
        pass
    return reading, [reading.passage(number) for number in range(reading.n_blocks)]


def test_the_sentence_that_answers_comes_first(book: Document) -> None:
    reading, passages = passages_of(book)
    found = pointed_sentences(passages, "Who opened the silver mine of Quarz?", MODEL.tokenize)
    best = max(found, key=lambda candidate: candidate.score)
    wanted = MODEL.tokenize("The silver mine of Quarz was opened in 1742 by Anna Feld.")
    tokens = list(reading.stream[best.start : best.end])
    assert tokens[-len(wanted) + 2 :] == wanted[2:]  # the line break before it belongs to it
    assert any(candidate.score == 0 for candidate in found)


def test_candidates_cover_every_token_of_a_document(book: Document) -> None:
    reading, passages = passages_of(book)
    found = pointed_sentences(passages, "timber", MODEL.tokenize)
    assert [token for one in found for token in range(one.start, one.end)] == list(range(reading.n_tokens))


@settings(deadline=None, max_examples=60)
@given(st.lists(words, min_size=1, max_size=40))
def test_candidates_cover_every_token_of_any_passage(parts: list[str]) -> None:
    text = " ".join(parts)
    n_tokens = len(MODEL.tokenize(text))
    passage = Passage(2, 0, len(text), text, n_tokens, "a.md", None, None, (), first_token=100)
    found = pointed_sentences([passage], "Quarz 1742", MODEL.tokenize)
    assert [token for one in found for token in range(one.start, one.end)] == list(range(100, 100 + n_tokens))
    assert {candidate.document for candidate in found} == {2}


def test_passages_of_several_documents_keep_their_own_ranges(open_text: Callable[..., Document]) -> None:
    passages = []
    for ordinal, code in enumerate((4411, 9922)):
        reading = Reading(open_text(f"The code is {code}. It is secret.", f"{code}.txt"), ordinal)
        for _ in reading.read(MODEL.tokenize):
            pass
        passages.append(reading.passage(0))
    found = pointed_sentences(passages, "Which code is 9922?", MODEL.tokenize)
    best = max(found, key=lambda candidate: candidate.score)
    assert best.document == 1
    assert next(candidate.start for candidate in found if candidate.document == 1) == 0


def test_the_passage_that_its_header_names_comes_first() -> None:
    text = "It rained. The code of this city is 4711."
    n_tokens = len(MODEL.tokenize(text))
    passages = [
        Passage(0, 1, 1 + len(text), text, n_tokens, name, None, None, (), first_token=100 * at)
        for at, name in enumerate(("City of Oslo", "City of Lisbon", "City of Riga"))
    ]
    found = pointed_sentences(passages, "What is the code of the city of Lisbon?", MODEL.tokenize)
    best = sorted(found, key=lambda one: -one.score)[:2]
    assert {one.start // 100 for one in best} == {1}
    same = pointed_sentences(passages, "What is the code of the city?", MODEL.tokenize)
    by_passage = [[one.score for one in same if one.start // 100 == at] for at in range(3)]
    assert by_passage[0] == by_passage[1] == by_passage[2]


def test_the_passage_whose_sentence_names_it_comes_first_whole() -> None:
    texts = [f"It rained. The code of {city} is 4711. Nobody came." for city in ("Oslo", "Lisbon", "Riga")]
    passages = [
        Passage(0, 1, 1 + len(text), text, len(MODEL.tokenize(text)), "a.txt", None, None, (), 100 * at)
        for at, text in enumerate(texts)
    ]
    found = pointed_sentences(passages, "What is the code of Lisbon?", MODEL.tokenize)
    best = sorted(found, key=lambda one: -one.score)
    assert [one.start // 100 for one in best[:3]] == [1, 1, 1]
    assert all(one.start // 100 != 1 for one in best[3:])
    same = pointed_sentences(passages, "What is the code?", MODEL.tokenize)
    assert len({tuple(one.score for one in same if one.start // 100 == at) for at in range(3)}) == 1


ORCHARD = "The orchard is old. Its pears ripen late. The keeper is called Anna. It has a wall of stone."


def likeness_of(wanted: str) -> Likeness:
    """One that finds a sentence like the question, and the others less and less."""

    def likeness(passage: Passage, spans: Sequence[tuple[int, int]]) -> list[float]:
        return [0.9 if wanted in passage.text[a:b] else 0.3 - 0.01 * n for n, (a, b) in enumerate(spans)]

    return likeness


def test_other_words_than_the_questions_are_pointed_at_by_their_meaning(
    open_text: Callable[..., Document],
) -> None:
    _, passages = passages_of(open_text(ORCHARD, "orchard.txt"))
    question = "When can the fruit be picked?"
    by_words = pointed_sentences(passages, question, MODEL.tokenize)
    assert [candidate.score for candidate in by_words] == [0.0] * 4
    found = pointed_sentences(passages, question, MODEL.tokenize, "en", likeness_of("pears"))
    scores = [candidate.score for candidate in found]
    assert scores.index(max(scores)) == 1


def test_the_sentence_with_the_questions_words_stays_before_one_that_is_like_it(
    open_text: Callable[..., Document],
) -> None:
    _, passages = passages_of(open_text(ORCHARD, "orchard.txt"))
    asked = "Who is the keeper called Anna?"
    found = pointed_sentences(passages, asked, MODEL.tokenize, "en", likeness_of("pears"))
    scores = [candidate.score for candidate in found]
    assert scores.index(max(scores)) == 2
