"""What stands round the documents of a request, as tokens: the fixed prefix before them, the task after them.

Taken from the chat template with a placeholder for the documents, so that their tokens can be put in as they
are kept. What was said earlier in a conversation stands between documents and task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from localctx.session.prompts import document_messages
from localctx.values import Message, Model, Prompt

__all__ = ["Frame", "frame_of"]

PLACEHOLDER = "text"
DOCUMENT_PART = 1
"""The system message's fragment comes first, then the documents'."""


@dataclass(frozen=True, slots=True)
class Frame:
    """Token ids before and after the documents. The prefix is the same for every task.

    history: what stands between documents and task in a conversation: first the turn that acknowledges the
    documents, then one part for each earlier question and its answer.
    """

    prefix: tuple[int, ...]
    suffix: tuple[int, ...]
    thinking_open: bool = False
    notices: tuple[str, ...] = ()
    closing: tuple[int, ...] = ()
    history: tuple[tuple[int, ...], ...] = ()

    @property
    def after(self) -> tuple[int, ...]:
        """All that stands behind the documents."""
        return (*(token for part in self.history for token in part), *self.suffix)

    def prompt(self, body: Sequence[int]) -> Prompt:
        """The whole prompt round the tokens of documents and history."""
        tokens = (*self.prefix, *body, *self.suffix)
        return Prompt(tokens, self.thinking_open, self.notices, closing=self.closing)


def frame_of(model: Model, task: Sequence[str], turns: Sequence[Message] | None = None) -> Frame | None:
    """The frame of a task, in a conversation behind its earlier turns; None where the template does not say
    where the documents stand.
    """
    messages = document_messages([PLACEHOLDER], task, turns or ())
    prompt = model.prompt(messages)
    n_fragments = [sum(map(bool, message.content)) for message in messages]
    if len(prompt.content) != sum(n_fragments):
        return None
    start, end = prompt.content[DOCUMENT_PART]
    edges = [end]
    if turns is not None:
        firsts = [0, *accumulate(n_fragments)]
        asked = [number for number, message in enumerate(messages) if message.role == "user"][1:]
        edges += [prompt.content[firsts[number]][0] for number in asked if n_fragments[number]]
    return Frame(
        prompt.tokens[:start],
        prompt.tokens[edges[-1] :],
        prompt.thinking_open,
        prompt.notices,
        prompt.closing,
        tuple(prompt.tokens[first:last] for first, last in pairwise(edges)),
    )
