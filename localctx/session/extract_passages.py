"""Records in running text: every sentence whose values can make up a record is read by the model.

A grammar made for the sentence lets it write nothing but values that stand there, so that it only says which
is which. What takes the words of another property is asked again without them; what was written without the
grammar (another server's model) is held against the sentence.
"""

from __future__ import annotations

import json
import math
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice
from typing import Any

from localctx.blocks import sentence_units
from localctx.engine.json_schema import grammar_of
from localctx.engine.source_values import NothingFits, Phrase, Sources
from localctx.index.stop_words import stop_words
from localctx.index.terms import fold, words
from localctx.selection.passage_values import (
    PassageValues,
    before_joiner,
    overlap,
    passage_values,
    units_in,
    whole_name,
    without_words,
)
from localctx.selection.record_schema import RecordSchema
from localctx.session.citing import cite
from localctx.session.decoding import decode_many
from localctx.session.events import Event, Progress
from localctx.session.extraction import FoundRecord, Passed
from localctx.session.opening import tokenizer_of
from localctx.session.prompts import document_messages, record_task
from localctx.session.reading import Reading
from localctx.session.run import Run
from localctx.session.strategy import round_n_ctx
from localctx.values import Context, Request

__all__ = ["N_SEQ", "Passages"]

N_SEQ = 8
WAVE = 64
UNIT_TOKENS = 128
SAMPLE_CHARACTERS = 20_000


@dataclass(frozen=True, slots=True)
class _Unit:
    """A sentence that is read: code points [start, end), and what its records are made of."""

    start: int
    end: int
    text: str
    values: PassageValues
    grammar: str


@dataclass(slots=True)
class Passages:
    """Reads documents sentence by sentence. n_tokens, n_read: tokens of each document, and those that went
    through the model. n_broken: answers that are no record.
    """

    run: Run
    schema: RecordSchema
    passed: Passed
    n_tokens: list[int]
    n_read: list[int]
    is_cancelled: bool = False
    n_ctx: int = 0
    n_broken: int = 0
    units: dict[str, frozenset[str]] = field(default_factory=dict)

    def records(self, reading: Reading) -> Generator[Event, None, list[FoundRecord]]:
        """The records of one document, in order."""
        found: list[FoundRecord] = []
        context: Context | None = None
        try:
            units = self._units(reading)
            while wave := list(islice(units, WAVE)):
                if context is None:
                    context = self._context()
                found += self._wave(context, reading, wave)
                total = reading.document.text.n_code_points
                self.run.listen(Progress("extracting", wave[-1].end, total, "characters"))
                yield from self.run.unheard()
                if self.is_cancelled:
                    break
        finally:
            if context is not None:
                context.close()
        return found

    def _context(self) -> Context:
        """As large as sentences of the largest size need, side by side."""
        settings = self.run.settings
        scaffold = self._request("", "").prompt.tokens
        each = len(scaffold) + UNIT_TOKENS + settings.max_tokens
        n_seq = settings.parallel or N_SEQ
        self.n_ctx = min(round_n_ctx(n_seq * each), max(self.run.limit, round_n_ctx(each)))
        return self.run.context(self.n_ctx, n_seq)

    def _units(self, reading: Reading) -> Iterator[_Unit]:
        """The sentences that can hold a record; the others are counted."""
        document = reading.document
        small = stop_words(words(document.read(0, SAMPLE_CHARACTERS)))
        self.units = {
            name: found
            for name, wanted in self.schema.number_words.items()
            if (found := units_in(document.text.stream(), wanted - small))
        }
        segments = sentence_units(
            document.text, tokenizer_of(self.run.model), max_tokens=UNIT_TOKENS, sections=document.sections
        )
        for segment in segments:
            self.n_tokens[reading.ordinal] += len(segment.tokens)
            self.passed.n_units += 1
            text = segment.text.strip()
            values = passage_values(text, small, has_numbers=self.schema.has_numbers)
            try:
                grammar = grammar_of(dict(self.schema.record), self._sources(values))
            except NothingFits:
                continue
            self.passed.n_read += 1
            self.n_read[reading.ordinal] += len(segment.tokens)
            start = segment.start + len(segment.text) - len(segment.text.lstrip())
            yield _Unit(start, start + len(text), text, values, grammar)

    def _request(self, text: str, grammar: str) -> Request:
        task = record_task(self.schema.title, self.schema.descriptions)
        request = self.run.request(document_messages([text], task), self.run.settings.max_tokens)
        return replace(request, sampling=replace(request.sampling, grammar=grammar))

    def _wave(self, context: Context, reading: Reading, units: Sequence[_Unit]) -> list[FoundRecord]:
        """The records of some sentences, in order."""
        written = self._written(context, [(unit.text, unit.grammar) for unit in units])
        values = [self._parsed(text) for text in written]
        again: list[tuple[int, str]] = []
        for number, (unit, value) in enumerate(zip(units, values, strict=True)):
            if value is not None and (grammar := self._apart(value, unit.values)):
                again.append((number, grammar))
        for (number, _), text in zip(
            again, self._written(context, [(units[n].text, grammar) for n, grammar in again]), strict=True
        ):
            values[number] = self._parsed(text) or values[number]
        found = []
        for unit, value in zip(units, values, strict=True):
            if value is not None:
                self._make_whole(value, unit)
            if value is not None and self._is_told_apart(value) and self._is_held(value, unit):
                citation = cite(reading.document, unit.start, unit.end, 1.0)
                found.append(FoundRecord(value, (citation,), "model"))
        return found

    def _written(self, context: Context, asked: Sequence[tuple[str, str]]) -> list[str]:
        """What the model writes of sentences under their grammars; empty where it was cut."""
        texts = [""] * len(asked)
        requests = [self._request(text, grammar) for text, grammar in asked]
        for done in decode_many(context, requests, self.run.timings, self.run.started) if asked else ():
            self.run.count(done)
            self.is_cancelled |= done.finish_reason == "cancelled"
            if done.finish_reason == "stop":
                texts[done.index] = done.text
        return texts

    def _parsed(self, text: str) -> dict[str, Any] | None:
        """The record that was written; what is none is counted."""
        try:
            value = json.loads(text)
        except ValueError:
            value = None
        if isinstance(value, dict) and self.schema.fulfils(value, self.schema.record):
            return value
        self.n_broken += not self.is_cancelled
        return None

    def _apart(self, value: dict[str, Any], found: PassageValues) -> str:
        """Where two values share words: the longer one without the shorter, where a small word stands between
        them; else a grammar in which the shorter one is found elsewhere. Empty: nothing to ask.
        """
        texts = {name: one.split() for name, one in value.items() if self._is_phrase(name, one)}
        names = sorted(texts, key=lambda name: -len(texts[name]))
        for n, longer in enumerate(names):
            for shorter in names[n + 1 :]:
                place = overlap(texts[longer], texts[shorter])
                if place is None:
                    continue
                if left := before_joiner(texts[longer], place):
                    value[longer] = " ".join(left)
                    continue
                phrases = without_words(found.phrases, texts[longer])
                return self._grammar_but(value, shorter, replace(found, phrases=phrases))
        return ""

    def _make_whole(self, value: dict[str, Any], unit: _Unit) -> None:
        """Give names the capitalised words beside them that no other value has."""
        texts = {name: one.split() for name, one in value.items() if self._is_phrase(name, one)}
        for name, run in texts.items():
            taken = {fold(word) for other, rest in texts.items() if other != name for word in rest}
            value[name] = " ".join(whole_name(run, unit.values.phrases, unit.text.split()[0], taken))

    def _is_told_apart(self, value: dict[str, Any]) -> bool:
        """Whether no two properties have the same words: else the sentence has nothing for one of them."""
        texts = [fold(one) for name, one in value.items() if self._is_phrase(name, one)]
        is_apart = len(set(texts)) == len(texts)
        self.passed.n_unfit += not is_apart
        return is_apart

    def _is_phrase(self, name: str, value: Any) -> bool:
        """Whether a value is a string of the sentence's words."""
        schema = self.schema.resolved(self.schema.properties.get(name, {}))
        return isinstance(value, str) and not {"enum", "const", "format"} & set(schema)

    def _grammar_but(self, value: dict[str, Any], name: str, values: PassageValues) -> str:
        """The grammar of the same record with another value of one property; empty where there is none."""
        fixed = {key: {"const": one} for key, one in value.items()}
        fixed[name] = dict(self.schema.resolved(self.schema.properties[name]))
        try:
            return grammar_of(
                {"type": "object", "properties": fixed, "required": list(fixed)}, self._sources(values)
            )
        except NothingFits:
            return ""

    def _is_held(self, value: dict[str, Any], unit: _Unit) -> bool:
        """Whether all values stand in the sentence, but for the schema's constants; one that does not leaves
        the record out.
        """
        text = f" {' '.join(words(unit.text))} "
        for leaf, schema in self.schema.leaves(value, self.schema.record):
            if leaf is None or isinstance(leaf, bool) or {"enum", "const"} & set(schema):
                continue
            if isinstance(leaf, str):
                is_held = leaf in unit.values.dates or f" {' '.join(words(fold(leaf)))} " in text
            else:
                is_held = any(_is_same_number(leaf, written) for written in unit.values.numbers)
            if not is_held:
                self.passed.n_unheld += 1
                return False
        return True

    def _sources(self, values: PassageValues) -> Sources:
        """What the grammar takes values from; numbers with a unit are those beside which it stands."""
        phrases = tuple(Phrase(run, inner) for run, inner in values.phrases)
        numbers_at = {f"properties/{name}": values.numbers_of(units) for name, units in self.units.items()}
        return Sources(phrases, values.numbers, values.dates, numbers_at)


def _is_same_number(value: int | float, written: str) -> bool:
    """Whether a number that was read is the written one, however either is spelled ("5e-05", "0.00005")."""
    if written.count(".") > 1:
        return False  # a version
    if isinstance(value, float):
        return math.isfinite(value) and value == float(written)
    return Decimal(value) == Decimal(written)
