"""A conversation of the Python interface. Knows neither documents nor models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal, overload

from localctx.api_events import Closing, last_answer, texts_of

if TYPE_CHECKING:
    from localctx.session.answer import Answer
    from localctx.session.conversation import Conversation, Turn

__all__ = ["Chat"]


class Chat(Closing):
    """Questions that may lean on earlier ones. Close it, or use `with`."""

    def __init__(self, conversation: Conversation) -> None:
        self._conversation = conversation

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What was said so far."""
        return tuple(self._conversation.turns)

    @overload
    def say(self, question: str, *, stream: Literal[False] = False) -> Answer: ...
    @overload
    def say(self, question: str, *, stream: Literal[True]) -> Iterator[str]: ...
    def say(self, question: str, *, stream: bool = False) -> Answer | Iterator[str]:
        """Answer a question after those before it; with `stream`, the pieces of the answer as they come."""
        events = self._conversation.say(question)
        return texts_of(events) if stream else last_answer(events)

    def undo(self) -> Turn | None:
        """Take the last question and its answer back; None where there is none."""
        return self._conversation.undo()

    def clear(self) -> None:
        """Begin anew."""
        self._conversation.clear()

    def close(self) -> None:
        """Let go of what the conversation kept in memory."""
        self._conversation.close()
