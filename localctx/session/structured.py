"""Answers in the form of a JSON schema: the schema of a run's settings, and what such an answer says."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localctx.engine.json_schema import grammar_of
from localctx.errors import UsageError
from localctx.settings import Settings
from localctx.small_text import MAX_BYTES, finite_number, read_small_text, reason_of, refuse_constant

__all__ = ["AnswerSchema", "answer_schema", "check_free_text", "said"]

HINT = "--schema FILE, a JSON schema of at most 1 MiB"


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """`text`: the schema as compact JSON; `grammar`: GBNF of what fulfils it."""

    text: str
    grammar: str


def answer_schema(settings: Settings) -> AnswerSchema | None:
    """The schema that answers are to fulfil; None: they are free text. Settings.schema names its file, or is
    the schema itself where it begins with a brace.

    Raises UsageError for a file that cannot be read, what is no JSON, and what is not supported.
    """
    given = settings.schema
    if given is None:
        return None
    if given.lstrip().startswith("{"):
        return _parsed(given, "the schema")
    try:
        text = read_small_text(Path(given))
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read the schema {given}: {reason_of(error)}", HINT) from None
    return _parsed(text, given)


@functools.lru_cache(maxsize=64)
def _parsed(text: str, name: str) -> AnswerSchema:
    if len(text) > MAX_BYTES:
        raise UsageError(f"{name} is too large", HINT)
    try:
        schema = json.loads(text, parse_constant=refuse_constant, parse_float=finite_number)
        compact = json.dumps(schema, ensure_ascii=False, separators=(",", ":"))
        return AnswerSchema(compact, grammar_of(schema))
    except ValueError as error:
        raise UsageError(f"{name} is not JSON: {' '.join(str(error).split())}", HINT) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", HINT) from None


def check_free_text(settings: Settings, command: str) -> None:
    """Raises UsageError where a schema was given to a command whose result has a form of its own."""
    if settings.schema is not None:
        raise UsageError(f"--schema is not for {command}", "it is for ask and batch")


def said(answer: str) -> str:
    """What a structured answer says, as text to be judged and cited: its leaf values, one a line; the answer
    itself where it was cut and is no JSON.
    """
    try:
        value = json.loads(answer)
    except ValueError:
        return answer
    return "\n".join(_leaves(value))


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)
