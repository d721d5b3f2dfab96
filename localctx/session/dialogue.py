"""What was said before a question, as the verbs see it: turns, what is searched for, KV that can be put back.

Made by session.conversation for each question; knows no documents.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from localctx.session.carried import Carried
from localctx.values import Message

__all__ = ["Dialogue"]


@dataclass(slots=True)
class Dialogue:
    """`turns`: the earlier questions and answers that stand before the question, by turns · `sought`: the
    question as it would be put alone, which passages are chosen and answers judged by.
    """

    turns: tuple[Message, ...] = ()
    sought: str = ""
    carried: Carried = field(default_factory=Carried)
