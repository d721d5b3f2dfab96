"""The words around a document. Before it stands one fixed text without a task, after it the task.

The prefix is the same for every command and strategy, so that what was computed for one serves the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from localctx.values import Message

__all__ = ["NOT_FOUND", "document_messages", "merge_task", "question_task", "rewrite_task", "section_task"]

PREFIX = "You read documents for the user and answer only from them."
ACKNOWLEDGED = "I have read the document."
NOT_FOUND = "The document does not answer this question."


def document_messages(
    fragments: Sequence[str], task: Sequence[str], turns: Sequence[Message] = ()
) -> list[Message]:
    """The turns of one request: the fixed prefix, the document's fragments, earlier turns of a conversation,
    the task's fragments.
    """
    return [
        Message("system", (PREFIX,)),
        Message("user", tuple(fragments)),
        Message("assistant", (ACKNOWLEDGED,)),
        *turns,
        Message("user", tuple(task)),
    ]


def question_task(question: str, schema: str | None = None) -> tuple[str, ...]:
    """The task of `ask`; with a JSON schema the answer is to be JSON."""
    if schema is not None:
        lead = "Answer from the document above, as JSON that fulfils this schema:\n"
        return (lead, schema, "\n\nQuestion: ", question)
    return ("Answer from the document above, in one or two sentences.\n\nQuestion: ", question)


def rewrite_task(sentence: str, focus: str | None = None) -> tuple[str, ...]:
    """The task of one summary point: the key sentence, said shorter."""
    about = ("",) if focus is None else (" about ", focus)
    return ("Shorten to one sentence", *about, ", keeping the facts:\n", sentence)


def section_task(focus: str | None = None) -> tuple[str, ...]:
    """The task of one summary point in the model's own words, of a section that stands as the document."""
    about = ("",) if focus is None else (" about ", focus)
    return ("Say in one sentence, in its own language, what the document above says", *about, ".")


def merge_task(focus: str | None = None) -> tuple[str, ...]:
    """The task of merging points that stand side by side as the document."""
    about = ("",) if focus is None else (" about ", focus)
    return ("Shorten the document to one sentence", *about, ", keeping the facts.")
