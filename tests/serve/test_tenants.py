"""What one key has, another cannot see, count or time; quotas, targets and metrics are a key's own."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import openai
import pytest
from serve.serving import ALICE, BOB, SLOW, Serving, get

Upload = Callable[..., str]


def ask(client: openai.OpenAI, text: str = "Who built the harbour?", **more: Any) -> Any:
    messages = [{"role": "user", "content": text}]
    return client.chat.completions.create(**{"model": "tiny", "messages": messages, "max_tokens": 4, **more})


def on(*names: str, **more: Any) -> dict[str, Any]:
    return {"extra_body": {"localctx": {"documents": list(names), **more}}}


@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": "Bearer wrong-key-0123456789"}, {"Authorization": BOB}]
)
def test_without_a_right_key_there_is_nothing_but_health(server: Serving, headers: dict[str, str]) -> None:
    assert get(f"{server.url}/healthz", headers=headers).status_code == 200
    for path in ("/v1/models", "/metrics", "/openapi.json", "/v1/files", "/nowhere"):
        reply = get(f"{server.url}{path}", headers=headers)
        assert reply.status_code == 401
        assert reply.json()["error"]["code"] == "invalid_api_key"
        assert reply.headers["WWW-Authenticate"] == "Bearer"


def test_a_question_on_a_document_has_citations_coverage_and_support(server: Serving, upload: Upload) -> None:
    name = upload(name="harbour ä.txt")
    with server.client() as client:
        reply = ask(client, **on(name))
        found = reply.localctx
        assert found["coverage"]["tokens_total"] == found["coverage"]["tokens_read"] > 0
        assert found["support"] in ("supported", "partial", "none")
        assert found["answer"] == reply.choices[0].message.content
        assert reply.usage.prompt_tokens == found["tokens"]["evaluated"] + found["tokens"]["restored"]
        assert "/files/" not in str(found)
        chunks = list(ask(client, stream=True, **on(name)))
    assert chunks[-1].localctx["coverage"] == found["coverage"]
    assert chunks[-1].choices[0].finish_reason == reply.choices[0].finish_reason


def test_citations_name_the_file_and_no_place_on_disk(server: Serving, upload: Upload) -> None:
    name = upload(name="harbour ä.txt")
    with server.client() as client:
        replies = [ask(client, f"Who built the harbour? {n}", **on(name), max_tokens=20) for n in range(6)]
    cited = [row for reply in replies for row in reply.localctx["citations"]]
    assert {(row["source"], row["file_id"]) for row in cited} <= {("harbour ä.txt", name)}


def test_two_documents_of_one_name_are_told_apart(
    server: Serving, upload: Upload, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [upload(f"The harbour of {place} is deep. " * 12) for place in ("Tannau", "Brenn")]
    heard: list[str] = []
    prompt = server.service.model.prompt

    def listening(messages: Any) -> Any:
        heard.extend(text for message in messages for text in message.content)
        return prompt(messages)

    monkeypatch.setattr(server.service.model, "prompt", listening)
    with server.client() as client:
        found = ask(client, "Which harbour is deep?", **on(*names), max_tokens=20).localctx
    assert [(row["file_id"], row["source"]) for row in found["documents"]] == [
        (name, "harbour.txt") for name in names
    ]
    said = " ".join(heard)
    assert "[harbour.txt]" in said
    assert "/files/" not in said, "the model does not see where they lie here"


def test_a_document_of_another_key_is_not_found(server: Serving, upload: Upload) -> None:
    name = upload()
    with server.client(BOB) as bob:
        assert name not in [file.id for file in bob.files.list()]
        for there in (name, "file-" + "0" * 24):
            said = []
            for call in (bob.files.retrieve, bob.files.content, bob.files.delete):
                with pytest.raises(openai.NotFoundError) as error:
                    call(there)
                said.append(error.value.body)
            with pytest.raises(openai.NotFoundError) as error:
                ask(bob, **on(there))
            assert len({str(body) for body in said}) == 1
    with server.client() as alice:
        assert alice.files.retrieve(name).id == name


def test_nothing_that_one_key_computed_is_restored_for_another(server: Serving, upload: Upload) -> None:
    text = "The lighthouse of Brenn stands on a rock. " * 30
    names = {key: upload(text, key) for key in (ALICE, BOB)}

    def tokens(key: str) -> dict[str, int]:
        with server.client(key) as client:
            found: dict[str, int] = ask(client, "Where does it stand?", **on(names[key])).localctx["tokens"]
            return found

    first, again, other = tokens(ALICE), tokens(ALICE), tokens(BOB)
    assert again["restored"] > 0
    assert again["evaluated"] < first["evaluated"]
    assert other["evaluated"] >= first["evaluated"]
    assert other["restored"] <= first["restored"]


def test_no_cells_of_another_keys_chat_are_reused(server: Serving) -> None:
    text = "A text that was never sent before, " * 8
    cached = []
    for key in (ALICE, ALICE, BOB, BOB):
        with server.client(key) as client:
            cached.append(ask(client, text).usage.prompt_tokens_details.cached_tokens)
    assert cached[1] > cached[0]
    assert cached[3] == cached[1]
    assert cached[2] < 40  # no more than the template's own beginning, and that of its own chats


def test_a_key_that_used_its_tokens_is_told_when_to_come_again(server: Serving) -> None:
    with server.client(SLOW) as client, pytest.raises(openai.RateLimitError) as error:
        for _ in range(20):
            ask(client, max_tokens=8)
    assert error.value.code == "rate_limit_exceeded"
    assert int(error.value.response.headers["Retry-After"]) > 0
    with server.client() as other:
        ask(other)


def test_metrics_have_each_keys_tokens_and_its_target(server: Serving) -> None:
    for key in (ALICE, BOB):
        with server.client(key) as client:
            ask(client)
    text = get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {ALICE}"}).text
    values = dict(re.findall(r"^(localctx_\S+) (\S+)$", text, re.MULTILINE))
    assert float(values['localctx_slo_attainment{tenant="alice"}']) == 1
    assert float(values['localctx_slo_attainment{tenant="bob"}']) == 0
    assert float(values['localctx_tokens_total{kind="generated",tenant="bob"}']) >= 4
    path = "/v1/chat/completions"
    assert float(values[f'localctx_requests_total{{path="{path}",status="200",tenant="alice"}}']) >= 1
    refused = get(f"{server.url}/metrics", headers={"Authorization": f"Bearer {BOB}"})
    assert refused.status_code == 403
