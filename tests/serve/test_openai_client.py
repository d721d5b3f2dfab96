"""What the official client asks for, it gets: chats, streams, models, files, errors."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

USER = [{"role": "user", "content": "Tell me something about harbours."}]


def ask(client: openai.OpenAI, **more: Any) -> Any:
    return client.chat.completions.create(**{"model": "tiny", "messages": USER, "max_tokens": 6, **more})


def text_of(stream: Any, number: int = 0) -> str:
    return "".join(
        choice.delta.content or "" for chunk in stream for choice in chunk.choices if choice.index == number
    )


def test_a_chat_has_its_text_its_reason_and_its_tokens(client: openai.OpenAI) -> None:
    reply = ask(client)
    (choice,) = reply.choices
    assert (reply.object, reply.model, choice.message.role) == ("chat.completion", "tiny", "assistant")
    assert choice.finish_reason == "length"
    assert choice.message.content
    assert reply.usage.completion_tokens == 6
    assert reply.usage.total_tokens == reply.usage.prompt_tokens + 6


def test_a_stream_gives_the_same_text_and_the_usage_last(client: openai.OpenAI) -> None:
    chunks = list(ask(client, stream=True, stream_options={"include_usage": True}))
    assert text_of(chunks) == ask(client).choices[0].message.content
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices][-1] == "length"
    assert chunks[-1].choices == []
    assert chunks[-1].usage.completion_tokens == 6
    assert all(chunk.usage is None for chunk in chunks[:-1])
    assert len({chunk.id for chunk in chunks}) == 1


def test_a_stream_without_include_usage_has_none(client: openai.OpenAI) -> None:
    assert all(chunk.usage is None and chunk.choices for chunk in ask(client, stream=True))


def test_seeds_repeat_and_choices_differ(client: openai.OpenAI) -> None:
    def texts(seed: int) -> list[str]:
        reply = ask(client, n=3, seed=seed, temperature=2, top_p=1, extra_body={"min_p": 0, "top_k": 0})
        return [choice.message.content for choice in reply.choices]

    assert texts(7) == texts(7)
    assert texts(7) != texts(8)
    assert len(set(texts(7))) == 3


def test_a_stop_string_ends_the_answer_and_is_not_in_it(client: openai.OpenAI) -> None:
    whole = ask(client, max_tokens=12).choices[0].message.content
    stop = whole[len(whole) // 2 :][:2]
    for spelled in (stop, [stop, "never"]):
        choice = ask(client, max_tokens=12, stop=spelled).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("stop", whole[: whole.index(stop)])


def test_a_repeated_prompt_is_not_computed_again(client: openai.OpenAI) -> None:
    ask(client)
    usage = ask(client).usage
    assert usage.prompt_tokens_details.cached_tokens == usage.prompt_tokens - 1


def test_parts_and_former_replies_are_messages(client: openai.OpenAI) -> None:
    reply = ask(client).choices[0].message.model_dump()
    parts = [{"type": "text", "text": "And "}, {"type": "text", "text": "now?"}]
    more = ask(client, messages=[*USER, reply, {"role": "user", "content": parts}])
    plain = ask(client, messages=[*USER, reply, {"role": "user", "content": "And now?"}])
    assert more.choices[0].message.content == plain.choices[0].message.content


def test_the_models_are_listed(client: openai.OpenAI) -> None:
    assert [model.id for model in client.models.list()] == ["tiny"]
    assert client.models.retrieve("tiny").owned_by == "localctx"
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("hf:other/model")
    assert error.value.code == "model_not_found"


def test_files_come_and_go(client: openai.OpenAI, upload: Any) -> None:
    name = upload("Some text about a harbour.", name="../../ä\n.txt")
    file = client.files.retrieve(name)
    assert (file.status, file.purpose, file.bytes) == ("processed", "user_data", 26)
    assert name in [one.id for one in client.files.list(purpose="user_data", limit=100)]
    assert client.files.content(name).read() == b"Some text about a harbour."
    assert client.files.delete(name).deleted
    assert name not in [one.id for one in client.files.list()]
    for gone in (name, "file-" + "0" * 24, "../../../etc/passwd"):
        with pytest.raises(openai.NotFoundError):
            client.files.retrieve(gone)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"", "is empty"), (b"\x7fELF\x02" + bytes(200), "x.pdf"), (b"%PDF-1.7\nbroken", "x.pdf")],
)
def test_a_file_that_cannot_be_used_is_refused_when_it_comes(
    client: openai.OpenAI, content: bytes, said: str
) -> None:
    before = [file.id for file in client.files.list()]
    with pytest.raises(openai.BadRequestError, match=said) as error:
        client.files.create(file=("x.pdf", content), purpose="user_data")
    assert error.value.code == "unusable_file"
    assert "/files/" not in str(error.value), "where it lies here is nobody's business"
    assert "x.pdf: " in str(error.value)
    assert [file.id for file in client.files.list()] == before


@pytest.mark.parametrize(
    ("more", "code", "param"),
    [
        ({"logprobs": True}, "unsupported_parameter", "logprobs"),
        ({"tools": [{"type": "function"}]}, "unsupported_parameter", "tools"),
        ({"presence_penalty": 0.5}, "unsupported_parameter", "presence_penalty"),
        ({"extra_body": {"foo": 1}}, "unknown_parameter", "foo"),
        ({"extra_body": {"localctx": {"dokuments": []}}}, "missing_required_parameter", "localctx.documents"),
        ({"temperature": 3}, "invalid_value", "temperature"),
        ({"temperature": "1"}, "invalid_value", "temperature"),
        ({"max_tokens": 0}, "invalid_value", "max_tokens"),
        ({"messages": []}, "invalid_value", "messages"),
        ({"stop": ["a"] * 5}, "invalid_value", "stop"),
        ({"stop": ["a", ""]}, "invalid_value", "stop[1]"),
        ({"stop": ""}, "invalid_value", "stop"),
        ({"messages": [{"role": "user", "content": "word " * 3000}]}, "context_length_exceeded", None),
    ],
)
def test_what_is_not_there_is_refused_by_name(
    client: openai.OpenAI, more: dict[str, Any], code: str, param: str | None
) -> None:
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, **more)
    assert (error.value.code, error.value.param) == (code, param)
    with pytest.raises(openai.BadRequestError):
        ask(client, stream=True, **more)


def test_parameters_that_ask_for_nothing_are_taken(client: openai.OpenAI) -> None:
    nothing = {
        "logprobs": False,
        "presence_penalty": 0,
        "frequency_penalty": 0.0,
        "logit_bias": {},
        "user": "u",
    }
    assert ask(client, **nothing, tool_choice="none", response_format={"type": "text"}).choices


def test_an_unknown_model_is_not_found(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as error:
        ask(client, model="gpt-4o")
    assert error.value.code == "model_not_found"


def test_embeddings_without_an_embedder_are_refused(client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError):
        client.embeddings.create(model="all-minilm-l6-v2", input="x")


SHIP = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "year": {"type": "integer", "minimum": 1000}},
    "required": ["name", "year"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("with_document", [False, True])
def test_an_answer_fulfils_its_schema(client: openai.OpenAI, upload: Any, with_document: bool) -> None:
    wanted = {"type": "json_schema", "json_schema": {"name": "ship", "schema": SHIP, "strict": True}}
    more = {"localctx": {"documents": [upload()]}} if with_document else {}
    choice = ask(client, response_format=wanted, max_tokens=200, extra_body=more).choices[0]
    value = json.loads(choice.message.content)
    assert (choice.finish_reason, sorted(value)) == ("stop", ["name", "year"])
    assert value["year"] >= 1000


@pytest.mark.parametrize(
    "wanted",
    [
        {"type": "json_schema"},
        {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "string", "pattern": "a+"}}},
        {"type": "grammar"},
    ],
)
def test_a_schema_that_cannot_be_is_refused(client: openai.OpenAI, wanted: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError, match=r"schema|response_format"):
        ask(client, response_format=wanted)
