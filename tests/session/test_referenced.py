"""A passage that a chosen one refers to is read too, told, and paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import pytest
from session.conftest import answer_of, of_kind

from localctx.document import Document
from localctx.engine import EchoModel
from localctx.selection import Reference
from localctx.session import referenced
from localctx.session.ask import ask
from localctx.session.events import Notice
from localctx.session.filling import retrieved
from localctx.session.opening import index_all
from localctx.session.run import start
from localctx.settings import Settings

FILLER = {
    "en": "The weather was mild and nothing happened that day in the village. ",
    "de": "Das Wetter war mild und im Dorf geschah an diesem Tag nichts. ",
    "zh": "那天村里天气温和，什么事也没有发生。",
}
TEXTS = {
    "en": ("The deposit of the lessee is set out in Annex B.", "How high is the deposit?"),
    "de": ("Die Kaution des Mieters steht in Anhang B.", "Wie hoch ist die Kaution?"),
    "zh": ("承租方的押金见附件二。", "押金是多少？"),
}
ANNEXES = {
    "en": "## Annex B\n\nGuests bring 800 euros.",
    "de": "## Anhang B\n\nGäste bringen 800 Euro mit.",
    "zh": "## 附件二\n\n客人带来800元。",
}


def document_of(open_text: Callable[..., Document], language: str) -> Document:
    said, annex = TEXTS[language][0], ANNEXES[language]
    filler = FILLER[language] * 150
    return open_text(
        f"# Terms\n\n{said}\n\n# Chronicle\n\n{filler}\n\n{annex}\n\n# Chronicle 2\n\n{filler}", "t.md"
    )


@pytest.mark.parametrize("language", TEXTS)
def test_what_is_referred_to_is_read(open_text: Callable[..., Document], language: str) -> None:
    document = document_of(open_text, language)
    question = TEXTS[language][1]
    model = EchoModel(lambda prompt: "800")
    answer = answer_of(list(ask([document], model, question, Settings(strategy="retrieve"))))
    (pulled,) = answer.coverage.pulled_in_by_reference
    assert "800" in document.read(pulled.start, pulled.end)
    told = answer.to_json()["coverage"]["pulled_in_by_reference"]
    assert [one["reference"] for one in told] == [pulled.reference]
    assert pulled.tokens <= answer.coverage.tokens_attended < answer.coverage.tokens_total


def test_what_does_not_fit_is_told(open_text: Callable[..., Document]) -> None:
    annex = "## Annex B\n\n" + "Guests bring 800 euros and a goat on a rope of green hemp. " * 20
    document = open_text(
        f"# Terms\n\nThe deposit is set out in Annex B.\n\n{annex}\n\n# Rest\n\n{FILLER['en'] * 60}"
    )
    settings = Settings(strategy="retrieve", ctx=190, max_tokens=16)
    events = list(ask([document], EchoModel(lambda prompt: "800"), "How high is the deposit?", settings))
    assert answer_of(events).coverage.pulled_in_by_reference == ()
    assert any("Annex B is referred to" in notice.text for notice in of_kind(events, Notice))


def test_no_more_than_two_are_pulled_in(open_text: Callable[..., Document]) -> None:
    annexes = "".join(
        f"## Annex {name}\n\nGuests bring {name}.\n\n{FILLER['en'] * 20}\n\n" for name in "ABCD"
    )
    text = f"# Terms\n\nThe deposit is set out in Annex A, Annex B, Annex C and Annex D.\n\n{annexes}"
    model = EchoModel(lambda prompt: "800")
    settings = Settings(strategy="retrieve")
    answer = answer_of(list(ask([open_text(text)], model, "How high is the deposit?", settings)))
    assert len(answer.coverage.pulled_in_by_reference) == 2


def test_a_reference_of_the_question_is_followed(open_text: Callable[..., Document]) -> None:
    document = document_of(open_text, "en")
    answer = answer_of(
        list(
            ask(
                [document],
                EchoModel(lambda p: "800"),
                "What does Annex B say?",
                Settings(strategy="retrieve"),
            )
        )
    )
    assert any("800" in document.read(c.start, c.end) for c in answer.citations)


def test_references_beside_other_words_are_left_alone(open_text: Callable[..., Document]) -> None:
    said = "The deposit is 800 euros.\n\nParrots are fed. Owls sleep. See Annex B."
    text = f"# Terms\n\n{said}\n\n## Annex B\n\nGuests.\n\n{FILLER['en'] * 60}"
    model = EchoModel(lambda prompt: "800")
    answer = answer_of(list(ask([open_text(text)], model, "deposit?", Settings(strategy="retrieve"))))
    assert answer.coverage.pulled_in_by_reference == ()


def test_a_text_is_gone_through_once_for_each_reference(
    open_text: Callable[..., Document], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[list[str]] = []
    find = referenced.targets

    def counting(references: Sequence[Reference], pieces: Iterable[str]) -> dict[tuple[str, str], int]:
        wanted.append([one.text for one in references])
        return find(references, pieces)

    monkeypatch.setattr(referenced, "targets", counting)
    document = document_of(open_text, "en")
    run = start([document], EchoModel(), Settings(strategy="retrieve"), lambda event: None)
    with index_all(run) as index:
        for question in (
            "How high is the deposit?",
            "What is the deposit?",
            "Is there a deposit in Annex Z?",
        ):
            list(retrieved(run, index, question, 600))
    assert wanted == [["Annex B"], ["Annex Z"]]
    assert [one.reference for one in run.pulled] == ["Annex B"] * 2  # the third question finds it itself
