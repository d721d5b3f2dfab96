"""A verb between options and exit code: what is said early, and what is raised at the end."""

from __future__ import annotations

from dataclasses import replace

import pytest
import typer

from localctx.cli.documents import Opened
from localctx.cli.render import Reporter
from localctx.cli.running import _Preview, _tell_shortcomings
from localctx.document.events import Preview
from localctx.engine.echo import EchoModel
from localctx.errors import Interrupted, PartlyDone
from localctx.session.answer import Answer
from localctx.session.provenance import Coverage
from localctx.session.strategy import choose_summarize
from localctx.settings import Settings

LONG = Preview("a.pdf", "pdf", 1_000_000, 1, ((1, "One"), (2, "Two")), "Some words of the first page. " * 20)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (Settings(), "plan: probably map-reduce (does not fit"),
        (Settings(strategy="condense"), "plan: probably condense (as asked, estimated)"),
        (Settings(strategy="exact"), "plan: probably not possible: exact attention does not fit"),
        (Settings(ctx=1 << 30), "plan: probably not possible: "),
    ],
)
def test_a_preview_never_fails_for_size(
    capsys: pytest.CaptureFixture[str], settings: Settings, said: str
) -> None:
    with Reporter(as_json=False, quiet=False, verbose=False, shows_answer=True) as reporter:
        _Preview(reporter, EchoModel(), settings, choose_summarize)(LONG)
    lines = capsys.readouterr().err.splitlines()
    assert lines[0].startswith("a.pdf: pdf, 1,000,000 pages, about ")
    assert lines[1] == "  One"
    assert lines[2].startswith(said)


def answer() -> Answer:
    return Answer("ask", "Yes.", "exact", "supported", "stop", EchoModel().info, 256, Coverage())


def test_what_an_answer_lacks_is_raised_at_the_end() -> None:
    _tell_shortcomings(answer(), Opened([], 0, ()), as_json=False)
    with pytest.raises(PartlyDone, match="2 of 2 files"):
        _tell_shortcomings(answer(), Opened([], 2, ()), as_json=False)
    with pytest.raises(Interrupted):
        _tell_shortcomings(replace(answer(), finish_reason="cancelled"), Opened([], 2, ()), as_json=False)


@pytest.mark.parametrize(("reason", "code"), [("stop", 4), ("cancelled", 130)])
def test_after_an_answer_as_json_only_the_code_says_it(
    capsys: pytest.CaptureFixture[str], reason: str, code: int
) -> None:
    with pytest.raises(typer.Exit) as done:
        _tell_shortcomings(replace(answer(), finish_reason=reason), Opened([], 1, ()), as_json=True)  # type: ignore[arg-type]  # a reason
    assert done.value.exit_code == code
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("localctx: ")
