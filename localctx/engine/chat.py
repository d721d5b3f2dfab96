"""A model's chat template with all that it is rendered with. Knows a vocabulary, no llama.cpp."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from localctx.engine.llama_vocab import LlamaVocab
from localctx.engine.template import Rendered, render_chat
from localctx.values import Message

__all__ = ["Chat"]

_DATE = datetime(2024, 7, 26)  # a label, no instant
"""The date that templates see: what stands before a document must be the same every day, to be kept."""
_PROBES = (
    (Message("user", ("a",)),),
    tuple(Message(role, ("a",)) for role in ("system", "user", "assistant", "user")),
)


@dataclass(frozen=True, slots=True)
class Chat:
    """`template` None: ChatML, because of what `missing` says; `variables` are passed to it."""

    template: str | None
    missing: str
    variables: Mapping[str, Any] | None

    def render(self, messages: Sequence[Message], vocab: LlamaVocab) -> Rendered:
        """Scaffold and content of the messages, the assistant's turn open."""
        return render_chat(
            self.template,
            messages,
            has_token=vocab.has_token,
            bos_token=vocab.token_text(vocab.bos_id) if vocab.bos_id is not None else "",
            eos_token=vocab.token_text(vocab.eos_id) if vocab.eos_id is not None else "",
            variables=self.variables,
            now=_DATE,
            missing=self.missing,
        )

    def scaffold(self, vocab: LlamaVocab) -> list[str]:
        """What the template writes of its own: some build a marker from parts, and show it nowhere whole."""
        rendered = [self.render(messages, vocab) for messages in _PROBES]
        return [part.text for one in rendered for part in one.parts if not part.is_content]
