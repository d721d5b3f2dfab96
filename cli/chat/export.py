"""A conversation as a file: Markdown for people, JSON for programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from localctx.document.pages import page_name

from ..output_file import check_writable, write_whole
from .chat import Chat

__all__ = ["export", "markdown_of"]

SCHEMA = "localctx.chat/1"


def export(chat: Chat, name: str) -> None:
    """Write it, whole or not at all. Raises what writing raises."""
    path = Path(name).expanduser()
    check_writable(path, [document.source for document in chat.library.documents])
    if path.suffix.lower() == ".json":
        text = json.dumps(_json_of(chat), ensure_ascii=False, indent=1) + "\n"
    else:
        text = "\n".join(markdown_of(chat)) + "\n"
    write_whole(path, text)


def markdown_of(chat: Chat) -> Iterator[str]:
    """Questions as headings, answers with where they stand."""
    names = ", ".join(document.source for document in chat.library.documents)
    yield f"# Conversation about {names or 'nothing'}"
    for turn in chat.conversation.turns:
        stopped = " *(stopped)*" if turn.finish_reason == "cancelled" else ""
        yield f"\n## {turn.question}\n\n{turn.answer}{stopped}"
        citations = turn.record.get("citations", ())
        if citations:
            yield ""
        for number, citation in enumerate(citations, 1):
            page = page_name(citation["page"], citation["page_label"])
            where = citation["source"] + (f" p. {page}" if page else "")
            yield f"{number}. {where}: “{' '.join(citation['quote'].split())}”"


def _json_of(chat: Chat) -> dict[str, object]:
    return {
        "schema": SCHEMA,
        "documents": [path for path, _ in chat.library.listed()],
        "model": chat.conversation.model.info.name,
        "turns": [
            {
                "question": turn.question,
                "standalone": turn.sought,
                "answer": turn.answer,
                "finish_reason": turn.finish_reason,
                "record": turn.record or None,
            }
            for turn in chat.conversation.turns
        ],
    }
