"""The fake model's own behaviour; the shared promises are in test_protocol.py."""

from __future__ import annotations

import subprocess
import sys

from engine.conftest import ask, collect, text_of
from hypothesis import given, settings
from hypothesis import strategies as st

from localctx.engine.echo import EchoModel, last_words
from localctx.values import Message


@settings(deadline=None)
@given(st.text())
def test_tokens_give_the_text_back(text: str) -> None:
    model = EchoModel()
    encodable = text.encode("utf-8", "ignore").decode("utf-8")
    decoder = model.open_context(256)._decoder
    assert b"".join(map(decoder.piece, model.tokenize(encodable))).decode() == encodable


@settings(deadline=None)
@given(st.text(alphabet="ab .\n"), st.text(alphabet="ab .\n"))
def test_text_cut_before_whitespace_gives_the_same_tokens(a: str, b: str) -> None:
    model = EchoModel()
    a = a.rstrip() or "x"
    assert model.tokenize(a + " " + b) == model.tokenize(a) + model.tokenize(" " + b)


def test_ids_are_the_same_in_another_process() -> None:
    code = "from localctx.engine import EchoModel; print(EchoModel().tokenize('net révenue 😀'))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stdout
    assert out.strip() == str(EchoModel().tokenize("net révenue 😀"))


def test_it_answers_with_the_last_words_of_the_last_user_turn() -> None:
    model = EchoModel()
    prompt = model.prompt(
        [
            Message("user", ("first",)),
            Message("assistant", ("no",)),
            Message("user", ("one  two", "\nthree 😀")),
        ]
    )
    request = ask(model, "x")
    request = type(request)(prompt, request.sampling)
    assert text_of(collect(model.open_context(256), [request])[0]) == "one  two\nthree 😀"
    assert last_words("a b c", 2) == "b c"


def test_a_scripted_reply_with_thinking_and_stop() -> None:
    model = EchoModel(lambda question: f"<think>about {question}</think>\nThe end. STOP never")
    pieces = collect(model.open_context(256), [ask(model, "salt", stop=("STOP",))])[0]
    assert text_of(pieces) == "The end. "
    assert "".join(piece.thinking for piece in pieces) == "about salt"
    assert pieces[-1].finish_reason == "stop"


def test_importing_the_fake_loads_no_llama_cpp() -> None:
    code = "import sys, localctx.engine.echo; sys.exit('llama_cpp' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
