"""Virtual users on a real server: whole answers, closed and open loop, documents cold and warm."""

from __future__ import annotations

import asyncio
import json
import random

import openai
import pytest
from serve.serving import ALICE, BOB, Serving

from localctx.bench.load_clients import Asker, Klass, Traffic, _Events, make_askers, run_askers
from localctx.bench.load_documents import DocumentKind, Documents
from localctx.errors import LocalctxError

GOLD = Klass("gold", 4, 1000)
WORDS = "Harbours, bridges, lanterns and orchards stand along the river. " * 40


def askers_of(n: int = 3) -> list[Asker]:
    return [Asker(number, GOLD, *(("alice", ALICE), ("bob", BOB))[number % 2]) for number in range(n)]


def run(server: Serving, askers: list[Asker], **more: object) -> tuple[float, int]:
    traffic = Traffic(**{"model": "tiny", "seconds": 0.5, "max_tokens": 4, **more})  # type: ignore[arg-type]  # by name
    return asyncio.run(run_askers(askers, f"{server.url}/v1", traffic))


def test_users_ask_on_until_the_time_is_over(server: Serving) -> None:
    askers = askers_of()
    wall_s, n_left = run(server, askers)
    assert wall_s >= 0.5 and n_left == 0
    for one in askers:
        assert one.answers and not one.problems
        assert one.n_tokens == 4 * len(one.answers)
        assert {answer.kind for answer in one.answers} == {"chat"}
        assert all(answer.first_s is not None and answer.first_s > 0 for answer in one.answers)
        assert all(gap >= 0 for answer in one.answers for gap in answer.gap_s)


def test_requests_arrive_whether_answers_come_or_not(server: Serving) -> None:
    askers, dice, n_due, at = askers_of(2), random.Random(0), 0, 0.0
    while (at := at + dice.expovariate(40)) < 0.5:
        n_due += 1
    _, n_left = run(server, askers, rate=40.0)
    n_answers = sum(len(one.answers) for one in askers)
    assert n_answers + n_left == n_due
    assert n_answers and not any(one.problems for one in askers)


@pytest.mark.parametrize(("kind", "seen"), [("cold", {"cold"}), ("warm", {"warm"})])
def test_documents_are_cold_or_warm(
    server: Serving, client: openai.OpenAI, kind: DocumentKind, seen: set[str]
) -> None:
    before = {file.id for file in client.files.list()}
    askers, documents = askers_of(2), Documents(WORDS, 900, kind)
    assert documents.is_kept is (kind == "warm")
    if documents.is_kept:
        tenants = {one.tenant: one.headers for one in askers}
        asyncio.run(documents.prepare(f"{server.url}/v1", "tiny", tenants))
    run(server, askers, documents=documents)
    answers = [answer for one in askers for answer in one.answers]
    assert {answer.kind for answer in answers} == seen
    assert all(answer.document_tokens > 100 for answer in answers)
    assert all((answer.upload_s is not None) is (kind == "cold") for answer in answers)
    assert not any(one.problems for one in askers)
    left = {file.id for file in client.files.list()} - before
    assert len(left) == (1 if kind == "warm" else 0), "cold ones are removed when they were asked about"


def test_what_is_refused_is_a_problem_and_no_answer(server: Serving) -> None:
    wrong = Asker(0, GOLD, "nobody", "no-key-of-this-server")
    run(server, [wrong], seconds=0.5)
    assert not wrong.answers and set(wrong.problems) == {"401"}
    with pytest.raises(LocalctxError, match="401"):
        documents = Documents(WORDS, 900, "warm")
        asyncio.run(documents.prepare(f"{server.url}/v1", "tiny", {"nobody": wrong.headers}))


def test_a_server_that_is_not_there_is_a_problem() -> None:
    asker = Asker(0, GOLD, "alice", ALICE)
    traffic = Traffic("tiny", 0.5, 4)
    asyncio.run(run_askers([asker], "http://127.0.0.1:1/v1", traffic))
    assert set(asker.problems) == {"ConnectionRefusedError"}


def test_tenants_and_classes_take_turns() -> None:
    classes = [GOLD, Klass("iron", 1, 9000)]
    askers = make_askers(5, 2, classes)
    assert [one.tenant for one in askers] == ["tenant-0", "tenant-1"] * 2 + ["tenant-0"]
    assert [one.klass.name for one in askers] == ["gold", "iron", "gold", "iron", "gold"]
    assert askers[0].key == askers[2].key != askers[1].key


@pytest.mark.parametrize("n_bytes", [1, 7, 1000])
def test_a_stream_is_read_however_it_is_cut(n_bytes: int) -> None:
    def event(delta: dict[str, str], **more: object) -> str:
        value = {"choices": [{"index": 0, "delta": delta}], **more}
        return f"data: {json.dumps(value, separators=(',', ':'))}\n\n"

    stream = event({"role": "assistant", "content": ""}) + ": waiting\n\n" + event({"content": "a"})
    stream += event({"content": '"usage":{"x":1} \n\n'}) + event({"reasoning_content": "c"}) + event({})
    stream += 'data: {"choices":[],"usage":{"completion_tokens":7}}\n\ndata: [DONE]\n\n'
    events, data = _Events(), stream.encode()
    for number, start in enumerate(range(0, len(data), n_bytes)):
        events.take(data[start : start + n_bytes], float(number))
    answered = events.answered("chat", -1.0, None)
    assert events.problem is None
    assert (answered.n_tokens, len(answered.gap_s)) == (7, 2)
    assert answered.first_s is not None and answered.first_s > 0


@pytest.mark.parametrize(
    ("stream", "problem"),
    [
        (b"", "no end"),
        (b'data: {"choices":[]}\n\n', "no end"),
        (b'data: {"error":{"message":"x"}}\n\n', "stream error"),
        (b"data: [DONE]", "no end"),
    ],
)
def test_a_stream_that_breaks_off_is_no_answer(stream: bytes, problem: str) -> None:
    events = _Events()
    events.take(stream, 0.0)
    assert events.problem == problem
