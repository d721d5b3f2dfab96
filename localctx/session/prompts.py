"""The words around a document. Before it stands one fixed text without a task, after it the task.

The prefix is the same for every command and strategy, so that what was computed for one serves the next.
"""

from __future__ import annotations

from collections.abc import Sequence

from localctx.values import Message

__all__ = [
    "NOT_FOUND",
    "difference_task",
    "document_messages",
    "merge_task",
    "question_task",
    "record_task",
    "rewrite_task",
    "section_task",
]

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


def record_task(title: str, names: Sequence[str]) -> tuple[str, ...]:
    """The task of one record: what it is called, and its properties by name or with what they are."""
    return ("Write the ", title, " in the document above as JSON with ", ", ".join(names), ".")


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


def difference_task(before: str | None, after: str | None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The document and the task of explaining a difference: the passage as it was, and as it is now."""
    if before is None or after is None:
        what = "new in" if before is None else "no longer in"
        return (after or before or "",), (
            f"This passage is {what} the contract. In one sentence, what does it say?",
        )
    fragments = ("Old version:\n", before, "\n\nNew version:\n", after)
    return fragments, (
        "In one sentence, what did the old version say and what does the new version say instead?",
    )
