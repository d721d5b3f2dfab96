"""What is said of a document and of an answer on standard error, line by line. Prints nothing."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from localctx.byte_sizes import format_bytes
from localctx.document.pages import page_list

if TYPE_CHECKING:
    from localctx.session.answer import Answer
    from localctx.session.events import Overview
    from localctx.session.provenance import Coverage
    from localctx.values import ModelInfo

__all__ = ["counted", "device_line", "footer_lines", "overview_lines"]

OUTLINE_LINES = 12


def counted(n: int, word: str) -> str:
    """A number of things, for people: 1 page, 2,000 pages."""
    return f"{n:,} {word}" if n == 1 else f"{n:,} {word}s"


def overview_lines(event: Overview) -> list[str]:
    """What a document is, and its outermost sections."""
    facts = [event.format]
    if event.n_pages:
        facts.append(counted(event.n_pages, "page"))
    facts.append(f"about {counted(event.n_tokens_estimate, 'token')}")
    if event.language:
        facts.append(f"language {event.language}")
    lines = [f"{event.source}: {', '.join(facts)}"]
    highest = min((section.level for section in event.outline), default=0)
    top = [section for section in event.outline if section.level == highest]
    lines += [f"  {section.title}" for section in top[:OUTLINE_LINES]]
    if len(top) > OUTLINE_LINES:
        lines.append(f"  … and {counted(len(top) - OUTLINE_LINES, 'more section')}")
    return lines


def age_text(seconds: float) -> str:
    """How long ago something was, for people."""
    for name, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if (n := int(seconds // length)) > 0:
            return f"{n:,} {name}{'s' * (n > 1)} ago"
    return "less than a minute ago"


def _coverage_lines(coverage: Coverage) -> list[str]:
    """What was special about the reading."""
    lines = []
    if coverage.pulled_in_by_reference:
        names = (f"{one.reference} ({one.tokens:,} tokens)" for one in coverage.pulled_in_by_reference)
        lines.append(f"  pulled in by reference: {', '.join(names)}")
    if coverage.pages_without_text:
        lines.append(f"  pages without text: {', '.join(map(str, coverage.pages_without_text))}")
    if coverage.pages_by_ocr:
        confidence = f"mean confidence {coverage.ocr_confidence or 0:.2f}"
        lines.append(f"  read by OCR: {page_list(coverage.pages_by_ocr)}, {confidence}")
    if coverage.replaced_characters:
        lines.append(f"  characters replaced: {coverage.replaced_characters:,}")
    return lines


def footer_lines(answer: Answer, verbose: bool) -> list[str]:
    """Coverage in one line, and with -v the counts and times."""
    coverage = answer.coverage
    if answer.records is not None:
        records = answer.records
        return [
            f"— count: every record read by its parser, without the model: "
            f"{counted(records.read, 'record')}, {records.matched:,} of them match"
        ]
    pages = f"{counted(coverage.pages_total, 'page')}, " if coverage.pages_total else ""
    line = (
        f"— {answer.strategy}: {pages}{coverage.tokens_read:,} of {coverage.tokens_total:,} tokens read, "
        f"{coverage.tokens_attended:,} attended, {coverage.tokens_dropped:,} not read"
    )
    if answer.command == "ask":
        line += f"; support: {_support(answer)}"
    if answer.asked_at is not None:
        line += f"; from the log, answered {age_text(time.time() - answer.asked_at)} (--fresh answers anew)"
    lines = [line, *_coverage_lines(coverage)]
    if verbose:
        rope, tokens, times = answer.model.rope, answer.tokens, answer.timings
        lines.append(
            f"  model {answer.model.name}: n_ctx {answer.n_ctx:,} of {answer.model.n_ctx_train:,} trained; "
            f"rope {rope.type}, scaling {rope.scaling}, base {rope.freq_base:g}, scale {rope.freq_scale:g}"
        )
        if answer.model.devices:
            lines.append(device_line(answer.model))
        if answer.requested:
            asked = (f"{name.replace('_', '-')} {value}" for name, value in answer.requested.items())
            lines.append(f"  asked for: {', '.join(asked)}")
        lines.append(
            f"  tokens: {tokens.evaluated:,} evaluated, {tokens.restored:,} restored, "
            f"{tokens.generated:,} generated; first token {times.ttft_ms / 1000:.1f} s, "
            f"{times.decode_tokens_per_s:.1f} tokens/s"
        )
    return lines


def _support(answer: Answer) -> str:
    """The verdict; of `partial` why, where no single statement is named under the answer."""
    verdicts = {statement.verdict for statement in answer.statements}
    if answer.support == "partial" and verdicts <= {"partial"}:
        return "partial (no one place that was read says all of it)"
    return answer.support


def device_line(model: ModelInfo) -> str:
    """What lies on which device."""
    shares = (
        f"{share.name} {share.layers} layers, weights {format_bytes(share.weights_bytes)},"
        f" KV {format_bytes(share.kv_bytes)}"
        for share in model.devices
    )
    return f"  devices: {'; '.join(shares)}"
