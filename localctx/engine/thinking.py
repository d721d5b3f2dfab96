"""Splits a model's output into answer and thinking, piece by piece. Sees output only, never documents.

A block counts only where models write one: at the start of the output, or right after an earlier block.
Later, the tags are text like any other, so an answer may quote them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from localctx.engine.stopping import held_back

__all__ = ["DEFAULT_TAGS", "KNOWN_TAGS", "ThinkingSplitter", "ThinkingTags", "detect", "starts_open"]


@dataclass(frozen=True, slots=True)
class ThinkingTags:
    """What opens and closes a thinking block; `dropped` frames the answer after it and is never shown."""

    open: str
    close: str
    dropped: tuple[str, ...] = ()


DEFAULT_TAGS = ThinkingTags("<think>", "</think>")
KNOWN_TAGS = (
    ThinkingTags(
        "<|channel|>analysis<|message|>",
        "<|end|>",
        ("<|start|>assistant", "<|channel|>final<|message|>", "<|channel|>commentary<|message|>"),
    ),
    ThinkingTags("<|START_THINKING|>", "<|END_THINKING|>", ("<|START_RESPONSE|>", "<|END_RESPONSE|>")),
    ThinkingTags("<seed:think>", "</seed:think>"),
    ThinkingTags("[THINK]", "[/THINK]"),
    ThinkingTags("◁think▷", "◁/think▷"),
    ThinkingTags("<|channel>thought", "<channel|>"),
    ThinkingTags("<|inner_prefix|>", "<|inner_suffix|>"),
    ThinkingTags("<thinking>", "</thinking>"),
    DEFAULT_TAGS,
)
_CHANNELS = re.compile(r"<\|channel\|>")


def detect(template: str | None) -> ThinkingTags:
    """The tags a chat template writes; <think> when it names none, which costs nothing."""
    if template is None:
        return DEFAULT_TAGS
    if _CHANNELS.search(template):
        return KNOWN_TAGS[0]
    return next((tags for tags in KNOWN_TAGS[1:] if tags.close in template), DEFAULT_TAGS)


def starts_open(scaffold: str, tags: ThinkingTags) -> bool:
    """Whether the prompt's last scaffold text opens a block that the output will close."""
    return scaffold.rfind(tags.open) > scaffold.rfind(tags.close)


class ThinkingSplitter:
    """feed(text) → (answer, thinking). The concatenations do not depend on how the text was cut.

    Whitespace between a block and the answer belongs to neither. `cut_inside` is True once finished
    inside a block: then the answer is empty because it never began.
    """

    def __init__(
        self,
        open_tag: str = DEFAULT_TAGS.open,
        close_tag: str = DEFAULT_TAGS.close,
        starts_open: bool = False,
        dropped: Sequence[str] = (),
    ) -> None:
        self._open, self._close = open_tag, close_tag
        self._markers = tuple(marker for marker in (open_tag, *dropped) if marker)
        self._inside = starts_open
        self._after_block = starts_open  # whitespace here is the block's, not the answer's
        self._answering = False
        self._pending = ""
        self.cut_inside = False

    def feed(self, text: str) -> tuple[str, str]:
        """The answer and the thinking that this text makes certain."""
        if self._answering:
            return text, ""
        self._pending += text
        thinking = ""
        moved = True
        while moved:
            if self._inside:
                more, moved = self._read_block()
                thinking += more
            else:
                moved = self._read_border()
        return self._take_answer(), thinking

    def _take_answer(self) -> str:
        if not self._answering:
            return ""
        answer, self._pending = self._pending, ""
        return answer

    def _read_block(self) -> tuple[str, bool]:
        """Thinking text up to the closing tag, and whether the tag was found."""
        at = self._pending.find(self._close)
        if at >= 0:
            text, self._pending = self._pending[:at], self._pending[at + len(self._close) :]
            self._inside = False
            self._after_block = True
            return text, True
        certain = len(self._pending) - held_back(self._pending, (self._close,))
        text, self._pending = self._pending[:certain], self._pending[certain:]
        return text, False

    def _read_border(self) -> bool:
        """Skip what stands between blocks; False when the answer begins or more text is needed."""
        text = self._pending.lstrip()
        marker = next((marker for marker in self._markers if text.startswith(marker)), None)
        if marker is not None:
            self._pending = text[len(marker) :]
            self._inside = marker == self._open
            self._after_block = True
            return True
        if any(marker.startswith(text) for marker in self._markers):
            return False  # includes the empty text
        self._answering = True
        if self._after_block:
            self._pending = text
        return False

    def finish(self) -> tuple[str, str]:
        """End of the output: (answer, thinking) that was held back."""
        pending, self._pending = self._pending, ""
        if self._inside:
            self.cut_inside = True
            return "", pending
        if self._after_block:
            pending = pending.lstrip()
        return pending, ""
