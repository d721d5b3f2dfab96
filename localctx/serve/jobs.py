"""A chat body → what is to be computed for it. What is asked for and is not there is refused by name."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from typing import Any

from localctx.serve.bodies import ChatBody
from localctx.serve.documents import NoSuchFile
from localctx.serve.keys import Tenant
from localctx.serve.problems import Problem
from localctx.serve.service import Service
from localctx.serve.tickets import ChatJob, QuestionJob
from localctx.session.structured import answer_schema
from localctx.settings import Settings
from localctx.values import Message, Request, Sampling

__all__ = ["Asked", "asked_chat", "asked_question", "check", "no_such_model"]

NOTHING: dict[str, tuple[object, ...]] = {
    "presence_penalty": (0,),
    "frequency_penalty": (0,),
    "logit_bias": ({},),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "tools": ([],),
    "tool_choice": ("none", "auto"),
    "functions": ([],),
    "function_call": ("none", "auto"),
    "modalities": (["text"],),
    "audio": (),
    "prediction": (),
    "web_search_options": (),
}
"""Parameters without an effect here, and the values beside null that ask for none."""


@dataclass(frozen=True, slots=True)
class Asked:
    """names: (file id, name) by a document's name here · release: call once, when nothing uses it."""

    job: ChatJob | QuestionJob
    n_prompt: int = 0
    names: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    warnings: tuple[str, ...] = ()
    release: Callable[[], None] = lambda: None


def check(service: Service, body: ChatBody) -> None:
    """Raises Problem for a model or a parameter that is not there."""
    if body.model != service.model.info.name:
        raise no_such_model(body.model)
    for name, harmless in NOTHING.items():
        value = getattr(body, name)
        if value is not None and value not in harmless:
            raise _unsupported(name)
    if body.stream_options is not None and not body.stream:
        raise Problem(400, "'stream_options' needs 'stream': true.", param="stream_options")


def no_such_model(name: str) -> Problem:
    """404, in OpenAI's words."""
    return Problem(404, f"The model '{name}' does not exist.", code="model_not_found", param="model")


def _unsupported(name: str, how: str = "") -> Problem:
    return Problem(400, f"'{name}'{how} is not supported.", code="unsupported_parameter", param=name)


def asked_chat(service: Service, tenant: Tenant, body: ChatBody) -> Asked:
    """A chat without documents. Raises LocalctxError for turns that the model's template refuses."""
    prompt = service.model.prompt([_message(one.role, one.text) for one in body.messages])
    settings = _settings(service.settings, body)
    schema = answer_schema(settings)
    stop = [body.stop] if isinstance(body.stop, str) else body.stop or []
    room = max(1, service.n_ctx - len(prompt.tokens))
    sampling = Sampling(
        temperature=settings.temp,
        top_p=settings.top_p,
        top_k=settings.top_k,
        min_p=settings.min_p,
        seed=settings.seed,
        max_tokens=min(settings.max_tokens, room),
        stop=tuple(stop),
        grammar=schema.grammar if schema is not None else "",
    )
    requests = tuple(
        Request(prompt, replace(sampling, seed=sampling.seed + number)) for number in range(body.n or 1)
    )
    return Asked(ChatJob(requests), len(prompt.tokens))


def asked_question(service: Service, tenant: Tenant, body: ChatBody) -> Asked:
    """A question on documents: the last user message. Raises Problem, LocalctxError."""
    wanted = body.localctx
    if wanted is None:
        raise TypeError("no documents")
    if body.stop:
        raise _unsupported("stop", " with documents")
    if (body.n or 1) > 1:
        raise _unsupported("n", " > 1 with documents")
    if body.messages[-1].role != "user":
        raise Problem(400, "the last message is no question: its role is not 'user'", param="messages")
    settings = _settings(service.settings_of(tenant), body)
    answer_schema(settings)  # what is wrong in it is told before anything is opened
    if wanted.strategy is not None:
        settings = replace(settings, strategy=wanted.strategy)
    try:
        found = service.open_documents(tenant, wanted.documents)
    except NoSuchFile:
        raise Problem(404, "No such document.", code="file_not_found", param="localctx.documents") from None
    stack = ExitStack()
    for _, document in found:
        stack.enter_context(document)
    names = {document.source: (file.id, file.filename) for file, document in found}
    unseen = "only the last message is put to the documents, nothing before it"
    warnings = (unseen,) if len(body.messages) > 1 else ()
    job = QuestionJob([document for _, document in found], body.messages[-1].text, settings)
    return Asked(job, 0, names, warnings, stack.close)


def _message(role: str, text: str) -> Message:
    match role:
        case "system" | "developer":
            return Message("system", (text,))
        case "assistant":
            return Message("assistant", (text,))
    return Message("user", (text,))


def _settings(settings: Settings, body: ChatBody) -> Settings:
    """The server's settings under what the body says of sampling and length."""
    length = body.max_completion_tokens or body.max_tokens
    return replace(
        settings,
        temp=settings.temp if body.temperature is None else body.temperature,
        top_p=settings.top_p if body.top_p is None else body.top_p,
        top_k=settings.top_k if body.top_k is None else body.top_k,
        min_p=settings.min_p if body.min_p is None else body.min_p,
        seed=settings.seed if body.seed is None else body.seed,
        max_tokens=settings.max_tokens if length is None else length,
        schema=_schema(body.response_format) or settings.schema,
    )


def _schema(wanted: Mapping[str, Any] | None) -> str | None:
    """The JSON schema that response_format asks for; None for text. Raises Problem for what it cannot be."""
    match wanted:
        case None | {"type": "text"}:
            return None
        case {"type": "json_object"}:
            return json.dumps({"type": "object"})
        case {"type": "json_schema", "json_schema": {"schema": dict(schema)}}:
            return json.dumps(schema)
    how = "{'type': 'json_schema', 'json_schema': {'name': …, 'schema': {…}}}"
    said = f"'response_format' is text, json_object, or {how}."
    raise Problem(400, said, code="invalid_value", param="response_format")
