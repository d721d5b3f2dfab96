"""The one place that renders chat templates. Documents never pass through jinja: a nonce stands for them.

Knows messages and template text; no tokens, no model. What the template makes of the nonces tells scaffold
from content; a template that drops, doubles or changes one is not trusted with the document.
"""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from localctx.engine.sandbox import DEADLINE_S, render_text
from localctx.engine.sandbox_limits import NO_RETRY, TemplateError
from localctx.values import Message

__all__ = ["FALLBACK_MARKERS", "FOLDED", "Part", "Rendered", "TemplateError", "render", "render_chat"]

FALLBACK_MARKERS = ("<|im_start|>", "<|im_end|>")
"""Tokens that a vocabulary must have for the ChatML fallback."""
_BETWEEN_TURNS = "\n\n"
_NAME = re.compile(r"(z[0-9a-f]{24})n([0-9]+)e")
"""What stands for a content fragment: the nonce, and its number."""
FOLDED = "the chat template has no system role: the instructions stand at the start of the first user turn"


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a prompt: text of the template, or one content fragment as it was given."""

    text: str
    is_content: bool


@dataclass(frozen=True, slots=True)
class Rendered:
    """A prompt as parts in order (no two scaffold parts in a row), and what was noticed."""

    parts: tuple[Part, ...]
    notices: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole prompt as one text, for people."""
        return "".join(part.text for part in self.parts)


@dataclass(frozen=True, slots=True)
class _Settings:
    """What a rendering needs besides the messages. `as_parts`: content as a list of typed parts."""

    variables: Mapping[str, Any]
    deadline: float
    now: datetime | None
    as_parts: bool = False


def render(  # settings by keyword
    template: str,
    messages: Sequence[Message],
    *,
    bos_token: str = "",
    eos_token: str = "",
    add_generation_prompt: bool = True,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
) -> Rendered:
    """The messages in the template's format. A template without a system role gets the system text at the
    start of the first user turn, with a notice. `now` is the time that strftime_now sees (today).

    Raises TemplateError when the template fails or some content does not come out once, whole, in order.
    """
    base = _Settings(
        {
            "tools": None,
            "documents": None,
            **(variables or {}),
            "bos_token": bos_token,
            "eos_token": eos_token,
            "add_generation_prompt": add_generation_prompt,
        },
        time.monotonic() + DEADLINE_S,
        now,
    )
    failure: TemplateError | None = None
    for turns, settings, notices in _attempts(messages, base):
        try:
            return Rendered(_render_once(template, turns, settings), notices)
        except TemplateError as error:
            failure = failure or error
            if error.hint == NO_RETRY:
                break
    raise failure or TemplateError("no messages to render")


def _attempts(
    messages: Sequence[Message], base: _Settings
) -> Iterator[tuple[Sequence[Message], _Settings, tuple[str, ...]]]:
    """Forms of the messages that templates want, the usual one first."""
    yield messages, base, ()
    if any(message.role == "system" for message in messages):
        yield _fold_system(messages), base, (FOLDED,)
    yield messages, replace(base, as_parts=True), ()
    unset = {name: value for name, value in base.variables.items() if value is not None}
    yield messages, replace(base, variables=unset), ()  # some test "is defined" where most test for none


def render_chat(  # settings by keyword
    template: str | None,
    messages: Sequence[Message],
    *,
    has_token: Callable[[str], bool],
    bos_token: str = "",
    eos_token: str = "",
    add_generation_prompt: bool = True,
    variables: Mapping[str, Any] | None = None,
    now: datetime | None = None,
    missing: str = "the model file has no chat template",
) -> Rendered:
    """render(), or, without a template or with one that fails, a stated fallback: ChatML where the
    vocabulary has its tokens (`has_token`), else plain "### Instruction" text. `missing`: why there is none.
    """
    why = missing
    if template is not None:
        try:
            return render(
                template,
                messages,
                bos_token=bos_token,
                eos_token=eos_token,
                add_generation_prompt=add_generation_prompt,
                variables=variables,
                now=now,
            )
        except TemplateError as error:
            why = f"the model's chat template was not used ({error.message})"
    chatml = all(has_token(marker) for marker in FALLBACK_MARKERS)
    parts = _chatml(messages) if chatml else _instruction(messages, bos_token)
    if add_generation_prompt:
        parts.append(Part("<|im_start|>assistant\n" if chatml else "### Response:\n", is_content=False))
    name = "ChatML" if chatml else "plain Instruction/Response text"
    return Rendered(_merge(parts), (f"{why}: {name} instead",))


def _chatml(messages: Sequence[Message]) -> list[Part]:
    parts: list[Part] = []
    for message in messages:
        parts.append(Part(f"<|im_start|>{message.role}\n", is_content=False))
        parts += [Part(text, is_content=True) for text in message.content]
        parts.append(Part("<|im_end|>\n", is_content=False))
    return parts


def _instruction(messages: Sequence[Message], bos_token: str) -> list[Part]:
    titles = {"system": "", "user": "### Instruction:\n", "assistant": "### Response:\n"}
    parts = [Part(bos_token, is_content=False)]
    for message in messages:
        parts.append(Part(titles[message.role], is_content=False))
        parts += [Part(text, is_content=True) for text in message.content]
        parts.append(Part(_BETWEEN_TURNS, is_content=False))
    return parts


def _merge(parts: Sequence[Part]) -> tuple[Part, ...]:
    """The parts without empty ones, scaffold next to scaffold joined."""
    merged: list[Part] = []
    for part in parts:
        if merged and not part.is_content and not merged[-1].is_content:
            merged[-1] = replace(merged[-1], text=merged[-1].text + part.text)
        elif part.text:
            merged.append(part)
    return tuple(merged)


def _fold_system(messages: Sequence[Message]) -> list[Message]:
    """The messages with all system text moved to the start of the first user turn."""
    system = [
        text
        for message in messages
        if message.role == "system"
        for text in (*message.content, _BETWEEN_TURNS)
    ]
    turns = [message for message in messages if message.role != "system"]
    first = next((i for i, message in enumerate(turns) if message.role == "user"), None)
    if first is None:
        return [Message("user", tuple(system[:-1])), *turns]
    turns[first] = replace(turns[first], content=(*system, *turns[first].content))
    return turns


def _render_once(template: str, messages: Sequence[Message], settings: _Settings) -> tuple[Part, ...]:
    nonce = "z" + secrets.token_hex(12)
    texts: list[str] = []
    turns: list[dict[str, Any]] = []
    for message in messages:
        names = "".join(f"{nonce}n{len(texts) + i}e" for i in range(len(message.content)))
        texts += message.content
        content = [{"type": "text", "text": names}] if settings.as_parts else names
        turns.append({"role": message.role, "content": content})
    context = {**settings.variables, "messages": turns}
    return _split(render_text(template, context, settings.deadline, settings.now), nonce, texts)


def _split(output: str, nonce: str, texts: Sequence[str]) -> tuple[Part, ...]:
    """Scaffold and content apart. Raises TemplateError unless every nonce stands there once, in order."""
    parts: list[Part] = []
    at = 0
    found: list[int] = []
    for match in _NAME.finditer(output):
        if match[1] != nonce:
            continue  # a template's own text
        found.append(int(match[2]))
        parts.append(Part(output[at : match.start()], is_content=False))
        parts.append(Part(texts[found[-1]], is_content=True))
        at = match.end()
    parts.append(Part(output[at:], is_content=False))
    if found != list(range(len(texts))):
        lost = sorted(set(range(len(texts))) - set(found))
        what = (
            f"{len(lost)} of {len(texts)} message texts left out"
            if lost
            else "message texts repeated or reordered"
        )
        raise TemplateError(f"the chat template does not keep the messages: {what}")
    if nonce in "".join(part.text for part in parts if not part.is_content):
        raise TemplateError("the chat template changes message texts")
    return _merge(parts)
