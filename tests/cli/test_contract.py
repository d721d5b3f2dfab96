"""The page docs/cli.md and the program say the same."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_type_hints

import pytest
import typer

from localctx.cli.main import app
from localctx.cli.options import LaterOptions, OutputOptions, RunOptions
from localctx.errors import NotYetAvailable

PAGE = Path(__file__).parents[2] / "docs" / "cli.md"
LATER = [
    "chat",
    "batch",
    "compare",
    "extract",
    "index",
    "truncate",
    "plan",
    "store",
    "verify",
    "eval",
    "serve",
    "log",
]
Run = Callable[..., Any]


def names_on_the_page() -> set[str]:
    text = PAGE.read_text("utf-8")
    table = text[text.index("## Options of every command") : text.index("## Strategies")]
    return set(re.findall(r"`(--?[a-z][a-z-]*)`", table))


def names_of(group: Any) -> set[str]:
    hints = get_type_hints(group, include_extras=True)
    found: set[str] = set()
    for field in dataclasses.fields(group):
        info = hints[field.name].__metadata__[0]
        found.update(
            [info.default, *info.param_decls]
        )  # Typer takes the first name for a default until it parses
    return found


def test_the_page_lists_exactly_the_options_there_are() -> None:
    there = set().union(*map(names_of, (RunOptions, LaterOptions, OutputOptions)))
    assert names_on_the_page() == there


def test_the_page_lists_every_command() -> None:
    text = PAGE.read_text("utf-8")
    commands = typer.main.get_command(app).commands  # type: ignore[attr-defined]  # a group
    for name in commands:
        assert re.search(rf"`(?:localctx )?{name}[ `]", text), name


@pytest.mark.parametrize("command", LATER)
def test_a_later_command_says_so(localctx: Run, command: str) -> None:
    result = localctx(command)
    assert (result.code, result.out) == (2, "")
    assert "not available yet" in result.err
    assert result.err.count("\n") == 1


@pytest.mark.parametrize("field", [field.name for field in dataclasses.fields(LaterOptions)])
def test_a_later_option_is_never_ignored(localctx: Run, field: str) -> None:
    with pytest.raises(NotYetAvailable):
        LaterOptions(**{field: "x"}).refuse_given()


def test_the_line_of_an_article_is_understood(localctx: Run) -> None:
    line = "--ctx-size 4194304 --rope-freq-base 500000.0 --kv-overrides attn_layers=16,cache_type=streaming"
    result = localctx("summarize", "x.txt", *line.split())
    assert result.code == 2
    assert "--rope-freq-base is not available yet" in result.err


def test_llama_cpp_spellings(localctx: Run) -> None:
    result = localctx(
        "ask", "x.txt", "-q", "?", "-m", "m", "-c", "4096", "-ngl", "0", "-t", "2", "-ctk", "q8_0"
    )
    assert "--cache-type-k is not available yet" in result.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["summarise", "x"], "No such command 'summarise'"),
        (["ask", "x", "--questoin", "?"], "No such option"),
        (["ask", "x"], "-q TEXT"),
        (["ask", "x", "-q", "  "], "the question is empty"),
        (["summarize", "x", "--length", "tiny"], "short, medium, long"),
        (["summarize", "x", "--pages", "9-3"], "not a page range"),
        (["summarize", "x", "--strategy", "exct"], "did you mean 'exact'?"),
        (["summarize", "x", "--ctx", "3"], "out of range"),
        (["summarize", "x", "--model", "smollm"], "unknown model"),
        (["ask", "x", "-q", "?", "--model", "../../etc/passwd"], "../../etc/passwd"),
        (["ask", "x", "-q", "?", "--config", "/nowhere.toml"], "cannot read /nowhere.toml"),
    ],
)  # fmt: skip
def test_bad_usage_is_one_line(localctx: Run, words: list[str], said: str) -> None:
    result = localctx(*words)
    assert result.code in (1, 2)
    assert said in result.err
    assert result.err.count("\n") == 1
    assert result.out == ""


def test_errors_as_json(localctx: Run) -> None:
    result = localctx("ask", "x", "-q", "", "--json")
    assert result.code == 2
    assert result.json["schema"] == "localctx.error/1"
    assert result.json["error"]["type"] == "UsageError"
    assert result.err == ""


def test_an_unknown_key_in_the_settings_names_the_nearest(localctx: Run, tmp_path: Path) -> None:
    config = tmp_path / "localctx.toml"
    config.write_text('modle = "x"\n')
    result = localctx("ask", "x", "-q", "?", "--config", str(config))
    assert "unknown setting 'modle'" in result.err
    assert "did you mean 'model'?" in result.err


def test_environment_values_are_typed(localctx: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALCTX_CTX", "many")
    assert "ctx = 'many' in environment is not of type int" in localctx("ask", "x", "-q", "?").err
