"""What clients get: OpenAI's objects as JSON values. Knows no HTTP."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from localctx.session.answer import Answer
from localctx.values import FinishReason

__all__ = [
    "Usage",
    "chat_chunk",
    "chat_reply",
    "choice",
    "chunk_head",
    "documents_field",
    "event",
    "text_chunk",
    "usage_chunk",
]

DONE = "data: [DONE]\n\n"
KEEP_ALIVE = ": waiting\n\n"


@dataclass(slots=True)
class Usage:
    """Tokens of a request; `cached`: of the prompt, those that were there already."""

    prompt: int = 0
    cached: int = 0
    generated: int = 0

    def to_json(self) -> dict[str, Any]:
        """OpenAI's `usage`."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.generated,
            "total_tokens": self.prompt + self.generated,
            "prompt_tokens_details": {"cached_tokens": self.cached},
        }


def choice(number: int, text: str, thinking: str, reason: FinishReason | None) -> dict[str, Any]:
    """One choice of a reply."""
    message: dict[str, Any] = {"role": "assistant", "content": text, "refusal": None}
    if thinking:
        message["reasoning_content"] = thinking
    return {"index": number, "message": message, "logprobs": None, "finish_reason": reason}


def chat_reply(
    head: Mapping[str, Any], choices: list[dict[str, Any]], usage: Usage, documents: dict[str, Any] | None
) -> dict[str, Any]:
    """A chat.completion; `head`: id, created, model."""
    reply = {**head, "object": "chat.completion", "choices": choices, "usage": usage.to_json()}
    return reply if documents is None else {**reply, "localctx": documents}


def chat_chunk(
    head: Mapping[str, Any],
    number: int,
    delta: Mapping[str, Any],
    reason: FinishReason | None = None,
    **more: object,
) -> str:
    """An event of a stream."""
    one = {"index": number, "delta": dict(delta), "logprobs": None, "finish_reason": reason}
    return event({**head, "object": "chat.completion.chunk", "choices": [one], **more})


def chunk_head(head: Mapping[str, Any]) -> str:
    """How text_chunk()'s events begin."""
    return json.dumps({**head, "object": "chat.completion.chunk"}, separators=(",", ":"))[:-1]


def text_chunk(chunk_head: str, number: int, name: str, text: str) -> str:
    """chat_chunk() for a delta of one text and nothing else, which most are: only the text is made anew."""
    return (
        f'data: {chunk_head},"choices":[{{"index":{number},"delta":{{"{name}":{json.dumps(text)}}},'
        '"logprobs":null,"finish_reason":null}]}\n\n'
    )


def usage_chunk(head: Mapping[str, Any], usage: Usage) -> str:
    """The event that stream_options.include_usage asks for."""
    return event({**head, "object": "chat.completion.chunk", "choices": [], "usage": usage.to_json()})


def event(value: Mapping[str, Any]) -> str:
    """One server-sent event."""
    return f"data: {json.dumps(value, separators=(',', ':'))}\n\n"


def documents_field(
    answer: Answer, names: Mapping[str, tuple[str, str]], warnings: Sequence[str], *, replaced: bool
) -> dict[str, Any]:
    """What `localctx.answer/1` says beside the text; `names`: (file id, name) by a document's name here.

    replaced: the text that was streamed before the last piece does not stand.
    """
    value = answer.to_json()
    for row in [*value["citations"], *value.get("documents", ())]:
        row["file_id"], row["source"] = names.get(row["source"], (None, row["source"]))
    for row in value["coverage"].get("pulled_in_by_reference", ()):
        row["source"] = names.get(row["source"], (None, row["source"]))[1]
    kept = ("support", "strategy", "citations", "statements", "coverage", "documents", "tokens", "timings")
    field = {name: value[name] for name in (*kept, "warnings", "selection") if name in value}
    field["warnings"] = [*warnings, *field["warnings"]]
    return {**field, "answer": answer.text, "replaced": replaced}
