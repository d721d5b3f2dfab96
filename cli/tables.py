"""Findings, models and facts as lines of standard output."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from localctx.byte_sizes import format_bytes

from .terminal import print_line

if TYPE_CHECKING:
    from localctx.doctor import Finding
    from localctx.registry import ListedModel

__all__ = ["print_facts", "print_finding", "print_model"]


def print_finding(finding: Finding) -> None:
    """One line of `doctor`, and the suggestion under it."""
    print_line(f"{finding.status:<5}{finding.name}: {finding.detail}")
    if finding.suggestion:
        print_line(f"     → {finding.suggestion}")


def print_model(row: ListedModel) -> None:
    """One line of `models ls`."""
    about = row.manifest.title if row.manifest else "not known to localctx"
    where = "not installed"
    if row.path:
        where = f"{format_bytes(row.size_bytes or 0)}, {row.where}: {row.path}"
    lines = [f"{row.name:<22} {about}", f"{'':<22} {where}"]
    if row.problem:
        lines.append(f"{'':<22} cannot be used: {row.problem}")
    print_line("\n".join(lines))


def print_facts(facts: dict[str, Any], indent: int = 0) -> None:
    """Nested facts as indented `name: value` lines."""
    for name, value in facts.items():
        if isinstance(value, dict):
            print_line(f"{'  ' * indent}{name}:")
            print_facts(value, indent + 1)
        elif value not in (None, "", [], ()):
            text = ", ".join(map(str, value)) if isinstance(value, (list, tuple)) else value
            print_line(f"{'  ' * indent}{name}: {text}")
