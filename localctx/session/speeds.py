"""Prompt tokens a second that a model was seen to reach on this machine. Knows facts by name, no store."""

from __future__ import annotations

import platform
from collections.abc import Callable
from typing import Any

__all__ = ["Speeds"]

FACT = "prompt_tokens_per_s"


class Speeds:
    """`facts(fingerprint)`: what is known of a model · `set_fact(fingerprint, name, value)` keeps one."""

    def __init__(
        self, facts: Callable[[str], dict[str, Any]], set_fact: Callable[[str, str, object], None]
    ) -> None:
        self._facts = facts
        self._set_fact = set_fact
        self._seen: dict[str, float] = {}

    def get(self, fingerprint: str, machine: str) -> float | None:
        """Tokens a second as last measured on such a machine."""
        name = _name(machine)
        if name not in self._seen:
            value = self._kept(fingerprint).get(name)
            if not isinstance(value, (int, float)) or not value > 0:
                return None
            self._seen[name] = float(value)
        return self._seen[name]

    def note(self, fingerprint: str, machine: str, rate: float) -> None:
        """Remember tokens a second."""
        name = _name(machine)
        self._seen[name] = rate
        self._set_fact(fingerprint, FACT, {**self._kept(fingerprint), name: round(rate, 1)})

    def _kept(self, fingerprint: str) -> dict[str, Any]:
        rates = self._facts(fingerprint).get(FACT)
        return rates if isinstance(rates, dict) else {}


def _name(machine: str) -> str:
    return f"{platform.node()}/{machine}"
