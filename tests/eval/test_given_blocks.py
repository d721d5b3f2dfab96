"""`ask` from blocks that the caller names: these are read, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from localctx.document import open_document
from localctx.engine import EchoModel
from localctx.errors import UsageError
from localctx.session.answer import Answer
from localctx.session.ask import ask
from localctx.session.events import Finished, ignore_progress
from localctx.session.reading import Reading
from localctx.session.run import start
from localctx.settings import Settings
from localctx.values import Message, Prompt


def asked(path: Path, blocks: tuple[int, ...], **settings: object) -> tuple[Answer, str]:
    """The answer and the prompt that it was made from."""
    model, prompts = EchoModel(lambda prompt: "Word 7."), []
    prompt = model.prompt

    def seen(messages: Sequence[Message]) -> Prompt:
        prompts.append("".join(messages[1].content))
        return prompt(messages)

    model.prompt = seen  # type: ignore[method-assign]  # what the model is given
    with open_document(str(path), cache_dir=None) as document:
        own = Settings(strategy="retrieve", store="off", **settings)  # type: ignore[arg-type]  # by name
        events = ask([document], model, "Which word is it?", own, blocks=blocks)
        answers = [event.answer for event in events if isinstance(event, Finished)]
    return answers[-1], prompts[-1]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "words.txt"
    path.write_text("\n\n".join(f"Paragraph {n} is about one word only. " * 12 for n in range(30)))
    return path


def texts_of(path: Path) -> list[str]:
    with open_document(str(path), cache_dir=None) as document:
        run = start([document], EchoModel(), Settings(), ignore_progress)
        reading: Reading = run.readings[0]
        return [block.text for block in reading.read(run.model.tokenize)]


def test_the_named_blocks_are_read_in_the_order_of_the_document(path: Path) -> None:
    texts = texts_of(path)
    answer, prompt = asked(path, (9, 2))
    places = [prompt.find(texts[number].strip()) for number in (2, 9)]
    assert -1 < places[0] < places[1]
    assert texts[5].strip() not in prompt
    assert 0 < answer.coverage.tokens_attended < answer.coverage.tokens_total / 5


def test_as_many_of_the_first_ones_as_fit(path: Path) -> None:
    texts = texts_of(path)
    _, prompt = asked(path, (9, 2, 3, 4, 5, 6), ctx=1024, max_tokens=16)
    assert texts[9].strip() in prompt
    assert texts[6].strip() not in prompt


def test_where_none_fits_it_says_so(path: Path) -> None:
    with pytest.raises(UsageError, match="too small for a single passage"):
        asked(path, (9,), ctx=192, max_tokens=16)
