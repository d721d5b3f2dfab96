"""What stands round the documents of a request, as tokens: the fixed prefix before them, the task after them.

Taken from the chat template with a placeholder for the documents, so that their tokens can be put in as they
are kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from localctx.session.prompts import document_messages
from localctx.values import Model, Prompt

__all__ = ["Frame", "frame_of"]

PLACEHOLDER = "text"
DOCUMENT_PART = 1
"""The system message's fragment comes first, then the documents'."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Token ids before and after the documents. The prefix is the same for every task."""

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    thinking_open: bool = False
    notices: tuple[str, ...] = ()
    closing: tuple[int, ...] = ()

    def prompt(self, body: Sequence[int]) -> Prompt:
        """The whole prompt round the documents' tokens."""
        tokens = (*self.prefix, *body, *self.suffix)
        return Prompt(tokens, self.thinking_open, self.notices, closing=self.closing)


def frame_of(model: Model, task: Sequence[str]) -> Frame | None:
    """The frame of a task; None where the template does not say where the documents stand."""
    messages = document_messages([PLACEHOLDER], task)
    prompt = model.prompt(messages)
    if len(prompt.content) != sum(bool(part) for message in messages for part in message.content):
        return None
    start, end = prompt.content[DOCUMENT_PART]
    return Frame(
        prompt.tokens[:start], prompt.tokens[end:], prompt.thinking_open, prompt.notices, prompt.closing
    )
