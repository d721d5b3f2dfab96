"""What an examination found. Values only; rendering is the command's."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["Finding", "Report", "Status"]

Status: TypeAlias = Literal["ok", "warn", "fail"]


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing looked at: what was seen, what to do unless it is ok, and what was measured, units in the
    names.
    """

    name: str
    status: Status
    detail: str
    suggestion: str = ""
    measured: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Report:
    """All findings, in the order they were made."""

    findings: tuple[Finding, ...]

    @property
    def status(self) -> Status:
        """The worst status of all."""
        seen = {finding.status for finding in self.findings}
        return "fail" if "fail" in seen else "warn" if "warn" in seen else "ok"
