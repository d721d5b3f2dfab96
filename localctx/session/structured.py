"""Answers in the form of a JSON schema: the schema of a run's settings, and what such an answer says."""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from localctx.engine.json_schema import grammar_of
from localctx.errors import UsageError
from localctx.index.terms import fold
from localctx.selection import Claim, claims, says_not_found
from localctx.settings import Settings
from localctx.small_text import MAX_BYTES, finite_number, read_small_text, reason_of, refuse_constant

__all__ = ["AnswerSchema", "answer_schema", "check_free_text", "constants_of", "said", "value_claims"]

HINT = "--schema FILE, a JSON schema of at most 1 MiB"
VALUE_WORDS = 8
"""A string of more words is a sentence, which may say in its own words what the text says."""


@dataclass(frozen=True, slots=True)
class AnswerSchema:
    """`text`: the schema as compact JSON; `grammar`: GBNF of what fulfils it; `constants`: the strings that
    the schema itself gives as values.
    """

    text: str
    grammar: str
    constants: frozenset[str] = frozenset()


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
        return AnswerSchema(compact, grammar_of(schema), constants_of(schema))
    except ValueError as error:
        raise UsageError(f"{name} is not JSON: {' '.join(str(error).split())}", HINT) from None
    except RecursionError:
        raise UsageError(f"{name} is nested too deeply", HINT) from None


def check_free_text(settings: Settings, command: str) -> None:
    """Raises UsageError where a schema was given to a command whose result has a form of its own."""
    if settings.schema is not None:
        raise UsageError(f"--schema is not for {command}", "it is for ask, extract and batch")


def said(answer: str) -> str:
    """What a structured answer says, as text to be judged and cited: its leaf values, one a line; the answer
    itself where it was cut and is no JSON.
    """
    try:
        value = json.loads(answer)
    except ValueError:
        return answer
    return "\n".join(_leaves(value))


def value_claims(answer: str, constants: frozenset[str]) -> tuple[Claim, ...]:
    """What of a structured answer has to stand in the document: its short strings as they are, but for the
    schema's own constants, and the claims of all else.
    """
    try:
        leaves = list(_leaves(json.loads(answer)))
    except ValueError:
        return claims(answer)
    found: list[Claim] = []
    for leaf in dict.fromkeys(leaves):
        is_word = 0 < len(leaf.split()) <= VALUE_WORDS and not any(map(str.isdecimal, leaf))
        if leaf in constants or leaf in ("true", "false") or says_not_found(leaf):
            continue
        found += [Claim("quote", leaf, 0, len(leaf), fold(leaf))] if is_word else claims(leaf)
    return tuple(found)


def constants_of(schema: object) -> frozenset[str]:
    """The strings that a schema gives as values: those of its enum and const, wherever they stand."""
    found: set[str] = set()
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            for key in ("enum", "const"):
                given = part.get(key)
                found.update(one for one in _as_list(given) if isinstance(one, str))
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return frozenset(found)


def _as_list(value: object) -> list[object]:
    return value if isinstance(value, list) else [value]


def _leaves(value: object) -> Iterator[str]:
    if isinstance(value, dict):
        for member in value.values():
            yield from _leaves(member)
    elif isinstance(value, list):
        for item in value:
            yield from _leaves(item)
    elif value is not None:
        yield value if isinstance(value, str) else json.dumps(value)
