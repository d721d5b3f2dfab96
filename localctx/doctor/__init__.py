"""What was built, what works, what to do: `examine()`. Runs llama.cpp in a child process only."""

from __future__ import annotations

from localctx.doctor.examine import examine
from localctx.doctor.report import Finding, Report, Status

__all__ = ["Finding", "Report", "Status", "examine"]
