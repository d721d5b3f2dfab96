"""Texts decoded beside a prefill: a sequence that shares the cells of a span, in the batches of the prefill.

While texts are being decoded, the prefill's batches are cut into short ones, and each of the texts has its
next token in every one of them. Knows no llama.cpp and no plan.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from localctx.engine.generation import NewSplitter, answering_at_once
from localctx.engine.schedule import Slice
from localctx.engine.stopping import TextStream
from localctx.engine.thinking import ThinkingSplitter
from localctx.kv_taps import Tap, Tapped, Taps
from localctx.values import FinishReason, Request, Sampling

__all__ = ["Tapping"]

MAIN = 0


class _Cells(Protocol):
    def copy(self, source: int, sequence: int, start: int, end: int) -> None:
        """Let the cells at positions [start, end) belong to `sequence` too."""

    def drop(self, sequence: int) -> None:
        """Free all cells of a sequence."""


class _Decoder(Protocol):
    @property
    def n_batch(self) -> int:
        """Tokens the next batch may have."""

    def begin(self, sequence: int, sampling: Sampling) -> None:
        """Make the sequence's sampler."""

    def end(self, sequence: int) -> None:
        """Free the sequence's sampler."""

    def sample(self, sequence: int, row: int) -> int | None:
        """The next token of a sequence whose last token stood at `row` of the batch; None ends the text."""

    def piece(self, token: int) -> bytes:
        """The token's text."""


@dataclass(slots=True)
class _Open:
    """A text on its way. pending: its tokens that are not evaluated yet, the first at `position`."""

    number: int
    sequence: int
    request: Request
    position: int
    pending: NDArray[np.int32]
    stream: TextStream
    splitter: ThinkingSplitter
    n_evaluated: int
    n_generated: int = 0
    text: list[str] = field(default_factory=list)

    def take(self, n: int) -> Slice:
        """The next n of the pending tokens; the last of all of them is sampled behind."""
        part = Slice(self.sequence, self.position, self.pending[:n], sample=n >= len(self.pending))
        self.position += len(part.tokens)
        self.pending = self.pending[n:]
        return part

    def say(self, text: str) -> None:
        self.text.append(self.splitter.feed(text)[0])


class Tapping:
    """A working_set.Evaluator that decodes texts beside what it evaluates. Close it.

    run_batch: evaluates one batch, and raises when stopped.
    """

    def __init__(
        self,
        taps: Taps,
        run_batch: Callable[[Sequence[Slice]], None],
        cells: _Cells,
        decoder: _Decoder,
        sequences: Sequence[int],
        new_splitter: NewSplitter,
        n_together: int,
    ) -> None:
        """`sequences`: ids for the taps' own, empty · n_together: tokens of a batch while texts are open, of
        which an engine evaluates as many in the time of fewer.
        """
        self._taps = taps
        self._run = run_batch
        self._cells = cells
        self._decoder = decoder
        self._free = deque(sequences[: taps.n_side])
        self._new_splitter = new_splitter
        self._n_together = n_together
        self._open: list[_Open] = []
        self._next = 0
        self._standing = (0, 0), 0, 0
        self._is_begun = False

    # --- as an Evaluator -------------------------------------------------------------------------------

    def run_batch(self, batch: Sequence[Slice]) -> None:
        """See working_set.Evaluator."""
        self._run(batch)

    def run_tokens(self, sequence: int, position: int, tokens: NDArray[np.int32]) -> None:
        """See working_set.Evaluator. What is asked at spans that end on the way is evaluated with the last of
        the tokens, as far as that fills a batch; all are begun before the cells of their spans may go.
        """
        n_done = 0
        while n_done < len(tokens):
            answers = [one for one in self._open if len(one.pending) == 1]
            n = min(self._room(len(answers)), len(tokens) - n_done)
            own = [one.take(1) for one in answers]
            if n_done + n == len(tokens):
                own += self._filling(n + len(own))
            part = Slice(sequence, position + n_done, tokens[n_done : n_done + n], sample=False)
            self._step([*own, part])
            n_done += n
            self._begin_reached(position + n_done)
        self._begin_reached(position + n_done, must=True)

    def _room(self, n_answers: int) -> int:
        """Tokens of the prefill in the next batch: few beside answers, not all beside what is asked."""
        n_batch = self._decoder.n_batch
        if n_answers:
            return max(1, min(self._n_together, n_batch) - n_answers)
        return max(1, n_batch - 2 * self._n_together) if self._open else n_batch

    def _filling(self, n_taken: int) -> list[Slice]:
        """Tokens of what is asked, to whole steps of n_together; more than that where most of one is used."""
        n_asked = sum(len(one.pending) for one in self._open if len(one.pending) > 1)
        over = (n_taken + n_asked) % self._n_together
        if over < self._n_together // 2:
            n_asked -= over
        return self._own(min(n_asked, self._decoder.n_batch - n_taken), least=2)

    # --- what the prefill tells ------------------------------------------------------------------------

    def stand(self, fixed: tuple[int, int], base: int, first: int, n_done: int) -> None:
        """Before tokens are evaluated: prefix and sinks stand at the positions `fixed`, token t at base + t,
        those from `first` on are held, n_done were evaluated.
        """
        self._standing = fixed, base, first
        taps = self._taps.taps
        while self._next < len(taps) and taps[self._next].end <= n_done and not self._is_begun:
            self._next += 1  # what ends before the prefill begins is not its affair
        self._is_begun = True

    def drain(self) -> None:
        """Decode what is open to its end."""
        while self._open:
            self._step(self._own(self._decoder.n_batch))

    def close(self) -> None:
        """Give up what is open."""
        for one in self._open:
            self._give_back(one)
        self._open = []

    # --- inside ----------------------------------------------------------------------------------------

    def _begin_reached(self, position: int, *, must: bool = False) -> None:
        """Begin the texts whose spans end before `position`, as sequences are free; all of them if they
        must.
        """
        taps, (_, base, _) = self._taps.taps, self._standing
        if not self._is_begun:  # that was the prefix
            return
        while self._next < len(taps) and base + taps[self._next].end <= position:
            while must and not self._free:
                self._step(self._own(self._decoder.n_batch))
            if not self._free:
                return
            self._begin(self._next, taps[self._next])
            self._next += 1

    def _begin(self, number: int, tap: Tap) -> None:
        request = answering_at_once(tap.asked())
        sequence = self._free.popleft()
        fixed, base, first = self._standing
        end = base + tap.end
        self._cells.copy(MAIN, sequence, *fixed)
        self._cells.copy(MAIN, sequence, base + max(tap.start, first), end)
        self._decoder.begin(sequence, request.sampling)
        tokens = np.array(request.prompt.tokens, np.int32)
        stream = TextStream(request.sampling.stop)
        splitter = self._new_splitter(request.prompt.thinking_open)
        self._open.append(_Open(number, sequence, request, end, tokens, stream, splitter, len(tokens)))

    def _own(self, n_most: int, least: int = 1) -> list[Slice]:
        """The next tokens of the open texts that have at least so many, n_most in all at most."""
        parts = []
        for one in self._open:
            n = min(len(one.pending), n_most)
            if n > 0 and len(one.pending) >= least:
                parts.append(one.take(n))
                n_most -= n
        return parts

    def _step(self, batch: Sequence[Slice]) -> None:
        self._run(batch)
        by_sequence = {one.sequence: one for one in self._open}
        row = -1
        for part in batch:
            row += len(part.tokens)
            if part.sample:
                one = by_sequence[part.sequence]
                self._take(one, self._decoder.sample(part.sequence, row))

    def _take(self, one: _Open, token: int | None) -> None:
        """Account for the sampled token."""
        if token is None:
            return self._finish(one, "stop")
        one.n_generated += 1
        one.say(one.stream.feed(self._decoder.piece(token)))
        if one.stream.stopped:
            return self._finish(one, "stop")
        if one.n_generated >= one.request.sampling.max_tokens:
            return self._finish(one, "length")
        one.pending = np.array([token], np.int32)
        return None

    def _finish(self, one: _Open, reason: FinishReason) -> None:
        self._open.remove(one)
        self._give_back(one)
        one.say(one.stream.finish())
        text = "".join(one.text) + one.splitter.finish()[0]
        self._taps.on_tapped(Tapped(one.number, text, reason, one.n_evaluated, one.n_generated))

    def _give_back(self, one: _Open) -> None:
        self._decoder.end(one.sequence)
        self._cells.drop(one.sequence)
        self._free.append(one.sequence)
