"""What a field of a record may be called in words. Pure."""

from __future__ import annotations

from collections.abc import Iterable

import regex

from localctx.selection.record_values import tokens

__all__ = ["field_names"]

_CAMEL = regex.compile(r"(?<=\p{Ll})(?=\p{Lu})")
_SEPARATORS = regex.compile(r"[_.\-\s]+")


def field_names(fields: Iterable[str]) -> dict[str, set[str]]:
    """Words, folded, with the fields that they may mean: a field's whole name, its last part, one or many. A
    field whose own name they are comes before others.
    """
    found: dict[str, set[str]] = {}
    exact: dict[str, str] = {}
    for name in fields:
        exact[" ".join(tokens(name))] = name
        for part in {name, name.rpartition(".")[2]}:
            whole = " ".join(tokens(_SEPARATORS.sub(" ", _CAMEL.sub(" ", part))))
            for form in {whole, " ".join(tokens(part)), *_plurals(whole)}:
                found.setdefault(form, set()).add(name)
    found.pop("", None)
    return {form: {exact[form]} if form in exact else names for form, names in found.items()}


def _plurals(words: str) -> tuple[str, ...]:
    if not words:
        return ()
    if words.endswith("y"):
        return (f"{words[:-1]}ies", f"{words}s")
    return (f"{words}s", f"{words}es")
