"""What a model is asked for a section's point, and what of its answer is taken. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass

from localctx.errors import NotComposable
from localctx.session.frame import Frame, frame_of
from localctx.session.points import Point, accept_worded, key_point
from localctx.session.prompts import section_task
from localctx.session.rewriting import REWRITE_TOKENS, task_tokens
from localctx.session.run import Run
from localctx.session.sections import Section
from localctx.values import FinishReason, Prompt, Request

__all__ = ["Asked", "Wording"]


@dataclass(frozen=True, slots=True)
class Asked:
    """A section's key sentence, and what stands round the section's tokens."""

    key: Point
    frame: Frame


class Wording:
    """The wording of all points of one summary."""

    def __init__(self, run: Run, focus: str | None) -> None:
        self._run = run
        self._focus = focus

    @property
    def n_tokens(self) -> int:
        """Of what stands behind a section, and of the answer, at most."""
        return task_tokens(self._run, self._focus)

    def ask(self, section: Section) -> Asked:
        """Raises NotComposable where the template does not say where the section stands."""
        key = key_point(section.part, self._focus)
        frame = frame_of(self._run.model, section_task(self._focus))
        if frame is None:
            raise NotComposable("the chat template does not say where documents stand")
        return Asked(key, frame)

    def behind(self, asked: Asked) -> Request:
        """The request without what stands before it."""
        frame = asked.frame
        prompt = Prompt(frame.suffix, frame.thinking_open, frame.notices, closing=frame.closing)
        return self._run.request_of(prompt, REWRITE_TOKENS)

    def whole(self, asked: Asked, section: Section) -> Request:
        """The request with the section in it."""
        return self._run.request_of(asked.frame.prompt(section.tokens), REWRITE_TOKENS)

    def taken(self, asked: Asked, section: Section, text: str, finish_reason: FinishReason) -> Point:
        """The point: as the model worded it where that holds, else the key sentence."""
        source = section.reading.document.read(*section.part.span)
        return accept_worded(asked.key, text, finish_reason, source)
